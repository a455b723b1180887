"""The wrappers that ``torch.compile`` puts around a callable, and what they contain."""

from __future__ import annotations

from types import FrameType, MethodType, SimpleNamespace
from typing import Any, Dict, Optional, Tuple

from depyf.base.own_package import is_own
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.known_code import is_of_torch


def entry_of(compiled: Any) -> Optional[Any]:
    """Return Dynamo's object (``OptimizeContext``) that ``torch.compile`` put around ``compiled``; None for others. Any
    other wrapper around a compiled function has its attributes, but not its code.
    """
    if is_compiled_module(compiled):
        return compiled.dynamo_ctx
    function = getattr(compiled, "__func__", compiled)
    code = getattr(function, "__code__", None)
    if code is None or not private_names.ORIGINAL_CALLABLE.is_on(function):
        return None
    if "self" not in code.co_freevars:  # up to 2.5, a disabled function does not record what disabled it
        disabled = private_names.DISABLED.of(function) and is_of_torch(code)
        return SimpleNamespace(callback=None) if disabled else None
    cell = function.__closure__[code.co_freevars.index("self")]
    found = cell.cell_contents
    return found if hasattr(found, "callback") and is_of_torch(code) else None


def is_compiled_module(value: object) -> bool:
    """Return whether this is the result of ``torch.compile`` for a module."""
    made = private_names.OPTIMIZED_MODULE.find()
    return made is not None and isinstance(value, made)


def unwrapped(function: object) -> Optional[Any]:
    """Return the argument of the ``torch.compile`` call that made ``function``; None for other functions."""
    if entry_of(function) is None:
        return None
    name = private_names.ORIGINAL_MODULE if is_compiled_module(function) else private_names.ORIGINAL_CALLABLE
    inner = name.of(function)
    if isinstance(function, MethodType) and inner is not None and not isinstance(inner, MethodType):
        return MethodType(inner, function.__self__)  # decorated in the body of its class
    return inner


def inside_of_callback(callback: object) -> object:
    """Return what one of Dynamo's callbacks wraps; None for others."""
    names = (private_names.ORIGINAL_BACKEND, private_names.ORIGINAL_CALLABLE)
    return next((name.of(callback) for name in names if name.is_on(callback)), None)


def innermost_backend(callback: object) -> object:
    """Return the user's backend inside Dynamo's wrappers, as cache entries have it."""
    inner = inside_of_callback(callback)
    return callback if inner is None else innermost_backend(inner)


_CALLS = (private_names.COMPILE_WRAPPER.name, private_names.FN.name)
"""The functions of Dynamo that call a compiled function."""


def caller_of_hook(frame: FrameType) -> FrameType:
    """Return the innermost frame that is not depyf's: several hooks may stand around one function of PyTorch."""
    while is_own(frame.f_code.co_filename) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def enters(frame: FrameType) -> bool:
    """Return whether this is the frame of Dynamo's function that calls a compiled function."""
    return frame.f_code.co_name in _CALLS


@dataclass(frozen=True)
class EnteredCall:
    """A call of a compiled function that is about to run: Dynamo's object, the function inside, and the arguments."""

    entered: object
    function: object
    args: Tuple[object, ...]
    kwargs: Dict[str, object]


def entered_call(frame: FrameType) -> Optional[EnteredCall]:
    """Return the call that a frame of ``enters`` makes; None if this PyTorch names its variables otherwise."""
    known = frame.f_locals
    names = ("self", private_names.COMPILED_FUNCTION.name, "args", "kwargs")
    if not enters(frame) or any(name not in known for name in names):
        return None
    return EnteredCall(*(known[name] for name in names))
