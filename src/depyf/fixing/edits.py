"""An edit of the program's source: changes of files, each a function from bytes to bytes, and what its trial checks."""

from __future__ import annotations

import ast
import io
import os
import tokenize
from typing import Callable, Dict, FrozenSet, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.syntax import parse
from depyf.report.model.run import Run

INSTALL = "depyf fix needs libcst, which edits source and keeps its layout: pip install 'depyf[fix]' (or libcst)"


Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


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
    found: FrozenSet[Tuple[str, int, str]] = frozenset()
    """The files, lines and causes of what the run has found."""

    def source(self, file: str) -> bytes:
        """Return the bytes of a file. Raises ``NoEdit``."""
        try:
            with open(os.path.join(self.root, file), "rb") as opened:
                return opened.read()
        except synchronous(OSError) as error:
            raise NoEdit(f"{file} can't be read ({error.strerror})") from error

    def imported(self) -> List[str]:
        """Return the files that were compiled, the main file, and the files of the program's folder that these import,
        whether the run has used the latter or not."""
        todo, found = [*self.files, self.main_file], []
        while todo:
            file = todo.pop()
            if file in found:
                continue
            found.append(file)
            for name in _imported_names(self.tree(file)):
                path = os.path.join(*name.split("."))
                folders = {"", os.path.dirname(file), os.path.dirname(self.main_file)}
                ends = (f"{path}.py", os.path.join(path, "__init__.py"))
                paths = {os.path.normpath(os.path.join(folder, end)) for folder in folders for end in ends}
                todo += sorted(each for each in paths if os.path.isfile(os.path.join(self.root, each)))
        return sorted(found)

    def tree(self, file: str) -> ast.Module:
        """Return the syntax tree of a file. Raises ``NoEdit``."""
        return tree_of(self.source(file), file)


def _imported_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names of modules that a file may import; those of relative imports without the dots."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = f"{node.module}." if node.module else ""
            yield from (f"{start}{each.name}" for each in node.names if each.name != "*")
            yield from [node.module] * bool(node.module)  # type: ignore[misc]


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


def decoded(source: bytes) -> str:
    """Return the text of a source. Columns of its syntax tree are bytes of UTF-8, whatever the encoding of the file."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    return source.decode(encoding)


def column_of(source: bytes, node: ast.expr) -> int:
    """Return the column of an expression in characters, as libcst counts; columns of ast are bytes."""
    text = decoded(source).splitlines()[node.lineno - 1]
    return len(text.encode("utf-8")[: node.col_offset].decode("utf-8"))


def segment(source: bytes, node: ast.expr) -> str:
    """Return the text of an expression, on one line."""
    found = ast.get_source_segment(decoded(source), node) or ""
    if "\n" in found or "#" in found:
        raise NoEdit("the expression is written over several lines")
    try:
        is_it = ast.dump(parse(found, mode="eval").body) == ast.dump(node)
    except synchronous(SyntaxError, ValueError) as error:
        raise NoEdit("the text of an expression was not found") from error
    if not is_it:  # Python 3.11 and older do not know the columns in an f-string
        raise NoEdit("the text of an expression was not found")
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


def binds(tree: ast.AST, name: str) -> bool:
    """Return whether a syntax tree binds a name by anything but ``import torch`` and the like, also as an attribute of
    something (``builtins.print = log``)."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)):
            last = node.id if isinstance(node, ast.Name) else "" if dotted(node.value) == "self" else node.attr
            bound = "" if isinstance(node.ctx, ast.Load) else last
        elif isinstance(node, ast.ImportFrom):
            # What import * binds is not known. That torch is torch then, the run shows.
            wanted = (name,) if name == "torch" else (name, "*")
            bound = name if any((each.asname or each.name) in wanted for each in node.names) else ""
        elif isinstance(node, ast.Import):
            other = (each.name for each in node.names if each.asname == name)
            bound = name if any(each != "torch" for each in other) else ""
        elif isinstance(node, ast.alias):
            continue
        else:
            bound = str(getattr(node, "name", None) or getattr(node, "arg", None) or "")
        if bound == name and not isinstance(node, ast.keyword):
            return True
    return False


def reachable(project: Project) -> Iterator[Tuple[str, Function, bool]]:
    """Yield the functions that were compiled, or are by the source, and all functions that these may call, by name:
    the file, the function, and whether another one of the functions may call it, so that Dynamo may trace the function
    into the caller. A lambda outside of all these functions is a function without a name."""
    todo: List[Tuple[str, Function]] = []
    by_name: Dict[str, List[Tuple[str, Function]]] = {}
    aliases: Dict[str, Set[str]] = {}
    for file in project.imported():
        tree = project.tree(file)
        lambdas, is_compiled = _lambdas(tree), _is_compiled(project, file, tree)
        for node in (*ast.walk(tree), *lambdas.values()):
            if isinstance(node, FUNCTIONS):
                by_name.setdefault(node.name, []).append((file, node))
                todo += [(file, node)] * is_compiled(node)
            elif isinstance(node, ast.ClassDef):  # Box(x) calls __init__, and the box may be added
                methods = (each for each in node.body if isinstance(each, FUNCTIONS))
                by_name.setdefault(node.name, []).extend((file, each) for each in methods if each.name[:2] == "__")
            for name, value in _named_values(node):
                aliases.setdefault(name, set()).update(_passed_names(value))
                by_name.setdefault(name, []).extend(
                    (file, lambdas[id(each)]) for each in ast.walk(value) if id(each) in lambdas
                )
    roots = {id(node) for _, node in todo}
    implicit = [each for name in ("forward", "__call__") for each in by_name.get(name, ())]
    called = {id(node) for _, node in implicit}
    if len(called) == 1 and called == roots:  # the one forward() of the program, and nothing else is compiled
        called = set()
    found: Dict[int, Tuple[str, Function]] = {}
    while todo:
        file, node = todo.pop()
        if id(node) in found:
            continue
        found[id(node)] = file, node
        # A name that is passed on may be called, too; a call of a module is a call of some forward().
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        names |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
        inner = [each for name in _closure(names, aliases) for each in by_name.get(name, ())]
        called |= {id(each) for _, each in inner}
        todo += [*inner, *implicit]
    for key, (file, node) in found.items():
        yield file, node, key in called or key not in roots or _is_wrapped(node)


def _is_wrapped(node: Function) -> bool:
    """Return whether a decorator may call a function, and see what the function returns."""
    for each in node.decorator_list:
        names = {dotted(part).rpartition(".")[2] for part in ast.walk(each)}
        if not names & {"compile", "no_grad", "inference_mode", "staticmethod"}:
            return True
    return False


def _closure(names: Set[str], aliases: Mapping[str, Set[str]]) -> Set[str]:
    """Return names, and all that may be called by these: ``g`` for ``f = torch.compile(g)`` and ``f = {"a": g}``."""
    found: Set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += aliases.get(name, ())
    return found


def _named_values(node: ast.AST) -> Iterator[Tuple[str, ast.expr]]:
    """Yield the names that a node gives to a value: variables, attributes and parameters."""
    if isinstance(node, ast.keyword) and node.arg is not None:
        yield node.arg, node.value
    elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            for each in ast.walk(target):
                if not isinstance(getattr(each, "ctx", ast.Load()), ast.Load):
                    bound = each.value if isinstance(each, ast.Subscript) else each
                    yield getattr(bound, "attr", "") or getattr(bound, "id", ""), node.value


def _passed_names(value: ast.expr) -> Iterator[str]:
    """Yield the names in a value, without the names of functions that are called there."""
    called = {id(each.func) for each in ast.walk(value) if isinstance(each, ast.Call)}
    for each in ast.walk(value):
        if isinstance(each, (ast.Name, ast.Attribute)) and id(each) not in called:
            yield each.id if isinstance(each, ast.Name) else each.attr


def _lambdas(tree: ast.Module) -> Dict[int, ast.FunctionDef]:
    """Return a function in the place of each lambda of a file, by the ``id`` of the lambda."""
    found: Dict[int, ast.FunctionDef] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            function = parse("def f(): return 0").body[0]
            assert isinstance(function, ast.FunctionDef)
            function.name, function.args = "<lambda>", node.args
            function.body[0].value = node.body  # type: ignore[attr-defined]
            found[id(node)] = ast.copy_location(function, node)
    return found


def _is_compiled(project: Project, file: str, tree: ast.Module) -> Callable[[Function], bool]:
    """Return a function that says whether a function of a file was compiled, or is by the source."""
    lines, compiled = set(project.compiled.get(file, ())), _names_compiled(tree)
    bodies = {
        id(each.body)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == "compile"
        for each in node.args
        if isinstance(each, ast.Lambda)
    }

    def is_compiled(node: Function) -> bool:
        starts = {node.lineno, *(each.lineno for each in node.decorator_list)}
        is_lambda = node.name == "<lambda>" and id(node.body[0].value) in bodies  # type: ignore[attr-defined]
        return bool(starts & lines) or node.name in compiled or is_lambda

    return is_compiled


def names_of_layers(project: Project) -> FrozenSet[str]:
    """Return the names of attributes that the program assigns modules of ``torch.nn``, and nothing else, by syntax."""
    layers: Set[str] = set()
    others: Set[str] = set()
    for file in project.imported():
        source = project.source(file)
        has_nn = b"from torch import nn\n" in source or b"import torch.nn as nn\n" in source
        known: Set[int] = set()
        for node in ast.walk(project.tree(file)):
            if isinstance(node, FUNCTIONS):
                others.add(node.name)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                of = dotted(node.value.func).rpartition(".")[0]
                targets = [each for each in node.targets if isinstance(each, ast.Attribute)]
                if of == "torch.nn" or (of == "nn" and has_nn):
                    layers.update(each.attr for each in targets)
                    known.update(map(id, targets))
            elif isinstance(node, ast.Call) and dotted(node.func) == "setattr":
                return frozenset()
            if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load) and id(node) not in known:
                others.add(getattr(node, "attr", "") or getattr(node, "id", ""))
    return frozenset(layers - others)


def _names_compiled(tree: ast.Module) -> FrozenSet[str]:
    """Return the names of functions that a file compiles, whether the run has called them or not."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == "compile":
            found |= {dotted(each) for each in node.args}
        for each in getattr(node, "decorator_list", ()):
            # @torch.compile, @torch.compile(...), @partial(torch.compile, ...)
            if any(dotted(part).rpartition(".")[2] == "compile" for part in ast.walk(each)):
                found.add(node.name)  # type: ignore[attr-defined]
    return frozenset(found)
