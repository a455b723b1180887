"""Restore what a call changes beyond its arguments: the objects that its functions may reach by name.

A private copy has its own arguments, modules and variables of enclosing functions. Lists, counters and objects that are
globals of the program are shared by functions in any part of the program: a copy for one function would change what
the program means. So they stay the same objects, and their contents are restored. docs/compare.md has the reason why no
forked child is used.
"""

from __future__ import annotations

import contextlib
import functools
import random
import sys
from collections import OrderedDict, deque
from types import CellType, CodeType, FrameType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Deque,
    Dict,
    FrozenSet,
    Iterable,
    Iterator,
    List,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from depyf.base.asynchronous import suppressed, synchronous
from depyf.base.messages import listed
from depyf.base.module_namespace import namespace_of
from depyf.dynamo.entries.call_target import CallTarget
from depyf.dynamo.hooks import torch_names
from depyf.dynamo.hooks.hooked_context import undone_afterwards
from depyf.dynamo.hooks.loaded_modules import file_of, loaded_namespace
from depyf.dynamo.hooks.nested_code import names_in
from depyf.dynamo.hooks.safely import report_failure, safely
from depyf.torch_trace.user_code import is_library

if TYPE_CHECKING:
    import torch

_MOST_OBJECTS = 50_000
"""The limit of the search: a program whose globals hold more is reported as too large."""

_ABSENT = object()
_ATOMS = (str, bytes, int, float, complex, bool, type(None), type(Ellipsis), slice, range)


class StateSnapshot:
    """The values of the program that a call of ``target`` may change, as they are now."""

    def __init__(self, target: CallTarget, arguments: Sequence[object]) -> None:
        import torch

        self._kept: Tuple[type, ...] = (torch.Tensor, torch.nn.Module, torch.optim.Optimizer)
        self._seen: Dict[int, object] = {}
        self._undo: List[Callable[[], object]] = []
        self._todo: Deque[object] = deque()
        self._functions: Set[_Place] = set()
        self._most = _MOST_OBJECTS
        self.not_restored: Dict[str, None] = {}
        """The classes of reachable objects whose changes can't be restored."""
        self.complete = self._search(target, arguments)

    def cover(self, frame: FrameType) -> None:
        """Add what the function of a frame that starts now reaches by name, if it was not found before."""
        code = frame.f_code
        place = place_of(code)
        if place in self._functions or is_library(code.co_filename):
            return
        self._functions.add(place)
        known = frame.f_locals
        self._names(frame.f_globals, set(names_in(code)), own=False)
        self._all(known[name] for name in code.co_freevars if name in known)
        self._visit_all(set())

    def _search(self, target: CallTarget, arguments: Sequence[object]) -> bool:
        """Visit everything reachable; return False if that is too much, or objects can't be read."""
        # Breadth first, from the functions that are called. A function adds what it names, an object what it holds;
        # each adds to ``_undo`` how its present contents are restored.
        functions, shared = _functions_of(target)
        own = {id(each) for each in functions}
        try:
            for function in functions:
                self._function(function, own=True)
            self._all(shared)
            for value in (target.inner, *arguments):  # copied, but their methods are the program's
                self._classes(value)
            self._visit_all(own)
        except synchronous() as error:
            report_failure("looking for what a call may change", error)
            return False
        return not self._todo

    def _visit_all(self, own: Set[int]) -> None:
        while self._todo and len(self._seen) <= self._most:
            value = self._todo.popleft()
            if isinstance(value, FunctionType):
                self._function(value, own=id(value) in own)
            else:
                self._value(value)

    def why_not_twice(self) -> str:
        """Return why a call may not be made once more than the program makes it; empty if it may."""
        if not self.complete:
            return "too many objects are reachable from it"
        if self.not_restored:
            return f"it may go on with an iterator ({listed(list(self.not_restored), 3)})"
        return ""

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """Restore the values of the snapshot after the block; those, too, that ``cover`` adds inside."""
        import torch

        grads, dtype = torch.is_grad_enabled(), torch.get_default_dtype()

        def restore_modes() -> None:
            torch.set_grad_enabled(grads)
            torch.set_default_dtype(dtype)

        with undone_afterwards("restoring what a call has changed") as undo:
            undo += [restore_modes, self._restore]
            yield

    def _restore(self) -> None:
        for undo in list(self._undo):
            safely("restoring what a call has changed")(undo)()

    def _add(self, value: object) -> None:
        if not isinstance(value, _ATOMS) and id(value) not in self._seen:
            self._seen[id(value)] = value
            self._todo.append(value)

    def _function(self, function: FunctionType, *, own: bool) -> None:
        """Add what a function reaches by name; its ``own`` tensors and enclosed variables are in the private copy."""
        self._seen[id(function)] = function
        self._functions.add(place_of(function.__code__))
        self._add(getattr(function, "__wrapped__", None))
        if is_library(function.__code__.co_filename):
            return
        self._all((vars(function), *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()))
        self._names(function.__globals__, set(names_in(function.__code__)), own=own)
        for cell in function.__closure__ or ():
            self._undo.append(_cell(cell))
            with suppressed(ValueError):  # an empty one
                if own:
                    self._classes(cell.cell_contents)
                else:
                    self._add(cell.cell_contents)

    def _names(self, namespace: Dict[str, object], names: Set[str], *, own: bool) -> None:
        # Globals by the names in the code: modules only by the attributes that the code names, tensors and modules of
        # ``own`` functions not at all, since the private copy has its own. A name that the call binds is unbound again.
        for name in names & set(namespace):
            value = namespace[name]
            if isinstance(value, ModuleType):
                self._module(value, names)
            elif not (own and isinstance(value, self._kept)):
                self._add(value)
        self._undo += [_binding(namespace, name) for name in names]

    def _module(self, module: ModuleType, names: Set[str]) -> None:
        """Add the values that are reached as ``module.name``, if the module is the user's."""
        namespace = namespace_of(module)
        if is_user_module(str(namespace.get("__name__", ""))):
            self._seen[id(module)] = module
            for name in names & set(namespace):
                held = namespace[name]
                if isinstance(held, ModuleType) and id(held) not in self._seen:
                    self._module(held, names)
                self._add(held)
                self._undo.append(_binding(namespace, name))

    def _classes(self, value: object) -> None:
        """Add the classes of a value that is copied: their methods reach what they name."""
        if isinstance(value, FunctionType):
            self._add(value)
        elif isinstance(value, MethodType):
            self._classes(value.__func__)
            self._classes(value.__self__)
        elif isinstance(value, torch_names.module("torch").nn.Module):
            for each in value.modules():
                self._add(type(each))
        elif isinstance(value, (list, tuple)):
            for each in value:
                self._classes(each)
        elif not isinstance(value, (type, ModuleType, *_ATOMS)):
            self._add(type(value))

    def _value(self, value: object) -> None:
        import torch

        if isinstance(value, torch.Tensor):
            self._tensor(value)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, MethodType):
            self._add(value.__func__)
            self._add(value.__self__)
        elif (undo := _state_of(value)) is not None:  # a generator of random numbers, a numpy array
            self._undo.append(undo)
        elif isinstance(value, (list, deque, bytearray)):
            self._undo.append(_sequence(value))
            self._all(_own_kind(value, list, deque, bytearray).__iter__(value))
            self._object(value)
        elif isinstance(value, (set, dict)):  # their keys can't change
            self._undo.append(_keyed(value))
            self._all(dict.values(value) if isinstance(value, dict) else set.__iter__(value))
            self._object(value)
        elif isinstance(value, tuple):
            self._all(value)
        elif hasattr(type(value), "__next__"):  # a call that goes on with it can't be taken back
            self.not_restored.setdefault(type(value).__qualname__)
        elif type(value).__module__ not in ("builtins", "collections"):
            self._object(value)

    def _all(self, values: Iterable[object]) -> None:
        for each in list(values):
            self._add(each)

    def _class(self, cls: type) -> None:
        if not is_user_module(cls.__module__):
            return
        for name, value in list(vars(cls).items()):
            if name.startswith("__") and not callable(value):
                continue
            inner = getattr(value, "__func__", getattr(value, "fget", value))
            self._add(inner)
            self._undo.append(_attribute(cls, name, value))
        self._undo.append(_without_new_attributes(cls, frozenset(vars(cls))))
        for base in cls.__bases__:
            self._add(base)

    def _object(self, value: object) -> None:
        """Add an object of a class of the user's, or of a class that torch registers as holding tensors."""
        inside = getattr(value, "__dict__", None)
        if is_user_module(type(value).__module__) or isinstance(value, self._kept):
            if isinstance(inside, dict):
                self._add(inside)
            self._add(type(value))
            self._slots(value)
        elif isinstance(inside, dict):  # of a library: its own attributes, and not what these hold
            self._undo.append(_keyed(inside))

    def _slots(self, value: object) -> None:
        for slot, descriptor in slots_of(type(value)):
            held = getattr(value, slot, _ABSENT)
            self._undo.append(_slot(value, descriptor, held))
            self._add(held)

    def _tensor(self, tensor: torch.Tensor) -> None:
        import torch

        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout != torch.strided:
            return
        # Written back only if it has changed, NaN equal to NaN: a write raises the version counter, and autograd
        # refuses to use a saved tensor whose version has changed.
        before, gradient = tensor.detach().clone(), tensor.grad if tensor.is_leaf else None
        self._add(gradient)

        def undo() -> None:
            now = tensor.detach()
            if now.shape != before.shape or not ((now == before) | ((now != now) & (before != before))).all():
                with torch.no_grad():
                    tensor.detach().copy_(before)
            if tensor.is_leaf and tensor.grad is not gradient:
                tensor.grad = gradient

        self._undo.append(undo)


_Place = Tuple[str, int, str]


def place_of(code: CodeType) -> _Place:
    return code.co_filename, code.co_firstlineno, code.co_name


def _state_of(value: object) -> Optional[Callable[[], object]]:
    """Return what restores the present state of a generator of random numbers or a numpy array; None for others."""
    import torch

    numpy = sys.modules.get("numpy")
    if isinstance(value, torch.Generator):
        return functools.partial(value.set_state, value.get_state())
    if isinstance(value, random.Random):
        return functools.partial(value.setstate, value.getstate())
    if numpy is None or not hasattr(numpy, "ndarray"):
        return None
    if isinstance(value, numpy.random.RandomState):
        return functools.partial(value.set_state, value.get_state())
    if isinstance(value, numpy.random.Generator):
        return functools.partial(setattr, value.bit_generator, "state", value.bit_generator.state)
    if isinstance(value, numpy.ndarray) and value.flags.writeable:
        return functools.partial(numpy.copyto, value, value.copy())
    return None


def slots_of(cls: type) -> Iterator[Tuple[str, MemberDescriptorType]]:
    for each in cls.__mro__:
        for name, member in vars(each).items():
            if isinstance(member, MemberDescriptorType):
                yield name, member


def _slot(owner: object, member: MemberDescriptorType, value: object) -> Callable[[], None]:
    def undo() -> None:
        if value is _ABSENT:
            with suppressed(AttributeError):
                member.__delete__(owner)
        else:
            member.__set__(owner, value)

    return undo


def shared_with(target: CallTarget, arguments: Sequence[object], notes: List[str]) -> StateSnapshot:
    """Return what a call of ``target`` shares with the program; ``notes`` lists what can't be restored."""
    shared = StateSnapshot(target, arguments)
    if not shared.complete:
        notes.append("not all globals of the program were examined: changes of the call there may remain")
    return shared


def _functions_of(target: CallTarget) -> Tuple[List[FunctionType], List[FunctionType]]:
    """Return the functions that a private copy has with what they enclose, and those that it shares with the program.
    Methods and wrappers have only their code copied."""
    copied = [each for each in (target.inner, target.frame) if isinstance(each, FunctionType)]
    others = [getattr(each, "__func__", each) for each in (target.inner, target.frame, *target.wrappers)]
    shared = [each for each in others if isinstance(each, FunctionType) and not any(each is own for own in copied)]
    return copied, shared


def is_user_module(module: str) -> bool:
    """Return whether a module of this name is the user's own. The module of a notebook has no file."""
    file = file_of(loaded_namespace(module))
    return module == "__main__" or (file is not None and not is_library(file))


def _binding(namespace: Dict[str, object], name: str) -> Callable[[], None]:
    value = namespace.get(name, _ABSENT)

    def undo() -> None:
        if value is _ABSENT:
            namespace.pop(name, None)
        elif namespace.get(name, _ABSENT) is not value:
            namespace[name] = value

    return undo


def _cell(cell: CellType) -> Callable[[], None]:
    value = _ABSENT
    with suppressed(ValueError):
        value = cell.cell_contents

    def undo() -> None:
        if value is not _ABSENT:
            cell.cell_contents = value
        else:
            with suppressed(ValueError):
                del cell.cell_contents

    return undo


def _attribute(cls: type, name: str, value: object) -> Callable[[], None]:
    def undo() -> None:
        if vars(cls).get(name, _ABSENT) is not value:
            setattr(cls, name, value)

    return undo


def _without_new_attributes(cls: type, names: FrozenSet[str]) -> Callable[[], None]:
    def undo() -> None:
        for name in [each for each in vars(cls) if each not in names and not each.startswith("__")]:
            delattr(cls, name)

    return undo


def _own_kind(value: object, *kinds: Any) -> Any:
    """Return the builtin type whose methods read and write a container: those of a class of the program may do
    anything."""
    return next(each for each in kinds if isinstance(value, each))


def _sequence(value: Any) -> Callable[[], None]:
    kind = _own_kind(value, list, deque, bytearray)
    before = list(kind.__iter__(value))

    def undo() -> None:
        now = list(kind.__iter__(value))
        if len(now) != len(before) or any(one is not other for one, other in zip(now, before)):
            kind.clear(value)
            kind.extend(value, before)

    return undo


def _keyed(value: Any) -> Callable[[], None]:
    kind = _own_kind(value, set, OrderedDict, dict)
    items = kind.__iter__ if kind is set else kind.items
    before = list(items(value))

    def undo() -> None:
        now = list(items(value))
        if kind is set:
            same = {id(each) for each in now} == {id(each) for each in before}
        else:  # By identity, and in order: ``==`` of values may be anything, such as a tensor.
            same = [(id(k), id(v)) for k, v in now] == [(id(k), id(v)) for k, v in before]
        if not same:
            kind.clear(value)
            kind.update(value, before)

    return undo
