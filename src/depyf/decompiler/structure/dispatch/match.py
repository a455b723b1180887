"""``match`` statements for the dispatcher: a chain of pattern tests is one branch with several successors."""

from __future__ import annotations

import ast
from typing import List, Mapping, Optional, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.lift import build
from depyf.decompiler.lift.nodes import Condition, MatchTest, Node
from depyf.decompiler.structure.leaving import always_matches
from depyf.decompiler.structure.unstructured import Unstructured


@dataclass(frozen=True)
class CaseBranch:
    """``pattern`` and ``guard`` (without a pattern: ``case _``) branch to node ``body``."""

    pattern: Optional[ast.pattern]
    guard: Optional[ast.expr]
    body: int


def cases_of(nodes: Mapping[int, Node], node: Node) -> List[CaseBranch]:
    """Return the cases of the ``match`` statement that ``node`` ends in, including the edge taken when none matches.
    Raises ``Unstructured`` if ``node`` ends in a case outside of its statement."""
    first = node.terminator
    if not isinstance(first, MatchTest) or first.subject is None:
        raise Unstructured(f"node {node.id} (offset {node.offset}): a case is outside of its match statement")
    cases: List[CaseBranch] = []
    term = first
    while True:
        case, fail = _case(nodes, term)
        cases.append(case)
        if fail is None:
            return cases
        if case.guard is None and always_matches(term.pattern):
            raise Unstructured(f"node {node.id}: a case that always matches is not the last one")
        following = nodes[fail]
        after = following.terminator
        if not isinstance(after, MatchTest) or after.subject is not None or following.statements:
            break
        if after.statement != first.statement or following.leaves:
            break
        term = after
    return [*cases, CaseBranch(None, None, fail)]


def _case(nodes: Mapping[int, Node], term: MatchTest) -> Tuple[CaseBranch, Optional[int]]:
    """Return the case that ``term`` tests, and the node where control continues if it does not apply."""
    inside = nodes[term.success]
    test = inside.terminator
    if (
        term.guarded
        and isinstance(test, Condition)
        and not (test.keep or inside.statements or inside.leaves)
        and (term.fail is None or term.fail in (test.target, test.fall))
    ):
        if test.fall == term.fail:
            return CaseBranch(term.pattern, build.negate(test.test), test.target), test.fall
        return CaseBranch(term.pattern, test.test, test.fall), test.target
    return CaseBranch(term.pattern, None, term.success), term.fail


def match_statement(subject: ast.expr, cases: List[CaseBranch], bodies: List[List[ast.stmt]]) -> ast.stmt:
    """Return ``match subject`` with ``cases`` and their bodies."""
    written = [
        ast.match_case(
            pattern=case.pattern if case.pattern is not None else ast.MatchAs(pattern=None, name=None),
            guard=case.guard,
            body=body,
        )
        for case, body in zip(cases, bodies)
    ]
    return ast.Match(subject=subject, cases=written)
