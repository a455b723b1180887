"""Calls as expressions, with unpacked displays flattened."""

from __future__ import annotations

import ast
from typing import List, Optional, Sequence, Tuple

from depyf.lift.build import constant
from depyf.lift.display_expressions import iterable_constant, keyword_name


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


def _keywords(mapping: ast.expr) -> List[ast.keyword]:
    """Return the keyword arguments in ``mapping``: ``**mapping`` if not all of them can be written as ``name=``."""
    if isinstance(mapping, ast.Dict) and mapping.keys:
        names = [keyword_name(key) for key in mapping.keys if key is not None]
        if all(names) and len({*names}) == len(names):
            return [ast.keyword(keyword_name(key), value) for key, value in zip(mapping.keys, mapping.values)]
    return [ast.keyword(None, mapping)]
