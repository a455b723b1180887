"""Debugging in autograd's threads. Autograd runs backward graphs of a GPU, and deeply nested ones, in its own threads.
Python did not start them, so a debugger that traces thread by thread does not trace them, and its breakpoints do not
stop there. Here the debugger's trace function is set for the time of each backward function written in Python.
"""

from __future__ import annotations

import bdb
import functools
import sys
import threading
from types import FrameType
from typing import Any, Callable, List, Optional

from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.patching import Undo, registered, replace_attribute, undo_all
from depyf.dynamo.hooks.safely import safely

_RUNS_BACKWARD = ("apply", "apply_boxed")
"""The methods that autograd calls to run a backward function; older versions of PyTorch have the first only."""


def watch_autograd_threads() -> Optional[Undo]:
    """Start to run backward functions with the debugger, if there is one; return the function that stops it."""
    node = private_names.BACKWARD_NODE.find_or_report()
    if node is None:
        return None
    names = [name for name in _RUNS_BACKWARD if name in vars(node)]
    undos: List[Undo] = []
    undo = registered(functools.partial(undo_all, undos))
    for name in names:
        undos.append(replace_attribute(node, name, _debugged(vars(node)[name])))
    return undo


def _debugged(original: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(original)
    def run(*args: object) -> object:
        if sys.gettrace() is not None or not _is_foreign():
            return original(*args)
        leave = _enter_debugger()
        try:
            return original(*args)
        finally:
            if leave is not None:
                leave()

    return run


def _is_foreign() -> bool:
    """Return whether this thread was not started by Python."""
    return isinstance(threading.current_thread(), threading._DummyThread)


@safely("letting the debugger into a thread of autograd's")
def _enter_debugger() -> Optional[Undo]:
    """Let the program's debugger trace this thread; return the function that stops it, if one is needed."""
    debugpy = sys.modules.get("debugpy")
    if debugpy is not None and debugpy.is_client_connected():
        debugpy.debug_this_thread()
        return None  # it forgets threads by itself
    trace = _trace_function_of_pdb()
    if trace is None:
        return None
    sys.settrace(trace)
    return lambda: sys.settrace(None)


def _trace_function_of_pdb() -> Any:
    """Return the trace function of the ``pdb`` (or another made from ``bdb``) that traces a thread, ``None`` without
    one. It has marked the frames that it watches. Its thread does not matter: it is blocked by this one."""
    for innermost in sys._current_frames().values():
        frame: Optional[FrameType] = innermost
        while frame is not None:
            trace = frame.f_trace
            if isinstance(getattr(trace, "__self__", None), bdb.Bdb):
                return trace
            frame = frame.f_back
    return None
