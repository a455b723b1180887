"""The public interface of the decompiler: ``decompile``, and ``Decompiler`` for code written for depyf 0.20."""

from __future__ import annotations

import functools
import inspect
import os
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    MethodDescriptorType,
    MethodWrapperType,
    WrapperDescriptorType,
)
from typing import Any, List, Optional, Set, Union

from depyf.decompiler.bytecode.code import Code, is_code
from depyf.decompiler.bytecode.opcode_table import table_for
from depyf.decompiler.errors import DecompilationError
from depyf.decompiler.hints import Hints
from depyf.decompiler.pipeline.decompiling import decompile_code
from depyf.decompiler.result import Decompilation, Verdict
from depyf.decompiler.source.definitions.function_objects import facts_of
from depyf.decompiler.source.line_map import LineMap
from depyf.decompiler.source.printing.layout import reindented, with_temporaries_called

__all__ = [
    "Decompilation", "DecompilationError", "Decompiler", "Hints", "LineMap", "Verdict", "code_of", "decompile",
    "decompile_code", "decompile_pyc",
]  # fmt: skip


def decompile(target: object) -> str:
    """Return the Python source of a code object or of an object that has one.

    ``target``: a code object, function, bound method, ``functools.partial``, an object with ``__wrapped__``, a callable
    instance, or an ``nn.Module`` (its ``forward``). The source of a function has its current defaults and annotations;
    a comment at the end lists those that can't be written.

    Raises ``DecompilationError`` when there is no source, and ``TypeError`` for objects without Python code.
    """
    holder = _holder_of(target)
    if not isinstance(holder, FunctionType):
        return decompile_code(code_of(holder)).source
    facts = facts_of(holder)
    source = decompile_code(holder.__code__, facts=facts).source
    if not facts.unwritten:
        return source
    return "\n".join([source.rstrip("\n"), "", *(f"# {text}" for text in facts.unwritten), ""])


def decompile_pyc(path: Union[str, os.PathLike[str]], *, python: Optional[str] = None) -> Decompilation:
    """Decompile and verify the module in a ``.pyc`` file of any supported Python, or in an entry of an archive
    (``lib.zip/m.pyc``). The file is read by a reader of depyf's own and never run. ``python``: the Python that wrote
    it, where the file does not say that: a version, such as ``3.8``, or the path of an interpreter, which then compiles
    the text; see ``decompile_code``.

    Raises ``ValueError`` when it is not a ``.pyc`` file or is malformed, ``OSError`` when it can't be read, and
    ``DecompilationError`` as ``decompile_code`` does."""
    from depyf.base.archives import read_file  # a tenth of the imports of the first decompilation
    from depyf.decompiler.pipeline.reading import module_in

    name = os.fspath(path)
    return decompile_code(module_in(read_file(name), name, python).code, python=python)


def code_of(target: object) -> Code:
    """Return the code object of a callable. Raises ``TypeError`` if it has none."""
    holder = _holder_of(target)
    code: Code = holder if is_code(holder) else holder.__code__
    return code


def _holder_of(target: object) -> Any:
    """Return the code object of ``target``, or the object that has it as ``__code__``. Raises ``TypeError``."""
    seen: Set[int] = set()
    step: object = target
    wrapper: object = None
    while id(step) not in seen and not isinstance(step, type):
        seen.add(id(step))
        attribute = None if is_code(step) else _step(step)
        if attribute is not None:
            wrapper = step if wrapper is None and isinstance(step, FunctionType) else wrapper
            step = getattr(step, attribute)
        elif is_code(step) or is_code(inspect.getattr_static(step, "__code__", None)) or isinstance(step, FunctionType):
            return step
        elif callable(step):
            step = type(step).__call__
    if wrapper is not None:  # it wraps a builtin
        return wrapper
    raise TypeError(_why_not(target))


def _why_not(target: object) -> str:
    """Return the reason why there is nothing to decompile."""
    if isinstance(target, type):
        return f"{target.__qualname__} is a class, and its body is not kept: decompile its methods one by one"
    if isinstance(target, _BUILTIN):
        return f"{target.__qualname__} is built in: it holds no Python code that could be decompiled"
    return f"a {type(target).__name__} holds no Python code that could be decompiled"


_BUILTIN = (
    BuiltinFunctionType,
    MethodWrapperType,
    WrapperDescriptorType,
    MethodDescriptorType,
    ClassMethodDescriptorType,
)


def _step(target: object) -> Optional[str]:
    """Return the attribute of ``target`` that leads to its code, else ``None``; wrappers are unwrapped."""
    if isinstance(target, functools.partial):
        return "func"
    for kind in type(target).__mro__:
        if (kind.__module__, kind.__name__) == ("torch.nn.modules.module", "Module"):
            # The result of torch.compile contains the compiled module; all modules are called by a function of torch.
            return "forward" if getattr(target, "_orig_mod", None) is None else "_orig_mod"
    for name in ("__wrapped__", "__func__"):
        if inspect.getattr_static(target, name, None) is not None:
            return name
    return None


class Decompiler:
    """Decompile one code object or callable, as depyf 0.20 did. New code calls ``decompile_code``, which has the
    verdict."""

    def __init__(self, code: object) -> None:
        self.code = code_of(code)

    def decompile(
        self, indentation: int = 4, temp_prefix: str = "__temp_", overwite_fn_name: Optional[str] = None
    ) -> str:
        """Return the source, indented by ``indentation`` spaces, with temporaries called ``temp_prefix`` and a number,
        as a function called ``overwite_fn_name``. Raises ``DecompilationError``."""
        source = decompile_code(self.code, name=overwite_fn_name).source
        return reindented(with_temporaries_called(source, temp_prefix), indentation)

    @staticmethod
    def supported_opnames() -> List[str]:
        """Return the names of all opcodes of the running Python: each can be decompiled."""
        return sorted(table_for().opcodes)

    @staticmethod
    def decompile_and_compile_like(
        code_to_decompile: Code,
        reference_code: Code,
        indentation: int = 4,
        temp_prefix: str = "__temp_",
        filepath_template: Optional[str] = None,
    ) -> CodeType:
        """Return ``code_to_decompile`` decompiled and compiled again, as a replacement for ``reference_code``.

        With ``filepath_template`` (a path with one ``%s``) the source is written to the first such path, counting from
        0, that does not exist, and the code object's lines are those of that file. ``indentation`` and ``temp_prefix``
        are accepted and ignored; the file has an indentation of 4 spaces. Raises ``DecompilationError``.
        """
        decompilation = decompile_code(code_to_decompile, name=reference_code.co_name)
        path = None
        if filepath_template is not None:
            path = _write_new(filepath_template, decompilation.source)
        return decompilation.compile_like(reference_code, path)


def _write_new(template: str, source: str) -> str:
    """Write ``source`` to the first free path of ``template``; return the path."""
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
