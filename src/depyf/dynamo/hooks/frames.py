"""What only local variables of PyTorch's functions tell, read from the frames that call a hook."""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any, Mapping, Optional, Tuple

from depyf.dynamo.hooks import private_names


def frame_globals(original: CodeType) -> Optional[Mapping[str, object]]:
    """The globals of the frame that is being compiled, seen from within a bytecode hook."""
    frame = _frame_being_compiled(original)
    return None if frame is None else frame.f_globals


def frame_locals(original: CodeType) -> Optional[Mapping[str, object]]:
    """Its local variables; None where it is not known."""
    found = getattr(_frame_being_compiled(original), "f_locals", None)
    return found if isinstance(found, Mapping) else None


def _frame_being_compiled(original: CodeType) -> Any:
    """The frame with this code that Dynamo compiles now; None where it is not known.

    Dynamo passes a hook code objects only; the frame is a local variable of one of its functions that called it.
    """
    caller: Optional[FrameType] = sys._getframe(1)
    while caller is not None:
        frame = caller.f_locals.get(private_names.FRAME.name)
        if frame is not None and getattr(frame, "f_code", None) is original:
            return frame
        caller = caller.f_back
    return None


def code_being_compiled() -> Optional[CodeType]:
    """The user's code that Dynamo compiles now, seen from within a hook: a local of the function that does so."""
    caller: Optional[FrameType] = sys._getframe(1)
    while caller is not None:
        code = private_names.CODE.in_frame(caller)
        if isinstance(code, CodeType):
            return code
        caller = caller.f_back
    return None


def callers() -> Tuple[Tuple[str, int, str], ...]:
    """Return file, line and function of all frames that run now in this thread, the outermost first."""
    found = []
    caller: Optional[FrameType] = sys._getframe(1)
    while caller is not None:
        found.append(
            (caller.f_code.co_filename, caller.f_lineno or caller.f_code.co_firstlineno, caller.f_code.co_name)
        )
        caller = caller.f_back
    return tuple(reversed(found))


def loads_backward() -> Optional[bool]:
    """Whether the module of Inductor's that is being loaded computes gradients; None where that is not known.

    The loader does not say. Who calls it knows: what lowers a graph, or a compiled graph out of a cache; up to 2.4 only
    a local variable of the function that begins to compile.
    """
    name = private_names.IS_BACKWARD
    caller: Optional[FrameType] = sys._getframe(1)
    while caller is not None:
        value, owner = None, caller.f_locals.get("self")
        if type(owner).__module__.startswith(private_names.INDUCTOR.whole):
            arguments = getattr(owner, "fx_kwargs", None) or {}
            value = arguments.get(name.name, name.of(owner))
        else:
            value = name.in_frame(caller)
        if isinstance(value, bool):
            return value
        caller = caller.f_back
    return None


def name_of_captured(module: object) -> Optional[str]:
    """``__compiled_fn_<n>`` of the graph module that Dynamo hands to a backend now; None where it does not say.

    The name is a local variable of the function of Dynamo's that calls the backend.
    """
    caller: Optional[FrameType] = sys._getframe(1)
    while caller is not None:
        name = private_names.NAME_OF_GRAPH.in_frame(caller)
        if isinstance(name, str) and name.startswith("__compiled_fn"):
            return "_".join(name.split("_")[:5])
        caller = caller.f_back
    return None
