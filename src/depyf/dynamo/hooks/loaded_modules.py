"""Read ``sys.modules`` without running code of the modules.

``sys.modules`` may contain anything: ``None`` (a blocked import), instances instead of modules, lazy modules whose
``__getattr__`` imports half a library or raises. Only dictionaries are read here, and no attributes.
"""

from __future__ import annotations

import contextlib
import inspect
import linecache
import sys
import threading
import weakref
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from depyf.base.asynchronous import suppressed_all, synchronous
from depyf.base.module_namespace import namespace_of
from depyf.base.own_builtins import keep_builtins
from depyf.base.restoring import restoring
from depyf.base.source_lines import source_lines

keep_builtins(globals())


def loaded_namespaces() -> Iterator[Tuple[str, Dict[str, object]]]:
    """Return the name and the dictionary of everything in ``sys.modules``."""
    for name, module in list(sys.modules.items()):
        if isinstance(name, str):
            yield name, namespace_of(module)


def namespaces_with(name: str, value: object, package: str = "") -> List[Dict[str, object]]:
    """Return the dictionaries of loaded modules (of a package) in which ``name`` is ``value``."""
    modules: Iterable[str] = _index.with_name(name) if getattr(_shared, "reading", False) else list(sys.modules)
    found: List[Dict[str, object]] = []
    for module in modules:
        loaded = sys.modules.get(module)
        namespace = loaded.__dict__ if type(loaded) is ModuleType else namespace_of(loaded)
        if namespace.get(name) is value and isinstance(module, str):
            if not package or f"{module}.".startswith(f"{package}."):
                found.append(namespace)
    return found


class _Index:
    """Which modules have a name that hooks replace. To look into thousands of dictionaries, which nothing else reads
    meanwhile, takes a third of the time of a small session, so each is read once.

    A module that was imported completely is taken to bind no such name later. One that is being imported, ``__main__``,
    and whatever else stands in ``sys.modules``, is read each time.
    """

    def __init__(self) -> None:
        self._having: Dict[str, Dict[str, None]] = {}
        self._complete: Dict[str, weakref.ref[ModuleType]] = {}
        self._others: List[str] = []
        self._loaded: List[int] = []

    def with_name(self, name: str) -> List[str]:
        """Return the modules that have ``name``, or had it."""
        if name not in self._having:
            self._loaded = []
            self._complete.clear()
            self._having[name] = {}
        if len(sys.modules) != len(self._loaded):
            self.look_again()
        return list(self._having[name])

    def look_again(self) -> None:
        """Read the modules that are new, or were not complete."""
        loaded = list(map(id, sys.modules.values()))
        names: Iterable[str] = self._others if loaded == self._loaded else sys.modules
        self._loaded = []  # an exception from outside may come at any line: then all are new
        self._others, self._loaded = list(self._read(names)), loaded

    def _read(self, names: Iterable[str]) -> Iterator[str]:
        """Note who has the names that are looked for; yield the modules that may bind one later."""
        for name in list(names):
            if type(name) is not str:
                continue
            module, known = sys.modules.get(name), self._complete.get(name)
            if known is not None and known() is module:
                continue
            namespace = namespace_of(module)
            for wanted, having in self._having.items():
                if wanted in namespace:
                    having[name] = None
            spec = namespace.get("__spec__")
            # ``python -m`` gives ``__main__`` the spec of a module that is not being imported.
            if name == "__main__" or type(module) is not ModuleType or type(spec) is not ModuleSpec:
                yield name
            elif getattr(spec, "_initializing", True):
                yield name
            else:
                self._complete[name] = weakref.ref(module)


_index = _Index()

_shared = threading.local()
"""``reading``: whether the thread is in a block of ``one_reading``."""


@contextlib.contextmanager
def one_reading() -> Iterator[None]:
    """Let ``namespaces_with`` read the loaded modules once for all its calls in the block. One thread may be in such a
    block at a time."""

    def end() -> None:
        _shared.reading = False

    with restoring(end) as again, again:
        _index.look_again()
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
