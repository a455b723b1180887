"""``match`` statements: a chain of pattern tests on one subject, each failing to the next."""

from __future__ import annotations

import ast
from typing import List, Optional, Set, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.lift import build
from depyf.decompiler.lift.nodes import Condition, Goto, MatchTest, Node
from depyf.decompiler.structure.regions import Regions
from depyf.decompiler.structure.targets import Targets


@dataclass
class MatchCase:
    """A case as read from the graph: ``nodes`` compute its pattern and guard; ``body`` is None if it is empty."""

    pattern: ast.pattern
    guard: Optional[ast.expr]
    body: Optional[int]
    nodes: List[int]


class Cases:
    """The cases of the ``match`` statements of one graph."""

    def __init__(self, regions: Regions) -> None:
        self.regions, self.shape, self.nodes = regions, regions.shape, regions.nodes

    def read(self, node: Node) -> Tuple[List[MatchCase], Optional[int], bool]:
        """Return the cases of the statement whose first pattern ends ``node``, where control continues if none matches,
        and whether there certainly is a ``case _``."""
        cases: List[MatchCase] = []
        statement = node.terminator
        assert isinstance(statement, MatchTest)
        term = statement
        while True:
            case, fail = self._read_case(node, term)
            cases.append(case)
            if fail is None:
                return cases, fail, term.default
            # The next case tests the subject that this one has kept, and does nothing else.
            node = self.nodes[fail]
            following = node.terminator
            if not isinstance(following, MatchTest) or following.subject is not None or node.statements or node.leaves:
                return cases, fail, term.default
            if following.statement != statement.statement:
                return cases, fail, term.default
            term = following

    def _read_case(self, node: Node, term: MatchTest) -> Tuple[MatchCase, Optional[int]]:
        """Return the case that ``term`` tests, and the node where control continues if it does not apply."""
        if term.success == term.fail:
            # ``case 1 if False: a()``: the compiler removed the guard with the body; a case that keeps the subject for
            # the next one shows that it was there. Without a next case it is ``case 1: pass``.
            return MatchCase(term.pattern, ast.Constant(False) if term.keeps else None, None, [node.id]), term.fail
        inside = self.nodes[term.success]
        test = inside.terminator
        nodes = [node.id, inside.id]
        if term.keeps and term.fail is not None and _goes_on_at_once(inside, term.fail):
            return MatchCase(term.pattern, ast.Constant(False), None, nodes), term.fail
        guard = _guard(inside, test) if term.guarded and isinstance(test, Condition) else None
        # ``case p if g``: the pattern and the test of g both fail to the next case.
        if (
            guard is not None
            and isinstance(test, Condition)
            and len(self.shape.predecessors[inside.id]) == 1
            and (term.fail is None or term.fail in (test.target, test.fall))
        ):
            if test.fall == test.target and _is_next_case(self.nodes[test.fall]):
                # ``case p if g and False``: both results of g lead to the next case, and no body is left.
                never = ast.BoolOp(ast.And(), [guard, ast.Constant(False)])
                return MatchCase(term.pattern, never, None, nodes), term.fail
            if test.fall == term.fail and test.target != term.fail:  # ``case p if not g``
                return MatchCase(term.pattern, build.negate(guard), test.target, nodes), test.fall
            return MatchCase(term.pattern, guard, test.fall, nodes), test.target
        return MatchCase(term.pattern, None, term.success, [node.id]), term.fail

    def merge(self, cases: List[MatchCase], last: Optional[int], targets: Targets) -> Optional[int]:
        """Return the node after the statement; ``None`` if no case reaches one. ``last``: where control continues if no
        case matches."""
        tests: Set[int] = {id for case in cases for id in case.nodes}
        shape = self.shape
        found: List[int] = []
        # A case without a body goes on where the last case fails to: after the statement.
        empty = cases[-1].body is None or any(case.body == last for case in cases)
        if empty and last is not None and not targets.known(last):
            return last
        # A short ``return`` after the statement, to which a body leads as well.
        if last is not None and shape.is_copyable(last) and not targets.known(last):
            first = cases[0].nodes[0]
            if any(source not in tests and shape.dominates(first, source) for source in shape.predecessors[last]):
                return last
        # Otherwise a node that several bodies lead to. If only tests lead to ``last``, it is the body of ``case _``.
        for id in tests:
            for child in shape.children[id]:
                if child in tests or targets.known(child) or shape.is_copyable(child):
                    continue
                if self.regions.is_outside(child, targets):
                    continue
                sources = shape.forward_predecessors(child)
                if len(sources) < 2 or (child == last and all(source in tests for source in sources)):
                    continue
                found.append(child)
        return min(found, key=shape.index.__getitem__, default=None)


def _is_next_case(node: Node) -> bool:
    return isinstance(node.terminator, MatchTest) and node.terminator.subject is None


def _goes_on_at_once(inside: Node, fail: int) -> bool:
    """Return whether ``inside``, the target of a pattern that keeps the subject, only jumps to the next case. Its guard
    was then false at compile time."""
    goes_on = isinstance(inside.terminator, Goto) and inside.terminator.target == fail
    return goes_on and not inside.statements and not inside.leaves


def _guard(inside: Node, condition: Condition) -> Optional[ast.expr]:
    """Return the test of ``condition`` with preceding assignments as walruses; ``None`` if that is not possible."""
    # ``case p if (n := f()) > 1`` may be lifted to ``n = f()`` and the test ``f() > 1``, which hold the same ``ast``
    # node for ``f()``.
    if condition.keep or inside.leaves:
        return None
    guard: ast.expr = condition.test
    for statement in inside.statements:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        named = _Naming(statement.targets[0], statement.value)
        changed = named.visit(guard)
        if named.count != 1 or not isinstance(changed, ast.expr):
            return None
        guard = changed
    return guard


class _Naming(ast.NodeTransformer):
    """Replaces the expression ``value`` (that very node) by ``(target := value)``."""

    def __init__(self, target: ast.expr, value: ast.expr) -> None:
        self.target, self.value, self.count = target, value, 0

    def visit(self, node: ast.AST) -> ast.AST:
        if node is not self.value:
            return self.generic_visit(node)
        self.count += 1
        return ast.NamedExpr(self.target, self.value) if isinstance(self.target, ast.Name) else node


def case_clause(pattern: ast.pattern, guard: Optional[ast.expr], body: List[ast.stmt]) -> ast.match_case:
    """Return ``case pattern if guard``."""
    return ast.match_case(pattern=pattern, guard=guard, body=body or [ast.Pass()])
