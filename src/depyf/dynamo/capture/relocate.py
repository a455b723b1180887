"""Make code run from a file: the same bytecode, with the file name and lines of a source text that compiles to it.

Whether a text belongs to a code object is decided by comparing bytecode, constants and names, so relocating can't
change what runs.
"""

from __future__ import annotations

import inspect
from types import CodeType
from typing import Any, Dict, Iterable, List, Optional, Union

from depyf.decompiler.syntax import names_of, nested_codes
from depyf.dynamo.hooks.nested_code import name_fields

_LINE_FIELDS = ("co_filename", "co_firstlineno", "co_linetable")
_OLD_LINE_FIELDS = ("co_filename", "co_firstlineno", "co_lnotab")

_MARK = "depyf: runs from "


class SourceFile:
    """The code objects that the text of one file compiles to."""

    def __init__(self, source: Union[str, CodeType], path: str, above: int = 0) -> None:
        """Compile the text ``source`` as the file ``path``. A code object as ``source`` is a text that was compiled
        already; the file has ``above`` lines more before that text. Raises ``SyntaxError`` (or ``ValueError``) when the
        text is not Python.
        """
        compiled = compile(source, path, "exec", dont_inherit=True) if isinstance(source, str) else source
        module = in_file(compiled, path, above)
        # By bytecode: several functions of a file may have the same, with other constants or names.
        self._codes: Dict[bytes, List[CodeType]] = {}
        for code in nested_codes(module):
            self._codes.setdefault(code.co_code, []).append(code)

    def relocated(self, code: CodeType) -> Optional[CodeType]:
        """Return ``code`` located in this file, ``None`` if the file holds no such code."""
        code = _unmarked(code)  # code that runs from a file of an earlier dump has one constant more
        for candidate in self._codes.get(code.co_code, ()):
            moved = _moved_onto(code, candidate)
            if moved is not None:
                return distinguished(moved)
        return None


def in_file(code: CodeType, path: str, above: int = 0) -> CodeType:
    """Return ``code``, and nested code from the same file, as if that file were at ``path`` and had ``above`` lines
    more at its beginning.
    """
    if code.co_filename == path and not above:
        return code
    # Nested code of another file stays: a resume function or a lambda in transformed code is still the user's. Line
    # tables are relative to ``co_firstlineno``, so that alone moves all lines.
    consts = tuple(
        in_file(const, path, above) if isinstance(const, CodeType) and const.co_filename == code.co_filename else const
        for const in code.co_consts
    )
    return code.replace(co_filename=path, co_consts=consts, co_firstlineno=code.co_firstlineno + above)


def distinguished(code: CodeType) -> CodeType:
    """Return ``code`` with the name of its file as one more constant, which nothing reads; nested code likewise.

    Code objects that differ only in their file are equal (``co_filename`` is not compared), and debugpy caches by code
    object where no breakpoints are: it would not stop in the second of two equal graphs.
    """
    consts = tuple(
        distinguished(const) if isinstance(const, CodeType) else const for const in _unmarked(code).co_consts
    )
    return code.replace(co_consts=(*consts, _MARK + code.co_filename))


def _unmarked(code: CodeType) -> CodeType:
    """Return ``code`` without the constant that ``distinguished`` has added."""
    consts = code.co_consts
    if consts and consts[-1] == _MARK + code.co_filename:
        consts = consts[:-1]
    return code.replace(co_consts=tuple(_unmarked(const) if isinstance(const, CodeType) else const for const in consts))


def _moved_onto(code: CodeType, target: CodeType) -> Optional[CodeType]:
    """Return ``code`` with the lines of ``target``, or ``None`` if the two differ in more than lines and file names."""
    if len(code.co_consts) != len(target.co_consts):
        return None
    names, target_names = names_of(code).nested.values(), names_of(target).nested.values()
    moved_consts: List[object] = []  # of the result
    compared_consts: List[object] = []  # of a copy that must equal ``target``
    for ours, theirs in zip(code.co_consts, target.co_consts):
        # A function in a function is moved in the same way, and refuses for both.
        nested = isinstance(ours, CodeType) and isinstance(theirs, CodeType)
        moved = _moved_onto(ours, theirs) if nested else ours
        if nested and moved is None:
            return None
        moved_consts.append(moved)
        # Nested code has just been compared. Before 3.11 its qualified name is a constant of the code around it, which
        # MAKE_FUNCTION takes: "forward.<locals>.f" in one of the two, "GraphModule.forward.<locals>.f" in the other.
        same = nested or (_is_one_of(ours, names) and _is_one_of(theirs, target_names))
        compared_consts.append(theirs if same else ours)
    # Code objects compare by value (bytecode, constants, names, flags; not the file). What may differ is taken from
    # ``target``, so that ``==`` decides about all the rest.
    compared = code.replace(
        co_consts=tuple(compared_consts),
        co_flags=_flags_towards(code, target),
        **_lines_of(target),
        **name_fields(target),
    )
    return code.replace(co_consts=tuple(moved_consts), **_lines_of(target)) if compared == target else None


def _is_one_of(constant: object, names: Iterable[str]) -> bool:
    return type(constant) is str and constant in names


def _lines_of(code: CodeType) -> Dict[str, Any]:
    fields = _LINE_FIELDS if hasattr(code, "co_linetable") else _OLD_LINE_FIELDS
    return {field: getattr(code, field) for field in fields}


def _flags_towards(code: CodeType, target: CodeType) -> int:
    """Return the flags of ``code``, but those without effect at run time from ``target``: future annotations (their
    effect is in the bytecode), and ``CO_METHOD`` of 3.14, which says that the function is defined in a class."""
    free = annotations.compiler_flag | getattr(inspect, "CO_METHOD", 0)
    return code.co_flags & ~free | target.co_flags & free
