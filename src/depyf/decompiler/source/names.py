"""Names that can't be written in a program get writable ones, with the mapping back; private names are unmangled.

Bytecode may have any string as a name: the compiler makes ``.0``, Dynamo makes ``tmp-1`` or ``L['x']``.
"""

from __future__ import annotations

import ast
import keyword
import re
import unicodedata
from types import CodeType
from typing import Dict, FrozenSet, Iterable, Iterator, List, Optional, Set, Tuple, TypeVar, Union

from depyf.base.late_regex import regex
from depyf.decompiler.lift.build import is_writable as is_writable
from depyf.decompiler.source.futures import ANNOTATIONS, imported_flags
from depyf.decompiler.source.rewriting import Rewriter, replaced


def _mangles_parameters_only() -> bool:
    """Return whether only type parameters are mangled in the header of a generic class, and no other name (3.13)."""
    try:
        module = compile("class C[T](__B): pass", "", "exec", dont_inherit=True)
    except SyntaxError:  # they do not exist before 3.12
        return False
    return any("__B" in code.co_names for code in module.co_consts if isinstance(code, CodeType))


_MANGLES_PARAMETERS_ONLY = _mangles_parameters_only()

_TEMPORARY = regex(r"__temp_\d+$")
_Node = TypeVar("_Node", bound=ast.AST)
_Named = TypeVar(
    "_Named",
    "ast.ExceptHandler",
    "Union[ast.MatchAs, ast.MatchStar]",
    "Union[ast.FunctionDef, ast.AsyncFunctionDef]",
    "ast.ClassDef",
)


def mangle(name: str, class_name: Optional[str]) -> str:
    """Return ``name`` as the compiler mangles it in the body of class ``class_name`` (``None``: outside of classes)."""
    if class_name is None or not _is_private(name):
        return name
    stripped = class_name.lstrip("_")
    return f"_{stripped}{name}" if stripped else name


def make_writable(tree: ast.Module) -> Tuple[ast.Module, Dict[str, str]]:
    """Return ``tree`` with writable names only, and the mapping from new names to those in the bytecode."""
    renaming = _Renaming(tree, frozenset())
    result = renaming.visit(tree)
    if renaming.accidents:
        # The same variable may be used outside of the class too, and must have the same name there.
        renaming = _Renaming(tree, frozenset(renaming.accidents))
        result = renaming.visit(tree)
    return result, renaming.originals


def strings_of(tree: ast.AST) -> Iterator[str]:
    """Yield what a new name must not collide with: all names of ``tree``, parts of dotted ones too, and string
    constants."""
    for node in ast.walk(tree):
        for field, value in node.__dict__.items():
            if value.__class__ is str:
                yield from value.split(".") if field in ("name", "module", "asname") else (value,)
            elif value.__class__ is list:
                yield from (item for item in value if item.__class__ is str)
            elif field == "value" and value.__class__ is tuple:
                yield from _strings_in(value)


def fresh_name(wanted: str, taken: Set[str]) -> str:
    """Return ``wanted``, with a number appended if that is in ``taken``, and add the result to ``taken``."""
    name, count = wanted, 0
    while name in taken or not is_writable(name):
        count += 1
        name = f"{wanted}_{count}"
    taken.add(name)
    return name


def _strings_in(constant: Tuple[object, ...]) -> Iterator[str]:
    for item in constant:
        if item.__class__ is str:
            yield item
        elif item.__class__ is tuple:
            yield from _strings_in(item)


def may_be_mangled(name: str) -> bool:
    """Return whether ``name`` is private to a class as it is written or as the compiler mangles it."""
    return name.startswith("_") and "__" in name and not (name.startswith("__") and name.endswith("__"))


def _is_private(name: str) -> bool:
    return name.startswith("__") and not name.endswith("__") and "." not in name


def _readable(name: str) -> str:
    """Return an identifier that resembles ``name``: ``L_x`` for ``L['x']``, ``class_`` for ``class``."""
    if name == ".0":
        return "iterable"
    base = unicodedata.normalize("NFKC", name)
    if base.isidentifier():
        # A keyword, or it would be read differently: mangled, normalised, or as a constant.
        return f"{base.lstrip('_') or 'name'}_"
    words = re.sub(r"\W+", "_", base, flags=re.ASCII).strip("_") or "name"
    if words[0].isdigit():
        words = "_" + words
    return words + "_" if keyword.iskeyword(words) else words


class _Renaming(Rewriter):
    """Renames all uses alike: the bytecode has one name for a variable, an attribute and a keyword argument."""

    def __init__(self, tree: ast.Module, unwanted: FrozenSet[str]) -> None:
        super().__init__()
        self.originals: Dict[str, str] = {}
        self.accidents: Set[str] = set()
        self._tree = tree
        self._taken: Set[str] = set()
        self._class: Optional[str] = None
        self._mangled: Optional[FrozenSet[str]] = None  # in the header of a class, its type parameters
        self._new: Dict[str, str] = {}
        self._postponed = bool(imported_flags(tree) & ANNOTATIONS)
        for name in sorted(unwanted):
            self._rename(name)

    def _name(self, name: str) -> str:
        known = self._new.get(name)
        if known is not None:
            return known
        if not is_writable(name):
            return self._rename(name)
        if self._class is None or "__" not in name:
            self._new[name] = name
            return name
        shown = self._in_class(name)
        if shown is None:
            self.accidents.add(name)
            return name
        return shown

    def _rename(self, name: str) -> str:
        if not self._taken:
            self._taken.update(strings_of(self._tree))
        new = fresh_name(_readable(name), self._taken)
        self._new[name] = new
        self.originals[new] = name
        return new

    def _in_class(self, name: str) -> Optional[str]:
        """Return the spelling that is mangled to ``name``; ``None`` if no spelling is."""
        if self._mangled is not None and _MANGLES_PARAMETERS_ONLY and name not in self._mangled:
            return name
        stripped = (self._class or "").lstrip("_")
        prefix = f"_{stripped}"
        if stripped and name.startswith(prefix + "__") and _is_private(name[len(prefix) :]):
            return name[len(prefix) :]
        if mangle(name, self._class) == name or _TEMPORARY.match(name):
            return name
        return None

    def _names(self, names: Iterable[str]) -> List[str]:
        return [self._name(name) for name in names]

    def _dotted(self, name: str) -> str:
        # A dotted module name is not mangled, nor is the name in ``from m import name``.
        return ".".join(part if is_writable(part) else self._name(part) for part in name.split("."))

    def visit_Name(self, node: ast.Name) -> ast.Name:
        new = self._name(node.id)
        return node if new == node.id else replaced(node, id=new)

    def visit_Attribute(self, node: ast.Attribute) -> ast.Attribute:
        node = self.rewrite_children(node)
        if node.attr == "__debug__" and isinstance(node.ctx, ast.Load):
            return node  # a constant as a variable, but an ordinary name of an attribute
        new = self._name(node.attr)
        return node if new == node.attr else replaced(node, attr=new)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node = self._but_annotation(node, "annotation")
        new = self._name(node.arg)
        return node if new == node.arg else replaced(node, arg=new)

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        node = self.rewrite_children(node)
        if node.arg is None:
            return node
        new = self._dotted(node.arg) if is_writable(node.arg) else self._name(node.arg)
        return node if new == node.arg else replaced(node, arg=new)

    def visit_alias(self, node: ast.alias) -> ast.alias:
        asname = node.asname and self._name(node.asname)
        name = node.name if node.name == "*" else self._dotted(node.name)
        return replaced(node, name=name, asname=asname)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        node = self.rewrite_children(node)
        return replaced(node, module=node.module and self._dotted(node.module))

    def visit_Global(self, node: ast.Global) -> ast.Global:
        return replaced(node, names=self._names(node.names))

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.Nonlocal:
        return replaced(node, names=self._names(node.names))

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> object:
        return self._with_name(self.rewrite_children(node))

    def visit_MatchAs(self, node: Union[ast.MatchAs, ast.MatchStar]) -> object:
        return self._with_name(self.rewrite_children(node))

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping) -> object:
        node = self.rewrite_children(node)
        return replaced(node, rest=node.rest and self._name(node.rest))

    def visit_MatchClass(self, node: ast.MatchClass) -> object:
        node = self.rewrite_children(node)
        return replaced(node, kwd_attrs=[self._dotted(name) for name in node.kwd_attrs])

    def visit_FunctionDef(self, node: Union[ast.FunctionDef, ast.AsyncFunctionDef]) -> object:
        return self._with_name(self._but_annotation(node, "returns"))

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        node = self._with_name(node)
        parameters = getattr(node, "type_params", None) or ()
        header = ("type_params", "bases", "keywords") if parameters else ("bases", "keywords")
        changed = {"decorator_list": self.visit_list(node.decorator_list)}
        if not parameters:
            changed.update({field: self.visit_list(getattr(node, field)) for field in header})
        # Names with "__" are written differently inside of the class, so their renaming outside does not apply.
        outer_class, outer_new = self._class, self._new
        self._class = node.name
        self._new = {name: new for name, new in outer_new.items() if name != new or "__" not in name}
        if parameters:
            self._mangled = frozenset(mangle(parameter.name, node.name) for parameter in parameters)
            changed.update({field: self.visit_list(getattr(node, field)) for field in header})
            self._mangled = None
            self._new = {name: new for name, new in self._new.items() if name != new or "__" not in name}
        changed["body"] = self.visit_list(node.body)
        self._new = {**outer_new, **self._new}
        self._class = outer_class
        return replaced(node, **changed)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        return self._but_annotation(node, "annotation")

    def _but_annotation(self, node: _Node, field: str) -> _Node:
        """Return ``node`` with its contents renamed, except the text of a postponed annotation, which no class mangles:

        from __future__ import annotations
        class C:
            def f(self, __x: __T): ...       the argument is _C__x, its annotation "__T"
        """
        annotation = getattr(node, field)
        if annotation is None or not self._postponed:
            return self.rewrite_children(node)
        return replaced(self.rewrite_children(replaced(node, **{field: None})), **{field: annotation})

    def _with_name(self, node: _Named) -> _Named:
        new = node.name and self._name(node.name)
        return node if new == node.name else replaced(node, name=new)
