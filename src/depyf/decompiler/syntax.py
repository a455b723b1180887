"""Syntax trees and code objects for the rest of depyf: parse, walk and print trees, recognise code objects.

The second and last door of the decompiler, beside ``depyf.decompiler`` itself. It has no code of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, List

from depyf.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from depyf.decompiler.bytecode.code import Code, is_code, nested_codes
    from depyf.decompiler.bytecode.nesting import names_of
    from depyf.decompiler.bytecode.parsing import parse
    from depyf.decompiler.bytecode.syntax_trees import children, walk
    from depyf.decompiler.source.printing.layout import lines_inside_strings
    from depyf.decompiler.source.printing.statements import unparse

__all__ = [
    "Code",
    "children",
    "is_code",
    "lines_inside_strings",
    "names_of",
    "nested_codes",
    "parse",
    "unparse",
    "walk",
]

_HOMES = {
    "Code": "depyf.decompiler.bytecode.code",
    "children": "depyf.decompiler.bytecode.syntax_trees",
    "is_code": "depyf.decompiler.bytecode.code",
    "lines_inside_strings": "depyf.decompiler.source.printing.layout",
    "names_of": "depyf.decompiler.bytecode.nesting",
    "nested_codes": "depyf.decompiler.bytecode.code",
    "parse": "depyf.decompiler.bytecode.parsing",
    "unparse": "depyf.decompiler.source.printing.statements",
    "walk": "depyf.decompiler.bytecode.syntax_trees",
}

__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__})
