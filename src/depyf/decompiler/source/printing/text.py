"""Trees to the text shown to the user.

It stands alone as the entry of the printer for the pipeline; ``statements`` and ``expressions`` write any tree.
"""

from __future__ import annotations

import ast
from typing import Dict, Optional

from depyf.decompiler.normal.modes import Mode
from depyf.decompiler.source.deep_stack import with_deep_stack
from depyf.decompiler.source.futures import requires_diamonds
from depyf.decompiler.source.inventory import Inventory, bits_of, take_inventory
from depyf.decompiler.source.names import is_writable, make_writable, may_be_mangled
from depyf.decompiler.source.printing.literals import Literals
from depyf.decompiler.source.printing.statements import Statements
from depyf.decompiler.source.source_text import SourceText

_CLASSES = bits_of(ast.ClassDef)


def to_source(tree: ast.Module, mode: Mode = Mode.EXEC, inventory: Optional[Inventory] = None) -> SourceText:
    """Return the text of ``tree``, which is compiled in ``mode``, with what the original code object needs beside it.
    Constants of ``tree`` may be any objects and its names any strings; ``tree`` is not changed. ``inventory``: the
    inventory of ``tree``, or of a tree with the same names and classes. Raises ``DecompilationError`` when it
    has no text."""
    return with_deep_stack(lambda: _to_source(tree, mode, inventory or take_inventory(tree)))


def _to_source(tree: ast.Module, mode: Mode, inventory: Inventory) -> SourceText:
    names: Dict[str, str] = {}
    if not all(map(is_writable, inventory.names)) or (
        inventory.kinds & _CLASSES and any(map(may_be_mangled, inventory.names))
    ):
        tree, names = make_writable(tree)
    literals = Literals(tree)
    writer = Statements(literals)
    if requires_diamonds(tree):
        writer.write_diamonds()
    one_line = mode is Mode.SINGLE and len(tree.body) > 1
    text = writer.prompt(tree.body) if one_line else writer.module(tree.body)
    return SourceText(text, literals.objects, names, mode)
