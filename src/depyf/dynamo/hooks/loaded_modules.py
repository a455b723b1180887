"""Read ``sys.modules`` without running code of the modules.

``sys.modules`` may contain anything: ``None`` (a blocked import), instances instead of modules, lazy modules whose
``__getattr__`` imports half a library or raises. Only dictionaries are read here, and no attributes.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import linecache
import sys
import threading
import weakref
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Callable, Dict, Iterator, List, Optional, Tuple, Union

from depyf.base.asynchronous import suppressed, suppressed_all, synchronous
from depyf.base.module_namespace import namespace_of
from depyf.base.own_builtins import keep_builtins
from depyf.base.restoring import restoring
from depyf.base.source_lines import source_lines
from depyf.torch_trace.user_code import is_library

keep_builtins(globals())


def loaded_namespaces() -> Iterator[Tuple[str, Dict[str, object]]]:
    """Return the name and the dictionary of everything in ``sys.modules``."""
    for name, module in list(sys.modules.items()):
        if isinstance(name, str):
            yield name, namespace_of(module)


def namespaces_with(name: str, value: object, package: str = "") -> List[Dict[str, object]]:
    """Return the dictionaries of loaded modules (of a package) in which ``name`` is ``value``."""
    found: List[Dict[str, object]] = []
    for module, loaded in _index.with_name(name) if _is_reading() else list(sys.modules.items()):
        namespace = loaded.__dict__ if type(loaded) is ModuleType else namespace_of(loaded)
        if namespace.get(name) is value and isinstance(module, str):
            if not package or f"{module}.".startswith(f"{package}."):
                found.append(namespace)
    return found


class _Index:
    """The modules of libraries that have a name which hooks replace. With the index, later sessions of a process read
    each module of a library once: reading thousands of dictionaries takes a quarter of the time of a small session.

    A module that was imported completely, from a file of a library, binds no name of PyTorch's functions later. Modules
    of the user, which may be reloaded, and everything else are read for each question.
    """

    def __init__(self) -> None:
        self._having: Dict[str, Dict[str, None]] = {}
        self._complete: Dict[str, weakref.ref[ModuleType]] = {}
        self._others: List[str] = []
        self._loaded: List[Tuple[str, int]] = []

    def with_name(self, name: str) -> List[Tuple[str, object]]:
        """Return the modules that may have ``name``."""
        if len(sys.modules) != len(self._loaded):
            self.read_new()
        if name not in self._having:
            self._having[name] = {module: None for module, namespace in loaded_namespaces() if name in namespace}
        candidates = {**self._having[name], **dict.fromkeys(self._others)}
        return [(module, sys.modules.get(module)) for module in candidates]

    def read_new(self) -> None:
        """Read the modules that were loaded, or took the place of others, since the last time."""
        loaded = list(zip(sys.modules, map(id, sys.modules.values())))
        if loaded != self._loaded:
            self._loaded = []  # an exception from outside may come at any line: then the next time begins anew
            self._others = list(self._read())
            self._loaded = loaded

    def _read(self) -> Iterator[str]:
        """Note which modules of libraries have the names; yield the other modules."""
        for name, module in list(sys.modules.items()):
            known = self._complete.get(name)
            if known is not None and known() is module:
                continue
            namespace = namespace_of(module)
            if not _is_complete(name, module, namespace):
                yield name
                continue
            for wanted, having in self._having.items():
                if wanted in namespace:
                    having[name] = None
            self._complete[name] = weakref.ref(module, self._died)

    def _died(self, _: object) -> None:
        """Note that another module may get the same id."""
        self._loaded = []


def _is_complete(name: str, module: object, namespace: Dict[str, object]) -> bool:
    """Return whether it is a module of a library, and its import has ended."""
    # ``python -m`` gives ``__main__`` the spec of a module that is not being imported.
    spec, path = namespace.get("__spec__"), file_of(namespace)
    if name == "__main__" or type(module) is not ModuleType or type(spec) is not ModuleSpec or path is None:
        return False
    return not getattr(spec, "_initializing", True) and (name.startswith("torch.") or is_library(path))


_index = _Index()

_shared = threading.local()
"""``reading``: whether the thread is in a block of ``one_reading``, and the index can be used."""


def _is_reading() -> bool:
    return getattr(_shared, "reading", False)


_blocks = itertools.count()
_WITHOUT_INDEX = 2


@contextlib.contextmanager
def one_reading() -> Iterator[None]:
    """Let ``namespaces_with`` read each module of a library once for all blocks. One thread may be in such a block at a
    time."""

    def end() -> None:
        _shared.reading = False

    with restoring(end) as again, again:
        # The first two blocks, where the first session begins and ends, use no index: making an index takes longer than
        # two blocks save. Without an index, as where a name of a module is no plain string, each question reads all
        # modules.
        with suppressed(Exception):
            if next(_blocks) >= _WITHOUT_INDEX and set(map(type, sys.modules)) == {str}:
                _index.read_new()
                _shared.reading = True
        yield


def loaded_namespace(name: Optional[str]) -> Dict[str, object]:
    """Return the dictionary of the module of that name; empty if it is not loaded."""
    return namespace_of(sys.modules.get(name)) if isinstance(name, str) else {}


def file_of(namespace: Dict[str, object]) -> Optional[str]:
    """Return the ``__file__`` in a module's dictionary; None if it is not a string."""
    path = namespace.get("__file__")
    return path if isinstance(path, str) else None


def source_text(value: Union[CodeType, Callable[..., object], type]) -> Optional[str]:
    """Return the source of a function, class or code object from its file; None if it can't be found.

    For a code object ``inspect.getsource`` would read ``__file__`` of everything in ``sys.modules``.
    """
    if isinstance(value, CodeType):
        return _source_of_code(value)
    with suppressed_all():
        try:
            return inspect.getsource(value)
        except synchronous(OSError, TypeError, SyntaxError, IndexError):
            return None
    with suppressed_all():
        return _source_of_code(getattr(value, "__code__", None))
    return None


def _source_of_code(code: Optional[CodeType]) -> Optional[str]:
    if code is None:
        return None
    with suppressed_all():
        linecache.checkcache(code.co_filename)
    lines = source_lines(code.co_filename)
    if not lines and not code.co_filename.startswith("<"):  # in an archive: its loader has the source
        namespaces = (each for _, each in loaded_namespaces() if file_of(each) == code.co_filename)
        lines = source_lines(code.co_filename, next(namespaces, None))
    try:
        return "".join(inspect.getblock(lines[code.co_firstlineno - 1 :])) or None
    except synchronous():  # not Python, or not the source of this code
        return None
