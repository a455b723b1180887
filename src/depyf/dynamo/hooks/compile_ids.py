"""The compile id of a thread's current compilation, and of the compilation that raised an exception."""

from __future__ import annotations

import sys
import weakref
from types import FrameType
from typing import Optional, Tuple

from depyf.dynamo.hooks import private_names

_ids_of_contexts: weakref.WeakKeyDictionary[object, str] = weakref.WeakKeyDictionary()


def current_compile_id() -> Optional[str]:
    """Return the id of the compilation that this thread is in, as ``"frame/compile"``, ``None`` outside of one. It is
    also set while autograd compiles a backward graph lazily. Up to 2.3 torch then restores the tracing context of the
    forward graph, but not its id; so the id is stored by that context."""
    context = private_names.COMPILE_CONTEXT.find()
    current = getattr(context, "current_compile_id", None)
    compile_id = current() if current is not None else None
    tracing = tracing_context()
    if compile_id is None:
        return None if tracing is None else _ids_of_contexts.get(tracing)
    if tracing is not None:
        _ids_of_contexts[tracing] = str(compile_id)
    return str(compile_id)


def tracing_context() -> Optional[object]:
    """Return the state that AOTAutograd and the backends keep about the graph that this thread compiles; None if there
    is none.
    """
    return getattr(private_names.TRACING_CONTEXT.find(), "try_get", lambda: None)()


def current_attempt() -> int:
    """Return how often Dynamo has restarted this compilation."""
    context = private_names.COMPILE_CONTEXT.find()
    current = getattr(context, "current_trace_id", None)
    trace_id = current() if current is not None else None
    return getattr(trace_id, "attempt", 0)


def current_trace_id() -> Tuple[Optional[str], int]:
    """Return the id of Dynamo's current compilation, and how often it was restarted, as in its trace."""
    current = getattr(private_names.COMPILE_CONTEXT.find(), "current_trace_id", None)
    trace_id = current() if current is not None else None
    return (None, 0) if trace_id is None else (str(trace_id.compile_id), trace_id.attempt or 0)


def compilation_has_id() -> bool:
    """Return whether the Dynamo function that calls a hook, perhaps through other hooks, compiles under an id."""
    name = private_names.COMPILE_ID
    caller: Optional[FrameType] = sys._getframe(1)
    while caller is not None and caller.f_globals.get("__name__") != name.module:
        caller = caller.f_back
    return caller is not None and name.name in caller.f_locals


def compile_id_of(error: BaseException) -> Optional[str]:
    """Return the id of the compilation that raised ``error`` and has ended; None if there was none. Later versions of
    PyTorch attach it to most of their exceptions; otherwise it is a local variable of a Dynamo function in the
    traceback.
    """
    name = private_names.COMPILE_ID
    compile_id = name.of(error)
    traceback = error.__traceback__
    while compile_id is None and traceback is not None:
        compile_id = traceback.tb_frame.f_locals.get(name.name)
        traceback = traceback.tb_next
    return None if compile_id is None else str(compile_id)
