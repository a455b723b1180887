"""Small functions around code objects. A module of its own: a public import path of depyf 0.20."""

from __future__ import annotations

import functools
import os
from types import CodeType, FunctionType, MethodType
from typing import Any, List, Optional, Union

from depyf.base.asynchronous import synchronous
from depyf.decompiler import DecompilationError, decompile_code
from depyf.dynamo.dump.full_code.text import Signature, is_name

__all__ = [
    "collect_all_code_objects",
    "decompile_ensure",
    "get_code_owner",
    "get_function_signature",
    "safe_create_directory",
]


def decompile_ensure(fn: CodeType, overwite_fn_name: Optional[str] = None) -> str:
    """Return the source of a code object; a function with its signature and an empty body if it can't be decompiled."""
    try:
        return decompile_code(fn, name=overwite_fn_name).source
    except DecompilationError as error:
        reason = str(error)
    except synchronous() as error:  # this function must return a source
        reason = f"{type(error).__name__}: {error}"
    comment = " ".join(reason.split())
    body = f"    # Failed to decompile: {comment}\n    raise NotImplementedError({comment!r})\n"
    return get_function_signature(fn, overwite_fn_name) + body


def get_function_signature(code_obj: CodeType, overwite_fn_name: Optional[str] = None) -> str:
    """Return the line ``def name(parameters):`` of a code object, with its newline, without defaults."""
    name = overwite_fn_name or (code_obj.co_name if is_name(code_obj.co_name) else "function")
    return f"def {name}({Signature.of(code_obj).parameters({})}):\n"


def get_code_owner(fn: Any) -> Union[FunctionType, Any]:
    """Return the object with the ``__code__`` behind a callable, looking through methods, partials and wrappers. For
    callables without one, such as builtins, return the innermost callable."""
    while True:
        inner = _inside(fn)
        if inner is None or inner is fn:
            return fn
        fn = inner


def _inside(fn: Any) -> Any:
    if isinstance(fn, MethodType):
        return fn.__func__
    if isinstance(fn, functools.partial):
        return fn.func
    wrapped = getattr(fn, "__wrapped__", None)
    if wrapped is not None:
        return wrapped
    if hasattr(fn, "__code__") or isinstance(fn, type) or not callable(fn):
        return None
    call = type(fn).__call__
    return call if isinstance(call, FunctionType) else None


def collect_all_code_objects(code: CodeType) -> List[CodeType]:
    """Return the code object and all that are nested in it, outermost first."""
    found = [code]
    for each in found:
        found.extend(const for const in each.co_consts if isinstance(const, CodeType))
    return found


def safe_create_directory(path: Union[str, os.PathLike[str]]) -> None:
    """Make the directory and its parents; it may exist already, also if another process has just made it. Raises
    ``FileExistsError`` when a file has that name."""
    os.makedirs(path, exist_ok=True)
