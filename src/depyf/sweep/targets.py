"""The code to decompile: files of modules and folders, and the code objects in them. Nothing is imported."""

from __future__ import annotations

import functools
import inspect
import os
import re
import sysconfig
import warnings
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Optional, Tuple

from depyf.bytecode.code import COMPREHENSIONS, Code, is_code
from depyf.bytecode.instructions import decode
from depyf.bytecode.opcode_table import running_version
from depyf.bytecode.pyc import PycError, is_pyc, parse_pyc
from depyf.lift.items import GENERIC_PREFIX
from depyf.quick_dataclass import dataclass
from depyf.regular_files import open_regular
from depyf.source.definitions.annotations import makes_annotations
from depyf.sweep.unreadable import UnreadableError


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

    @functools.cached_property
    def size(self) -> int:
        return size(self.code)


def stdlib_folder() -> str:
    """Return the folder of the running interpreter's standard library."""
    return sysconfig.get_paths()["stdlib"]


def find_files(names: Iterable[str], *, tests: bool = True) -> List[str]:
    """Return the files of the modules in folders, files and dotted module names, each once, sorted by folder.

    A module of a folder is its ``.py`` file, or where there is none its ``.pyc`` file. ``tests``: whether folders named
    ``test`` or ``tests`` are included. A folder that can't be listed is among the files: reading it reports the reason.
    Modules are looked up on ``sys.path`` without importing them or their packages. Raises ``FileNotFoundError`` for a
    name that is none of the three.
    """
    found: List[str] = []
    for name in names:
        place = Path(name)
        if place.is_dir():
            found.extend(_files_below(place, tests=tests))
        elif place.exists():
            found.append(str(place))
        else:
            origin, folders = _module(name)
            found.extend([file for folder in folders for file in _files_below(Path(folder), tests=tests)] or [origin])
    return list(dict.fromkeys(found))


def _files_below(folder: Path, *, tests: bool) -> Iterator[str]:
    closed: List[OSError] = []
    for parent, folders, files in os.walk(folder, onerror=closed.append):
        unwanted = {"site-packages", "__pycache__"} | (set() if tests else {"test", "tests"})
        cached: List[str] = []
        if "__pycache__" in folders:
            try:
                cached = sorted(os.listdir(os.path.join(parent, "__pycache__")))
            except OSError as error:
                closed.append(error)
        folders[:] = sorted(name for name in folders if name not in unwanted)
        yield from (os.path.join(parent, name) for name in _modules_of_folder(files, cached))
    yield from (os.fspath(error.filename) for error in closed)


def _modules_of_folder(files: Iterable[str], cached: Iterable[str]) -> List[str]:
    """Return one file for each module of a folder, relative to it: the source, a ``.pyc`` beside it, or one in the
    cache."""
    modules: Dict[str, str] = {}
    for name in sorted(cached, key=_preference):
        if name.endswith(".pyc"):
            modules[name.partition(".")[0]] = os.path.join("__pycache__", name)
    for suffix in (".pyc", ".py"):
        modules.update({name[: -len(suffix)]: name for name in files if name.endswith(suffix)})
    return sorted(modules.values(), key=os.path.basename)


def _preference(name: str) -> Tuple[bool, bool, List[int]]:
    """Return a key that sorts the files of one module in a cache, best last. The best is for no newer Python than the
    running one, with asserts and docstrings, and the newest of these."""
    version = [int(number) for number in re.findall(r"\.cpython-(\d)(\d+)", name) for number in number]
    return version <= list(running_version()), ".opt-" not in name, version


def module_name(path: str) -> str:
    """Return the name of the module in the file at ``path``, without its package."""
    base = os.path.basename(path)
    in_cache = os.path.basename(os.path.dirname(path)) == "__pycache__"
    return base.partition(".")[0] if in_cache else os.path.splitext(base)[0]


def _module(dotted: str) -> Tuple[str, List[str]]:
    """Return the file of a module, and its folders if it is a package."""
    path: Optional[List[str]] = None
    origin: Optional[str] = None
    parts = dotted.split(".")
    for depth in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:depth]), path)
        if spec is None:
            raise FileNotFoundError(f"{dotted}: no such file, folder or module")
        path = None if spec.submodule_search_locations is None else list(spec.submodule_search_locations)
        origin = spec.origin
        if path is None and depth < len(parts):
            raise FileNotFoundError(f"{dotted}: {'.'.join(parts[:depth])} is not a package")
    if not (origin or "").endswith((".py", ".pyc")) and not path:
        raise FileNotFoundError(f"{dotted}: has no Python source ({origin})")
    return origin or "", path or []


def read_module(path: str) -> Code:
    """Return the code object of the module in a file: a ``.pyc`` is read, other files are compiled. Raises
    ``UnreadableError`` when it contains none, and ``OSError`` when it can't be read or is not a regular file."""
    with open_regular(path) as file:
        data = file.read()
    try:
        if path.endswith((".pyc", ".pyo")) or (is_pyc(data) and not path.endswith((".py", ".pyw"))):
            return parse_pyc(data, path).code
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return compile(data, path, "exec", dont_inherit=True)
    except PycError as error:
        raise UnreadableError(str(error)) from error
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnreadableError(f"{path}: {type(error).__name__}: {error}") from error


def targets_of(module: Code, path: str) -> Iterator[Target]:
    """Yield the module's code object and all nested ones, outermost first, except comprehensions."""
    ordinal = 0

    def walk(code: Code, qualname: str, kind: str) -> Iterator[Target]:
        nonlocal ordinal
        if not _belongs_to_what_is_around(code):
            yield Target(path, ordinal, qualname, kind, code.co_firstlineno, code)
            ordinal += 1
        prefix = {"module": "", "class": f"{qualname}."}.get(kind, f"{qualname}.<locals>.")
        for inner in code.co_consts:
            if is_code(inner):
                yield from walk(inner, prefix + inner.co_name, _kind(inner))

    return walk(module, "<module>", "module")


def _belongs_to_what_is_around(code: Code) -> bool:
    """Return whether ``code`` is not a target of its own. Such are comprehensions, the code that makes type parameters
    and their bounds, and that of annotations (3.14)."""
    annotates = code.co_name.startswith(GENERIC_PREFIX) or "__classdict__" in code.co_freevars
    evaluates = makes_annotations(code) or code.co_varnames[:1] == (".format",)
    return annotates or evaluates or code.co_name in COMPREHENSIONS


def _kind(code: Code) -> str:
    if not code.co_flags & inspect.CO_OPTIMIZED:
        return "class"
    return "lambda" if code.co_name == "<lambda>" else "function"


def find_target(text: str) -> Target:
    """Return the code object that ``module``, ``module:qualname``, ``file.py`` or ``file.pyc:line`` names.

    ``<locals>`` may be omitted from a qualified name; a line means the innermost code object that starts there. Raises
    ``FileNotFoundError`` when there is no such file, module or code object, ``UnreadableError`` when the file contains
    no module, and ``OSError`` when it can't be read.
    """
    place, wanted = (text, "") if os.path.exists(text) else _split(text)
    path = place
    if not os.path.exists(place):
        if place.endswith((".py", ".pyc")) or os.sep in place:
            raise FileNotFoundError(f"{place}: no such file")
        path = _module(place)[0]
        if not path:
            raise FileNotFoundError(f"{place}: a package without code of its own")
    targets = list(targets_of(read_module(path), path))
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


def _split(text: str) -> Tuple[str, str]:
    place, _colon, wanted = text.rpartition(":") if ":" in text else (text, "", "")
    return place, wanted


def size(code: Code) -> int:
    """Return the number of instructions of a code object and its nested ones; malformed ones count by bytes."""
    inner = sum(size(constant) for constant in code.co_consts if is_code(constant))
    try:
        return len(decode(code).instructions) + inner
    except ValueError:
        return len(code.co_code) // 2 + inner
