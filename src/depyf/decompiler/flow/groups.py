"""Undo what the compiler adds around the clauses of ``except*``, so that they look like clauses of ``except``.

    PUSH_EXC; COPY 1; BUILD list 0; SWAP 2                   group, list, rest of the group
    E; CHECK_EXC_GROUP; COPY 1; BRANCH none -> 2             each clause splits the rest
    STORE e; ... the clause ...                              under handler 1
    None; STORE e; DELETE e; JUMP to the next clause
    1: None; STORE e; DELETE e; ADD list 3; POP              what the clause raised, for the list
    2: POP; ... the next clause, or the end:
    ADD list 1; PREP_RERAISE_STAR; COPY 1; BRANCH none       is anything left to raise?

Here the list becomes a marker, the handlers of the clauses are removed, and the end only pops the stack: the statement
implies the rest.
"""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence, Set, Tuple

from depyf.decompiler.flow.graph import Block, Branch, FlowGraph, Jump, Region, Test
from depyf.decompiler.normal.ops import Instr, Op

_HEAD = (Op.PUSH_EXC, Op.COPY, Op.BUILD, Op.SWAP)
_FORGET = (Op.CONST, Op.STORE, Op.DELETE)


def simplify_exception_groups(graph: FlowGraph) -> None:
    """Rewrite every ``except*`` handler of ``graph``; graphs without one do not change."""
    if Op.CHECK_EXC_GROUP not in graph.code.kinds:
        return
    for block in graph.blocks.values():
        _spell_head_as_before(block)
    _join_last_adds(graph)
    heads = [block for block in graph.blocks.values() if _starts(block.ops, _HEAD) and block.ops[2].arg == ("list", 0)]
    clauses = [block for block in graph.blocks.values() if _ends_in_split(block)]
    if not heads or not clauses:
        return
    for block in heads:
        block.ops[2] = block.ops[2].changed(op=Op.NULL, arg=None)
    _drop_guards(graph)
    for block in clauses:
        _simplify_clause(graph, block)
    for block in list(graph.blocks.values()):
        _simplify_end(graph, block)
    graph.drop_unreachable()


def _spell_head_as_before(block: Block) -> None:
    """Rewrite ``[]; COPY 2``, with which 3.12 starts a handler, to the older form."""
    ops = block.ops
    if _starts(ops, (Op.PUSH_EXC, Op.BUILD, Op.COPY)) and (ops[1].arg, ops[2].arg) == (("list", 0), 2):
        ops[1:3] = [ops[2].changed(arg=1), ops[1], ops[2].changed(op=Op.SWAP)]


def _join_last_adds(graph: FlowGraph) -> None:
    """Join the LIST_APPEND that 3.13 copies from before PREP_RERAISE_STAR to every jump there."""
    ends = [block for block in graph.blocks.values() if _starts(block.ops, (Op.PREP_RERAISE_STAR,))]
    sources = graph.predecessors() if ends else {}
    for end in ends:
        before = [graph.blocks[id] for id in sources[end.id]]
        if all(block.ops and isinstance(block.term, Jump) and block.ops[-1].op is Op.ADD for block in before):
            end.ops[:0] = [block.ops.pop() for block in before][:1]


def handles_groups(block: Block) -> bool:
    """Return whether ``block`` starts the handler of an ``except*`` that was rewritten."""
    return _starts(block.ops, (Op.PUSH_EXC, Op.COPY, Op.NULL, Op.SWAP))


def _starts(ops: Sequence[Instr], kinds: Tuple[Op, ...]) -> bool:
    return tuple(instr.op for instr in ops[: len(kinds)]) == kinds


def _ends_in_split(block: Block) -> bool:
    return (
        isinstance(block.term, Branch)
        and block.term.test is Test.NONE
        and tuple(instr.op for instr in block.ops[-2:]) == (Op.CHECK_EXC_GROUP, Op.COPY)
    )


# --- the guards of the clauses -----------------------------------------------------------------------------------


def _drop_guards(graph: FlowGraph) -> None:
    """Remove the regions whose handler only records what the clause raised, and the code that deletes its name."""
    # The regions whose handler is ``(None; STORE e; DELETE e;) ADD list 3; POP``, with the name ``e`` if there is one.
    gone: Dict[Region, Optional[object]] = {}
    for region in graph.regions():
        ops = list(graph.blocks[region.entry].ops)
        name = None
        if _forgets(ops, 0):
            name = ops[1].arg
            ops = ops[3:]
        if [(instr.op, instr.arg) for instr in ops] == [(Op.ADD, ("list", 3)), (Op.POP, None)]:
            gone[region] = name
    chains = {block.id: graph.chain(block.region) for block in graph.blocks.values()}
    # Where such a region is left normally, the name is deleted, too.
    exits = _exits(graph, {region for region, name in gone.items() if name is not None}, chains)
    for region, target in exits:
        if _forgets(graph.blocks[target].ops, 0, gone[region]):
            del graph.blocks[target].ops[:3]
    for block in graph.blocks.values():
        block.region = next((region for region in chains[block.id] if region not in gone), None)


def _forgets(ops: List[Instr], index: int, name: Optional[object] = None) -> bool:
    """Return whether ``name = None; del name`` is at ``index``."""
    tail = ops[index : index + 3]
    if tuple(instr.op for instr in tail) != _FORGET or tail[0].arg is not None or tail[1].arg != tail[2].arg:
        return False
    return name is None or bool(tail[1].arg == name)


def _exits(graph: FlowGraph, regions: Set[Region], chains: Dict[int, Tuple[Region, ...]]) -> Set[Tuple[Region, int]]:
    """Return the normal edges that leave one of ``regions``: the region and the target."""
    return {
        (region, target)
        for id, chain in chains.items()
        for region in chain
        if region in regions
        for target in graph.blocks[id].successors()
        if region not in chains[target]
    }


# --- clauses and end ---------------------------------------------------------------------------------------------


def _simplify_clause(graph: FlowGraph, block: Block) -> None:
    """Rewrite the test of a clause: it leaves nothing on the stack; a clause with a name starts with a copy of the
    exception."""
    term = block.term
    assert isinstance(term, Branch)
    # CHECK_EXC_GROUP; COPY 1; BRANCH none -> other           CHECK_EXC_GROUP; BRANCH false -> other
    # match: POP; ... or: STORE e; ...                   ->   match: ... or: COPY 1; STORE e; ...
    # other: POP; ...                                         other: ...
    match, other = (term.fall, term.target) if term.jump_when else (term.target, term.fall)
    copy = block.ops.pop()
    block.term = Branch(Test.TRUTH, False, other, match, term.instr)
    first = graph.blocks[match].ops
    if first and first[0].op is Op.POP:
        del first[0]
    else:
        if first and _forgets(first, 1, first[0].arg):  # a clause that can't raise had no guard
            del first[1:4]
        first.insert(0, copy)
    rest = graph.blocks[other].ops
    if rest and rest[0].op is Op.POP:
        del rest[0]


def _simplify_end(graph: FlowGraph, block: Block) -> None:
    """Rewrite ``LIST_APPEND 1; PREP_RERAISE_STAR; COPY 1; BRANCH none``: it drops the rest and the list, and never
    raises."""
    kinds = [instr.op for instr in block.ops[-3:]]
    if kinds != [Op.ADD, Op.PREP_RERAISE_STAR, Op.COPY] or not isinstance(block.term, Branch):
        return
    term = block.term
    done = term.target if term.jump_when else term.fall
    first = graph.blocks[done].ops
    if not first or first[0].op is not Op.POP:
        return
    add, prepare, _ = block.ops[-3:]
    drop = add.changed(op=Op.POP, arg=None)
    block.ops[-3:] = [drop, drop, prepare]
    block.term = Jump(done, term.instr.offset)
    del first[0]
