"""Values that guards need and no file can contain: object ids, and guards that only PyTorch itself can evaluate.

The process that compiled registers a ``LiveTable`` for every file of guards that it writes, under the path of the file.
Imported in that process, the file finds its table and its guards are those of PyTorch. Imported elsewhere it gets an
empty table: types are then compared by name, and anything unknown raises ``NotLiveError``.
"""

from __future__ import annotations

import os
import weakref
from types import CodeType
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Generic,
    Iterable,
    Iterator,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
)

from depyf.base.locks import Lock
from depyf.dynamo.guards import python_guards as guards_function
from depyf.dynamo.hooks.torch_types import GuardAnswer, GuardRoot, Guards


class NotLiveError(RuntimeError):
    """A guard was evaluated that is only valid in the process that compiled, while its cache entry exists."""


class LiveId:
    """An object id under a name that is the same in every run. ``value`` is None outside of the compiling process."""

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: Optional[int]) -> None:
        self.name = name
        self.value = value

    def number(self) -> int:
        """Return the id. Raises ``NotLiveError`` if it is unknown."""
        if self.value is None:
            raise NotLiveError(f"the id of {self.name} is known only in the process that compiled")
        return self.value

    def __eq__(self, other: object) -> bool:
        return other.number() == self.number() if isinstance(other, LiveId) else other == self.number()

    def __hash__(self) -> int:
        return hash(self.number())

    def __repr__(self) -> str:
        return f"LiveId({self.name!r})"


T = TypeVar("T")
V = TypeVar("V")


class _ByName(Mapping[str, T], Generic[V, T]):
    """The values of one file, by name; unknown names have one, too."""

    def __init__(self, values: Mapping[str, V]) -> None:
        self._values = dict(values)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class LiveIds(_ByName[int, LiveId]):
    """The ids of one file, by name. An unknown name has an id without a value."""

    def __getitem__(self, name: str) -> LiveId:
        return LiveId(name, self._values.get(name))


_OTHER_GRAD_MODE = "GLOBAL_STATE changed: grad_mode"


_Ask = Callable[[GuardRoot, Mapping[str, object]], GuardAnswer]


class LiveGuard:
    """The guards of one cache entry in PyTorch's own form, referenced weakly: they work as long as the entry exists."""

    def __init__(self, manager: Guards) -> None:
        self._manager = weakref.ref(manager)
        self._partial: Dict[FrozenSet[str], GuardRoot] = {}

    def _living(self) -> Guards:
        manager = self._manager()
        if manager is None:
            self._partial.clear()
            raise NotLiveError(
                "the cache entry of this guard is gone: by torch._dynamo.reset, or with an object that it guards"
            )
        return manager

    def check(self, frame_locals: Mapping[str, object]) -> bool:
        """Check all guards of the entry with PyTorch; ``frame_locals`` has the arguments and free variables."""
        manager = self._living()
        if guards_function.is_function(manager):
            return guards_function.holds(manager, frame_locals)
        # Not ``check``: it counts failures, by which PyTorch orders its checks.
        return bool(manager.root.check_verbose(dict(frame_locals)).result)

    def check_path(self, frame_locals: Mapping[str, object], sources: FrozenSet[str], own: str = "") -> bool:
        """Check only the guards on the values with these sources and on the global state, with PyTorch. With ``own``,
        the last of them, check only its guards: if a guard on the path to it fails, the result is True.
        """
        manager = self._living()
        if guards_function.is_function(manager):
            return guards_function.holds(manager, frame_locals, sources)
        if not self.distinguishes():
            return self.check(frame_locals)
        ask = _asking(sources)  # of ``own`` alone, too, where nothing is above it
        if own and self._failure(frame_locals, sources - {own}, ask) is not None:
            return True
        return self._failure(frame_locals, sources, ask) is None

    def words_of_path(self, frame_locals: Mapping[str, object], sources: FrozenSet[str]) -> Sequence[str]:
        """Return PyTorch's message about the first of these guards that fails; empty if it has none."""
        manager = self._living()
        if guards_function.is_function(manager) or not self.distinguishes():
            return ()
        return self._failure(frame_locals, sources, _asking(sources)) or ()

    def _failure(
        self, frame_locals: Mapping[str, object], sources: FrozenSet[str], ask: _Ask
    ) -> Optional[Sequence[str]]:
        """Return the failure messages, ``None`` if no guard fails."""
        manager = self._living()
        assert not guards_function.is_function(manager)
        root = manager.root
        if sources not in self._partial:
            root_type = type(root)
            self._partial[sources] = root.clone_manager(
                lambda node: isinstance(node, root_type) or node.get_source() in sources
            )
        answer = ask(self._partial[sources], frame_locals)
        holds = bool(answer.result) or _only_relations_fail(root, answer.verbose_code_parts)
        return None if holds else list(answer.verbose_code_parts)

    def distinguishes(self) -> bool:
        """Return whether ``check_path`` can check single guards; an older PyTorch can only check all of them."""
        manager = self._living()
        return guards_function.is_function(manager) or hasattr(getattr(manager, "root", None), "clone_manager")

    def is_alive(self) -> bool:
        """Return whether the cache entry exists."""
        return self._manager() is not None

    def global_scope(self) -> Optional[Dict[str, object]]:
        """Return the globals that the guards read, ``None`` if the entry has been deleted."""
        manager = self._manager()
        scope = getattr(manager, "global_scope", None) or {}
        return scope.get("G")


def _check(root: GuardRoot, frame_locals: Mapping[str, object]) -> GuardAnswer:
    return root.check_verbose(dict(frame_locals))


def check_in_its_grad_mode(root: GuardRoot, frame_locals: Mapping[str, object]) -> GuardAnswer:
    """Return PyTorch's result for these guards, in the grad mode that they were made in if only that differs. The
    guards on PyTorch's state come first; if one fails, the values are not checked."""
    answer = _check(root, frame_locals)
    if answer.result or [part.strip() for part in answer.verbose_code_parts] != [_OTHER_GRAD_MODE]:
        return answer
    import torch

    with torch.set_grad_enabled(not torch.is_grad_enabled()):
        return _check(root, frame_locals)


def _asking(sources: FrozenSet[str]) -> _Ask:
    """Return how the guards of these sources are checked; those on PyTorch's state read no value: as they are."""
    return check_in_its_grad_mode if any(sources) else _check


def _only_relations_fail(root: object, failed: Sequence[str]) -> bool:
    """Return whether only the relations between sizes fail, which a partial copy of the guards has, too. They come
    last, so all requested guards pass.
    """
    relations_of = getattr(root, "get_epilogue_lambda_guards", None)
    relations = {text for guard in (relations_of() if relations_of else ()) for text in guard.verbose_code_parts()}
    return bool(failed) and relations.issuperset(failed)


class LiveTable:
    """Everything live that one file of guards needs.

    ``ids`` and ``names`` (names of globals that contain an id) are by stable name, ``guards`` by the name of the guard
    function, ``paths`` (the source of a value, and all prefixes of it) by that and the text of one guard without a
    Python form, ``codes`` (held weakly) by the name of the function in the file, ``constants`` (found in their code
    objects, and not held) by their name in the file.
    """

    def __init__(
        self,
        ids: Optional[Mapping[str, int]] = None,
        names: Optional[Mapping[str, str]] = None,
        guards: Optional[Mapping[str, LiveGuard]] = None,
        paths: Optional[Mapping[Tuple[str, str], Tuple[str, FrozenSet[str]]]] = None,
        codes: Optional[Mapping[str, CodeType]] = None,
        constants: Optional[Mapping[str, Tuple[CodeType, Tuple[int, ...]]]] = None,
    ) -> None:
        self.ids = LiveIds(ids or {})
        self.names = LiveNames(names or {})
        self._guards = dict(guards or {})
        self._paths = dict(paths or {})
        self._codes = {name: weakref.ref(code) for name, code in (codes or {}).items()}
        self._constants = {name: (weakref.ref(code), at) for name, (code, at) in (constants or {}).items()}

    def guard(self, function: str, path: Optional[str] = None) -> Callable[[Mapping[str, object]], bool]:
        """Return the live guard of that guard function, only its part at ``path`` if that is given."""

        def check(frame_locals: Mapping[str, object]) -> bool:
            if function not in self._guards:
                raise NotLiveError(f"{function} can be evaluated only in the process that compiled")
            guard = self._guards[function]
            if path is None or (function, path) not in self._paths:
                return guard.check(frame_locals)
            own, sources = self._paths[function, path]
            return guard.check_path(frame_locals, sources, own)

        return check

    def code(self, name: str) -> Optional[CodeType]:
        """Return the code object of that name, ``None`` if it is unknown or deleted."""
        reference = self._codes.get(name)
        return None if reference is None else reference()

    def constant(self, name: str) -> Tuple[bool, object]:
        """Return (True, object) for the name of a constant of a code object, while that exists."""
        reference, position = self._constants.get(name, (None, ()))
        value: Any = None if reference is None else reference()
        if value is None:
            return False, None
        for index in position:
            value = value.co_consts[index] if isinstance(value, CodeType) else value[index]
        return True, value

    def is_alive(self) -> bool:
        """Return whether a cache entry or a code object exists that the table refers to."""
        guards = any(guard.is_alive() for guard in self._guards.values())
        return guards or any(reference() is not None for reference in self._codes.values())

    def global_scope(self) -> Dict[str, object]:
        """Return the user's globals, empty if they are unknown."""
        for guard in self._guards.values():
            scope = guard.global_scope()
            if scope is not None:
                return scope
        return {}


class LiveNames(_ByName[str, str]):
    """Names of globals that differ from run to run, by stable name; an unknown name maps to itself."""

    def __getitem__(self, name: str) -> str:
        return self._values.get(name, name)


_tables: Dict[str, LiveTable] = {}
_KEPT = 200
"""How many of the last tables are kept in any case: without its cache entries a table still has the ids of classes."""

_sweep_at = [2 * _KEPT]
"""The number of tables at which dead ones are removed: twice as many as the last time, so that each is seen rarely."""
_tables_lock = Lock()


def register(path: str, table: LiveTable) -> None:
    """Register ``table`` for the file at ``path``, which gets it when it is imported in this process."""
    with _tables_lock:
        path = os.path.realpath(path)
        _tables.pop(path, None)
        _tables[path] = table
        if len(_tables) >= _sweep_at[0]:  # a process may open sessions all its life
            for known in [each for each in list(_tables)[:-_KEPT] if not _tables[each].is_alive()]:
                del _tables[known]
            _sweep_at[0] = 2 * max(_KEPT, len(_tables))


def forget(paths: Iterable[str]) -> None:
    """Drop the tables of these files, as a process does with the records of its earliest sessions: imported later, such
    a file gets an empty table, as in another process. PyTorch may keep the entries of a function that is gone."""
    with _tables_lock:
        for path in paths:
            _tables.pop(os.path.realpath(path), None)


def live_table(path: str) -> LiveTable:
    """Return the table of the file at ``path``; an empty one in a process that did not write this file."""
    with _tables_lock:
        return _tables.get(os.path.realpath(path)) or LiveTable()
