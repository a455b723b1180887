"""What a module's code object was compiled from: statements, one expression (``eval``), or what was typed at a prompt.

The bytecode shows it where it matters: an expression is returned, and what a prompt evaluates is printed.
"""

from __future__ import annotations

import ast
import enum
import inspect
from typing import Union

from depyf.bytecode.code import Code
from depyf.normal.ops import NormalCode, Op
from depyf.result import DecompilationError


class Mode(enum.Enum):
    """The mode of ``compile``, by its name there."""

    EXEC = "exec"
    EVAL = "eval"
    SINGLE = "single"


def is_module(code: Code) -> bool:
    """Whether ``code`` is that of no function, class or comprehension."""
    return code.co_name == "<module>" and not code.co_flags & inspect.CO_OPTIMIZED


def mode_of(normal: NormalCode) -> Mode:
    """The mode that gives such bytecode; ``EXEC`` where all of them do."""
    if not is_module(normal.code):
        return Mode.EXEC
    if any(instr.op is Op.PRINT for instr in normal.ops):
        return Mode.SINGLE
    targets = {instr.target for instr in normal.ops}
    for index, instr in enumerate(normal.ops):
        if instr.op is Op.RETURN:
            before = normal.ops[index - 1]
            if before.op is not Op.CONST or before.arg is not None or index in targets:
                return Mode.EVAL
    return Mode.EXEC


def has_returns(normal: NormalCode) -> bool:
    """Whether what the bytecode returns was written; modules and classes have no ``return``."""
    return bool(normal.code.co_flags & inspect.CO_OPTIMIZED) or mode_of(normal) is Mode.EVAL


def flags_of(code: Code) -> int:
    """The flags that ``compile`` needs: only with a flag may a module await."""
    awaits = is_module(code) and code.co_flags & inspect.CO_COROUTINE
    return ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if awaits else 0


def in_mode(tree: ast.Module, mode: Mode) -> Union[ast.Module, ast.Expression, ast.Interactive]:
    """``tree`` as ``compile`` takes it in ``mode``. Raises ``DecompilationError`` if it does not."""
    if mode is Mode.SINGLE:
        return ast.Interactive(tree.body)
    if mode is Mode.EXEC:
        return tree
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
        raise DecompilationError("an expression was compiled, and the source holds statements")
    return ast.Expression(tree.body[0].value)
