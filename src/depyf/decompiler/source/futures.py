"""``from __future__`` imports that the text of a function or class needs to compile to its original code.

The import is in the module, and its effect in the code objects: a flag in all of them, which code compiled at run time
inherits, and annotations that are compiled differently.
"""

from __future__ import annotations
import __future__

import ast
import inspect
from functools import lru_cache
from typing import List

from depyf.decompiler.bytecode.code import EFFECTIVE_FUTURES, HANDS_ON_FUTURES, Code, fast_slots, futures_of, is_code

ANNOTATIONS = __future__.annotations.compiler_flag
"""Set in all code of a module with ``from __future__ import annotations``; code compiled at run time inherits it."""

_POSTPONED = "annotations"

_ARE_DEFERRED = "__annotate__" in compile("x: int", "", "exec", dont_inherit=True).co_names


@lru_cache(maxsize=None)
def _has_diamonds() -> bool:
    """Return whether the import changes how the rest of a text is parsed (from 3.14 on)."""
    try:
        compile("from __future__ import barry_as_FLUFL\n1 <> 2", "", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def needed_imports(code: Code) -> List[ast.stmt]:
    """Return the imports with which the text of ``code``, which is not a module, must start.

    Without them annotations are evaluated: postponed ones are written as strings. Since 3.14, where annotations are
    evaluated on demand, a class with the import still evaluates its own at once, and keeps its namespace for none of
    them. ``eval`` and similar functions pass the flags on.
    """
    futures = futures_of(code)
    if not futures:
        return []
    if not _hands_on_futures(code):
        futures = (_POSTPONED,) if _POSTPONED in futures and _ARE_DEFERRED and _holds_class(code) else ()
    names = [ast.alias(name=name, asname=None) for name in futures]
    return [ast.ImportFrom(module="__future__", names=names, level=0)] if names else []


def imported_flags(tree: ast.Module) -> int:
    """Return the flags that imports from ``__future__`` at the start of ``tree`` set."""
    flags = 0
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__" and not statement.level:
            for alias in statement.names:
                flags |= EFFECTIVE_FUTURES.get(alias.name, 0)
        elif not isinstance(statement, ast.Expr):
            break
    return flags


def requires_diamonds(tree: ast.Module) -> bool:
    """Return whether the text of ``tree`` must have ``<>`` for ``!=``: ``from __future__ import barry_as_FLUFL`` is at
    its start. Up to 3.13 only the flag had this effect, not the import that sets it."""
    return bool(imported_flags(tree) & __future__.barry_as_FLUFL.compiler_flag) and _has_diamonds()


def _hands_on_futures(code: Code) -> bool:
    return not HANDS_ON_FUTURES.isdisjoint((*code.co_names, *fast_slots(code))) or any(
        _hands_on_futures(inner) for inner in code.co_consts if is_code(inner)
    )


def _holds_class(code: Code) -> bool:
    own = not code.co_flags & inspect.CO_OPTIMIZED
    return own or any(_holds_class(inner) for inner in code.co_consts if is_code(inner))
