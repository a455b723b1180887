"""Functions of real modules in the form that ``source/`` receives: a tree with mangled names, and its code."""

from __future__ import annotations

import ast
import dis
import inspect
import itertools
from pathlib import Path
from types import CodeType
from typing import Any, Dict, Iterator, List, Optional, Tuple

from depyf.decompiler.source.names import mangle
from depyf.decompiler.source.printing.statements import unparse
from depyf.decompiler.source.rewriting import Rewriter, replaced

STANDARD_LIBRARY = Path(inspect.__file__).parent

FIELDS = (
    "co_names",
    "co_varnames",
    "co_freevars",
    "co_cellvars",
    "co_flags",
    "co_name",
    "co_qualname",
    "co_argcount",
    "co_posonlyargcount",
    "co_kwonlyargcount",
    "co_stacksize",
    "co_exceptiontable",
)


class _Mangling(Rewriter):
    """Names as they are in the bytecode."""

    def __init__(self, class_name: Optional[str]) -> None:
        super().__init__()
        self._class = class_name

    def visit_Name(self, node: ast.Name) -> Any:
        return replaced(node, id=mangle(node.id, self._class))

    def visit_Index(self, node: Any) -> Any:
        """The upper layers don't make the node that the parser of 3.8 has around a subscript."""
        return self.visit(node.value)

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

    def visit_Import(self, node: ast.Import) -> Any:
        return replaced(node, names=[replaced(alias, name=mangle(alias.name, self._class)) for alias in node.names])

    def visit_ExceptHandler(self, node: Any) -> Any:
        return replaced(self.rewrite_children(node), name=node.name and mangle(node.name, self._class))

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        outer, self._class = self._class, node.name
        body = self.visit_list(node.body)
        self._class = outer
        return replaced(node, body=body, name=mangle(node.name, self._class))


class _Normalising(Rewriter):
    """Takes the module's imports out (3.11 compiles ``a.b()`` differently when it sees that the module imports ``a``)
    and ``__debug__``, which no bytecode holds."""

    def visit_Name(self, node: ast.Name) -> Any:
        return ast.copy_location(ast.Constant(value=True), node) if node.id == "__debug__" else node

    def visit_Import(self, node: ast.Import) -> Any:
        return ast.copy_location(ast.Pass(), node)

    visit_ImportFrom = visit_Import

    def visit_FunctionDef(self, node: Any) -> Any:
        return _WithoutDebug().visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef
    visit_ClassDef = visit_FunctionDef


class _WithoutDebug(Rewriter):
    visit_Name = _Normalising.visit_Name


def codes_of(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_of(constant)


def functions_of(path: Path) -> Iterator[Tuple[ast.Module, CodeType]]:
    """Every function, class and lambda of a file with its code object; those that share a line and name are left out.

    The file is laid out first as ``ast.unparse`` does it: where lines break decides which jumps the compiler threads.
    """
    tree = _Normalising().visit(ast.parse(unparse(ast.parse(path.read_bytes()))))
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
    for field in FIELDS:
        if getattr(one, field, None) != getattr(other, field, None):
            return f"{one.co_name}.{field}: {getattr(one, field)!r} != {getattr(other, field)!r}"
    # Numbers of constants may differ: the qualified name of a class may be equal to another constant or not.
    for mine, theirs in itertools.zip_longest(dis.get_instructions(one), dis.get_instructions(other)):
        if mine is None or theirs is None or mine.offset != theirs.offset:
            return f"{one.co_name}: {mine} != {theirs}"
        if _says_where_a_class_stands(mine, theirs, one, other):
            continue
        if mine.opname != theirs.opname:
            return f"{one.co_name}: {mine} != {theirs}"
        if isinstance(mine.argval, CodeType) and isinstance(theirs.argval, CodeType):
            inner = difference(mine.argval, theirs.argval)
            if inner is not None:
                return inner
        elif mine.opname == "LOAD_CONST" and not same_constant(mine.argval, theirs.argval):
            return f"{one.co_name}: {mine.argval!r} != {theirs.argval!r}"
        elif mine.argval != theirs.argval and mine.opname != "LOAD_CONST":
            return f"{one.co_name}: {mine} != {theirs}"
    return None


def _says_where_a_class_stands(mine: dis.Instruction, theirs: dis.Instruction, one: CodeType, other: CodeType) -> bool:
    """Since 3.13 a class body stores its line, and the names of attributes in an order that changes. Since 3.14 the
    line's size decides which instruction loads it."""
    if one.co_flags & inspect.CO_OPTIMIZED or not {mine.opname, theirs.opname} <= {"LOAD_CONST", "LOAD_SMALL_INT"}:
        return False
    if isinstance(mine.argval, tuple) and isinstance(theirs.argval, tuple):
        return sorted(map(repr, mine.argval)) == sorted(map(repr, theirs.argval))
    return (mine.argval, theirs.argval) == (one.co_firstlineno, other.co_firstlineno)


def same_constant(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same_constant, one, other))
    return bool(one == other) if isinstance(one, frozenset) else repr(one) == repr(other)
