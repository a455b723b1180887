"""The bodies of classes and modules as written: without the compiler's additions, with their docstring.

It stands alone, as the counterpart of ``bytecode/added_names.py``.
"""

from __future__ import annotations

import ast
from typing import List

from depyf.decompiler.bytecode.added_names import CONDITIONAL, added_at_end, added_at_start
from depyf.decompiler.bytecode.code import Code, is_of_another_version
from depyf.decompiler.lift.build import constant
from depyf.decompiler.normal.modes import Mode, mode_of
from depyf.decompiler.normal.ops import NormalCode
from depyf.decompiler.source.printing.docstrings import is_kept_as_docstring


def source_body(statements: List[ast.stmt], normal: NormalCode) -> List[ast.stmt]:
    """Return ``statements`` of a class or module without the compiler's additions at the start and at the end."""
    code, result = normal.code, list(statements)
    if code.co_name == "<module>":
        if result and isinstance(result[-1], ast.Return):
            result.pop()
        if result and set(_targets(result[0])) & set(added_at_start(code)) and _is_empty_set(result[0]):
            del result[0]
        return result if mode_of(normal) is Mode.SINGLE else _docstring_first(result, code)
    for place, names in ((0, added_at_start(code)), (-1, added_at_end(code))):
        added = set(names)
        while result:
            found = {name for name in added & set(_targets(result[place])) if _is_added(result[place], name)}
            if not found and not (place and isinstance(result[place], ast.Return)):
                break
            added -= found
            del result[place]
    return _docstring_first(result, code)


def _is_added(statement: ast.stmt, name: str) -> bool:
    """Return whether ``statement`` stores a value that only the compiler can store as ``name``."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    if name == CONDITIONAL:
        return _is_empty_set(statement)
    if name == "__type_params__":
        return isinstance(value, ast.Name) and not value.id.isidentifier()
    return True


def _is_empty_set(statement: ast.stmt) -> bool:
    """Return whether ``statement`` stores a display without elements, which only the compiler can do."""
    value = getattr(statement, "value", None)
    return isinstance(value, ast.Set) and not value.elts


def _docstring_first(statements: List[ast.stmt], code: Code) -> List[ast.stmt]:
    """Turn ``__doc__ = "..."`` at the start of a class or module into its docstring. Only if it has no other target,
    and the compiler that made ``code`` did not change the text of the docstring."""
    first = statements[0] if statements else None
    if isinstance(first, ast.Assign) and len(first.targets) == 1 and "__doc__" in _targets(first):
        text = constant(first.value)
        if isinstance(text, str) and (is_of_another_version(code) or is_kept_as_docstring(text)):
            return [ast.Expr(first.value), *statements[1:]]
    return statements


def _targets(statement: ast.stmt) -> List[str]:
    """Return the names that ``statement`` assigns to."""
    if not isinstance(statement, ast.Assign):
        return []
    return [target.id for target in statement.targets if isinstance(target, ast.Name)]
