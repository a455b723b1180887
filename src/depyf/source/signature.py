"""The parameters of a function, from its code object and the operands of MAKE_FUNCTION."""

from __future__ import annotations

import ast
import inspect
from typing import List, Mapping, Optional, Sequence

from depyf.bytecode.code import Code, parameter_names


def arguments(
    code: Code,
    defaults: Sequence[ast.expr] = (),
    kw_defaults: Optional[Mapping[str, ast.expr]] = None,
    annotations: Optional[Mapping[str, ast.expr]] = None,
) -> ast.arguments:
    """Return the parameter list of ``code``.

    ``defaults`` belong to the last positional parameters, ``kw_defaults`` and ``annotations`` go by parameter name. The
    annotation of the returned value (``"return"``) is not part of ``ast.arguments``: the caller puts it into the
    function definition. Raises ``ValueError`` when there are more defaults than positional parameters.
    """
    kw_defaults, annotations = kw_defaults or {}, annotations or {}
    positional = code.co_argcount
    if len(defaults) > positional:
        raise ValueError(f"{code.co_name}: {len(defaults)} defaults for {positional} positional parameters")

    def parameter(name: str) -> ast.arg:
        return ast.arg(arg=name, annotation=annotations.get(name), type_comment=None)

    parameters: List[ast.arg] = [parameter(name) for name in parameter_names(code)]
    keyword_end = positional + code.co_kwonlyargcount
    rest = parameters[keyword_end:]
    vararg = rest.pop(0) if code.co_flags & inspect.CO_VARARGS else None
    kwarg = rest.pop(0) if code.co_flags & inspect.CO_VARKEYWORDS else None
    keyword_only = parameters[positional:keyword_end]
    return ast.arguments(
        posonlyargs=parameters[: code.co_posonlyargcount],
        args=parameters[code.co_posonlyargcount : positional],
        vararg=vararg,
        kwonlyargs=keyword_only,
        kw_defaults=[kw_defaults.get(argument.arg) for argument in keyword_only],
        kwarg=kwarg,
        defaults=list(defaults),
    )
