"""The code to decompile: files of modules and folders, and the code objects in them. Nothing is imported."""

from __future__ import annotations

import _imp
import functools
import inspect
import os
import re
import sysconfig
import warnings
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from depyf.base.archives import ArchiveError, by_folder, entries, is_archive, read_file, split_path
from depyf.base.quick_dataclass import dataclass
from depyf.decompiler import PycError, instruction_count, is_compiler_made, is_pyc, module_in, running_version
from depyf.decompiler.syntax import Code, is_code
from depyf.sweep.unreadable import UnreadableError


@dataclass(frozen=True)
class Target:
    """One code object of a file. ``ordinal`` counts the targets of the file in source order. ``remarks``: how the file
    differs from what Python writes, a phrase each."""

    path: str
    ordinal: int
    qualname: str
    kind: str
    line: int
    code: Code
    remarks: Tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.path}:{self.line} {self.qualname}"

    @functools.cached_property
    def size(self) -> int:
        return instruction_count(self.code)


def stdlib_folder() -> str:
    """Return the folder of the running interpreter's standard library."""
    return sysconfig.get_paths()["stdlib"]


def find_files(names: Iterable[str], *, tests: bool = True) -> List[str]:
    """Return the files of the modules in folders, archives, files and dotted module names, each once, sorted by folder.

    A module of a folder is its ``.py`` file, or else its ``.pyc`` file. Archives in it are searched if they hold
    ``.pyc`` files. ``tests``: whether folders named
    ``test`` or ``tests`` are included. A folder that can't be listed is among the files: reading it reports the reason.
    Modules are looked up on ``sys.path`` without importing them or their packages. Raises ``FileNotFoundError`` for a
    name that is none of the three.
    """
    found: List[str] = []
    for name in names:
        path = Path(name)
        if path.is_dir():
            found.extend(_files_below(path, tests=tests))
        elif is_archive(name):
            found.extend(_files_in_archive(name, tests=tests))
        elif path.exists() or split_path(name):
            found.append(str(path))
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
        for name in sorted(files):
            if name.endswith(_ARCHIVES) and _holds_bytecode(os.path.join(parent, name)):
                yield from _files_in_archive(os.path.join(parent, name), tests=tests)
    yield from (os.fspath(error.filename) for error in closed)


_ARCHIVES = (".zip", ".whl", ".egg")


def _holds_bytecode(path: str) -> bool:
    try:
        return any(name.endswith(".pyc") for name in entries(path))
    except (OSError, ArchiveError):
        return False


def _files_in_archive(path: str, *, tests: bool) -> Iterator[str]:
    """Yield the paths of the modules in an archive: those of its folders as of any folder."""
    try:
        folders = by_folder(entries(path))
    except ArchiveError as error:
        raise UnreadableError(str(error)) from error
    for folder in sorted(folders):
        parts = folder.split("/")
        if parts[-1] == "__pycache__":
            if folder.rpartition("/")[0] in folders:
                continue
            files, cached, parts = [], folders[folder], parts[:-1]
        else:
            files, cached = folders[folder], folders.get("/".join([*parts, "__pycache__"]).lstrip("/"), [])
        if tests or {"test", "tests"}.isdisjoint(parts):
            yield from ("/".join(filter(None, [path, *parts, name])) for name in _modules_of_folder(files, cached))


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


def read_module(path: str, python: Optional[str] = None) -> Code:
    """Return the code object of the module in a file, or in an entry of an archive: a ``.pyc`` is read, other files are
    compiled. ``python``: the Python that wrote a ``.pyc`` that does not say it. Raises ``UnreadableError`` when there
    is none, and ``OSError`` when the file can't be read or is not a regular file."""
    return _read(path, python)[0]


def _read(path: str, python: Optional[str], optimize: int = -1) -> Tuple[Code, Tuple[str, ...]]:
    """Return the module's code and the remarks on its file."""
    try:
        data = read_file(path)
        if path.endswith((".pyc", ".pyo")) or (is_pyc(data) and not path.endswith((".py", ".pyw"))):
            pyc = module_in(data, path, python)
            return pyc.code, pyc.remarks
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return compile(data, path, "exec", dont_inherit=True, optimize=optimize), ()
    except (PycError, ArchiveError) as error:
        raise UnreadableError(str(error)) from error
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnreadableError(f"{path}: {type(error).__name__}: {error}") from error


def frozen_module(name: str) -> Optional[Code]:
    """Return the code of a module that is frozen into the running Python; ``None`` where it is none. It is not run."""
    if not _imp.is_frozen(name):
        return None
    code: Code = _imp.get_frozen_object(name)
    return code


def targets_of(module: Code, path: str, remarks: Tuple[str, ...] = ()) -> Iterator[Target]:
    """Yield the module's code object and all nested ones, outermost first, except comprehensions."""
    ordinal = 0

    def walk(code: Code, qualname: str, kind: str) -> Iterator[Target]:
        nonlocal ordinal
        if not is_compiler_made(code):
            yield Target(path, ordinal, qualname, kind, code.co_firstlineno, code, remarks)
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


def find_target(text: str, python: Optional[str] = None) -> Target:
    """Return the code object that ``module``, ``module:qualname``, ``file.py``, ``lib.zip/m.pyc`` or ``file.pyc:line``
    names. A module that has no file may be frozen into the running Python. ``python``: see ``read_module``.

    ``<locals>`` may be omitted from a qualified name; a line means the innermost code object that starts there. Raises
    ``FileNotFoundError`` when there is no such file, module or code object, ``UnreadableError`` when the file contains
    no module, and ``OSError`` when it can't be read.
    """
    module = find_module(text, python)
    targets = list(targets_of(module.code, module.path, module.remarks))
    if not module.wanted:
        return targets[0]
    return named_target(targets, text, module.wanted)


def named_target(targets: Sequence[Target], text: str, wanted: str) -> Target:
    """Return the last of ``targets`` with the qualified name or line ``wanted``, which ``text`` asks for."""
    matches = [
        target
        for target in targets
        if wanted in (target.qualname, target.qualname.replace(".<locals>", ""), str(target.line))
    ]
    if not matches:
        raise FileNotFoundError(f"{text}: no such function or class in {targets[0].path}")
    return matches[-1]


@dataclass(frozen=True)
class Module:
    """The code of a module, and which of its code objects is ``wanted``: a qualified name or line, empty for all."""

    path: str
    wanted: str
    code: Code
    remarks: Tuple[str, ...]


def find_module(text: str, python: Optional[str] = None, optimize: int = -1) -> Module:
    """Return the module that ``text`` names, which may name a code object in the module as for ``find_target``.
    ``optimize``: the level at which source is compiled, as for ``compile``. Raises what ``find_target`` raises."""
    file, wanted = text, ""
    if not os.path.exists(text) and ":" in text:
        file, _colon, wanted = text.rpartition(":")
    path = file
    frozen = None
    if not os.path.exists(file) and split_path(file) is None:
        if file.endswith((".py", ".pyc")) or os.sep in file:
            raise FileNotFoundError(f"{file}: no such file")
        try:
            path = _module(file)[0]
        except FileNotFoundError:
            path, frozen = f"<frozen {file}>", frozen_module(file)
            if frozen is None:
                raise
        if not path:
            raise FileNotFoundError(f"{file}: a package without code of its own")
    code, remarks = (frozen, ()) if frozen is not None else _read(path, python, optimize)
    return Module(path, wanted, code, remarks)
