"""The state variable: assignments that select the next target, and the tests that read it.

Every jump that has no syntax starts as an assignment. Where only one target remains possible, its assignments are
removed, so that most programs keep none.
"""

from __future__ import annotations

import ast
from dataclasses import field
from typing import Dict, Iterable, List, NamedTuple, Optional, Set, Tuple, Union

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.structure.dispatch.contexts import Context, Contexts, Kind, Path


class FinallyEnd(NamedTuple):
    """The end of the ``finally`` body with the entry node ``anchor``: the interrupted jump or exception resumes."""

    anchor: int


Target = Union[int, FinallyEnd]


class Assignment(ast.Assign):
    """``names = number``, unless it is ``dropped``. ``read``: a test depends on it."""

    names: Tuple[str, ...] = ()
    number: int = 0
    read = False
    dropped = False


@dataclass
class Arrival:
    """Control may continue at a target: the number of jumps to it, and the assignments made there."""

    count: int = 1
    assignments: List[Assignment] = field(default_factory=list)

    def drop(self) -> None:
        """Drop the assignments: it is the only target."""
        for assignment in self.assignments:
            assignment.dropped = not assignment.read

    def keep(self) -> None:
        """Keep the assignments: a test reads the variable."""
        for assignment in self.assignments:
            assignment.read = True


Live = Dict[Target, Arrival]
"""The possible targets after some statements."""


def merged(one: Live, two: Live) -> Live:
    result = dict(one)
    for target, arrival in two.items():
        known = result.get(target)
        if known is not None:
            arrival = Arrival(known.count + arrival.count, [*known.assignments, *arrival.assignments])
        result[target] = arrival
    return result


def as_one_jump(live: Live) -> Live:
    """Return ``live`` as seen from outside of a statement: all its jumps to the same target are one."""
    return {target: Arrival(1, arrival.assignments) for target, arrival in live.items()}


class States:
    """The names of the state variables and the numbers of their targets.

    A ``with`` body and a ``finally`` body have a variable of their own: assignments from before are valid again when
    the manager suppresses an exception, or when the ``finally`` body ends.
    """

    def __init__(self, contexts: Contexts) -> None:
        self.contexts = contexts
        self._names: Dict[Path, str] = {}
        self._numbers: Dict[Target, int] = {}
        self.tested: Set[str] = set()

    def assignment(self, level: Path, target: Target, passing: Optional[Path] = None) -> Assignment:
        """Return the assignment at ``level`` that selects ``target``. ``passing``: where the jump begins, if that is
        further inside."""
        # Each enclosing ``with`` and ``finally`` up to the home of the target has a variable that is tested after it:
        #
        #     with a:
        #         with b:
        #             __state_1__ = __state_2__ = 3
        #         __state__ = 3
        #     if __state__ == 3: ...
        #
        # b's exit may raise, and a may suppress that: then the ``__state__`` from before ``with a`` has to be valid. So
        # ``__state__`` is assigned where control has left b.
        here, there = self._scopes(level), self._scopes(self._home(target))
        assert here[: len(there)] == there
        result = Assignment(targets=[], value=ast.Constant(None))
        first = max(len(there) - 1, self._outermost_safe(passing or level))
        result.names = tuple(self._name(scope) for scope in here[first:])
        result.number = self._number(target)
        return result

    def is_complete(self, level: Path, target: Target, passing: Path) -> bool:
        """Return whether a jump from ``passing`` to ``target`` needs no further assignment when it is at ``level``."""
        outermost = max(len(self._scopes(self._home(target))) - 1, self._outermost_safe(level))
        return self._outermost_safe(passing) <= outermost

    def _home(self, target: Target) -> Path:
        return self.contexts.paths[target.anchor if isinstance(target, FinallyEnd) else target]

    def _outermost_safe(self, path: Path) -> int:
        """Return the index of the outermost of ``_scopes`` with a variable that may be assigned at ``path``: it is the
        body of the innermost ``with`` that another ``with`` or a ``finally`` stands in."""
        exits = [context for context in path if context.kind is Kind.TRY and self._runs_code_at_exit(context)]
        managers = [context for context in exits[:-1] if self.contexts.is_with(context)]
        return len(self._scopes(path[: path.index(managers[-1]) + 1])) - 1 if managers else 0

    def _runs_code_at_exit(self, context: Context) -> bool:
        return self.contexts.is_with(context) or self.contexts.is_finally(context)

    def test(self, level: Path, targets: Iterable[Target]) -> ast.expr:
        """Return the test whether one of ``targets`` is selected."""
        name = self._name(self._scopes(level)[-1])
        self.tested.add(name)
        tests: List[ast.expr] = [
            ast.Compare(ast.Name(name, ast.Load()), [ast.Eq()], [ast.Constant(self._number(target))])
            for target in targets
        ]
        return tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests)

    def finish(self, assignment: Assignment) -> List[ast.stmt]:
        """Return the statement that remains of ``assignment``, as a list of at most one."""
        names = [name for name in assignment.names if name in self.tested]
        if assignment.dropped or not names:
            return []
        return [ast.Assign([ast.Name(name, ast.Store()) for name in names], ast.Constant(assignment.number))]

    def _scopes(self, path: Path) -> List[Path]:
        """Return the paths around ``path`` that have a state variable of their own, outermost first."""
        scopes: List[Path] = [()]
        for index, context in enumerate(path):
            if context.kind is Kind.TRY and self.contexts.is_with(context):
                scopes.append(path[: index + 1])
            elif context.kind is Kind.HANDLER and self.contexts.is_finally(context):
                scopes.append(path[: index + 1])
        return scopes

    def _name(self, scope: Path) -> str:
        # Underscores on both sides: such a name is not mangled inside of a class.
        if scope not in self._names:
            self._names[scope] = f"__state_{len(self._names)}__" if self._names else "__state__"
        return self._names[scope]

    def _number(self, target: Target) -> int:
        return self._numbers.setdefault(target, len(self._numbers))


def keep_all(live: Live) -> None:
    """Keep the assignments that lead to each of ``live``: the state variable is tested."""
    for arrival in live.values():
        arrival.keep()


def drop_all(live: Live) -> None:
    """Drop the assignments that lead to each of ``live``: no test needs them."""
    for arrival in live.values():
        arrival.drop()
