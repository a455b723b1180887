"""Calls of ``all``, ``any``, ``tuple`` and similar builtins with a generator expression, which 3.14 compiles twice.

    all; COPY 1; SPECIAL all; IS; BRANCH false fallback     is it the builtin?
    POP; ... a loop over the generator ...                  its effect, without the call
    fallback: NULL; ... the generator ...; CALL             else the call

Both paths do the same, and the call is in the source. The verifier checks both.
"""

from __future__ import annotations

from depyf.flow.graph import Block, Branch, FlowGraph, Jump, Test
from depyf.normal.ops import Op


def undo_inlined_builtins(graph: FlowGraph) -> None:
    """Remove the loops, and the tests that guard them."""
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
