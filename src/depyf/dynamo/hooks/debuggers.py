"""What a debugger needs from depyf.

- In autograd's threads: autograd runs backward graphs of a GPU, and deeply nested ones, in its own threads. Python did
  not start them, so a debugger that traces thread by thread does not trace them, and its breakpoints do not stop there.
  The debugger's trace function is set for the time of each backward function written in Python.
- At a stop: a debugger reads variables with functions of the standard library, and its user evaluates expressions. If
  the program is stopped in compiled code, Dynamo would compile these, too, and number the graphs that follow otherwise
  than without the debugger.
- At exit: pdb's tracing fails in the interpreter's shutdown, as its own modules have been emptied. Code that still runs
  (``__del__``, callbacks of weak references) then prints "Exception ignored in ... 'NoneType' object has no attribute
  'path'". Tracing ends before.
"""

from __future__ import annotations

import atexit
import bdb
import functools
import sys
import threading
from types import FrameType
from typing import Any, Callable, List, Mapping, Optional, Tuple

from depyf.base.own_builtins import keep_builtins
from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.frame_evaluation import set_eval_frame
from depyf.dynamo.hooks.late_modules import when_imported
from depyf.dynamo.hooks.patching import Undo, registered, replace_attribute, undo_all
from depyf.dynamo.hooks.safely import safely

keep_builtins(globals())

_RUNS_BACKWARD = ("apply", "apply_boxed")
"""The methods that autograd calls to run a backward function; older versions of PyTorch have the first only."""


def profiles_in_c() -> bool:
    """Return whether ``cProfile`` or the like runs on this thread (up to Python 3.11): ``sys.setprofile`` ends it, and
    can't start it again."""
    present = sys.getprofile()
    return present is not None and not callable(present)


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
    """Return whether this thread was not started by Python. ``threading.current_thread()`` would list the thread."""
    this = threading.get_ident()
    known = next((each for each in threading.enumerate() if each.ident == this), None)
    return known is None or isinstance(known, threading._DummyThread)


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


_STOPS: Mapping[str, Tuple[str, str]] = {"pdb": ("Pdb", "interaction"), "pydevd": ("PyDB", "do_wait_suspend")}
"""By module: the class of the debugger, and the method that returns when the program goes on."""


def keep_dynamo_out_of_stops() -> None:
    """Make the debuggers pdb (IPython's, too) and debugpy stop without Dynamo, whenever they are imported."""
    for module in _STOPS:
        when_imported(module, functools.partial(_watch, module))


def _watch(module: str) -> object:
    owner, method = _STOPS[module]
    debugger = getattr(sys.modules.get(module), owner, None)
    stop: Optional[Callable[..., object]] = getattr(debugger, method, None)
    if stop is None:
        return None

    @functools.wraps(stop)
    def stopped(*args: object, **kwargs: object) -> object:
        before = set_eval_frame(None)
        try:
            return stop(*args, **kwargs)
        finally:
            set_eval_frame(before)

    return replace_attribute(debugger, method, stopped)


_TOOL_OF_BDB = "bdbtracer"
"""The name under which ``bdb`` uses ``sys.monitoring``, as pdb makes it do since Python 3.14."""

_registered: List[bool] = []
"""Not empty once it is registered."""


def end_tracing_at_exit() -> None:
    """Make pdb (or another debugger based on ``bdb``) stop tracing when the interpreter starts to shut down. Exit
    handlers that were registered before are not traced: call this early.
    """
    if not _registered:
        atexit.register(_end_tracing)
        _registered.append(True)


def _end_tracing() -> None:
    if isinstance(getattr(sys.gettrace(), "__self__", None), bdb.Bdb):
        sys.settrace(None)
    if monitored_by_pdb():
        monitoring = sys.monitoring  # type: ignore[attr-defined]
        monitoring.free_tool_id(monitoring.DEBUGGER_ID)


def monitored_by_pdb() -> bool:
    """Return whether pdb (or another debugger based on ``bdb``) traces with ``sys.monitoring`` now."""
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and monitoring.get_tool(monitoring.DEBUGGER_ID) == _TOOL_OF_BDB
