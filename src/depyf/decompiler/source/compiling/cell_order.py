"""Free and cell variables in a given order: the compiler sorts them by name, so they are compiled under other names.

CPython lists free variables, and cells that are not parameters, sorted by name. Dynamo's code objects list them in the
order of their first use, and Dynamo requires that order of a replacement for its code.
"""

from __future__ import annotations

import ast
from typing import Dict, List, Mapping, Optional, Sequence, Union

from depyf.base.late_regex import regex
from depyf.decompiler.bytecode.code import Code
from depyf.decompiler.source.names import mangle
from depyf.decompiler.source.rewriting import Node, Rewriter, replaced

# "__class__" keeps its name, which the compiler looks up; "A" sorts before "_", "a" after it.
RESPELLED = "depyf_"
"""A part of the prefix of each name that ``sorted_spellings`` makes up."""

_PREFIX = regex(rf"[Aa]\d{{6}}{RESPELLED}")


def sorted_spellings(reference: Code) -> Dict[str, str]:
    """Return names for the cells and free variables of ``reference`` that sort in their order there."""
    # (z, __class__, x)     is    (A000000depyf_z, __class__, a000001depyf_x)
    spellings: Dict[str, str] = {}
    for names in (reference.co_cellvars, reference.co_freevars):
        first = "A" if "__class__" in names else "a"
        for name in names:
            if name == "__class__":
                first = "a"
            else:
                spellings[name] = f"{first}{len(spellings):06}{RESPELLED}{name}"
    return spellings


def original_spelling(name: str) -> str:
    """Return ``name`` without the prefixes of ``sorted_spellings`` in any part of it."""
    return _PREFIX.sub("", name)


def respell(tree: Node, spellings: Mapping[str, str]) -> Node:
    """Return ``tree`` with its variables renamed; attributes and keyword arguments stay."""
    respelled: Node = _Respelling(spellings).visit(tree)
    return respelled


_Named = Union["ast.ExceptHandler", "ast.MatchAs", "ast.MatchStar", "ast.FunctionDef", "ast.AsyncFunctionDef"]


class _Respelling(Rewriter):
    def __init__(self, spellings: Mapping[str, str]) -> None:
        super().__init__()
        self._spellings = spellings
        self._class: Optional[str] = None

    def _name(self, name: str) -> str:
        return self._spellings.get(mangle(name, self._class), name)

    def _names(self, names: Sequence[str]) -> List[str]:
        return [self._name(name) for name in names]

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return replaced(node, id=self._name(node.id))

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return replaced(self.rewrite_children(node), arg=self._name(node.arg))

    def visit_alias(self, node: ast.alias) -> ast.alias:
        if node.asname:
            return replaced(node, asname=self._name(node.asname))
        # "import a.b" binds "a"; the imported name is restored in the compiled code.
        first, dot, rest = node.name.partition(".")
        return replaced(node, name=self._name(first) + dot + rest)

    def visit_Global(self, node: ast.Global) -> ast.Global:
        return replaced(node, names=self._names(node.names))

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.Nonlocal:
        return replaced(node, names=self._names(node.names))

    def _visit_named(self, node: _Named) -> object:
        node = self.rewrite_children(node)
        return replaced(node, name=self._name(node.name)) if node.name else node

    visit_ExceptHandler = _visit_named
    visit_MatchAs = _visit_named
    visit_MatchStar = _visit_named
    visit_FunctionDef = _visit_named
    visit_AsyncFunctionDef = _visit_named

    def visit_MatchMapping(self, node: ast.MatchMapping) -> object:
        node = self.rewrite_children(node)
        return replaced(node, rest=self._name(node.rest)) if node.rest else node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        outside = ("decorator_list", "bases", "keywords")
        changes: Dict[str, object] = {field: self.visit_list(getattr(node, field)) for field in outside}
        outer, self._class = self._class, node.name
        changes["body"] = self.visit_list(node.body)
        self._class = outer
        return replaced(node, name=self._name(node.name), **changes)
