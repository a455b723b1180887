"""Undo the copies that the compiler makes of whole blocks, and its jumps to jumps."""

from __future__ import annotations

from depyf.flow.builtin_calls import undo_inlined_builtins
from depyf.flow.equal_blocks import join_equal_blocks, split_constant_returns, split_equal_tails, split_loop_tests
from depyf.flow.exception_names import forget_exception_names
from depyf.flow.exit_copies import (
    join_class_ends,
    join_failed_chains,
    join_returned_comparisons,
    join_returned_constants,
    join_returns_of_expression,
    split_exit_copies,
)
from depyf.flow.finally_copies import join_finally_copies
from depyf.flow.graph import Block, FlowGraph, Jump
from depyf.flow.groups import simplify_exception_groups
from depyf.flow.patterns import recover_matches
from depyf.flow.threaded_tests import undo_threaded_tests


def undo_copies(graph: FlowGraph) -> None:
    """Run all steps, in the order in which they build on each other."""
    undo_inlined_builtins(graph)
    undo_threaded_tests(graph)
    simplify_exception_groups(graph)
    forget_exception_names(graph)
    join_returns_of_expression(graph)
    join_returned_constants(graph)
    split_constant_returns(graph)
    join_class_ends(graph)
    join_returned_comparisons(graph)
    join_failed_chains(graph)
    join_finally_copies(graph)
    thread_jumps(graph)
    recover_matches(graph)
    changed = True
    while changed:
        cut = split_loop_tests(graph)
        cut = split_exit_copies(graph) or cut
        cut = cut or split_equal_tails(graph)  # of what is left: an exit may end in another one, which is cut next
        changed = join_equal_blocks(graph) or cut


def thread_jumps(graph: FlowGraph) -> None:
    """Redirect jumps to an empty block to its successor. An empty block stays where it alone shows that control
    leaves a region on its way (``while True: try: ...``: the jump back lies outside of the ``try``)."""
    for block in list(graph.blocks.values()):
        for target in block.successors():
            final = target
            seen = {target}
            while True:
                middle = graph.blocks[final]
                if middle.ops or middle.leaves or not isinstance(middle.term, Jump) or middle.term.target in seen:
                    break
                beyond = graph.blocks[middle.term.target]
                if middle.region not in (beyond.region, block.region) and not _lies_between(
                    graph, block, middle, beyond
                ):
                    break
                if isinstance(block.term, Jump) or middle.offset() > block.offset():
                    block.jumps_from = max(block.jumps_from, middle.offset())
                final = beyond.id
                seen.add(final)
            if final != target:
                block.redirect(target, final)
    graph.drop_unreachable()


def _lies_between(graph: FlowGraph, block: Block, middle: Block, beyond: Block) -> bool:
    """Return whether the path from ``block`` to ``beyond`` leaves and enters the same regions without ``middle``."""
    if middle.region in (block.region, beyond.region):
        return True
    inside, outside = (*graph.chain(block.region), None), (*graph.chain(middle.region), None)
    return middle.region in inside and beyond.region in outside
