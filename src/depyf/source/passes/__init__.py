"""Readability passes: small rewrites of statement trees, each of which preserves the meaning of the tree.

``PASSES`` is their order. May import ``printing``, ``compiling`` and the modules of ``source`` itself. Start reading
here, then at ``temporaries.py``.
"""

from __future__ import annotations

import ast
from typing import Any, Callable, Optional, Set, Tuple, TypeVar

from depyf.source.inventory import Contents, Inventory, take_inventory
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

Pass = Callable[[ast.AST, Contents], object]
"""Takes a tree and the contents of its statements (``inventory.py``), and returns the rewritten tree."""

PASSES: Tuple[Pass, ...] = (
    propagate_copies,
    fold_temporaries,
    flatten_branches,
    move_exits_out,
    find_conditions,
    remove_continues,
    merge_withs,
    tidy_returns,
    remove_passes,
    restore_percent,
)
"""In the order in which they are applied: later passes depend on the results of earlier ones."""


def simplify(tree: Tree, inventory: Optional[Inventory] = None) -> Tree:
    """Return ``tree`` (a function, class or module, with its nested code) in more readable form; ``tree`` is not
    changed. Evaluation order and lifetimes of values are preserved. ``inventory``: that of ``tree``."""
    if inventory is None:
        inventory = take_inventory(tree)
    needless: Set[Pass] = set()
    if not any(map(is_temporary, inventory.names)):
        needless |= {propagate_copies, fold_temporaries}
    if ast.JoinedStr not in inventory.kinds:
        needless.add(restore_percent)
    result: Any = tree
    for rewrite in PASSES:
        if rewrite not in needless:
            result = rewrite(result, inventory.contents)
    simplified: Tree = result
    return simplified
