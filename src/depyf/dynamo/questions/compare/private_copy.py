"""Copy a function with everything that its call may change: arguments, modules and tensors that it reaches, its code. A
copy of the code has no cache entries, and compiling it leaves none in the original. Tensors may become float64.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import io
import threading
import types
from dataclasses import field
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    ContextManager,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from depyf.base.asynchronous import synchronous
from depyf.base.messages import describe
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.entries.call_target import CallTarget
from depyf.dynamo.entries.hints import RESUMED
from depyf.dynamo.hooks import compiled_callables, private_names
from depyf.dynamo.hooks.nested_code import closure_of, names_in
from depyf.dynamo.scripts.tensors import compact

if TYPE_CHECKING:
    import torch

CompileWith = Callable[[Callable[..., object]], Callable[..., object]]

_MARKS = "_dynamo_"

DEEPEST = 6
"""How deep tensors are searched in containers and objects."""

_MOST_OBJECTS = 20_000
"""The limit of the search for objects that can't be copied."""


@dataclass
class PrivateCopy:
    """A call that is ready to be made once.

    ``function`` is the copy of what was passed to ``torch.compile``, ``wrappers`` are the plain functions around it.
    ``tensors`` are the copies in it, by their display names, ``originals`` their originals. ``memo`` has
    the copies by the ``id`` of their originals, ``sources`` the originals by the ``id`` of their copies.
    """

    function: Callable[..., object]
    args: Tuple[object, ...]
    kwargs: Dict[str, object]
    wrappers: Tuple[types.FunctionType, ...] = ()
    tensors: Dict[str, torch.Tensor] = field(default_factory=dict)
    originals: Dict[str, torch.Tensor] = field(default_factory=dict)
    memo: Dict[int, object] = field(default_factory=dict)
    sources: Dict[int, object] = field(default_factory=dict)

    def original_of(self, value: object) -> object:
        """Return the object of the program of which ``value`` is the copy; anything else as it is."""
        return self.sources.get(id(value), value)

    def compiled(self, compile_with: CompileWith) -> Callable[..., object]:
        """Return the callable: the copy, compiled by ``compile_with``, inside of its wrappers."""
        if not self.wrappers:
            return compile_with(self.function)
        made = compile_with(getattr(self.function, "__func__", self.function))
        for wrapper in reversed(self.wrappers):
            made = with_own_code(wrapper, {name_of_wrapped(wrapper): made}, {})
        owner = getattr(self.function, "__self__", None)
        return made if owner is None else types.MethodType(made, owner)


Change = Callable[[PrivateCopy], ContextManager[object]]
"""Changes a copied call, and what it shares with the program, in a block."""


@contextlib.contextmanager
def unchanged(_: PrivateCopy) -> Iterator[None]:
    """Change nothing."""
    yield


def private_copy(
    target: CallTarget, args: Sequence[object], kwargs: Mapping[str, object], *, wide: bool = False
) -> PrivateCopy:
    """Copy the callable (a function, method, module, partial or callable object) and its arguments.

    Wrappers without a variable for what they wrap are copied and compiled with it. ``wide`` makes float64 of floating
    point tensors. Raises ``TypeError``, with the reason, for objects that can't be copied.
    """
    apart = all(name_of_wrapped(wrapper) for wrapper in target.wrappers)
    function, wrappers = (target.inner, target.wrappers) if apart else (target.outer, ())
    args, kwargs = (*target.args, *args), {**target.kwargs, **kwargs}
    roots: List[Tuple[str, object]] = [*_named_arguments(args, kwargs), *_reached(function)]
    # Tensors are copied first, into the memo of ``deepcopy``: it refuses tensors that are not leaves, and would not
    # widen them. A tensor that is reached by several paths has one copy.
    memo: Dict[int, object] = {}
    tensors: Dict[str, torch.Tensor] = {}
    originals: Dict[str, torch.Tensor] = {}
    disabled = private_names.DISABLE_MODES.find() or contextlib.nullcontext
    with disabled():  # the mode for float64 would convert what is copied, and a copy would have other strides
        for name, value in roots:
            for inner, tensor in _tensors(value, name):
                if id(tensor) not in memo:
                    memo[id(tensor)] = tensors[inner] = _copied(tensor, wide=wide)
                    originals[inner] = tensor
    # Locks, files and modules of Python are in the memo as their own copies: ``deepcopy`` raises for them.
    memo.update((id(each), each) for each in _used_by_all([args, kwargs, *(each for _, each in roots)], set()))
    keep: List[object] = [value for _, value in roots]  # the memo goes by their ids
    before = dict(memo)
    try:
        copied_args, copied_kwargs = copy.deepcopy((args, kwargs), memo)
        copied = _function(function, memo)
    except synchronous() as error:
        raise TypeError(_not_copied(roots, before, error)) from error
    del keep
    # ``deepcopy`` keeps alive what it has copied, in a list under the memo's own id.
    alive = {id(each): each for each in (*memo.get(id(memo), ()), *originals.values())}  # type: ignore[misc]
    sources = {id(each): alive[original] for original, each in memo.items() if original in alive}
    return PrivateCopy(copied, copied_args, copied_kwargs, wrappers, tensors, originals, memo, sources)


def _not_copied(roots: Sequence[Tuple[str, object]], memo: Mapping[int, object], error: Exception) -> str:
    """Return the message about what can't be copied."""
    name = "what it is called on"
    for each, value in roots:
        try:
            copy.deepcopy(value, dict(memo))
        except synchronous():
            name = f"{each} (a {type(value).__name__})" if each else f"the {type(value).__name__} that it is called on"
            break
    return (
        f"{name} can't be copied ({describe(error)[:200]}). The call is made on copies, so that your "
        "objects do not change: pass objects that can be copied, such as a list in place of a generator"
    )


_USED_BY_ALL = (types.ModuleType, type(threading.Lock()), type(threading.RLock()), threading.local, io.IOBase)
"""Objects that can't be copied, and that a call does not compute with."""


def _used_by_all(value: object, seen: Set[int]) -> Iterator[object]:
    """Yield locks, files, Python modules and sentinels in a value, which a copy shares with it."""
    import torch

    if isinstance(value, _USED_BY_ALL) or type(value) is object:  # an ``object()`` is there to be compared by ``is``
        yield value
    elif id(value) in seen or isinstance(value, (str, bytes, int, float, type, types.FunctionType, torch.Tensor)):
        return
    elif len(seen) < _MOST_OBJECTS:
        seen.add(id(value))
        parts: Iterable[object] = (value.__self__,) if isinstance(value, types.MethodType) else ()
        if isinstance(value, (dict, list, tuple)):
            parts = value.values() if isinstance(value, dict) else value
        for each in (*parts, *getattr(value, "__dict__", {}).values()):
            yield from _used_by_all(each, seen)


def name_of_wrapped(wrapper: types.FunctionType) -> str:
    """Return the variable of a plain wrapper that holds the wrapped function, "" if no variable does."""
    wrapped = vars(wrapper)["__wrapped__"]
    return next((name for name, value in closure_of(wrapper) if value is wrapped), "")


def _copied(tensor: torch.Tensor, *, wide: bool) -> torch.Tensor:
    import torch

    data = tensor.detach()
    wider = torch.float64 if data.dtype.is_floating_point else torch.complex128
    new = compact(data, wider if wide and (data.dtype.is_floating_point or data.dtype.is_complex) else None)
    new.requires_grad_(bool(tensor.requires_grad))
    if not isinstance(tensor, torch.nn.Parameter):
        marks = {name: value for name, value in vars(tensor).items() if name.startswith(_MARKS)}
        vars(new).update(marks)  # ``mark_dynamic`` decides what is compiled, and whether that raises
        return new
    parameter = torch.nn.Parameter(new.detach(), requires_grad=bool(tensor.requires_grad))
    if tensor.grad is not None:
        parameter.grad = _copied(tensor.grad, wide=wide)
    vars(parameter).update({k: v for k, v in vars(tensor).items() if not k.startswith("__")})
    return parameter


def _named_arguments(args: Sequence[object], kwargs: Mapping[str, object]) -> Iterator[Tuple[str, object]]:
    for number, value in enumerate(args):
        yield f"argument {number}", value
    yield from kwargs.items()


def _reached(function: object) -> Iterator[Tuple[str, object]]:
    """Yield modules and tensors that a call of the function reaches by its own names."""
    import torch

    if isinstance(function, functools.partial):
        yield from _reached(function.func)
        yield from _named_arguments(function.args, function.keywords)
    elif isinstance(function, torch.nn.Module):
        yield "", function
    elif isinstance(function, types.MethodType):
        yield "", function.__self__
    elif isinstance(function, types.FunctionType):
        yield from variables_of(function).items()
    else:
        yield "", function


def variables_of(function: types.FunctionType) -> Dict[str, object]:
    """Return variables of the enclosing function, and globals that the code names, that hold tensors or modules."""
    import torch

    found: Dict[str, object] = {}
    found.update(closure_of(function))
    for name in names_in(function.__code__):
        value = function.__globals__.get(name)
        if isinstance(value, (torch.Tensor, torch.nn.Module, torch.optim.Optimizer)):
            found.setdefault(name, value)
    return found


def _tensors(value: object, name: str, depth: int = 0) -> Iterator[Tuple[str, torch.Tensor]]:
    """Yield the tensors in a value: in containers, modules, and the attributes of plain objects."""
    import torch

    if isinstance(value, torch.Tensor):
        yield name, value
    elif depth > DEEPEST or isinstance(value, (str, bytes, int, float, type, types.ModuleType, types.FunctionType)):
        return
    elif isinstance(value, torch.nn.Module):
        for path, module in value.named_modules(prefix=name):
            for key, each in [
                *private_names.PARAMETERS.of(module).items(),
                *private_names.BUFFERS.of(module).items(),
                *vars(module).items(),
            ]:
                if isinstance(each, torch.Tensor):
                    yield f"{path}.{key}".lstrip("."), each
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _tensors(each, f"{name}[{key!r}]", depth + 1)
    elif isinstance(value, (list, tuple)):
        for number, each in enumerate(value):
            yield from _tensors(each, f"{name}[{number}]", depth + 1)
    elif hasattr(value, "__dict__"):
        for key, each in vars(value).items():
            yield from _tensors(each, f"{name}.{key}".lstrip("."), depth + 1)


def tensors_in(value: object, name: str) -> List[Tuple[str, torch.Tensor]]:
    """Return the tensors in the result of a call, with names."""
    return list(_tensors(value, name))


def _function(function: Any, memo: Dict[int, object]) -> Callable[..., object]:
    import torch

    if isinstance(function, functools.partial):
        args, keywords = copy.deepcopy((function.args, function.keywords), memo)
        return functools.partial(_function(function.func, memo), *args, **keywords)
    if isinstance(function, types.MethodType):
        owner = copy.deepcopy(function.__self__, memo)
        return types.MethodType(with_own_code(function.__func__, {}, {}), owner)
    if isinstance(function, torch.nn.Module):
        # A module: its submodules may hold compiled callables (``module.compile()``), which would run the original's
        # code.
        module = copy.deepcopy(function, memo)
        for each in module.modules():
            for name, value in list(vars(each).items()) if compiled_callables.entry_of(each) is None else ():
                # Compiled for the module that this is a copy of.
                if callable(value) and compiled_callables.unwrapped(value) is not None:
                    vars(each)[name] = copy.deepcopy(compiled_callables.unwrapped(value), memo)
        # A ``forward`` with a code object of its own has no cache entries of the original.
        forward = _plain_function(vars(module).get("forward") or type(module).forward)
        if isinstance(forward, types.FunctionType):
            module.forward = types.MethodType(with_own_code(forward, {}, {}), module)
        if compiled_callables.entry_of(inspect.getattr_static(type(module), "__call__")) is None:
            return module
        return types.MethodType(
            private_names.CALL_OF_MODULE.require(), module
        )  # its class is compiled: a call would be twice
    if isinstance(function, types.FunctionType):
        known = variables_of(function)
        copies = {name: _deep(value, memo) for name, value in known.items() if _may_change(value)}
        return with_own_code(function, copies, copies)
    copied = copy.deepcopy(function, memo)
    call = _plain_function(type(copied).__call__)
    return types.MethodType(with_own_code(call, {}, {}), copied) if isinstance(call, types.FunctionType) else copied


def _plain_function(function: object) -> Any:
    """Return the function of a method, or inside the wrapper of ``torch.compile``."""
    inner = compiled_callables.unwrapped(function)
    return getattr(function, "__func__", function) if inner is None else _plain_function(inner)


def _deep(value: object, memo: Dict[int, object]) -> object:
    """Return a copy; the value itself if it can't be copied, such as a lock or a file."""
    try:
        return copy.deepcopy(value, memo)
    except synchronous(TypeError, ValueError, RuntimeError):
        return value


def _may_change(value: object) -> bool:
    """Return whether a variable of a function is copied: functions, classes and modules of Python are not."""
    return not isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type))


def with_own_code(
    function: Any, cells: Mapping[str, object], variables: Mapping[str, object], code: Optional[types.CodeType] = None
) -> types.FunctionType:
    """Return the function with a code object of its own (or with ``code``), and other values of some variables."""
    closure: Optional[Tuple[types.CellType, ...]] = function.__closure__
    if closure is not None and cells:
        names = function.__code__.co_freevars
        closure = tuple(types.CellType(cells[n]) if n in cells else cell for n, cell in zip(names, closure))
    namespace = dict(function.__globals__)  # Dynamo adds what it compiles
    namespace.update({name: value for name, value in variables.items() if name in namespace})
    if code is not None:  # what runs after a graph break reads the same variables
        for name, each in list(namespace.items()):
            if isinstance(each, types.FunctionType) and each.__code__.co_name.startswith(RESUMED):
                namespace[name] = _in_namespace(each, namespace)
    own = function.__code__.replace() if code is None else code
    made = types.FunctionType(own, namespace, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__dict__.update(function.__dict__)
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    return made


def _in_namespace(function: types.FunctionType, namespace: Dict[str, object]) -> types.FunctionType:
    """Return the function with the same code, and so with its cache entries, and other globals."""
    made = types.FunctionType(
        function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__dict__.update(function.__dict__)
    return made
