"""The parameters of a function from its code object and what MAKE_FUNCTION was given."""

from __future__ import annotations

import ast
import inspect
from types import CodeType
from typing import Mapping, Optional, Sequence


def arguments(
    code: CodeType,
    defaults: Sequence[ast.expr] = (),
    kw_defaults: Optional[Mapping[str, ast.expr]] = None,
    annotations: Optional[Mapping[str, ast.expr]] = None,
) -> ast.arguments:
    """``ast.arguments`` with parameters named as in ``code.co_varnames``."""
    kw_defaults, annotations = kw_defaults or {}, annotations or {}
    names = list(code.co_varnames)
    positional, keyword_only = code.co_argcount, code.co_kwonlyargcount

    def parameter(name: str) -> ast.arg:
        return ast.arg(name, annotations.get(name))

    args = [parameter(name) for name in names[:positional]]
    kwonlyargs = [parameter(name) for name in names[positional : positional + keyword_only]]
    rest = names[positional + keyword_only :]
    vararg = parameter(rest.pop(0)) if code.co_flags & inspect.CO_VARARGS else None
    kwarg = parameter(rest.pop(0)) if code.co_flags & inspect.CO_VARKEYWORDS else None
    return ast.arguments(
        posonlyargs=args[: code.co_posonlyargcount],
        args=args[code.co_posonlyargcount :],
        vararg=vararg,
        kwonlyargs=kwonlyargs,
        kw_defaults=[kw_defaults.get(arg.arg) for arg in kwonlyargs],
        kwarg=kwarg,
        defaults=list(defaults),
    )
