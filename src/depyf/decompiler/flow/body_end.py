"""The end of a class or module, where ``return`` can't be written.

    if a:                   a: POP_JUMP_IF_FALSE b; ...; LOAD_CONST None; RETURN_VALUE
        ...                 b: ...; LOAD_CONST None; RETURN_VALUE
    else:
        ...

The compiler copies the end to every path that leads to it, even from inside of loops and ``try`` statements. In a
function each copy can be written as ``return``. Here all copies have to join after the last statement, and a temporary
statement there keeps later stages from copying it.

A module of its own: ``pipeline/`` runs this step on the graph only for a body that can't be written otherwise, and
removes the temporary statement from the finished tree.
"""

from __future__ import annotations

import ast
from typing import List, Optional

from depyf.decompiler.bytecode.syntax_trees import own_returns
from depyf.decompiler.flow.graph import End, FlowGraph, Jump
from depyf.decompiler.normal.ops import Instr, Op

_MARK = "end of the body"
"""The name that the statement loads; no variable has this name."""


def join_ends(graph: FlowGraph) -> None:
    """Redirect all blocks that end in ``return None`` to one that starts with the mark."""
    ends = [
        block
        for block in graph.blocks.values()
        if isinstance(block.term, End)
        and [instr.op for instr in block.ops[-2:]] == [Op.CONST, Op.RETURN]
        and block.ops[-2].arg is None
    ]
    if not ends:
        return
    # a; None; RETURN         a; JUMP -> 1
    # b; None; RETURN    ->   b; JUMP -> 1        1: LOAD mark; POP; None; RETURN
    last = ends[-1].ops[-1]
    mark = [Instr(Op.LOAD, ("name", _MARK), last.offset, last.span), Instr(Op.POP, None, last.offset, last.span)]
    joined = graph.new_block([*mark, *ends[-1].ops[-2:]], End(), None)
    for block in ends:
        offset = block.ops[-1].offset
        del block.ops[-2:]
        block.term, block.implicit = Jump(joined.id, offset), False


def without_mark(statements: List[ast.stmt]) -> Optional[List[ast.stmt]]:
    """Return the statements without the mark; ``None`` if it is not the last one."""
    kept = list(statements)
    while kept and (isinstance(kept[-1], ast.Return) or _is_mark(kept[-1])):
        kept.pop()
    return None if any(_is_mark(inner) for statement in kept for inner in ast.walk(statement)) else kept


def _is_mark(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Name) and node.value.id == _MARK


def returns_inside(statements: List[ast.stmt]) -> bool:
    """Return whether any statement but the last contains a ``return``."""
    kept = statements[:-1] if statements and isinstance(statements[-1], ast.Return) else statements
    return next(own_returns(kept), None) is not None
