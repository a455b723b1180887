"""Functions of real modules as the upper layers hand them to ``source/``: a tree with mangled names, and its code."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from types import CodeType
from typing import Any, Dict, Iterator, List, Optional, Tuple

from depyf.source.names import mangle
from depyf.source.rewriting import Rewriter, replaced

STANDARD_LIBRARY = Path(inspect.__file__).parent


class _Mangling(Rewriter):
    """Names as they are in the bytecode."""

    def __init__(self, class_name: Optional[str]) -> None:
        super().__init__()
        self._class = class_name

    def visit_Name(self, node: ast.Name) -> Any:
        return replaced(node, id=mangle(node.id, self._class))

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        return replaced(self.rewrite_children(node), attr=mangle(node.attr, self._class))

    def visit_arg(self, node: ast.arg) -> Any:
        return replaced(self.rewrite_children(node), arg=mangle(node.arg, self._class))

    def visit_Global(self, node: Any) -> Any:
        return replaced(node, names=[mangle(name, self._class) for name in node.names])

    visit_Nonlocal = visit_Global

    def visit_FunctionDef(self, node: Any) -> Any:
        return replaced(self.rewrite_children(node), name=mangle(node.name, self._class))

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ExceptHandler(self, node: Any) -> Any:
        return replaced(self.rewrite_children(node), name=node.name and mangle(node.name, self._class))

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        outer, self._class = self._class, node.name
        body = self.visit_list(node.body)
        self._class = outer
        return replaced(node, body=body, name=mangle(node.name, self._class))


class _WithoutImports(Rewriter):
    def visit_Import(self, node: ast.Import) -> Any:
        return ast.copy_location(ast.Pass(), node)

    visit_ImportFrom = visit_Import

    def visit_FunctionDef(self, node: Any) -> Any:
        return node

    visit_AsyncFunctionDef = visit_FunctionDef
    visit_ClassDef = visit_FunctionDef


def codes_of(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_of(constant)


def functions_of(path: Path) -> Iterator[Tuple[ast.Module, CodeType]]:
    """Every function, class and lambda of a file with its code object; those that share a line and name are left out.

    The file is laid out first as ``ast.unparse`` does it: where lines break decides which jumps the compiler threads.
    Imports of the module are taken out: 3.11 compiles ``a.b()`` differently when it sees that the module imports ``a``.
    """
    tree = _WithoutImports().visit(ast.parse(ast.unparse(ast.parse(path.read_bytes()))))
    by_place: Dict[Tuple[str, int], List[CodeType]] = {}
    for code in codes_of(compile(tree, str(path), "exec", 0, True)):
        by_place.setdefault((code.co_name, code.co_firstlineno), []).append(code)
    for node, class_name in _definitions(tree, None):
        name = getattr(node, "name", "<lambda>")
        line = min([node.lineno] + [decorator.lineno for decorator in getattr(node, "decorator_list", ())])
        found = by_place.get((name, line), [])
        if len(found) == 1:
            mangled = _Mangling(class_name).visit(node)
            if not isinstance(mangled, ast.Lambda):
                mangled = replaced(mangled, name=node.name)
            statement = mangled if isinstance(mangled, ast.stmt) else ast.Expr(value=mangled)
            yield ast.Module(body=[statement], type_ignores=[]), found[0]


def _definitions(node: ast.AST, class_name: Optional[str]) -> Iterator[Tuple[Any, Optional[str]]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield child, class_name
        yield from _definitions(child, child.name if isinstance(child, ast.ClassDef) else class_name)


def difference(one: CodeType, other: CodeType) -> Optional[str]:
    """The first field in which two code objects, or those nested in them, differ; ``None`` if there is none."""
    fields = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_flags", "co_name", "co_qualname",
              "co_exceptiontable", "co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_stacksize")
    for field in fields:
        if getattr(one, field, None) != getattr(other, field, None):
            return f"{one.co_name}.{field}: {getattr(one, field)!r} != {getattr(other, field)!r}"
    if len(one.co_consts) != len(other.co_consts):
        return f"{one.co_name}.co_consts: {one.co_consts!r} != {other.co_consts!r}"
    for mine, theirs in zip(one.co_consts, other.co_consts):
        if isinstance(mine, CodeType) and isinstance(theirs, CodeType):
            inner = difference(mine, theirs)
            if inner is not None:
                return inner
        elif repr(mine) != repr(theirs) and not (type(mine) is frozenset and mine == theirs):
            return f"{one.co_name}.co_consts: {mine!r} != {theirs!r}"
    return None
