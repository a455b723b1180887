"""Cut blocks where the copy of a ``while`` test begins: the compiler writes it before the loop and at its end."""

from __future__ import annotations

from typing import Dict, List

from depyf.flow.arms import pushes, stands_alone
from depyf.flow.graph import Block, Branch, FlowGraph, same_operation, ways_of
from depyf.flow.repeated import Repeated


def split_loop_tests(graph: FlowGraph, repeated: Repeated) -> bool:
    """Cut both blocks of a ``while`` test, which is copied from top to bottom, where the test begins.

    Returns whether anything was cut. Needs several tests on one line.
    """
    count = len(graph.blocks)
    by_ways: Dict[object, List[Block]] = {}
    by_line: Dict[object, List[Block]] = {}
    for block in repeated.tests():
        assert isinstance(block.term, Branch)
        key = (*ways_of(block.term), block.region, block.term.instr.line)
        by_ways.setdefault(key, []).append(block)
        by_line.setdefault((block.term.test, block.region, block.term.instr.line), []).append(block)
    _cut_before_first_tests(graph, by_line)
    for blocks in by_ways.values():
        if len(blocks) < 2:
            continue
        for block in blocks:
            for other in blocks:
                if other is not block:
                    _cut_common_test(graph, block, other)
    return len(graph.blocks) > count


def _cut_before_first_tests(graph: FlowGraph, by_line: Dict[object, List[Block]]) -> None:
    """Cut the blocks that end in the first test of a condition of several where that begins with a whole copy of it: in
    ``while (a or b) > 3: g(a or b)`` the copies lead to copies of the other tests, which are not joined so far."""
    for blocks in by_line.values():
        for block in blocks if len(blocks) <= _MOST_TESTS else ():
            for other in blocks:
                if len(block.ops) > len(other.ops) and set(block.successors()) != set(other.successors()):
                    _cut_common_test(graph, block, other)


_MOST_TESTS = 24
"""On one line: of generated code with more of them each would be compared with each."""


def _cut_common_test(graph: FlowGraph, block: Block, other: Block) -> None:
    """Cut ``block`` before the longest self-contained run of operations that ``other`` ends with, too, if a statement
    ends there: in ``while f(a or b): a = a or b`` on one line the body begins with a part of the test."""
    common = 0
    while common < min(len(block.ops), len(other.ops)):
        one, two = block.ops[-1 - common], other.ops[-1 - common]
        if (not same_operation(one, two) and one.arg is not two.arg) or one.op is not two.op or one.line != two.line:
            break
        common += 1
    while common and not stands_alone(block.ops[-common:]):
        common -= 1
    cut = len(block.ops) - common
    if not common or not cut or pushes(block.ops[cut - 1]):
        return
    graph.cut(block, cut)
