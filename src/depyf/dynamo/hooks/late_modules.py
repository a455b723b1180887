"""Install hooks into modules that are not imported yet, when the program imports them.

PyTorch imports Inductor lazily, as that takes half a second of CPU time. Importing Inductor for a hook would cost every
program this time.
"""

from __future__ import annotations

import sys
import threading
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Callable, Dict, List, Optional, Sequence, TypeVar, Union, cast

from depyf.base import meta_path
from depyf.base.locks import Lock
from depyf.base.own_builtins import keep_builtins
from depyf.dynamo.hooks.patching import Undo, collecting, registered, undo_all
from depyf.dynamo.hooks.safely import safely

keep_builtins(globals())

_T = TypeVar("_T")


def when_imported(module: str, hook: Callable[[], _T]) -> Union[_T, Undo]:
    """Install ``hook`` when ``module`` is imported, now if it already is.

    ``hook`` registers or returns its undo functions, in any form that ``collecting`` takes.
    """
    if module in sys.modules:
        return hook()
    waiting = _Waiting(hook)

    def end() -> None:
        _finder.remove(module, waiting)
        waiting.end()

    registered(end)
    _finder.add(module, waiting)
    return end


class _Waiting:
    """A hook to install when its module is imported. ``end`` undoes what it has installed."""

    def __init__(self, hook: Callable[[], object]) -> None:
        self._hook = hook
        self._undo: List[Undo] = []
        self._lock = Lock()
        self._ended = False

    @safely("hooking into torch")
    def install(self) -> None:
        with self._lock:
            # The session may have ended on another thread between the import and this line.
            if not self._ended:
                collecting(self._undo, self._hook)

    def end(self) -> None:
        self._ended = True
        with self._lock:
            undo_all(self._undo)


class _Finder(MetaPathFinder):
    """A finder in ``sys.meta_path`` while hooks are pending. The other finders find the module; its loader is
    wrapped."""

    def __init__(self) -> None:
        self._waiting: Dict[str, List[_Waiting]] = {}
        self._lock = Lock()
        self._thread = threading.local()

    def add(self, module: str, waiting: _Waiting) -> None:
        with self._lock:
            self._waiting.setdefault(module, []).append(waiting)
            meta_path.insert_first(self)

    def remove(self, module: str, waiting: _Waiting) -> None:
        """Remove the pending hook; may be called again."""
        with self._lock:
            rest = [each for each in self._waiting.pop(module, ()) if each is not waiting]
            if rest:
                self._waiting[module] = rest
            if not self._waiting:
                meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        # 1. The import system asks this finder first. It asks the others itself, since it needs their loader. An import
        #    inside of theirs (editable installs) comes here again, on the same thread: it is left to them.
        if fullname not in self._waiting or getattr(self._thread, "asks", False):
            return None
        self._thread.asks = True
        try:
            spec = self._found_by_others(fullname, path, target)
        finally:
            self._thread.asks = False
        # 2. The loader that they found is wrapped, except one of the old protocol, which has no ``exec_module``.
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(cast(Loader, spec.loader))
        return spec

    def _found_by_others(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[ModuleType]
    ) -> Optional[ModuleSpec]:
        for finder in list(sys.meta_path):
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(fullname, path, target)
                if spec is not None:
                    return spec
        return None

    def imported(self, module: str) -> None:
        """Install the hooks that waited for ``module``; they can still be undone."""
        # The lock is not held while hooks are installed: they may import modules, and other threads wait for these.
        with self._lock:
            waiting = list(self._waiting.get(module, ()))
        for each in waiting:
            self.remove(module, each)
            each.install()


class _Loader(Loader):
    """Loads a module as another loader does, and installs the pending hooks of it."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> Optional[ModuleType]:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # 3. The module gets its real loader before it runs: it may read resources with it, or be reloaded.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        # 4. The module is complete, and no code of the program has had it yet.
        _finder.imported(module.__name__)

    def __getattr__(self, name: str) -> object:
        if name == "_loader":  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self._loader, name)


_finder = _Finder()
