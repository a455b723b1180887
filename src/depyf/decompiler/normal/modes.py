"""The ``compile`` mode of a module's code object: statements, one expression (``eval``), or interactive input.

The bytecode shows it where it matters: an expression is returned, and interactive results are printed.
"""

from __future__ import annotations

import ast
import enum
import inspect
from typing import Union

from depyf.decompiler.bytecode.code import Code
from depyf.decompiler.errors import DecompilationError
from depyf.decompiler.normal.ops import NormalCode, Op


class Mode(enum.Enum):
    """The mode of ``compile``, by its name."""

    EXEC = "exec"
    EVAL = "eval"
    SINGLE = "single"


def is_module(code: Code) -> bool:
    """Return whether ``code`` is the code of a module: not of a function, class or comprehension."""
    return code.co_name == "<module>" and not code.co_flags & inspect.CO_OPTIMIZED


def mode_of(normal: NormalCode) -> Mode:
    """Return the mode that produces such bytecode; ``EXEC`` where all modes do."""
    if not is_module(normal.code):
        return Mode.EXEC
    if Op.PRINT in normal.kinds:
        return Mode.SINGLE
    return Mode.EVAL if normal.returns_value else Mode.EXEC


def has_returns(normal: NormalCode) -> bool:
    """Return whether the source gives the returned value; modules and classes have no ``return``."""
    return bool(normal.code.co_flags & inspect.CO_OPTIMIZED) or mode_of(normal) is Mode.EVAL


def flags_of(code: Code) -> int:
    """Return the flags that ``compile`` needs: a module may await only with a flag."""
    awaits = is_module(code) and code.co_flags & inspect.CO_COROUTINE
    return ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if awaits else 0


def in_mode(tree: ast.Module, mode: Mode) -> Union[ast.Module, ast.Expression, ast.Interactive]:
    """Convert ``tree`` to what ``compile`` takes in ``mode``. Raises ``DecompilationError`` if that is impossible."""
    if mode is Mode.SINGLE:
        return ast.Interactive(tree.body)
    if mode is Mode.EXEC:
        return tree
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
        raise DecompilationError("an expression was compiled, but the source has statements")
    return ast.Expression(tree.body[0].value)
