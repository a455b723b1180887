"""Name a decorated function or method by its own name instead of its wrapper's.

Dynamo compiles the wrapper (``can_return_tuple.<locals>.wrapper``), whose code all functions with that decorator share.
The class of the frame's ``self``, or of the guarded one, distinguishes them. ``wrap_inline.<locals>.inner`` is such a
wrapper: torch puts it around what Dynamo would skip, that is its own modules (``Sequential``) and callable objects.
"""

from __future__ import annotations

import inspect
from types import CodeType, FunctionType, MethodType
from typing import Mapping, Optional

from depyf.base.module_namespace import namespace_of
from depyf.dynamo.entries.callables import module_classes
from depyf.dynamo.guards import python_guards as guards_function
from depyf.dynamo.guards.tree import checks_of
from depyf.dynamo.hooks import frames, private_names
from depyf.dynamo.hooks.nested_code import is_qualified, qualified_name
from depyf.dynamo.hooks.torch_types import Guards

_DEEPEST = 20


def shown_name(code: CodeType, frame_locals: Mapping[str, object]) -> str:
    """Return the qualified name of the function whose frame has these local variables."""
    if _is_wrap_inline_code(code):
        wrapped = frame_locals.get(code.co_freevars[0])
        return _name_of(type(wrapped), wrapped) or qualified_name(code)
    found = _name_in(type(_first_argument(code, frame_locals)), code)
    return found or qualified_name(code)


def shown_name_now(code: CodeType) -> str:
    """Return the qualified name for the code that Dynamo is compiling, called from a hook."""
    return shown_name(code, frames.frame_locals(code) or {})


def short_name_now(code: CodeType) -> str:
    """Return that name on one line: a plain name, or for a wrapper the name of the wrapped function."""
    found = shown_name_now(code)
    return code.co_name if found == qualified_name(code) else found


def short_name_of_entry(code: CodeType, manager: Guards) -> str:
    """Return the short name of the function that a cache entry is for, as far as its guards show."""
    if not _may_wrap(code):
        return code.co_name
    if _is_wrap_inline_code(code):
        return _name_of(_class_at(f"L['{code.co_freevars[0]}']", manager)) or code.co_name
    return _name_in(_class_guarded(code, manager), code) or code.co_name


def _is_wrap_inline_code(code: CodeType) -> bool:
    """Return whether it is the code of a function that torch puts around what is to be compiled."""
    maker = private_names.WRAP_INLINE.find()
    return isinstance(maker, FunctionType) and code.co_filename == maker.__code__.co_filename and _may_wrap(code)


def _name_of(cls: Optional[type], wrapped: object = None) -> Optional[str]:
    """Return the name of what such a function calls, by its class and, where it is known, itself; None if unknown."""
    if isinstance(wrapped, (FunctionType, MethodType)):
        return wrapped.__qualname__
    if cls is None or cls is type(None) or issubclass(cls, (FunctionType, MethodType)):
        return None
    return f"{cls.__qualname__}.{'forward' if issubclass(cls, module_classes()) else '__call__'}"


def _may_wrap(code: CodeType) -> bool:
    """Return whether the code is that of a nested function with free variables."""
    return bool(code.co_freevars) and ("<locals>" in qualified_name(code) or not is_qualified(code))


def _first_argument(code: CodeType, frame_locals: Mapping[str, object]) -> object:
    if code.co_argcount:
        return frame_locals.get(code.co_varnames[0])
    rest = frame_locals.get(code.co_varnames[code.co_kwonlyargcount]) if code.co_flags & inspect.CO_VARARGS else None
    return rest[0] if isinstance(rest, tuple) and rest else None


def _class_guarded(code: CodeType, manager: Guards) -> Optional[type]:
    """Return the class of the first argument that an entry was compiled for; None where PyTorch does not report it."""
    if not (code.co_argcount or code.co_flags & inspect.CO_VARARGS):
        return None
    return _class_at(
        f"L['{code.co_varnames[0]}']" if code.co_argcount else f"L['{code.co_varnames[code.co_kwonlyargcount]}'][0]",
        manager,
    )


def _class_at(source: str, manager: Guards) -> Optional[type]:
    """Return the class that an entry requires at a source."""
    if manager is None or guards_function.is_function(manager):
        return None
    return next((each.value_type for each in checks_of(manager) if each.source == source and each.value_type), None)


def _name_in(cls: Optional[type], code: CodeType) -> Optional[str]:
    """Return ``Class.method`` for the method of a class wrapped in a function with this code; None without one."""
    # ``class A: forward = wrapper(forward)``: the attribute is a function with the wrapper's code, and its name in the
    # class is what the user knows. An attribute of the wrapper's own name is no decorated method.
    if cls is None or cls is type(None) or not _may_wrap(code):
        return None
    for base in cls.__mro__:
        for name, value in list(vars(base).items()):
            if name != code.co_name and _is_wrapped_by(value, code):
                return f"{cls.__qualname__}.{name}"
    return None


def _is_wrapped_by(value: object, code: CodeType) -> bool:
    """Return whether a function (in ``classmethod`` and the like) has a wrapper with this code somewhere around it."""
    for _ in range(_DEEPEST):
        if isinstance(value, (classmethod, staticmethod, MethodType)):
            value = value.__func__
        if isinstance(value, FunctionType) and value.__code__ is code:
            return True
        value = namespace_of(value).get("__wrapped__")  # not read with getattr: it may belong to any object
    return False
