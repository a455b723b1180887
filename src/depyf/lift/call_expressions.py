"""Calls as expressions, with unpacked displays flattened."""

from __future__ import annotations

import ast
from typing import List, Optional, Sequence, Tuple

from depyf.lift.build import constant, is_writable
from depyf.lift.display_expressions import iterable_constant


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
    pairs: List[ast.keyword] = []
    if isinstance(keywords, ast.Dict) and keywords.keys:
        inside: List[Optional[ast.expr]] = []
        for key, value in zip(keywords.keys, keywords.values):
            # What stands side by side without stars is one group: of two, the second has braces.
            inside = value.keys if key is None and isinstance(value, ast.Dict) and not inside else []
            if inside and isinstance(value, ast.Dict) and all(map(_keyword_name, inside)):
                pairs.extend(ast.keyword(_keyword_name(inner), field) for inner, field in zip(value.keys, value.values))
            elif key is None:
                pairs.append(ast.keyword(None, value))
            elif _keyword_name(key):
                pairs.append(ast.keyword(_keyword_name(key), value))
            else:
                return ast.Call(callee, arguments, [ast.keyword(None, keywords)])
    elif keywords is not None:
        pairs = [ast.keyword(None, keywords)]
    return ast.Call(callee, arguments, pairs)


def _keyword_name(key: Optional[ast.expr]) -> Optional[str]:
    if isinstance(key, ast.Constant) and isinstance(key.value, str) and is_writable(key.value):
        return key.value
    return None
