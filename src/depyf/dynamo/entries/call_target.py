"""Resolve a callable to the code that Dynamo compiles, through all wrappers. ``why``, ``extract`` and ``compare`` take
the result of ``torch.compile``, or something that contains it: a method that is decorated in its class, a module after
``Module.compile()``, a partial, a plain wrapper (``@torch.no_grad()``) above the compiled function. This is the one
place that resolves callables.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from dataclasses import field
from types import CodeType, FunctionType, MethodType
from typing import Any, Callable, ContextManager, Dict, Iterator, Mapping, Optional, Sequence, Tuple

from depyf.base.quick_dataclass import dataclass, replace
from depyf.dynamo.entries.callables import (
    called_by_inner,
    context_of,
    is_entered,
    is_inner_code,
    is_inner_function,
    is_module_call,
    leads_to_compiled,
    module_classes,
    plain_function,
    python_function,
    static_attribute,
    wrapped_in,
)
from depyf.dynamo.entries.hints import RESUMED
from depyf.dynamo.hooks import cache_entries, compiled_callables, frame_evaluation, private_names, torch_settings
from depyf.dynamo.hooks.nested_code import closure_of


@dataclass(frozen=True)
class CallTarget:
    """The path from a given callable to the code that is compiled. ``inner`` is what was passed to ``torch.compile``: a
    function, a bound method, a module, a callable object; if nothing is compiled, the given callable. ``outer`` is that
    with all its wrappers. ``entered`` is Dynamo's object around it, None if there is none. ``frame`` is the function or
    bound method whose code Dynamo compiles.

    ``wrappers`` are the plain functions around the compiled function, outermost first. ``contexts`` are the context
    managers that torch's plain wrappers enter, and ``opaque`` all other plain wrappers, inner ones included. ``args``
    and ``kwargs`` are the arguments of partials.
    """

    inner: object
    outer: object
    entered: Optional[object]
    frame: object
    wrappers: Tuple[FunctionType, ...] = ()
    contexts: Tuple[Callable[[], ContextManager[object]], ...] = field(default=(), repr=False)
    opaque: Tuple[FunctionType, ...] = ()
    args: Tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)

    @property
    def code(self) -> CodeType:
        """The code that Dynamo compiles."""
        code: CodeType = plain_function(self.frame).__code__
        return code

    @property
    def shown(self) -> Tuple[str, CodeType]:
        """The display name of the callable, and its code."""
        function = plain_function(self.frame)
        if is_inner_code(function.__code__):
            function = plain_function(python_function(called_by_inner(function)) or function)
        inner = inspect.unwrap(function)
        code = inner.__code__ if isinstance(getattr(inner, "__code__", None), CodeType) else function.__code__
        return str(getattr(inner, "__qualname__", code.co_name)), code

    @property
    def name(self) -> str:
        """The display name: a function's name, a module's class."""
        function = plain_function(self.inner)
        if isinstance(function, FunctionType) or hasattr(function, "__qualname__"):
            return str(function.__qualname__)
        return type(self.inner).__qualname__

    @property
    def parts(self) -> Mapping[str, object]:
        """Return the compiled parts of something that is not compiled as a whole, with Dynamo's objects around them.

        These are the modules in a module, and functions and methods that its code names.
        """
        if self.entered is not None:
            return {}
        named: Dict[str, object] = {}
        if isinstance(self.inner, module_classes()):
            modules = self.inner.named_modules()
            named.update(
                (name, each) for name, each in modules if name and not name.endswith(private_names.ORIGINAL_MODULE.name)
            )
        named.update(_named_by(self.frame))
        found = {name: _entry_point(each)[0] for name, each in named.items()}
        return {name: entered for name, entered in found.items() if getattr(entered, "callback", None) is not None}

    @property
    def disabled_reason(self) -> str:
        """Return why no compiled code runs now, although there may be some; empty if it does."""
        if self.entered is not None and getattr(self.entered, "callback", None) is None:
            return "torch.compiler.disable keeps Dynamo out"
        return (
            "torch.compiler.set_stance('force_eager') is in force" if frame_evaluation.stance() == "force_eager" else ""
        )

    @property
    def library_reason(self) -> str:
        """Return why Dynamo compiles no frame of this code, which belongs to a library; empty if it does."""
        if not frame_evaluation.skips(self.code) or _has_hooks(self.inner):
            return ""
        return (
            f"Dynamo compiles no frame of {self.shown[0]}, which is library code. torch.compile() puts a frame "
            "that Dynamo compiles around such a function; Module.compile() of this PyTorch does not"
        )

    @property
    def skip_reason(self) -> str:
        """Return why Dynamo does not compile this code, whatever the arguments; empty if it does."""
        found = self.disabled_reason or self.library_reason
        if not found and torch_settings.dynamo_setting("disable"):
            return "torch._dynamo.config.disable is set"
        if not found and cache_entries.looked_at_in_vain(self.code):
            return (
                "Dynamo has traced it before and compiled nothing: there was nothing to compile, or Dynamo could not "
                "continue after a graph break, or the compiler raised an exception (then Dynamo tries again)"
            )
        return found

    @contextlib.contextmanager
    def surroundings(self) -> Iterator[None]:
        """Enter the contexts that torch's own plain wrappers (``no_grad``, ``autocast``) enter before the compiled code
        runs."""
        with contextlib.ExitStack() as stack:
            for make in self.contexts:
                stack.enter_context(make())
            yield

    def frame_locals(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Dict[str, object]:
        """Return what guards see as ``L`` for these arguments. Raises ``TypeError`` if they do not match the
        signature.
        """
        plain = plain_function(self.frame)
        owner = (self.frame.__self__,) if inspect.ismethod(self.frame) else ()
        try:
            signature = inspect.signature(plain, follow_wrapped=False)
            bound = signature.bind(*owner, *self.args, *args, **{**self.kwargs, **kwargs})
        except TypeError as error:
            if not plain.__code__.co_name.startswith(RESUMED):
                raise
            raise TypeError(f"{error}: only the frame of a resume function has its arguments: why(frame)") from error
        bound.apply_defaults()
        return {**bound.arguments, **dict(closure_of(plain))}


def resolve(given: object, question: str) -> CallTarget:
    """Resolve ``given`` for ``depyf.<question>``. Raises ``TypeError``, with a message for the user, if a call of it
    runs no Python function.
    """
    # partial(partial(f, 1), 2)(3) calls f(1, 2, 3): the arguments of the inner partial come first.
    outer, args = given, ()
    kwargs: Dict[str, object] = {}
    while isinstance(outer, functools.partial):
        args, kwargs = (*outer.args, *args), {**outer.keywords, **kwargs}
        outer = outer.func
    # Plain wrappers above the compiled function: ``@torch.no_grad()`` above ``@torch.compile``.
    target, wrappers = outer, []
    while not is_entered(target) and leads_to_compiled(target):
        wrappers.append(plain_function(target))
        target = wrapped_in(target)
    entered, inner, frame = _entry_point(target)
    found = _with_code(CallTarget(inner, outer, entered, frame, tuple(wrappers), args=args, kwargs=kwargs))
    if found is None:
        raise TypeError(f"depyf.{question} can't determine what this call would run: {_not_callable(given)}")
    return found


def target_entered(entered: object, function: object) -> Optional[CallTarget]:
    """Return the target of a call in which Dynamo's object ``entered`` calls ``function``, None if that runs no Python
    function."""
    inner: object = function
    if is_module_call(function):
        inner = getattr(function, "__self__", None)
    elif is_entered(function):  # compiled twice: the outer one counts
        inner = _innermost(function)
    return _with_code(CallTarget(inner, inner, entered, python_function(inner if is_entered(function) else function)))


def _with_code(found: CallTarget) -> Optional[CallTarget]:
    """Return the target with the function whose code Dynamo compiles; None if there is none."""
    inner = found.inner
    found = found if found.frame is None else _down_to_code(found)
    if found.frame is None or not isinstance(getattr(plain_function(found.frame), "__code__", None), CodeType):
        return None
    return replace(found, inner=called_by_inner(inner)) if is_inner_function(inner) else found


def _entry_point(target: Any) -> Tuple[Optional[object], object, object]:
    """Return Dynamo's object around ``target``, what it contains, and where the frames of a call start."""
    # torch.compile(module): an OptimizedModule, whose ``forward`` is in its own dictionary.
    if compiled_callables.is_compiled_module(target):
        own = vars(target)
        begin = compiled_callables.unwrapped(own.get(private_names.FORWARD_OF_COMPILED.name) or own.get("forward"))
        module = private_names.ORIGINAL_MODULE.of(target)
        return target.dynamo_ctx, _innermost(module), python_function(begin or module)
    # torch.compile(function), or a method of such a function
    entered = compiled_callables.entry_of(target)
    if entered is not None:
        inner = compiled_callables.unwrapped(target)
        if is_entered(inner):  # compiled twice: the outer one counts, the inner function is compiled
            _, inner, frame = _entry_point(inner)
            return entered, inner, frame
        return entered, inner, python_function(inner)
    # A module that is compiled in place by ``Module.compile()``, or one whose ``forward`` is decorated in its class.
    if isinstance(target, module_classes()):
        own_call = private_names.COMPILED_CALL.of(target)
        if own_call is not None:
            return (
                compiled_callables.entry_of(own_call),
                target,
                python_function(compiled_callables.unwrapped(own_call)),
            )
        frame = python_function(target)
        method = frame
        while not is_entered(method) and leads_to_compiled(method):
            method = wrapped_in(method)
        return compiled_callables.entry_of(method), target, frame
    # Any other callable: a function that is not compiled, or an object whose ``__call__`` may be.
    frame = python_function(target)
    within = None if isinstance(target, (FunctionType, MethodType)) else compiled_callables.entry_of(frame)
    return within, target, frame


def _named_by(frame: object) -> Iterator[Tuple[str, object]]:
    """Return what the code of a function or bound method may call by name: functions, modules, its owner's methods."""
    plain, owner = plain_function(frame), getattr(frame, "__self__", None)
    for name in plain.__code__.co_names:
        for where in (plain.__globals__, getattr(owner, "__dict__", {}), {name: static_attribute(type(owner), name)}):
            if isinstance(where.get(name), (FunctionType, MethodType, module_classes())):
                yield name, where[name]
    for name, value in closure_of(plain):
        if isinstance(value, (FunctionType, MethodType, module_classes())):
            yield name, value


def _innermost(target: object) -> object:
    return _entry_point(target)[1]


def _down_to_code(found: CallTarget) -> CallTarget:
    """Unwrap compiled and plain wrappers that Dynamo does not compile themselves, down to what it compiles."""
    # Each step goes from a wrapper to what it wraps, and ends at code that Dynamo compiles: torch's ``inner``, or a
    # function that is neither skipped nor leads to something compiled.
    plain = list(found.wrappers)
    frame = found.frame
    while frame is not None and not is_inner_code(plain_function(frame).__code__):
        inner = compiled_callables.unwrapped(frame)
        if inner is None:
            inner = wrapped_in(frame)
            if inner is None or not (
                leads_to_compiled(frame) or frame_evaluation.skips(plain_function(frame).__code__)
            ):
                break
            plain.append(plain_function(frame))
        frame = python_function(inner)
    contexts = [(each, context_of(each)) for each in plain]
    return replace(
        found,
        frame=frame,
        contexts=tuple(context for _, context in contexts if context is not None),
        opaque=tuple(each for each, context in contexts if context is None),
    )


def _has_hooks(target: object) -> bool:
    owner = getattr(target, "__self__", target)
    names = (private_names.FORWARD_HOOKS, private_names.FORWARD_PRE_HOOKS, private_names.BACKWARD_HOOKS)
    return any(name.of(owner) for name in names)


def _not_callable(given: object) -> str:
    kind = type(given).__name__
    wanted = "give what torch.compile returned: a function, a method or a module"
    if isinstance(given, type):
        return f"{given.__qualname__} is a class, and no call of one is compiled: {wanted}"
    if not callable(given):
        return f"this is {given!r}, of type {kind}, which can't be called: {wanted}"[:300]
    return f"a call of a {kind} runs no Python function: {wanted}"
