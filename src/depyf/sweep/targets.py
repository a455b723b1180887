"""What there is to decompile: files of modules and folders, and the code objects in them. Nothing is ever imported."""

from __future__ import annotations

import inspect
import os
import sysconfig
import warnings
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from types import CodeType
from typing import Iterable, Iterator, List, Optional

from depyf.bytecode.code import Code, is_code
from depyf.bytecode.instructions import decode

COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
"""Code objects that are an expression of the code object around them, and are decompiled with it."""


@dataclass(frozen=True)
class Target:
    """One code object of a file. ``ordinal`` counts the targets of the file in source order."""

    path: str
    ordinal: int
    qualname: str
    kind: str
    line: int
    code: Code

    @property
    def label(self) -> str:
        return f"{self.path}:{self.line} {self.qualname}"


def stdlib_folder() -> str:
    """The folder of the running interpreter's standard library."""
    return sysconfig.get_paths()["stdlib"]


def find_files(names: Iterable[str], *, tests: bool = True) -> List[str]:
    """The ``.py`` files of folders, files and dotted module names, each once, sorted by folder.

    ``tests`` says whether files in folders named ``test`` or ``tests`` count. Modules are looked up on ``sys.path``
    without importing them or their packages. Raises ``FileNotFoundError`` for a name that is none of the three.
    """
    found: List[str] = []
    for name in names:
        place = Path(name)
        if place.is_dir():
            found.extend(_files_below(place, tests))
        elif place.is_file():
            found.append(str(place))
        else:
            found.extend(_files_of_module(name, tests))
    return list(dict.fromkeys(found))


def _files_below(folder: Path, tests: bool) -> Iterator[str]:
    for parent, folders, files in os.walk(folder):
        unwanted = {"site-packages", "__pycache__"} | (set() if tests else {"test", "tests"})
        folders[:] = sorted(name for name in folders if name not in unwanted)
        yield from (os.path.join(parent, name) for name in sorted(files) if name.endswith(".py"))


def _files_of_module(dotted: str, tests: bool) -> List[str]:
    path: Optional[List[str]] = None
    origin: Optional[str] = None
    parts = dotted.split(".")
    for depth in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:depth]), path)
        if spec is None:
            raise FileNotFoundError(f"{dotted}: no such file, folder or module")
        path = None if spec.submodule_search_locations is None else list(spec.submodule_search_locations)
        origin = spec.origin
    if path is not None:
        return [file for folder in path for file in _files_below(Path(folder), tests)]
    if origin is None or not origin.endswith(".py"):
        raise FileNotFoundError(f"{dotted}: has no Python source ({origin})")
    return [origin]


def compile_file(path: str) -> CodeType:
    """Compile a source file as its module. Raises ``SyntaxError``, ``ValueError`` or ``OSError`` when it can't be."""
    source = Path(path).read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(source, path, "exec", dont_inherit=True)


def targets_of(module: Code, path: str) -> Iterator[Target]:
    """The module's code object and all in it, outermost first; comprehensions belong to what they stand in."""
    ordinal = 0

    def walk(code: Code, qualname: str, kind: str) -> Iterator[Target]:
        nonlocal ordinal
        if code.co_name not in COMPREHENSIONS:
            yield Target(path, ordinal, qualname, kind, code.co_firstlineno, code)
            ordinal += 1
        prefix = {"module": "", "class": f"{qualname}."}.get(kind, f"{qualname}.<locals>.")
        for inner in code.co_consts:
            if is_code(inner):
                yield from walk(inner, prefix + inner.co_name, _kind(inner))

    return walk(module, "<module>", "module")


def _kind(code: Code) -> str:
    if not code.co_flags & inspect.CO_OPTIMIZED:
        return "class"
    return "lambda" if code.co_name == "<lambda>" else "function"


def find_target(text: str) -> Target:
    """The code object that ``module``, ``module:qualname``, ``file.py`` or ``file.py:line`` means.

    A qualified name without ``<locals>`` is understood; a line means the innermost code object that starts there.
    Raises ``FileNotFoundError`` when there is no such file, module or code object.
    """
    place, _colon, wanted = text.partition(":")
    path = place if place.endswith(".py") else next(iter(_files_of_module(place, True)), place)
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: no such file")
    targets = list(targets_of(compile_file(path), path))
    if not wanted:
        return targets[0]
    matches = [
        target
        for target in targets
        if wanted in (target.qualname, target.qualname.replace(".<locals>", ""), str(target.line))
    ]
    if not matches:
        raise FileNotFoundError(f"{text}: no such function or class in {path}")
    return matches[-1]


def size(code: Code) -> int:
    """How many instructions a code object has, with those of the code objects in it."""
    inner = sum(size(constant) for constant in code.co_consts if is_code(constant))
    return len(decode(code).instructions) + inner
