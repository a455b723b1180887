"""Undo the jump threading of 3.14: a test of a value skips the next test of the same value.

    a and b or c:   a; COPY 1; BRANCH false -> 2; POP; b; 1: COPY 1; BRANCH true -> 3; 2: POP; c; 3:

Before 3.14 a false ``a`` went to 1, and from there to 2. This restores that.
"""

from __future__ import annotations

from typing import Dict, Optional

from depyf.flow.graph import Block, Branch, FlowGraph, Jump, Test
from depyf.normal.ops import Op


def undo_threaded_tests(graph: FlowGraph) -> None:
    """Let the tests of ``and`` and ``or`` go to the test of the operator around them."""
    around: Dict[int, Block] = {}
    for block in graph.blocks.values():
        test = _value_test(block)
        if test is not None and _drops_value(graph.blocks[test.fall]):
            around[test.fall] = block
    begins: Dict[int, int] = {}  # by what lies behind a test that is skipped: where the first one that skips it stands
    for block in graph.blocks.values():
        if _skips(block, around):
            target = block.successors()[1]
            begins[target] = min(block.extent(), begins.get(target, block.extent()))
    for target in begins:
        around[target] = _alone(graph, around[target])
    for block in list(graph.blocks.values()):
        if _skips(block, around):
            _go_to(block, around[block.successors()[1]])
    for target in sorted(begins):
        _keep_inside(graph, around[target], begins[target])


def _keep_inside(graph: FlowGraph, skipped: Block, begin: int) -> None:
    """All from ``begin`` on is the operand whose truth ``skipped`` tests: other tests in it may go where that would."""
    outer = _value_test(skipped)
    assert outer is not None
    for block in graph.blocks.values():
        test = _value_test(block)
        if test is not None and begin < block.extent() < skipped.extent():
            if (test.target, test.jump_when) == (outer.target, outer.jump_when) and block.region == skipped.region:
                _go_to(block, skipped)


def _go_to(block: Block, target: Block) -> None:
    assert isinstance(block.term, Branch)
    block.term.target = target.id


def _skips(block: Block, around: Dict[int, Block]) -> bool:
    """Whether ``block`` jumps to where a test that its own decides would have gone on."""
    test = _value_test(block)
    skipped = around.get(test.target) if test is not None else None
    if test is None or skipped is None or skipped is block or skipped.region != block.region:
        return False
    following = _value_test(skipped)
    return following is not None and following.jump_when != test.jump_when


def _alone(graph: FlowGraph, block: Block) -> Block:
    """The test at the end of ``block`` as a block of its own."""
    if len(block.ops) == 1:
        return block
    test = graph.new_block(block.ops[-1:], block.term, block.region)
    block.ops, block.term = block.ops[:-1], Jump(test.id, block.ops[-1].offset)
    return test


def _value_test(block: Block) -> Optional[Branch]:
    """Return the branch at the end of ``block``, if it tests a value that stays on the stack."""
    term = block.term
    if type(term) is not Branch or term.test is not Test.TRUTH or not block.ops:
        return None
    return term if (block.ops[-1].op, block.ops[-1].arg) == (Op.COPY, 1) else None


def _drops_value(block: Block) -> bool:
    return bool(block.ops) and block.ops[0].op is Op.POP
