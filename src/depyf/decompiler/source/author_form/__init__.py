"""Choose the form that the author wrote among forms with the same meaning, by the spans of the instructions.

The last of the readability passes. It rewrites only what the spans in the tree (``lift/spans.py``) contradict; without
spans (generated code, ``-X no_debug_ranges``) nothing changes. May import ``passes`` and the layers below. Start
reading here.
"""

from __future__ import annotations

import ast

from depyf.decompiler.bytecode.syntax_trees import TRY_STATEMENTS
from depyf.decompiler.source.author_form.asserts import (
    join_asserts,
    nest_asserts,
    restore_raised_asserts,
    restore_zeros,
)
from depyf.decompiler.source.author_form.clauses import Clauses, restore_branch_order
from depyf.decompiler.source.author_form.conditions import restore_conditions, restore_negations
from depyf.decompiler.source.author_form.indentation import Indentation
from depyf.decompiler.source.author_form.lists import join_lists
from depyf.decompiler.source.author_form.tails import Tails
from depyf.decompiler.source.author_form.tests import Loops, Tests, restore_matches
from depyf.decompiler.source.author_form.trailing_statements import TrailingStatements
from depyf.decompiler.source.inventory import UNKNOWN, Contents, bits_of
from depyf.decompiler.source.passes.blocks import Block, rewrite_blocks
from depyf.decompiler.source.rewriting import Node
from depyf.decompiler.structure.try_statements import joined_try

__all__ = ["restore_author_form"]


_LOOPS = frozenset([ast.For, ast.AsyncFor, ast.While])
_COMPOUND = frozenset(
    [ast.If, *_LOOPS, ast.With, ast.AsyncWith, *TRY_STATEMENTS] + ([ast.Match] if hasattr(ast, "Match") else [])
)
_WITH_ELSE = frozenset([ast.If, *_LOOPS, *TRY_STATEMENTS])
_ENDING = frozenset([ast.FunctionDef, ast.AsyncFunctionDef, *_LOOPS])
_LISTS = frozenset([ast.Import, ast.Delete])
_REWRITTEN = bits_of(ast.Assert, *_COMPOUND, *_LISTS)


def restore_author_form(tree: Node, contents: Contents = UNKNOWN) -> Node:
    """Return ``tree`` with the branches, ``else`` clauses and conditions of its author, where spans show these.
    ``contents``: the contents of the statements in ``tree``."""
    tree = restore_negations(tree, contents)
    columns = Indentation(tree)
    trailing, clauses, tests = TrailingStatements(columns), Clauses(columns), Tests(columns)
    tails, loops = Tails(clauses), Loops(columns)

    def before(block: Block) -> Block:
        kinds = set(map(type, block))
        if ast.Assert in kinds:
            block = nest_asserts(block)
        if ast.Assert in kinds or ast.If in kinds or ast.While in kinds:
            block = restore_matches(restore_branch_order(tests.restored(block)))
        return block

    def after(block: Block) -> Block:
        kinds = set(map(type, block))
        if ast.If in kinds:
            block = restore_raised_asserts(join_asserts(block))
        if not _COMPOUND.isdisjoint(kinds):
            block = trailing.restored(block)
            if not _WITH_ELSE.isdisjoint(map(type, block)):
                block = restore_branch_order(clauses.restored(block))
            block = [joined_try(each) or each if isinstance(each, TRY_STATEMENTS) else each for each in block]
            kinds = set(map(type, block))
        if not _ENDING.isdisjoint(kinds):
            block = loops.restored(tails.restored(block))
            kinds = set(map(type, block))
        if not _LISTS.isdisjoint(kinds):
            block = join_lists(block)
        return restore_zeros(block) if ast.Assert in kinds else block

    tree = rewrite_blocks(tree, before, after, contents, _REWRITTEN)
    return restore_conditions(tree, contents)
