"""Readability passes: small rewritings of statement trees, each of which preserves what the tree means.

``PASSES`` is their order. May import ``printing``, ``compiling`` and the modules of ``source`` itself. Start reading
here, then at ``temporaries.py``.
"""

from __future__ import annotations

import ast
from typing import Any, Callable, Tuple, TypeVar

from depyf.source.inventory import take_inventory
from depyf.source.passes.branches import flatten_branches, remove_passes
from depyf.source.passes.copies import propagate_copies
from depyf.source.passes.counting import is_temporary
from depyf.source.passes.endings import tidy_returns
from depyf.source.passes.loops import find_conditions, move_exits_out, remove_continues
from depyf.source.passes.managers import merge_withs
from depyf.source.passes.percent import restore_percent
from depyf.source.passes.temporaries import fold_temporaries

__all__ = ["simplify"]

Tree = TypeVar("Tree", bound=ast.AST)

PASSES = (
    propagate_copies,
    fold_temporaries,
    flatten_branches,
    move_exits_out,
    find_conditions,
    remove_continues,
    merge_withs,
    tidy_returns,
    remove_passes,
)
"""In the order in which they are applied: later ones build on the shapes that earlier ones leave."""


def simplify(tree: Tree) -> Tree:
    """``tree`` (a function, class or module, with what is nested in it) in more readable form; ``tree`` is kept.

    Evaluation order and lifetimes of values stay as they are.
    """
    inventory = take_inventory(tree)
    passes: Tuple[Callable[[Any], Any], ...] = PASSES
    if not any(map(is_temporary, inventory.names)):
        passes = tuple(rewrite for rewrite in PASSES if rewrite not in (propagate_copies, fold_temporaries))
    for rewrite in passes:
        tree = rewrite(tree)
    return restore_percent(tree) if ast.JoinedStr in inventory.kinds else tree
