"""Undo the code for ``except E as name``: the ``name = None; del name`` at every exit of the clause, and the region
whose handler does the same when the clause raises."""

from __future__ import annotations

from typing import Dict, List, Optional, Set

from depyf.decompiler.bytecode.lines import Span
from depyf.decompiler.flow.graph import Block, Branch, FlowGraph, Jump, Region
from depyf.decompiler.normal.ops import Instr, Op


def forget_exception_names(graph: FlowGraph) -> None:
    """Remove the code for ``except E as name``: the region whose handler deletes the name, and each other deletion."""
    # STORE name; ... the clause ...                       in the region
    # POP_EXC; CONST None; STORE name; DELETE name         at every exit (3.8: before POP_EXC, at the end of the clause)
    # handler: CONST None; STORE name; DELETE name; RERAISE
    if Op.DELETE not in graph.code.kinds:
        return
    gone: Dict[Region, str] = {}
    for region in graph.regions():
        name = _forgets(graph.blocks[region.entry])
        if name is not None:
            gone[region] = name
    names = set(gone.values()) | _bound_exceptions(graph)
    if not names:
        return
    outer = {region: graph.outer(region) for region in gone}
    for block in graph.blocks.values():
        while block.region in gone:
            assert block.region is not None
            block.region = outer[block.region]
        if Op.DELETE in [instr.op for instr in block.ops]:
            block.ops = _without_forgetting(graph, block, names)
    graph.drop_unreachable()


def place_clause_ends(graph: FlowGraph) -> None:
    """Give the end of an ``except`` clause the line of the test that it follows, where the compiler gave it none."""
    # The copies of a loop's test are each followed by a copy of this end (3.12): with lines, these are found equal.
    ends = [
        block
        for block in graph.blocks.values()
        if block.ops and block.ops[0].op is Op.POP_EXC and block.ops[0].line is None
    ]
    before = graph.predecessors() if ends else {}
    for block in ends:
        lasts = [
            each.term.instr if isinstance(each.term, Branch) else each.ops[-1] if each.ops else block.ops[0]
            for each in map(graph.blocks.__getitem__, before[block.id])
        ]
        line = lasts[0].line if lasts else None
        if line is not None and all(last.line == line for last in lasts):
            block.ops[0] = block.ops[0].changed(span=Span(line, None, line, None))


def _bound_exceptions(graph: FlowGraph) -> Set[object]:
    """Return the variables stored right after a test of the exception: a clause that can't raise has no region."""
    names: Set[object] = set()
    for block in graph.blocks.values():
        if block.ops and block.ops[-1].op is Op.CHECK_EXC and isinstance(block.term, Branch):
            match = graph.blocks[block.term.target if block.term.jump_when else block.term.fall]
            if match.ops and match.ops[0].op is Op.STORE:
                names.add(match.ops[0].arg)
    return names


def _forgets(block: Block) -> Optional[str]:
    """Return the name if ``block`` is ``CONST None, STORE name, DELETE name, RERAISE``; ``None`` otherwise."""
    ops = block.ops
    if [instr.op for instr in ops] != [Op.CONST, Op.STORE, Op.DELETE, Op.RERAISE]:
        return None
    if ops[0].arg is not None or ops[1].arg != ops[2].arg:
        return None
    name: str = ops[1].arg
    return name


def _without_forgetting(graph: FlowGraph, block: Block, names: Set[object]) -> List[Instr]:
    """Remove ``None; STORE name; DELETE name`` after POP_EXCEPT at every exit of the clause (3.11)."""
    ops = block.ops
    result: List[Instr] = []
    index = 0
    while index < len(ops):
        # 3.8, after an empty clause: None; STORE name; DELETE name; POP_EXC
        if ops[index].op is Op.POP_EXC and _is_forgetting(result[-3:], names):
            del result[-3:]
            graph.clause_ends.add(ops[index].offset)
        result.append(ops[index])
        # POP_EXC; None; STORE name; DELETE name
        tail = ops[index + 1 : index + 4]
        if ops[index].op is Op.POP_EXC and _is_forgetting(tail, names):
            if graph.code.forgets_after_jumps:
                graph.clause_jumps[ops[index].offset] = ops[index].span
            index += 3
        index += 1
    # The deletion ends the block, and its jump leads to the POP_EXC at the end of the clause (3.8).
    if _ends_in_forgetting(graph, block, result, names):
        del result[-3:]
        assert isinstance(block.term, Jump)
        graph.clause_ends.add(graph.blocks[block.term.target].ops[0].offset)
    return result


def _ends_in_forgetting(graph: FlowGraph, block: Block, ops: List[Instr], names: Set[object]) -> bool:
    """Return whether ``None; STORE name; DELETE name`` precedes POP_EXCEPT, as only at the end of a clause (3.8)."""
    return (
        _is_forgetting(ops[-3:], names)
        and isinstance(block.term, Jump)
        and [instr.op for instr in graph.blocks[block.term.target].ops[:1]] == [Op.POP_EXC]
    )


def _is_forgetting(ops: List[Instr], names: Set[object]) -> bool:
    """Return whether ``ops`` are ``CONST None, STORE name, DELETE name``."""
    if [instr.op for instr in ops] != [Op.CONST, Op.STORE, Op.DELETE] or ops[0].arg is not None:
        return False
    return ops[1].arg == ops[2].arg and ops[1].arg in names
