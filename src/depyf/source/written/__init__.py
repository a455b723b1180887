"""The form that the author wrote, of several that mean the same: lines and columns of the instructions decide.

The last of the readability passes. It rewrites only what the positions in the tree (``lift/places.py``) contradict;
without positions (code that a tool wrote, ``-X no_debug_ranges``) nothing changes. May import ``passes`` and what is
below. Start reading here.
"""

from __future__ import annotations

from depyf.source.passes.blocks import rewrite_blocks
from depyf.source.rewriting import Node
from depyf.source.written.asserts import with_written_asserts, with_written_zeros
from depyf.source.written.behind import Behind
from depyf.source.written.branches import with_written_branches
from depyf.source.written.clauses import Clauses
from depyf.source.written.conditions import with_written_conditions, with_written_negations
from depyf.source.written.indentation import Indentation
from depyf.source.written.lists import with_written_lists
from depyf.source.written.tests import Tests

__all__ = ["as_written"]


def as_written(tree: Node) -> Node:
    """``tree`` with the branches, ``else`` clauses and conditions that its author wrote, where positions show them."""
    tree = with_written_negations(tree)
    columns = Indentation(tree)
    behind, clauses, tests = Behind(columns), Clauses(columns), Tests(columns)
    tree = rewrite_blocks(
        tree,
        lambda block: with_written_branches(tests.written(with_written_asserts(block))),
        lambda block: with_written_zeros(with_written_lists(clauses.written(behind.written(block)))),
    )
    return with_written_conditions(tree)
