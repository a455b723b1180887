"""Make copies of modules and packages with decompiled code in place of the original, to be put on the path.

Only compiled code is used: a file is compiled, and the copy is made from its code object alone. Two forms: ``source``
writes the decompiled module as a ``.py`` file; ``functions`` keeps the code of the module and of its classes, replaces
each function by the compiled form of its decompiled source and writes a ``.pyc`` file (refused functions stay).
"""

from __future__ import annotations

import importlib.util
import inspect
import marshal
import os
import shutil
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Iterable, List

from depyf.decompiler import decompile_code
from depyf.decompiler.errors import DecompilationError
from depyf.sweep.judge import judge
from depyf.sweep.targets import find_files, read_module, targets_of

FORMS = ("source", "functions")


@dataclass
class Copied:
    """The result for one file. ``form``: what was written. ``objects`` counts code objects without comprehensions; in
    the form ``functions`` only functions are counted, and ``proved`` are those that were replaced."""

    file: str
    form: str
    objects: int
    proved: int
    reason: str


def copy_modules(names: Iterable[str], folder: Path, form: str = "source") -> List[Copied]:
    """Put decompiled copies of modules and packages into ``folder``, which then goes first on the path. The rest of the
    package of a module is linked. Raises ``FileNotFoundError`` for modules that do not exist or are not written in
    Python."""
    copies = []
    for name in names:
        for file in find_files([name], tests=False):
            copies.append(copy_file(Path(file), _place(Path(file), folder), form))
    return copies


def _place(file: Path, folder: Path) -> Path:
    """Return the path of the copy of ``file``; its neighbours are linked."""
    root, here = file.parent, folder
    while (root / "__init__.py").exists():
        root = root.parent
    for part in file.relative_to(root).parts[:-1]:
        here, root = here / part, root / part
        if here.is_symlink():
            here.unlink()
        if not here.exists():
            here.mkdir()
            for neighbour in root.iterdir():
                if neighbour.name != "__pycache__":
                    (here / neighbour.name).symlink_to(neighbour)
    return here / file.name


def copy_file(file: Path, place: Path, form: str = "source") -> Copied:
    """Write the decompiled form of ``file`` to ``place`` (with ``functions``: to the ``.pyc`` file beside it). A module
    without source takes the form ``functions``."""
    code = read_module(str(file))
    if place.is_symlink() or place.exists():
        place.unlink()  # a link to the original must not be written through
    if form == "functions":
        return _functions(code, file, place, "")
    targets = list(targets_of(code, str(file)))
    try:
        answer = decompile_code(code)
    except DecompilationError as error:
        return _functions(code, file, place, f"refused: {error}")
    place.write_bytes(answer.source.encode("utf-8"))
    if answer.text.constants:
        reason = f"the source does not say what {', '.join(answer.text.constants)} is"
        return Copied(str(file), "source", len(targets), 0, reason)
    if answer.verdict.proved:
        return Copied(str(file), "source", len(targets), len(targets), "")
    proved = sum(judge(target).outcome.proved for target in targets)
    return Copied(str(file), "source", len(targets), proved, answer.reason)


def _functions(code: types.CodeType, file: Path, place: Path, reason: str) -> Copied:
    copied = Copied(str(file), "functions", 0, 0, reason)
    replaced = _with_functions_replaced(code, copied)
    header = importlib.util.MAGIC_NUMBER + bytes(12)
    place.with_suffix(".pyc").write_bytes(header + marshal.dumps(replaced))
    return copied


def _with_functions_replaced(code: types.CodeType, copied: Copied) -> types.CodeType:
    """Return ``code`` with its outermost functions that are not refused replaced."""
    constants = tuple(
        _replaced(constant, copied) if isinstance(constant, types.CodeType) else constant for constant in code.co_consts
    )
    return code.replace(co_consts=constants)


def _replaced(code: types.CodeType, copied: Copied) -> types.CodeType:
    if code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<"):
        copied.objects += 1
        try:
            answer = decompile_code(code)
            if answer.verdict.proved:
                again = answer.compile_like(code, code.co_filename)
                copied.proved += 1
                return again
            copied.reason = copied.reason or f"{code.co_name}: {answer.reason}"
        except DecompilationError as error:  # its nested functions may still be decompiled
            copied.reason = copied.reason or str(error)
    return _with_functions_replaced(code, copied)


def copy_tree(original: Path, folder: Path, packages: Iterable[Path], form: str = "source") -> List[Copied]:
    """Copy a whole source distribution to ``folder``, its ``packages`` (files or folders in it) decompiled."""
    shutil.copytree(original, folder, symlinks=True)
    files: List[Path] = []
    for package in packages:
        files += sorted((original / package).rglob("*.py")) if (original / package).is_dir() else [original / package]
    return [copy_file(file, folder / os.path.relpath(file, original), form) for file in files]
