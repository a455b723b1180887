"""An edit of the program's source: changes of files, each a function from bytes to bytes, and what its trial checks."""

from __future__ import annotations

import ast
import os
from typing import Callable, Dict, Mapping, Optional, Sequence, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.syntax import parse
from depyf.report.model.run import Run

INSTALL = "depyf fix needs libcst, which edits source and keeps its layout: pip install 'depyf[fix]' (or libcst)"


class NoEdit(Exception):
    """Raised where a remedy makes no edit; says why."""


class MissingLibcst(Exception):
    """Raised where libcst is not installed."""


@dataclass(frozen=True)
class Change:
    """A change of one file, relative to the folder of the program. Changes of a file are made from the last ``line`` to
    the first, so that lines stay valid; ``line`` is 0 for what is inserted at the top, which comes last."""

    file: str
    line: int
    make: Callable[[bytes], bytes]


@dataclass(frozen=True)
class Edit:
    """What a remedy changes. Equal ``key``s are the same edit. ``probe`` is a variant that raises where an assumption
    of the edit does not hold; it runs in eager mode. ``touches_text`` says that it moves what is printed: then all
    printed text must be the same in each run."""

    key: Tuple[str, ...]
    words: str
    changes: Tuple[Change, ...]
    probe: Tuple[Change, ...] = ()
    touches_text: bool = False


@dataclass(frozen=True)
class Project:
    """The program that is edited: a copy of its folder, its main file, the files that were compiled, and their run."""

    root: str
    main_file: str
    files: Sequence[str]
    run: Run
    compiled: Mapping[str, Sequence[int]]
    """The first lines of functions that were compiled, by file."""

    def source(self, file: str) -> bytes:
        """Return the bytes of a file. Raises ``NoEdit``."""
        try:
            with open(os.path.join(self.root, file), "rb") as opened:
                return opened.read()
        except synchronous(OSError) as error:
            raise NoEdit(f"{file} can't be read ({error.strerror})") from error

    def tree(self, file: str) -> ast.Module:
        """Return the syntax tree of a file. Raises ``NoEdit``."""
        return tree_of(self.source(file), file)


def tree_of(source: bytes, file: str) -> ast.Module:
    """Return the syntax tree of a source. Raises ``NoEdit``."""
    try:
        return parse(source)
    except synchronous(SyntaxError, ValueError, RecursionError) as error:
        raise NoEdit(f"{file} can't be parsed") from error


def applied(changes: Sequence[Change], read: Callable[[str], bytes]) -> Dict[str, bytes]:
    """Return the changed files. Raises ``NoEdit`` where two changes are in each other's way."""
    found: Dict[str, bytes] = {}
    for each in sorted(changes, key=lambda change: -change.line):
        before = found[each.file] if each.file in found else read(each.file)
        found[each.file] = each.make(before)
        tree_of(found[each.file], each.file)
    return found


def require_libcst() -> None:
    """Raise ``MissingLibcst`` where it can't be imported."""
    try:
        import libcst  # noqa: F401
    except ImportError as error:
        raise MissingLibcst(INSTALL) from error


def segment(source: bytes, node: ast.expr) -> str:
    """Return the text of an expression, on one line."""
    found = ast.get_source_segment(source.decode("utf-8", "surrogateescape"), node) or ""
    if "\n" in found or "#" in found:
        raise NoEdit("the expression is written over several lines")
    return found


def name_of_torch(tree: ast.Module) -> str:
    """Return the name that ``import torch`` at the top of a file binds. Raises ``NoEdit``."""
    for node in tree.body:
        for alias in node.names if isinstance(node, ast.Import) else ():
            if alias.name == "torch":
                return alias.asname or "torch"
            if alias.name.startswith("torch.") and alias.asname is None:
                return "torch"
    raise NoEdit("the file has no `import torch` at its top")


def dotted(node: Optional[ast.AST]) -> str:
    """Return ``a.b.c`` for such an expression; else empty."""
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return node.id if isinstance(node, ast.Name) else ""
