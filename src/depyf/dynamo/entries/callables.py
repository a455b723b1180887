"""Inspect one callable: the Python function that a call of it starts with, and what a wrapper wraps. ``call_target``
follows chains of them.
"""

from __future__ import annotations

import copy
import functools
import inspect
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Optional, Type

from depyf.dynamo.hooks import compiled_callables, known_code, private_names
from depyf.dynamo.hooks.nested_code import closure_of

if TYPE_CHECKING:
    import torch


def static_attribute(cls: type, name: str) -> object:
    """Return the attribute of a class as it is stored; None if there is none."""
    return inspect.getattr_static(cls, name, None)


def python_function(target: Any) -> Optional[object]:
    """Return the Python function or bound method that a call of ``target`` starts with, after torch's code for
    modules.
    """
    if isinstance(target, functools.partial):
        return python_function(target.func)
    if is_module_call(target):
        return python_function(target.__self__.forward)
    if isinstance(target, FunctionType) or (isinstance(target, MethodType) and hasattr(target.__func__, "__code__")):
        return target
    if isinstance(target, type) or not callable(target):
        return None
    own = _call_of(type(target))
    return python_function(MethodType(own, target)) if isinstance(own, FunctionType) else None


def is_module_call(target: object) -> bool:
    """Return whether this is torch's own ``__call__`` of modules, which calls ``forward``."""
    modules = module_classes()
    if not isinstance(target, MethodType) or not isinstance(target.__self__, modules):
        return False
    known = (private_names.CALL_OF_MODULE.find(), private_names.WRAPPED_CALL_OF_MODULE.find())
    own = _call_of(type(target.__self__))
    function = target.__func__
    return function in known or (
        function is own and known_code.is_of_torch(function.__code__) and not is_entered(function)
    )


def is_entered(function: object) -> bool:
    """Return whether Dynamo's own object is around it."""
    return compiled_callables.entry_of(function) is not None


def _call_of(cls: type) -> object:
    """Return the ``__call__`` of a class."""
    return static_attribute(cls, "__call__")


def wrapped_in(target: object) -> Optional[object]:
    """Return what a plain wrapper (made with ``functools.wraps``) wraps, bound like the wrapper; None for others."""
    if not isinstance(target, (FunctionType, MethodType)):
        return None
    wrapped = getattr(plain_function(target), "__wrapped__", None)
    if isinstance(target, MethodType) and isinstance(wrapped, FunctionType):
        return MethodType(wrapped, target.__self__)
    return wrapped


def leads_to_compiled(target: object) -> bool:
    """Return whether a plain wrapper is compiled, or wraps something compiled."""
    for _ in range(100):  # wrappers may form a cycle
        if target is None or is_entered(target):
            return target is not None
        target = wrapped_in(target)
    return False


def context_of(wrapper: FunctionType) -> Optional[Callable[[], ContextManager[object]]]:
    """Return the factory of the context that one of torch's wrappers enters (``no_grad``, ``autocast``); None for
    others.
    """
    if not known_code.is_of_torch(wrapper.__code__):
        return None
    # ``context_decorator`` (no_grad and the like) closes over a factory, ``autocast_decorator`` over an instance.
    variables = dict(closure_of(wrapper))
    if "ctx_factory" in variables:
        make: Callable[[], ContextManager[object]] = variables["ctx_factory"]
        return make
    instance = variables.get("autocast_instance")
    # An autocast object stores the previous mode in itself when it is entered: each call gets a copy.
    return None if instance is None else lambda: copy.copy(instance)


def is_inner_code(code: CodeType) -> bool:
    """Return whether this is the function by which Dynamo compiles a call of torch's own code; all of these share one
    code.
    """
    return code.co_name == "inner" and code.co_filename.endswith("external_utils.py")


def is_inner_function(function: object) -> bool:
    """Return whether it is the function of ``is_inner_code``."""
    code = getattr(plain_function(function), "__code__", None)
    return isinstance(code, CodeType) and is_inner_code(code)


def called_by_inner(function: object) -> object:
    """Return the function that torch's function ``inner`` calls."""
    return dict(closure_of(function))["fn"]


def plain_function(function: object) -> Any:
    """Return the function of a method; anything else as it is."""
    return getattr(function, "__func__", function)


def module_classes() -> Type[torch.nn.Module]:
    """Return the class of all modules, for ``isinstance``."""
    import torch

    return torch.nn.Module
