"""Facts that only local variables of PyTorch's functions have, read from the frames that call a hook."""

from __future__ import annotations

import sys
from types import CodeType, FrameType, MethodType
from typing import Any, Mapping, Optional, Tuple

from depyf.dynamo.hooks import private_names


def frame_globals(original: CodeType) -> Optional[Mapping[str, object]]:
    """Return the globals of the frame that is being compiled, called from a bytecode hook."""
    frame = _frame_being_compiled(original)
    return None if frame is None else frame.f_globals


def frame_locals(original: CodeType) -> Optional[Mapping[str, object]]:
    """Return its local variables; None if the frame is unknown."""
    found = getattr(_frame_being_compiled(original), "f_locals", None)
    return found if isinstance(found, Mapping) else None


def _frame_being_compiled(original: CodeType) -> Any:
    """Return the frame with this code that Dynamo is compiling; None if unknown. Dynamo passes only code objects to a
    hook; the frame is a local variable of one of the calling functions.
    """
    caller: Optional[FrameType] = sys._getframe(1)
    while caller is not None:
        frame = caller.f_locals.get(private_names.FRAME.name)
        if frame is not None and getattr(frame, "f_code", None) is original:
            return frame
        caller = caller.f_back
    return None


def code_being_compiled() -> Optional[CodeType]:
    """Return the user's code that Dynamo is compiling, called from a hook: it is a local variable of the compiling
    function.
    """
    caller: Optional[FrameType] = sys._getframe(1)
    while caller is not None:
        code = private_names.CODE.in_frame(caller)
        if isinstance(code, CodeType):
            return code
        caller = caller.f_back
    return None


def callers() -> Tuple[Tuple[str, int, str], ...]:
    """Return file, line and function of all frames of this thread, outermost first, without methods that Python
    generates for PyTorch's dataclasses: their file is ``<string>``."""
    found = []
    caller: Optional[FrameType] = sys._getframe(1)
    while caller is not None:
        code = caller.f_code
        if code.co_filename != "<string>" or not str(caller.f_globals.get("__name__")).startswith("torch."):
            found.append((code.co_filename, caller.f_lineno or code.co_firstlineno, code.co_name))
        caller = caller.f_back
    return tuple(reversed(found))


def called_function() -> Optional[object]:
    """Return what the innermost call of a compiled function calls; None outside of such calls. The wrapper that
    ``torch.compile`` returns has it as a local variable."""
    caller: Optional[FrameType] = sys._getframe(1)
    while caller is not None:
        if caller.f_globals.get("__name__") == private_names.OPTIMIZE_CONTEXT.module and "fn" in caller.f_locals:
            function: object = caller.f_locals["fn"]
            return function
        caller = caller.f_back
    return None


def code_of_function(function: object) -> Optional[CodeType]:
    """Return the code of a function or a method; None for other callables."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code if isinstance(code, CodeType) else None


def code_that_runs(function: object) -> Optional[CodeType]:
    """Return the code that a call of a compiled ``function`` runs: of a module, which PyTorch calls by a method of
    ``Module``, the code of its ``forward``; None for other callables."""
    if isinstance(function, MethodType) and function.__func__.__qualname__.startswith("Module."):
        function = getattr(function.__self__, "forward", None)
    return code_of_function(function)


def loads_backward() -> Optional[bool]:
    """Return whether the Inductor module that is being loaded computes gradients; None if unknown. The loader's callers
    have that: the code that lowers a graph, or a compiled graph from a cache; up to 2.4 only a local variable of the
    function that starts to compile."""
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


def name_of_captured() -> Optional[str]:
    """Return ``__compiled_fn_<n>`` of the graph module that Dynamo is passing to a backend; None if unknown. The name
    is a local variable of the Dynamo function that calls the backend.
    """
    caller: Optional[FrameType] = sys._getframe(1)
    while caller is not None:
        name = private_names.NAME_OF_GRAPH.in_frame(caller)
        if isinstance(name, str) and name.startswith("__compiled_fn"):
            return "_".join(name.split("_")[:5])
        caller = caller.f_back
    return None


def inductor_compiles() -> bool:
    """Return whether Inductor's compiler is among the callers: it compiles what it does not find in a cache. What loads
    a saved graph by its key (``CompiledArtifact.load``) fails then.
    """
    caller: Optional[FrameType] = sys._getframe(1)
    while caller is not None:
        if caller.f_globals.get("__name__") == private_names.COMPILE_FX.module:
            return True
        caller = caller.f_back
    return False
