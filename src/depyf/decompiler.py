"""The public face of the decompiler: ``decompile`` for everybody, ``Decompiler`` for those who knew the first depyf."""

from __future__ import annotations

import functools
import inspect
import os
from types import CodeType
from typing import Any, List, Optional, Set

from depyf.bytecode.code import Code, is_code
from depyf.bytecode.opcode_table import table_for
from depyf.pipeline import decompile_code
from depyf.result import Decompilation, DecompilationError, Hints, LineMap, Verdict
from depyf.source.layout import reindented, with_temporaries_called

__all__ = [
    "Decompilation", "DecompilationError", "Decompiler", "Hints", "LineMap", "Verdict", "code_of", "decompile",
    "decompile_code",
]  # fmt: skip


def decompile(target: Any) -> str:
    """The Python source of a code object or callable: function, bound method, ``functools.partial``, anything with
    ``__wrapped__``, callable instance.

    Raises ``DecompilationError`` when there is none, and ``TypeError`` for what holds no Python code.
    """
    return decompile_code(code_of(target)).source


def code_of(target: Any) -> Code:
    """The code object behind a callable. Raises ``TypeError`` for what has none."""
    seen: Set[int] = set()
    while id(target) not in seen:
        seen.add(id(target))
        if is_code(target):
            found: Code = target
            return found
        step = _step(target)
        if step is not None:
            target = getattr(target, step)
        elif not isinstance(target, type) and callable(target):
            target = type(target).__call__
    raise TypeError(f"a {type(target).__name__} holds no Python code that could be decompiled")


def _step(target: Any) -> Optional[str]:
    """The attribute of ``target`` that leads on to its code."""
    if isinstance(target, functools.partial):
        return "func"
    for name in ("__wrapped__", "__func__", "__code__"):
        if inspect.getattr_static(target, name, None) is not None:
            return name
    return None


class Decompiler:
    """Decompiles one code object or callable. New code should call ``decompile_code``, which also tells the verdict."""

    def __init__(self, code: Any) -> None:
        self.code = code_of(code)

    def decompile(
        self, indentation: int = 4, temp_prefix: str = "__temp_", overwite_fn_name: Optional[str] = None
    ) -> str:
        """The source, indented by ``indentation`` spaces, with temporaries called ``temp_prefix`` and a number, as a
        function called ``overwite_fn_name``. Raises ``DecompilationError``."""
        source = decompile_code(self.code, name=overwite_fn_name).source
        return reindented(with_temporaries_called(source, temp_prefix), indentation)

    @staticmethod
    def supported_opnames() -> List[str]:
        """The names of all opcodes of the running Python: there is none that can't be decompiled."""
        return sorted(table_for().opcodes)

    @staticmethod
    def decompile_and_compile_like(
        code_to_decompile: Code,
        reference_code: Code,
        indentation: int = 4,
        temp_prefix: str = "__temp_",
        filepath_template: Optional[str] = None,
    ) -> CodeType:
        """``code_to_decompile`` decompiled and compiled again, to stand in for ``reference_code``.

        With ``filepath_template`` (a path with one ``%s``) the source is written to the first such path, counting from
        0, that does not exist, and the code object's lines are those of that file. ``indentation`` and ``temp_prefix``
        are accepted as ever; the file is written as it runs, with 4 spaces. Raises ``DecompilationError``.
        """
        decompilation = decompile_code(code_to_decompile, name=reference_code.co_name)
        path = None
        if filepath_template is not None:
            path = _write_new(filepath_template, decompilation.source)
        return decompilation.compile_like(reference_code, path)


def _write_new(template: str, source: str) -> str:
    """Write ``source`` to the first free path of ``template``; the path."""
    number = 0
    while True:
        path = template % number
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            number += 1
            continue
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(source)
        return path
