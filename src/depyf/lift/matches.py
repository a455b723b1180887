"""Lift a block that ends in a pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING, Union

from depyf.flow.patterns import PatternBranch, PatternJump
from depyf.lift.items import Mark, Marker
from depyf.lift.nodes import MatchTest, Node
from depyf.lift.places import put

if TYPE_CHECKING:
    from depyf.lift.simulator import Simulator


def end_with_match(node: Node, term: Union[PatternBranch, PatternJump], simulator: Simulator) -> None:
    """Set the terminator of ``node`` for a block that ends in a pattern."""
    item = simulator.pop()
    subject = None
    if isinstance(item, Marker) and item.kind is Mark.SUBJECT:
        statement = item.origin
    else:
        subject, statement = simulator.as_value(item).expr, node.id
    simulator.settle()
    assert term.pattern is not None
    node.silent = False
    if isinstance(term, PatternJump):
        node.terminator = MatchTest(statement, subject, term.pattern, term.target, None, guarded=term.guarded)
        return
    if simulator.context.places:
        put(term.pattern, term.instr.span)
    node.terminator = MatchTest(
        statement, subject, term.pattern, term.fall, term.target, term.keeps, term.guarded, term.default
    )
    if term.keeps:
        simulator.stack.append(Marker(Mark.SUBJECT, statement))
