"""Undo the copies that the compiler makes of whole blocks, and its jumps to jumps."""

from __future__ import annotations

from typing import Dict, List

from depyf.decompiler.flow.equal_blocks import (
    join_equal_blocks,
    split_constant_returns,
    split_equal_tails,
    split_loop_tests,
)
from depyf.decompiler.flow.exception_names import forget_exception_names, place_clause_ends
from depyf.decompiler.flow.exit_copies import (
    join_class_ends,
    join_failed_chains,
    join_returned_arms,
    join_returned_comparisons,
    join_returned_constants,
    join_returns_of_expression,
    split_exit_copies,
)
from depyf.decompiler.flow.finally_copies import join_finally_copies
from depyf.decompiler.flow.graph import Block, Branch, Chains, FlowGraph, Jump, Region, Test
from depyf.decompiler.flow.groups import simplify_exception_groups
from depyf.decompiler.flow.match.patterns import recover_matches
from depyf.decompiler.flow.order import order_blocks
from depyf.decompiler.flow.repeated import Repeated
from depyf.decompiler.flow.threaded_tests import undo_threaded_choices, undo_threaded_tests
from depyf.decompiler.normal.ops import Op


def undo_copies(graph: FlowGraph, *, by_lines: bool = True) -> None:
    """Run all steps, in the order in which they build on each other.

    ``by_lines=False``: equal blocks stay as they are, as if each had been written. Lines distinguish copies from other
    equal blocks; where a tool gave all code one line, or none, they say nothing.
    """
    if len(graph.blocks) == 1:  # nothing jumps: there are no copies
        join_returns_of_expression(graph)
        split_constant_returns(graph)
        join_class_ends(graph)
        return
    # No step puts a block into a new region: without regions the steps that are about them have nothing to do.
    guarded = any(block.region is not None for block in graph.blocks.values())
    # Optimisations of tests: until they are undone, jumps lead into the middle of expressions.
    undo_inlined_builtins(graph)
    undo_threaded_tests(graph)
    undo_threaded_choices(graph)
    # Code that the compiler adds to ``except`` clauses.
    if guarded:
        simplify_exception_groups(graph)
        forget_exception_names(graph)
        place_clause_ends(graph)
    # Returns: first of one expression each, before ``return <constant>`` becomes a block that may be shared.
    join_returns_of_expression(graph)
    join_returned_constants(graph)
    join_returned_arms(graph)
    split_constant_returns(graph)
    join_class_ends(graph)
    join_returned_comparisons(graph)
    join_failed_chains(graph)
    # ``finally`` bodies, as long as empty blocks show where a region is left.
    if guarded:
        cover_jumps(graph)
        join_finally_copies(graph)
    thread_jumps(graph)
    recover_matches(graph)
    # Cut blocks where a copy begins, join equal blocks; that makes their predecessors equal. Until nothing changes.
    repeated, changed = Repeated(graph), by_lines
    while changed:
        cut = split_loop_tests(graph, repeated)
        cut = split_exit_copies(graph, repeated) or cut
        cut = cut or split_equal_tails(graph, repeated)  # only then: an exit may end in one that is cut next time
        changed = join_equal_blocks(graph, repeated) or cut
    undo_threaded_choices(graph)
    if guarded:
        begin_loops_before_regions(graph)


def undo_inlined_builtins(graph: FlowGraph) -> None:
    """Remove the loop that 3.14 inlines for ``all``, ``any``, ``tuple``, ... of a generator expression, and its guard.

    Both paths compute the same, and the source has the call. The verifier checks both.
    """
    # all; COPY 1; SPECIAL all; IS; BRANCH false -> fallback     is it the builtin?
    # POP; ... a loop over the generator ...                     its effect, without the call
    # fallback: NULL; ... the generator ...; CALL                else the call
    if Op.SPECIAL not in graph.code.kinds:
        return
    changed = False
    for block in graph.blocks.values():
        if _asks_for_builtin(block):
            assert isinstance(block.term, Branch)
            block.term = Jump(block.term.target, block.term.instr.offset)
            del block.ops[-3:]
            changed = True
    if changed:
        graph.drop_unreachable()


def _asks_for_builtin(block: Block) -> bool:
    term, test = block.term, block.ops[-3:]
    return (
        isinstance(term, Branch)
        and (term.test, term.jump_when) == (Test.TRUTH, False)
        and [instr.op for instr in test] == [Op.COPY, Op.SPECIAL, Op.IS]
        and test[0].arg == 1
        and not test[2].arg
    )


def cover_jumps(graph: FlowGraph) -> None:
    """Move an empty block into the region of its target if control is in that region before. Since 3.12 jumps are in
    no region."""
    # 1: (in the try) ... BRANCH -> 3
    # 2: (in no region) JUMP -> 1       the target is inside, and so is all that leads to the jump: it stays inside
    jumps = [
        (block, graph.blocks[block.term.target].region)
        for block in graph.blocks.values()
        if not block.ops and isinstance(block.term, Jump) and graph.blocks[block.term.target].region != block.region
    ]
    if all(region is None for _, region in jumps):
        return
    before, chains = graph.predecessors(), Chains(graph)

    def inside(id: int, region: Region) -> bool:
        """Return whether control is in ``region`` there; in an empty block, if it comes from the region only."""
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
            # Follow the empty blocks from this target as far as they change no region. (They may form a loop.)
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
                # The empty block is the end of this one: later stages ask where the code of a block ends.
                if isinstance(block.term, Jump) or middle.offset() > block.offset():
                    block.jumps_from = max(block.jumps_from, middle.offset())
                final = beyond.id
                seen.add(final)
            if final != target:
                block.redirect(target, final)
    if graph.entry in empty:  # the first statement is a loop, and goes back to what is in it
        first = graph.blocks[graph.entry]
        after = graph.blocks[first.successors()[0]]
        if first.region == after.region:
            graph.entry = after.id
    graph.drop_unreachable()


def begin_loops_before_regions(graph: FlowGraph) -> None:
    """Put an empty block before a region that a loop starts with, and lead its back edges from outside there.

    The loop does not begin at the first statement of the region, where another loop may begin.
    """
    # while True:                    1: (empty, in no region) JUMP -> 2       the header of the outer loop
    #     try:                       2: (in the try) a; BRANCH -> 4           the header of the inner loop
    #         while a: b()           3: (in the try) b; JUMP -> 2
    #     except E: pass             handler: ...; JUMP -> 1                  led to 2 before
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
        # How many of the regions around the target each source is outside of: a header for each number, the innermost
        # first. A header in front of ``count`` regions is in the next one further out.
        regions = chains[graph.blocks[target].region]
        outside = {id: sum(region not in chains[graph.blocks[id].region] for region in regions) for id in sources}
        inner = target
        for count in sorted({outside[id] for id in sources if order.is_back_edge(id, target)}):
            header = graph.new_block([], Jump(inner), (*regions, None)[count])
            for id in sources:
                if outside[id] >= count:
                    graph.blocks[id].redirect(inner, header.id)
            if graph.entry == inner:
                graph.entry = header.id
            inner = header.id


def _lies_between(chains: Chains, block: Block, middle: Block, beyond: Block) -> bool:
    """Return whether the path from ``block`` to ``beyond`` leaves and enters the same regions without ``middle``."""
    if middle.region in (block.region, beyond.region):
        return True
    inside, outside = (*chains[block.region], None), (*chains[middle.region], None)
    return middle.region in inside and beyond.region in outside
