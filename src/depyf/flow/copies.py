"""Undo the copies that the compiler makes of whole blocks, and its jumps to jumps."""

from __future__ import annotations

from typing import Dict, List

from depyf.flow.builtin_calls import undo_inlined_builtins
from depyf.flow.equal_blocks import join_equal_blocks, split_constant_returns, split_equal_tails
from depyf.flow.exception_names import forget_exception_names, place_clause_ends
from depyf.flow.exit_copies import (
    join_class_ends,
    join_failed_chains,
    join_returned_arms,
    join_returned_comparisons,
    join_returns_of_expression,
    split_exit_copies,
)
from depyf.flow.finally_copies import join_finally_copies
from depyf.flow.graph import Block, Chains, FlowGraph, Jump, Region
from depyf.flow.groups import simplify_exception_groups
from depyf.flow.loop_tests import split_loop_tests
from depyf.flow.order import order_blocks
from depyf.flow.patterns import recover_matches
from depyf.flow.repeated import Repeated
from depyf.flow.returned_constants import join_returned_constants
from depyf.flow.threaded_tests import undo_threaded_choices, undo_threaded_tests


def undo_copies(graph: FlowGraph, *, by_lines: bool = True) -> None:
    """Run all steps, in the order in which they build on each other. No step puts a block into a new region: those that
    are about regions do not run where there are none. ``by_lines=False``: equal blocks stay as they are, as if each had
    been written. Their lines tell copies from others, and say nothing where a tool gave all code one line, or none."""
    if len(graph.blocks) == 1:  # nothing jumps: there are no copies
        join_returns_of_expression(graph)
        split_constant_returns(graph)
        join_class_ends(graph)
        return
    guarded = any(block.region is not None for block in graph.blocks.values())
    undo_inlined_builtins(graph)
    undo_threaded_tests(graph)
    undo_threaded_choices(graph)
    if guarded:
        simplify_exception_groups(graph)
        forget_exception_names(graph)
        place_clause_ends(graph)
    join_returns_of_expression(graph)
    join_returned_constants(graph)
    join_returned_arms(graph)
    split_constant_returns(graph)
    join_class_ends(graph)
    join_returned_comparisons(graph)
    join_failed_chains(graph)
    if guarded:
        cover_jumps(graph)
        join_finally_copies(graph)
    thread_jumps(graph)
    recover_matches(graph)
    repeated, changed = Repeated(graph), by_lines
    while changed:
        cut = split_loop_tests(graph, repeated)
        cut = split_exit_copies(graph, repeated) or cut
        cut = cut or split_equal_tails(graph, repeated)  # of what is left: an exit may end in one that is cut next
        changed = join_equal_blocks(graph, repeated) or cut
    undo_threaded_choices(graph)
    if guarded:
        begin_loops_before_regions(graph)


def cover_jumps(graph: FlowGraph) -> None:
    """Move an empty block into the region of its target if control does not enter the region there. Since 3.12 jumps
    are in no region; where a region is entered, they may be outside of it."""
    jumps = [
        (block, graph.blocks[block.term.target].region)
        for block in graph.blocks.values()
        if not block.ops and isinstance(block.term, Jump) and graph.blocks[block.term.target].region != block.region
    ]
    if all(region is None for _, region in jumps):
        return
    before, chains = graph.predecessors(), Chains(graph)

    def inside(id: int, region: Region) -> bool:
        block = graph.blocks[id]
        if region in chains[block.region]:
            return True
        return not block.ops and all(region in chains[graph.blocks[each].region] for each in before[id])

    for block, region in jumps:
        if region is not None and all(inside(each, region) for each in before[block.successors()[0]]):
            block.region = region


def thread_jumps(graph: FlowGraph) -> None:
    """Redirect jumps to an empty block to its successor. An empty block stays if only it shows that control leaves a
    region (``while True: try: ...``: the back edge is outside of the ``try``)."""
    chains = Chains(graph)
    empty = {
        id for id, block in graph.blocks.items() if not block.ops and not block.leaves and isinstance(block.term, Jump)
    }
    for block in list(graph.blocks.values()) if empty else ():
        for target in block.successors():
            if target not in empty:
                continue
            final = target
            seen = {target}
            while True:
                middle = graph.blocks[final]
                if final not in empty or not isinstance(middle.term, Jump) or middle.term.target in seen:
                    break
                beyond = graph.blocks[middle.term.target]
                if middle.region not in (beyond.region, block.region) and not _lies_between(
                    chains, block, middle, beyond
                ):
                    break
                if isinstance(block.term, Jump) or middle.offset() > block.offset():
                    block.jumps_from = max(block.jumps_from, middle.offset())
                final = beyond.id
                seen.add(final)
            if final != target:
                block.redirect(target, final)
    if graph.entry in empty:  # the first statement is a loop, and goes back to what is in it
        first = graph.blocks[graph.entry]
        behind = graph.blocks[first.successors()[0]]
        if first.region == behind.region:
            graph.entry = behind.id
    graph.drop_unreachable()


def begin_loops_before_regions(graph: FlowGraph) -> None:
    """Put an empty block before a region that a loop starts with, and let its back edges from outside lead there: the
    loop does not begin at the first statement of the region, where another one may (``while True: try: while a: ...``).
    """
    chains = Chains(graph)
    entered: Dict[int, List[int]] = {}  # the blocks that enter a region, by the first one in it
    for block in graph.blocks.values():
        for target in block.successors():
            region = graph.blocks[target].region
            if region not in (None, block.region) and not set(chains[region]) <= set(chains[block.region]):
                entered.setdefault(target, []).append(block.id)
    if all(len(sources) == 1 and target != graph.entry for target, sources in entered.items()):
        return
    order = order_blocks(graph)
    for target, sources in entered.items():
        regions = chains[graph.blocks[target].region]
        outside = {id: sum(region not in chains[graph.blocks[id].region] for region in regions) for id in sources}
        behind = target
        for count in sorted({outside[id] for id in sources if order.is_back_edge(id, target)}):
            header = graph.new_block([], Jump(behind), (*regions, None)[count])
            for id in sources:
                if outside[id] >= count:
                    graph.blocks[id].redirect(behind, header.id)
            if graph.entry == behind:
                graph.entry = header.id
            behind = header.id


def _lies_between(chains: Chains, block: Block, middle: Block, beyond: Block) -> bool:
    """Return whether the path from ``block`` to ``beyond`` leaves and enters the same regions without ``middle``."""
    if middle.region in (block.region, beyond.region):
        return True
    inside, outside = (*chains[block.region], None), (*chains[middle.region], None)
    return middle.region in inside and beyond.region in outside
