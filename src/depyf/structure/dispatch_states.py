"""The state variable: assignments that say where control goes on, and the tests that read it.

Every jump that is not written as syntax begins as an assignment. Where it turns out that only one target is possible,
its assignments are taken back, so that most programs keep none.
"""

from __future__ import annotations

import ast
from dataclasses import field
from typing import Dict, Iterable, List, NamedTuple, Set, Tuple, Union

from depyf.quick_dataclass import dataclass
from depyf.structure.dispatch_contexts import Contexts, Kind, Path


class End(NamedTuple):
    """The end of the ``finally`` body that begins at node ``anchor``: what was interrupted goes on."""

    anchor: int


Target = Union[int, End]


class Assignment(ast.Assign):
    """``names = number``, as long as it is not taken back. ``read``: a test depends on it."""

    names: Tuple[str, ...] = ()
    number: int = 0
    read = False
    dropped = False


@dataclass
class Arrival:
    """That control may go on at some target: over how many jumps, and the assignments made there."""

    count: int = 1
    assignments: List[Assignment] = field(default_factory=list)

    def drop(self) -> None:
        """Nobody needs to know: it is the only target."""
        for assignment in self.assignments:
            assignment.dropped = not assignment.read

    def keep(self) -> None:
        """A test will read the variable."""
        for assignment in self.assignments:
            assignment.read = True


Live = Dict[Target, Arrival]
"""Where control may go on behind some statements."""


def merged(one: Live, two: Live) -> Live:
    result = dict(one)
    for target, arrival in two.items():
        known = result.get(target)
        if known is not None:
            arrival = Arrival(known.count + arrival.count, [*known.assignments, *arrival.assignments])
        result[target] = arrival
    return result


def as_one_jump(live: Live) -> Live:
    """Seen from outside of a statement, all jumps out of it to the same target are one."""
    return {target: Arrival(1, arrival.assignments) for target, arrival in live.items()}


class States:
    """Names and numbers.

    A ``with`` body and a ``finally`` body have a variable of their own: what was assigned before they began counts
    again when the manager swallows an exception, or when the ``finally`` body ends.
    """

    def __init__(self, contexts: Contexts) -> None:
        self.contexts = contexts
        self._names: Dict[Path, str] = {}
        self._numbers: Dict[Target, int] = {}
        self.tested: Set[str] = set()

    def assignment(self, level: Path, target: Target) -> Assignment:
        """Goes on at ``target``, said at ``level``: all variables from there out to the one of ``target``."""
        if isinstance(target, End):
            home = (*self.contexts.paths[target.anchor],)
        else:
            home = self.contexts.paths[target]
        here, there = self._scopes(level), self._scopes(home)
        assert here[: len(there)] == there
        result = Assignment(targets=[], value=ast.Constant(None))
        result.names = tuple(self._name(scope) for scope in here[len(there) - 1 :])
        result.number = self._number(target)
        return result

    def test(self, level: Path, targets: Iterable[Target]) -> ast.expr:
        """Whether control goes on at one of ``targets``."""
        name = self._name(self._scopes(level)[-1])
        self.tested.add(name)
        tests: List[ast.expr] = [
            ast.Compare(ast.Name(name, ast.Load()), [ast.Eq()], [ast.Constant(self._number(target))])
            for target in targets
        ]
        return tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests)

    def finish(self, assignment: Assignment) -> List[ast.stmt]:
        """The statement that is left of ``assignment``."""
        names = [name for name in assignment.names if name in self.tested]
        if assignment.dropped or not names:
            return []
        return [ast.Assign([ast.Name(name, ast.Store()) for name in names], ast.Constant(assignment.number))]

    def _scopes(self, path: Path) -> List[Path]:
        scopes: List[Path] = [()]
        for index, context in enumerate(path):
            if context.kind is Kind.TRY and self.contexts.is_with(context):
                scopes.append(path[: index + 1])
            elif context.kind is Kind.HANDLER and self.contexts.is_finally(context):
                scopes.append(path[: index + 1])
        return scopes

    def _name(self, scope: Path) -> str:
        # Underscores on both sides: such a name stays as it is inside of a class.
        if scope not in self._names:
            self._names[scope] = f"__state_{len(self._names)}__" if self._names else "__state__"
        return self._names[scope]

    def _number(self, target: Target) -> int:
        return self._numbers.setdefault(target, len(self._numbers))
