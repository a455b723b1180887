"""What the statement of a line of the program is: advice differs for a ``while``, a branch that only raises, and an
operation in a ``try``."""

from __future__ import annotations

import ast
import builtins
import enum
import functools
import os
from typing import Callable, Iterator, List, Optional, Sequence, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.syntax import children, parse
from depyf.torch_trace.tracebacks import Frame

ReadText = Callable[[str], Optional[str]]
"""Returns the text of a source file, None if it can't be read."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_WITH_BLOCKS = (ast.With, ast.AsyncWith, ast.Try)


def no_text(path: str) -> Optional[str]:
    """Return that no source can be read."""
    return None


@dataclass(frozen=True)
class Handler:
    """A ``try`` or ``contextlib.suppress`` of the program: its place, and the exceptions that it names."""

    place: str
    handles: str


class BranchKind(enum.Enum):
    """The kinds of statements that test a value."""

    WHILE = "while"
    RAISE = "a branch that only raises"
    OTHER = "another branch"


def handler_around(stack: Sequence[Frame], error: str, read: ReadText) -> Optional[Handler]:
    """Return the innermost handler of the program, around one of the frames of ``stack``, that handles an exception of
    the type ``error``."""
    for path, line, _ in reversed(stack):
        for node in reversed(_around(read(path), line)):
            names = [each for each in _handled(node, line) if _is_subclass(error, each)]
            if names:
                return Handler(f"{os.path.basename(path)}:{node.lineno}", names[0])
    return None


def branch_at(stack: Sequence[Frame], read: ReadText) -> BranchKind:
    """Return the kind of the statement that tests a value in the innermost frame of ``stack``."""
    path, line, _ = stack[-1] if stack else ("", 0, "")
    tests = (ast.If, ast.While)
    for node in reversed(_around(read(path), line) if path else ()):
        if isinstance(node, tests) and node.test.lineno <= line <= (node.test.end_lineno or line):
            if isinstance(node, ast.While):
                return BranchKind.WHILE
            only_raises = isinstance(node.body[-1], ast.Raise) and not node.orelse
            return BranchKind.RAISE if only_raises else BranchKind.OTHER
    return BranchKind.OTHER


def random_number_at(stack: Sequence[Frame], read: ReadText) -> str:
    """Return the random number of Python that the statement in the innermost frame of ``stack`` uses, with the line
    that draws it: "i, of random.randint in line 5"; empty where it uses none. Calls are not followed."""
    path, line, _ = stack[-1] if stack else ("", 0, "")
    around = _around(read(path), line) if path else []
    if not around or not isinstance(around[0], _FUNCTIONS):
        return ""
    header = isinstance(around[-1], _WITH_BLOCKS)
    used = around[-1].test if isinstance(around[-1], (ast.If, ast.While)) else around[-1]
    used = used.iter if isinstance(used, (ast.For, ast.AsyncFor)) else used
    names = {each.id for each in ast.walk(used) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
    drawn = "" if header and used is around[-1] else _drawn_in(used)
    found = f"{drawn} in line {line}" if drawn else ""
    for node in ast.walk(around[0]):
        if isinstance(node, ast.Assign) and node.lineno < line and len(node.targets) == 1:
            target, drawn = node.targets[0], _drawn_in(node.value)
            if isinstance(target, ast.Name) and target.id in names and drawn:
                found = f"{target.id}, of {drawn} in line {node.lineno}"
    return found


def _drawn_in(node: ast.AST) -> str:
    """Return the function of the module ``random`` that an expression calls, empty if it calls none."""
    for each in ast.walk(node):
        called = each.func if isinstance(each, ast.Call) else None
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "random":
            return f"random.{called.attr}"
    return ""


def _around(text: Optional[str], line: int) -> List[ast.stmt]:
    """Return the statements that a line is in, from the function's body on, the outermost first."""
    found: List[ast.stmt] = []
    for first, last, node in _statements(text or ""):
        if first <= line <= last:
            if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
                found.clear()
            found.append(node)
    return found


@functools.lru_cache(maxsize=16)
def _statements(text: str) -> Sequence[Tuple[int, int, ast.stmt]]:
    """Return the statements of a source, outer ones first, with their first and last lines; none if it does not
    parse."""
    try:
        return tuple(_below(parse(text)))
    except synchronous(SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


def _below(tree: ast.AST) -> Iterator[Tuple[int, int, ast.stmt]]:
    todo: List[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.stmt):
            yield node.lineno, node.end_lineno or node.lineno, node
        # Expressions have no statements in them.
        todo.extend(each for each in children(node) if not isinstance(each, ast.expr))


def _handled(node: ast.stmt, line: int) -> Iterator[str]:
    """Yield the exceptions that a statement handles in the block with this line; "Exception" for all."""
    if isinstance(node, ast.Try) and node.body[0].lineno <= line <= (node.body[-1].end_lineno or line):
        for handler in node.handlers:
            yield from _names(handler.type) if handler.type is not None else ["Exception"]
    if isinstance(node, ast.With):
        for item in node.items:
            call = item.context_expr
            if isinstance(call, ast.Call) and list(_names(call.func)) == ["suppress"]:
                for each in call.args:
                    yield from _names(each)


def _names(node: ast.expr) -> Iterator[str]:
    """Yield the last parts of the names in an expression: of ``(OSError, torch.cuda.OutOfMemoryError)`` two."""
    if isinstance(node, ast.Tuple):
        for each in node.elts:
            yield from _names(each)
    elif isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr


def _is_subclass(error: str, handled: str) -> bool:
    one, other = getattr(builtins, error, None), getattr(builtins, handled, None)
    if isinstance(one, type) and isinstance(other, type):
        return issubclass(one, other)
    return error == handled
