"""The form that the author wrote, of several with the same meaning, by the lines and columns of the instructions.

The last of the readability passes. It rewrites only what the spans in the tree (``lift/places.py``) contradict; without
spans (generated code, ``-X no_debug_ranges``) nothing changes. May import ``passes`` and the layers below. Start
reading here.
"""

from __future__ import annotations

import ast

from depyf.bytecode.syntax_trees import TRY_STATEMENTS
from depyf.source.inventory import UNKNOWN, Contents, bits_of
from depyf.source.passes.blocks import Block, rewrite_blocks
from depyf.source.rewriting import Node
from depyf.source.written.asserts import (
    with_looked_up_asserts,
    with_whole_asserts,
    with_written_asserts,
    with_written_zeros,
)
from depyf.source.written.behind import Behind
from depyf.source.written.branches import with_written_branches
from depyf.source.written.clauses import Clauses
from depyf.source.written.conditions import with_written_conditions, with_written_negations
from depyf.source.written.indentation import Indentation
from depyf.source.written.lists import with_written_lists
from depyf.source.written.loops import Loops
from depyf.source.written.matches import with_written_matches
from depyf.source.written.tails import Tails
from depyf.source.written.tests import Tests
from depyf.structure.try_statements import joined_try

__all__ = ["as_written"]


_LOOPS = frozenset([ast.For, ast.AsyncFor, ast.While])
_COMPOUND = frozenset(
    [ast.If, *_LOOPS, ast.With, ast.AsyncWith, *TRY_STATEMENTS] + ([ast.Match] if hasattr(ast, "Match") else [])
)
_WITH_ELSE = frozenset([ast.If, *_LOOPS, *TRY_STATEMENTS])
_ENDING = frozenset([ast.FunctionDef, ast.AsyncFunctionDef, *_LOOPS])
_LISTS = frozenset([ast.Import, ast.Delete])
_REWRITTEN = bits_of(ast.Assert, *_COMPOUND, *_LISTS)


def as_written(tree: Node, contents: Contents = UNKNOWN) -> Node:
    """Return ``tree`` with the branches, ``else`` clauses and conditions of its author, where spans show them.
    ``contents``: those of statements in ``tree``."""
    tree = with_written_negations(tree, contents)
    columns = Indentation(tree)
    behind, clauses, tests = Behind(columns), Clauses(columns), Tests(columns)
    tails, loops = Tails(clauses), Loops(columns)

    def before(block: Block) -> Block:
        kinds = set(map(type, block))
        if ast.Assert in kinds:
            block = with_written_asserts(block)
        if ast.Assert in kinds or ast.If in kinds or ast.While in kinds:
            block = with_written_matches(with_written_branches(tests.written(block)))
        return block

    def after(block: Block) -> Block:
        kinds = set(map(type, block))
        if ast.If in kinds:
            block = with_looked_up_asserts(with_whole_asserts(block))
        if not _COMPOUND.isdisjoint(kinds):
            block = behind.written(block)
            if not _WITH_ELSE.isdisjoint(map(type, block)):
                block = with_written_branches(clauses.written(block))
            block = [joined_try(each) or each if isinstance(each, TRY_STATEMENTS) else each for each in block]
            kinds = set(map(type, block))
        if not _ENDING.isdisjoint(kinds):
            block = loops.written(tails.written(block))
            kinds = set(map(type, block))
        if not _LISTS.isdisjoint(kinds):
            block = with_written_lists(block)
        return with_written_zeros(block) if ast.Assert in kinds else block

    tree = rewrite_blocks(tree, before, after, contents, _REWRITTEN)
    return with_written_conditions(tree, contents)
