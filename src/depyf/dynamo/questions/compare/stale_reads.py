"""Name the value that makes a cache entry stale: the call reads it, and no guard of the entry checks it.

What a value was when the entry was compiled is not recorded anywhere. So the search goes the other way: it changes one
value that eager mode reads, on a copy of the call, to what the value may have been, and runs eager mode again. If that
gives what the entry gives, the guards, which hold for the value of now, do not distinguish the two, and the value
explains the difference. Where no such value is found, the values that no guard checks are named as possible reasons.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import gc
import inspect
import itertools
from types import CodeType, FunctionType, ModuleType
from typing import Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, cast

from depyf.answers.compared import StaleRead
from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass, replace
from depyf.diagnosis.guard_sources import as_written, holder_of
from depyf.dynamo.entries.callables import module_classes, plain_function
from depyf.dynamo.guards.entry_guards import EntryGuards
from depyf.dynamo.hooks import compiled_callables, frame_evaluation, private_names, torch_settings
from depyf.dynamo.hooks.nested_code import closure_of
from depyf.dynamo.questions.compare.hit_entry import EntryValues, HitEntry
from depyf.dynamo.questions.compare.observed_reads import (
    ABSENT,
    ARGUMENT,
    ATTRIBUTE,
    CELL,
    GLOBAL,
    HOOKS,
    ITEM,
    Read,
    ReadObserver,
    registries,
)
from depyf.dynamo.questions.compare.private_copy import Change, PrivateCopy, unchanged

_MOST_RUNS = 40
_MOST_PEERS = 4
"""So many other objects are tried for one value."""

_MOST_NAMED = 4
_EARLIER = -1
"""The rank of what a value is known to have been."""

_OF_VALUES = 3
"""The rank of another number, text or flag: a constant of the entry, which may be there for another reason."""
_MOST_OBJECTS = 500
_ATOMS = (bool, int, float, str)

_HOOKS_UNGUARDED = "skip_nnmodule_hook_guards"
_FOR_HOOKS = (
    f"set torch._dynamo.config.{_HOOKS_UNGUARDED} = False before it is compiled, so that Dynamo guards hooks, or "
    "register them before the first call"
)

_STRONG = ("EQUALS_MATCH", "ID_MATCH", "CONSTANT_MATCH", "NONE_MATCH", "BOOL_MATCH", "TENSOR_MATCH", "DICT_VERSION")
"""Guards that check which object or value it is, and not only its class."""


class _Alternative(NamedTuple):
    """What a value may have been. ``words`` say it, ``value`` is the object (``ABSENT``: the name is removed)."""

    read: Read
    words: str
    value: object
    rank: int


@dataclass(frozen=True)
class _OfProgram:
    """An object of the program, of which a call gets a copy."""

    value: object


class KnownBefore(NamedTuple):
    """What a value is known to have been: the words for it, and the object."""

    words: str
    value: object


Before = Callable[[Read, object], Optional[KnownBefore]]
"""Returns what a read gave before, None if it is not known or the same; it gets the program's object that is read now,
too."""


class StaleSearch:
    """Looks for the values that explain why an entry computes something else than eager mode.

    ``fresh`` are the sources that the guards of a new compilation check. ``run`` runs eager mode after a change of the
    call, ``of_entry`` runs the entry. ``before`` knows what some values were when the entry was right: these are tried
    first.
    """

    def __init__(
        self,
        hit: HitEntry,
        args: Tuple[object, ...],
        kwargs: Mapping[str, object],
        fresh: Set[str],
        run: Callable[[Change], Dict[str, object]],
        of_entry: Callable[[Change], EntryValues],
        before: Before = lambda *_: None,
    ) -> None:
        self._hit = hit
        self._values = hit.target.frame_locals(args, kwargs)
        self._fresh = fresh
        self._run = run
        self._of_entry = of_entry
        self._before = before
        self._originals: Dict[int, int] = {}
        self._copy: Optional[PrivateCopy] = None  # the ids of its objects have to stay theirs

    def reads(self, same: Callable[[Mapping[str, object], Mapping[str, object]], bool]) -> Tuple[StaleRead, ...]:
        """Return the value whose change explains the difference; else those that may be the reason. ``same`` compares
        the results of two runs.
        """
        observer = ReadObserver(self._hit.target.code)

        @contextlib.contextmanager
        def observed(call: PrivateCopy) -> Iterator[None]:
            self._copy = call
            self._originals = {id(copied): original for original, copied in call.memo.items()}
            with observer.installed():
                yield

        self._run(observed)
        # With other numbers, too: for one tensor, ``x + 1`` and ``x * 2`` may be the same by chance.
        runs = [(numbers, self._of_entry(numbers).values) for numbers in (unchanged, _other_numbers)]
        found = sorted(self._alternatives(observer.reads), key=lambda each: each.rank)[:_MOST_RUNS]
        pairs = [
            (one, other)
            for one, other in itertools.combinations([each for each in found if each.rank == _OF_VALUES], 2)
            if one.read is not other.read
        ]
        known_before = tuple(each for each in found if each.rank == _EARLIER)
        together = [known_before] if len(known_before) > 1 else []
        # One change, then all that are known, then two at once. By chance, several changes of numbers may give the same
        # results: all are named, each with what it would explain.
        for changes in ([(each,) for each in found], together, pairs[:_MOST_RUNS]):
            explaining: List[Tuple[_Alternative, ...]] = []
            for each in changes:
                if explaining and (explaining[0][0].rank < _OF_VALUES or len(explaining) == _MOST_NAMED):
                    break
                known = [[one.read for one in one_set] for one_set in explaining]
                if [one.read for one in each] not in known and self._explain(each, runs, same):
                    explaining.append(each)
            if explaining:
                return self._with_proofs(explaining)
        suspects = self._unchecked(observer.reads)
        changed = [each for each in suspects if self._has_effect(each, found, same)]
        return tuple(self._named(each, "") for each in changed[:_MOST_NAMED])

    def _with_proofs(self, explaining: List[Tuple[_Alternative, ...]]) -> Tuple[StaleRead, ...]:
        """Return the values of changes that each explain the difference."""
        computes = f"{self._hit.target.name} computes what {self._hit.shown.name} computes"
        named = []
        for changes in explaining:
            words = " and ".join(
                each.words if at == 0 else each.words[len("with ") :] for at, each in enumerate(changes)
            )
            for each in changes:
                found = self._named(each.read, f"{words}, {computes}")
                named.append(replace(found, alone=len(explaining) == 1))
        return tuple(named)

    def _explain(
        self,
        changes: Sequence[_Alternative],
        runs: Sequence[Tuple[Change, Mapping[str, object]]],
        same: Callable[[Mapping[str, object], Mapping[str, object]], bool],
    ) -> bool:
        """Return whether eager mode computes what the entry does, after these changes and with each set of numbers."""

        def computed(numbers: Change) -> Mapping[str, object]:
            @contextlib.contextmanager
            def all_of_them(call: PrivateCopy) -> Iterator[None]:
                with contextlib.ExitStack() as stack:
                    for change in (numbers, *map(self._changing, changes)):
                        stack.enter_context(change(call))
                    yield

            return self._run(all_of_them)

        try:
            return all(same(computed(numbers), wanted) for numbers, wanted in runs)
        except synchronous():  # the changed call may raise anything: then it is not what was compiled
            return False

    def _has_effect(
        self,
        read: Read,
        tried: Sequence[_Alternative],
        same: Callable[[Mapping[str, object], Mapping[str, object]], bool],
    ) -> bool:
        """Return whether another value changes what eager mode computes, with other numbers; True if none is known."""
        known = [each for each in tried if each.read is read]
        if not known and type(read.value) in (int, float):
            known = [_Alternative(read, "", cast(float, read.value) + 1, _OF_VALUES)]
        if not known:
            return True
        unchanged_result = self._run(_other_numbers)
        return not all(self._explain((each,), [(_other_numbers, unchanged_result)], same) for each in known)

    def _named(self, read: Read, proof: str) -> StaleRead:
        dropped = self._filters_guards() and self._is_guarded_anew(read)
        of_hooks = read.name in HOOKS and torch_settings.dynamo_setting(_HOOKS_UNGUARDED)
        place, advice = read.place if read.place[1] else None, _FOR_HOOKS if of_hooks else ""
        return StaleRead(read.text, read.function, place, read.line, proof, dropped, advice)

    def _is_guarded_anew(self, read: Read) -> bool:
        """Return whether a new compilation, whose guards nothing drops, guards this value: by its name in the function
        that is compiled, or as an attribute or an item of the same object."""
        if read.own and read.text in {as_written(each) for each in self._fresh}:
            return True
        owner = self._originals.get(id(read.owner), id(read.owner))
        return (owner, read.name) in self._guarded_items

    @functools.cached_property
    def _guarded_items(self) -> Set[Tuple[int, object]]:
        """Return what a new compilation guards as objects, by their ids, with the attribute, key or index."""
        function = plain_function(self._hit.target.frame)
        names = {"L": self._values, "G": function.__globals__}
        found: Set[Tuple[int, object]] = set()
        for source in self._fresh:
            holder, name = holder_of(source)
            try:
                found.add((id(eval(compile(holder, "<guard>", "eval"), dict(names))), name))
            except synchronous():  # a source with PyTorch's helpers
                continue
        return found

    def _filters_guards(self) -> bool:
        callback = getattr(self._hit.target.entered, "callback", None)
        return frame_evaluation.filters_guards(callback)

    def _alternatives(self, reads: List[Read]) -> Iterator[_Alternative]:
        constants = list(constants_of(self._hit.entry.code, plain_function(self._hit.target.frame).__globals__))
        for read in reads:
            value = read.value
            earlier = self._before(read, value if self._copy is None else self._copy.original_of(value))
            if earlier is not None:
                words = f"with {read.text} = {earlier.words}, as when it was compiled"
                yield _Alternative(read, words, _OfProgram(earlier.value), _EARLIER)
            yield from _without(read)
            if isinstance(value, FunctionType):
                yield from _replaced_functions(read)
            elif isinstance(value, _ATOMS) or value is None:
                if isinstance(value, bool):
                    yield _Alternative(read, f"with {read.text} = {not value}", not value, _OF_VALUES)
                for each in constants if not isinstance(value, bool) else ():
                    if type(each) is type(value) and each != value:
                        yield _Alternative(read, f"with {read.text} = {each!r}", each, _OF_VALUES)
            elif type(value) is list and value and all(isinstance(each, _ATOMS) for each in value):
                yield from (
                    _Alternative(read, f"with {read.text} of {len(each)} items", each, _OF_VALUES)
                    for each in (value[:-1], [*value, value[-1]])
                )
            elif not isinstance(value, (ModuleType, type)):
                yield from _peers(read, reads)

    def _changing(self, wanted: _Alternative) -> Change:
        @contextlib.contextmanager
        def change(call: PrivateCopy) -> Iterator[None]:
            undo = self._apply(call, wanted.read, self._in(call, wanted.value))
            try:
                yield
            finally:
                undo()

        return change

    def _in(self, call: PrivateCopy, value: object) -> object:
        """Return what an object of the observed copy is in another copy."""
        if isinstance(value, _OfProgram):
            return copy.deepcopy(value.value, call.memo)
        original = self._originals.get(id(value))
        return value if original is None else call.memo.get(original, value)

    def _apply(self, call: PrivateCopy, read: Read, value: object) -> Callable[[], None]:
        """Change one value; return the function that restores it."""
        function = call.function
        if isinstance(function, module_classes()):
            function = function.forward
        function = compiled_callables.unwrapped(function) or function
        if read.kind == ARGUMENT:
            bound = inspect.signature(function).bind(*call.args, **call.kwargs)
            bound.arguments[str(read.name)] = value
            call.args, call.kwargs = bound.args, bound.kwargs
            return lambda: None
        plain = plain_function(function)
        if read.kind == CELL:
            cell = plain.__closure__[plain.__code__.co_freevars.index(read.name)]
            before = cell.cell_contents
            cell.cell_contents = value
            return lambda: setattr(cell, "cell_contents", before)
        if read.kind == GLOBAL:
            return _set_item(plain.__globals__ if read.own else read.owner, read.name, value)
        owner = self._in(call, read.owner)
        return _set_item(owner, read.name, value) if read.kind == ITEM else _set_attribute(owner, str(read.name), value)

    def _unchecked(self, reads: List[Read]) -> List[Read]:
        """Return the reads that no guard of the entry checks: those first that a new compilation guards."""
        lines = EntryGuards.of(self._hit.entry.guard_manager, "guard").lines
        checked = {as_written(line.source) for line in lines if line.kind in _STRONG}
        fresh = {as_written(each) for each in self._fresh} - {as_written(line.source) for line in lines}
        holders = {id(each.owner) for each in reads if each.kind != GLOBAL}
        found = [each for each in reads if each.text not in checked and id(each.value) not in holders]
        found = [each for each in found if _is_a_state(each)]
        return sorted(found, key=lambda each: not (each.own and each.text in fresh))


@contextlib.contextmanager
def _other_numbers(call: PrivateCopy) -> Iterator[None]:
    """Change the numbers in all copied tensors, in the same way each time."""
    import torch

    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for tensor in call.tensors.values():
            if tensor.dtype.is_floating_point and tensor.layout == torch.strided and tensor.device.type != "meta":
                tensor.detach().mul_(1 + torch.rand((), generator=generator).item()).add_(0.37)
    yield


def _is_a_state(read: Read) -> bool:
    """Return whether the value is one that a program changes: no function or class of a library, no tensor."""
    import torch

    return not isinstance(read.value, (ModuleType, type, torch.Tensor, torch.nn.Module)) and not (
        callable(read.value) and not read.text.endswith(".forward") and read.kind == GLOBAL
    )


def _without(read: Read) -> Iterator[_Alternative]:
    """Yield the read without the attribute that hides another one, or with its hooks removed."""
    owner, name = read.owner, str(read.name)
    if read.kind != ATTRIBUTE:
        return
    if read.name in (private_names.FORWARD_HOOKS.name, private_names.FORWARD_PRE_HOOKS.name):
        yield _Alternative(read, "without them", type(read.value)(), 0)
    elif isinstance(owner, type):
        classes = [each for each in owner.__mro__ if name in vars(each)]
        if len(classes) > 1 and classes[0] is owner:
            yield _Alternative(read, f"without {name} in {owner.__qualname__}", ABSENT, 1)
    elif name in getattr(owner, "__dict__", {}):
        holder = read.text[: -len(name) - 1]
        hides = any(name in each for each in registries(owner))
        has_other = inspect.getattr_static(type(owner), name, ABSENT) is not ABSENT or hasattr(
            type(owner), "__getattr__"
        )
        if hides or (has_other and not isinstance(owner, module_classes())):
            yield _Alternative(read, f"without {name!r} in {holder}.__dict__", ABSENT, 0)
    else:
        classes = [each for each in type(owner).__mro__ if name in vars(each)]
        if len(classes) > 1:
            of_class = Read(ATTRIBUTE, read.text, classes[0], name, read.value, read.function, read.place)
            yield _Alternative(of_class, f"without {name} in {classes[0].__qualname__}", ABSENT, 1)


def _replaced_functions(read: Read) -> Iterator[_Alternative]:
    """Yield functions that are still there, and that have the name under which this one is found now."""
    owner, value = read.owner, read.value
    if read.kind not in (ATTRIBUTE, GLOBAL):
        return
    if read.kind == ATTRIBUTE and not isinstance(owner, (type, ModuleType)):
        classes = [each for each in type(owner).__mro__ if str(read.name) in vars(each)]
        owner = classes[0] if classes else owner
    name = f"{owner.__qualname__}.{read.name}" if isinstance(owner, type) else str(read.name)
    namespace = vars(owner) if isinstance(owner, ModuleType) else owner
    of_names = namespace.get("__name__") if isinstance(namespace, dict) else None
    module = owner.__module__ if isinstance(owner, type) else of_names
    functions = [each for each in gc.get_objects() if type(each) is FunctionType and each is not value]
    known = [each for each in functions if each.__qualname__ == name and each.__module__ == module]
    for each in known[:_MOST_PEERS]:
        where = f"{each.__code__.co_filename}:{each.__code__.co_firstlineno}"
        of_owner = Read(read.kind, read.text, owner, read.name, value, read.function, read.place, read.own)
        yield _Alternative(of_owner, f"with the function {name} of {where} as {read.text}", each, 2)


def _peers(read: Read, reads: List[Read]) -> Iterator[_Alternative]:
    """Yield other objects of the same class that the call reads."""
    seen = {id(read.value)}
    for other in reads:
        if type(other.value) is type(read.value) and id(other.value) not in seen and len(seen) <= _MOST_PEERS:
            seen.add(id(other.value))
            yield _Alternative(read, f"with {read.text} = {other.text}", other.value, 2)
    if type(read.value) is object:
        yield _Alternative(read, f"with another object() as {read.text}", object(), 4)


def _set_item(owner: object, name: object, value: object) -> Callable[[], None]:
    holder = cast(Dict[object, object], owner)  # or a list, with an index
    before = holder[name]
    holder[name] = value
    return lambda: holder.__setitem__(name, before)


def _set_attribute(owner: object, name: str, value: object) -> Callable[[], None]:
    """Change an attribute where it is stored: in the object's own dictionary, or in its class for ``__slots__``."""
    if isinstance(owner, (type, ModuleType)):
        before = vars(owner)[name]
        if value is ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, value)
        return lambda: setattr(owner, name, before)
    namespace = getattr(owner, "__dict__", {})
    if name in namespace:
        order = dict(namespace)
        if value is ABSENT:
            del namespace[name]
        else:
            namespace[name] = value

        def undo() -> None:
            namespace.clear()
            namespace.update(order)

        return undo
    registry = next((each for each in registries(owner) if name in each), None)
    if registry is not None:
        return _set_item(registry, name, value)
    before = getattr(owner, name)
    object.__setattr__(owner, name, value)
    return lambda: object.__setattr__(owner, name, before)


def constants_of(code: Optional[CodeType], namespace: Mapping[str, object]) -> Iterator[object]:
    """Yield the numbers and texts in the transformed code of an entry, and in its graphs where these can be reached."""
    import torch

    todo: List[object] = [namespace.get(name) for name in (() if code is None else code.co_names)]
    found: List[object] = [] if code is None else list(code.co_consts)
    seen: Set[int] = set()
    while todo and len(seen) < _MOST_OBJECTS:
        value = todo.pop()
        if id(value) in seen or value is None or isinstance(value, (type, ModuleType, torch.Tensor)):
            continue
        seen.add(id(value))
        if isinstance(value, torch.fx.GraphModule):
            for node in value.graph.nodes:
                torch.fx.node.map_aggregate((node.args, node.kwargs), found.append)
        elif isinstance(value, FunctionType):
            todo += [each for _, each in closure_of(value)]
            todo += vars(value).values()
        else:
            todo += [getattr(value, "__self__", None), getattr(value, "__func__", None)]
    for _, each in {(type(each), each): None for each in found if isinstance(each, _ATOMS)}:
        yield each
