"""``match`` statements: a chain of pattern tests on one subject, each failing to the next."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, List, Optional, Set, Tuple

from depyf.lift import build
from depyf.lift.nodes import Condition, Goto, MatchTest, Node
from depyf.quick_dataclass import dataclass
from depyf.structure.leaving import always_matches, leaves
from depyf.structure.regions import is_outside
from depyf.structure.structurer import Structurer
from depyf.structure.unstructured import Unstructured

if TYPE_CHECKING:
    from depyf.structure.place import Place


@dataclass
class _Case:
    """``nodes`` are those of the pattern and of the guard; ``body`` is None if it is empty."""

    pattern: ast.pattern
    guard: Optional[ast.expr]
    body: Optional[int]
    nodes: List[int]


def match_statement(
    structurer: Structurer, node: Node, term: MatchTest, place: Place, result: List[ast.stmt]
) -> Optional[int]:
    """Write the statement whose first case ``node`` ends in; return the next node, ``None`` if there is none. Raises
    ``Unstructured`` when its parts do not belong together."""
    if term.subject is None:
        raise Unstructured(f"node {node.id} (offset {node.offset}): a case is outside of its match statement")
    cases, last, has_default = _read_cases(structurer, node, place)
    merge = _merge(structurer, cases, last, place)
    arms = place if merge is None else place._replace(follow=merge)
    bodies = [structurer.sequence(case.body, arms) if case.body is not None else [] for case in cases]
    written = [_case(case.pattern, case.guard, body) for case, body in zip(cases, bodies)]
    following = merge
    if (
        last is not None
        and merge is None
        and not has_default
        and all(leaves(body, structurer.leaving) for body in bodies)
    ):
        following = last
    elif last is not None and last != merge:
        default = structurer.sequence(last, arms)
        if default:
            written.append(_case(_wildcard(), None, default))
    if any(case.guard is None and always_matches(case.pattern) for case in written[:-1]):
        raise Unstructured(f"node {node.id} (offset {node.offset}): a case that always matches is not the last one")
    result.append(ast.Match(subject=term.subject, cases=written))
    return following


def _read_cases(structurer: Structurer, node: Node, place: Place) -> Tuple[List[_Case], Optional[int], bool]:
    """Return the cases, where control continues if none matches, and whether there certainly is a ``case _``."""
    cases: List[_Case] = []
    current: Optional[Node] = node
    statement = node.terminator
    assert isinstance(statement, MatchTest)
    while True:
        assert current is not None
        term = current.terminator
        assert isinstance(term, MatchTest)
        if cases:
            structurer.check_place(current, place)
            structurer.written.add(current.id)
        case, fail = _read_case(structurer, current, term)
        cases.append(case)
        current = structurer.nodes[fail] if fail is not None else None
        following = current.terminator if current is not None else None
        if (
            current is None
            or not isinstance(following, MatchTest)
            or following.subject is not None
            or following.statement != statement.statement
            or current.statements
            or current.leaves
        ):
            return cases, fail, term.default


def _read_case(structurer: Structurer, node: Node, term: MatchTest) -> Tuple[_Case, Optional[int]]:
    """Return the case that ``term`` tests, and the node where control continues if it does not apply."""
    if term.success == term.fail:  # the guard of a case with a successor was false at compile time
        return _Case(term.pattern, ast.Constant(False) if term.keeps else None, None, [node.id]), term.fail
    inside = structurer.nodes[term.success]
    test = inside.terminator
    if term.keeps and term.fail is not None and _goes_on_at_once(inside, term.fail):
        structurer.written.add(inside.id)
        return _Case(term.pattern, ast.Constant(False), None, [node.id, inside.id]), term.fail
    guard = _guard(inside, test) if term.guarded and isinstance(test, Condition) else None
    if (
        guard is not None
        and isinstance(test, Condition)
        and len(structurer.shape.predecessors[inside.id]) == 1
        and (term.fail is None or term.fail in (test.target, test.fall))
    ):
        structurer.written.add(inside.id)
        nodes = [node.id, inside.id]
        if test.fall == test.target and _is_next_case(structurer.nodes[test.fall]):  # no body goes there
            never = ast.BoolOp(ast.And(), [guard, ast.Constant(False)])
            return _Case(term.pattern, never, None, nodes), term.fail
        if test.fall == term.fail and test.target != term.fail:
            return _Case(term.pattern, build.negate(guard), test.target, nodes), test.fall
        return _Case(term.pattern, guard, test.fall, nodes), test.target
    return _Case(term.pattern, None, term.success, [node.id]), term.fail


def _is_next_case(node: Node) -> bool:
    return isinstance(node.terminator, MatchTest) and node.terminator.subject is None


def _goes_on_at_once(inside: Node, fail: int) -> bool:
    """Return whether ``inside``, the target of a pattern that keeps the subject, only jumps to the next case. Its guard
    was then false at compile time."""
    goes_on = isinstance(inside.terminator, Goto) and inside.terminator.target == fail
    return goes_on and not inside.statements and not inside.leaves


def _guard(inside: Node, condition: Condition) -> Optional[ast.expr]:
    """Return the test of ``condition`` with preceding assignments as walruses; ``None`` if that is not possible."""
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


def _merge(structurer: Structurer, cases: List[_Case], last: Optional[int], place: Place) -> Optional[int]:
    """Return the node after the statement: reached from several cases, or from one and when none matches."""
    tests: Set[int] = {id for case in cases for id in case.nodes}
    shape = structurer.shape
    found: List[int] = []
    empty = cases[-1].body is None or any(case.body == last for case in cases)
    if empty and last is not None and not place.known(last):
        return last
    if last is not None and shape.is_copyable(last) and not place.known(last):
        first = cases[0].nodes[0]
        if any(source not in tests and shape.dominates(first, source) for source in shape.predecessors[last]):
            return last
    for id in tests:
        for child in shape.children[id]:
            if child in tests or place.known(child) or shape.is_copyable(child) or is_outside(structurer, child, place):
                continue
            sources = shape.forward_predecessors(child)
            if len(sources) < 2 or (child == last and all(source in tests for source in sources)):
                continue
            found.append(child)
    return min(found, key=lambda id: shape.index[id]) if found else None


def _case(pattern: ast.pattern, guard: Optional[ast.expr], body: List[ast.stmt]) -> ast.match_case:
    return ast.match_case(pattern=pattern, guard=guard, body=body or [ast.Pass()])


def _wildcard() -> ast.pattern:
    return ast.MatchAs(pattern=None, name=None)
