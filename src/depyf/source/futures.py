"""``from __future__`` imports that the text of a function or class needs to compile to the code that it had.

The import stands in the module, and its effect in the code objects: a flag in all of them, which code that is compiled
at runtime inherits, and annotations that are made in another way.
"""

from __future__ import annotations
import __future__

import ast
import inspect
from typing import List

from depyf.bytecode.code import EFFECTIVE_FUTURES, HANDS_ON_FUTURES, Code, futures_of, is_code

ANNOTATIONS = __future__.annotations.compiler_flag
"""Set in all code of a module with ``from __future__ import annotations``; code compiled at runtime inherits it."""

_POSTPONED = "annotations"

_ARE_DEFERRED = "__annotate__" in compile("x: int", "", "exec", dont_inherit=True).co_names


def needed_imports(code: Code) -> List[ast.stmt]:
    """The import with which the text of ``code``, no module, has to begin.

    Without it annotations mean what they say: those that were postponed are written as strings. Since 3.14, where
    annotations are made when they are asked for, a class with the import still makes its own at once, and keeps its
    namespace for none in it. And ``eval`` and the like hand the flags on.
    """
    futures = futures_of(code)
    if not futures:
        return []
    if not _hands_on_futures(code):
        futures = (_POSTPONED,) if _POSTPONED in futures and _ARE_DEFERRED and _holds_class(code) else ()
    names = [ast.alias(name=name, asname=None) for name in futures]
    return [ast.ImportFrom(module="__future__", names=names, level=0)] if names else []


def imported_flags(tree: ast.Module) -> int:
    """The flags that imports from ``__future__`` at the start of ``tree`` set."""
    flags = 0
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__" and not statement.level:
            for alias in statement.names:
                flags |= EFFECTIVE_FUTURES.get(alias.name, 0)
        elif not isinstance(statement, ast.Expr):
            break
    return flags


def _hands_on_futures(code: Code) -> bool:
    return not HANDS_ON_FUTURES.isdisjoint(code.co_names) or any(
        _hands_on_futures(inner) for inner in code.co_consts if is_code(inner)
    )


def _holds_class(code: Code) -> bool:
    own = not code.co_flags & inspect.CO_OPTIMIZED
    return own or any(_holds_class(inner) for inner in code.co_consts if is_code(inner))
