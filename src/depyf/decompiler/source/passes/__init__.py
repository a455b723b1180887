"""Readability passes: small rewrites of statement trees, each of which preserves the meaning of the tree.

``PASSES`` is their order. May import ``printing``, ``compiling`` and the modules of ``source`` itself. Start reading
here, then at ``temporaries.py``.
"""

from __future__ import annotations

import ast
from typing import Any, Callable, Optional, Tuple, TypeVar

from depyf.decompiler.source.inventory import Contents, Inventory, bits_of, take_inventory
from depyf.decompiler.source.passes.branches import (
    IFS,
    PASS_STATEMENTS,
    WITHS,
    flatten_branches,
    merge_withs,
    remove_passes,
)
from depyf.decompiler.source.passes.copies import propagate_copies
from depyf.decompiler.source.passes.counting import is_temporary
from depyf.decompiler.source.passes.endings import FUNCTIONS, tidy_returns
from depyf.decompiler.source.passes.loops import CONTINUES, WHILES, find_conditions, move_exits_out, remove_continues
from depyf.decompiler.source.passes.percent import FORMATTED, restore_percent
from depyf.decompiler.source.passes.temporaries import fold_temporaries

__all__ = ["simplify"]

Tree = TypeVar("Tree", bound=ast.AST)

Pass = Callable[[ast.AST, Contents], object]
"""Takes a tree and the contents of its statements (``inventory.py``), and returns the rewritten tree."""


class _Temporary:
    """Represents the names of temporaries among the node classes."""


_TEMPORARIES = bits_of(_Temporary)

PASSES: Tuple[Tuple[Pass, int], ...] = (
    (propagate_copies, _TEMPORARIES),
    (fold_temporaries, _TEMPORARIES),
    (flatten_branches, IFS),
    (move_exits_out, WHILES),
    (find_conditions, WHILES),
    (remove_continues, CONTINUES),
    (merge_withs, WITHS),
    (tidy_returns, FUNCTIONS),
    (remove_passes, PASS_STATEMENTS),
    (restore_percent, FORMATTED),
)
"""In the order in which they are applied: later passes depend on the results of earlier ones. Each has the node classes
that it rewrites. Of these classes, passes create ``pass`` only."""


def simplify(tree: Tree, inventory: Optional[Inventory] = None) -> Tree:
    """Return ``tree`` (a function, class or module, with its nested code) in more readable form; ``tree`` is not
    changed. Evaluation order and lifetimes of values are preserved. ``inventory``: the inventory of ``tree``."""
    if inventory is None:
        inventory = take_inventory(tree)
    kinds = inventory.kinds | (_TEMPORARIES if any(map(is_temporary, inventory.names)) else 0)
    result: Any = tree
    for rewrite, wanted in PASSES:
        if kinds & wanted:
            result = rewrite(result, inventory.contents)
            kinds |= 0 if result is tree else PASS_STATEMENTS
    simplified: Tree = result
    return simplified
