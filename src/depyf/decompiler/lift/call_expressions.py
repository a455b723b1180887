"""Calls as expressions, with unpacked displays flattened."""

from __future__ import annotations

import ast
from typing import Any, List, Optional, Sequence, Tuple, cast

from depyf.decompiler.bytecode.code import Code
from depyf.decompiler.bytecode.parsing import parse
from depyf.decompiler.lift.build import constant
from depyf.decompiler.lift.display_expressions import iterable_constant, keyword_name


def call(exprs: Sequence[ast.expr], names: Tuple[str, ...]) -> ast.expr:
    positional = len(exprs) - len(names)
    keywords = [ast.keyword(name, value) for name, value in zip(names, exprs[positional:])]
    return ast.Call(exprs[0], list(exprs[1:positional]), keywords)


def call_ex(callee: ast.expr, positional: ast.expr, keywords: Optional[ast.expr] = None) -> ast.Call:
    """Return ``f(*positional, **keywords)``, with displays flattened."""
    arguments: List[ast.expr]
    constants = iterable_constant(positional)
    if isinstance(positional, ast.Tuple):
        arguments = positional.elts
    elif constants is not None and isinstance(constant(positional), tuple):
        arguments = constants
    else:
        arguments = [ast.Starred(positional, ast.Load())]
    return ast.Call(callee, arguments, [] if keywords is None else _keywords(keywords))


_FUNCTION_OF = "(lambda: None).__class__(code, (lambda: None).__globals__, None, None, cells)"
"""The function of a code object, as a new function's own class makes it: no name that a program may bind is looked up.
"""


def function_of(code: Code, cells: ast.expr) -> ast.expr:
    """Return a function of ``code`` with the tuple ``cells`` for its free variables. A ``def`` can only have the cells
    of variables around it."""
    made = parse(_FUNCTION_OF, mode="eval").body
    assert isinstance(made, ast.Call)
    made.args[0], made.args[-1] = ast.Constant(cast(Any, code)), cells
    return made


def _keywords(mapping: ast.expr) -> List[ast.keyword]:
    """Return the keyword arguments in ``mapping``: ``**mapping`` if not all of them can be written as ``name=``."""
    if isinstance(mapping, ast.Dict) and mapping.keys:
        names = [keyword_name(key) for key in mapping.keys if key is not None]
        if all(names) and len({*names}) == len(names):
            return [ast.keyword(keyword_name(key), value) for key, value in zip(mapping.keys, mapping.values)]
    return [ast.keyword(None, mapping)]
