"""Report when the program itself has imported torch's compiler: not earlier, so that its own setup takes effect.

Many programs set environment variables (devices, threads, settings of the compiler) and then import torch. A program
that never compiles never pays for the import.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import sys
import threading
from types import ModuleType
from typing import Any, Callable, Optional, Sequence

from depyf.base import meta_path
from depyf.base.asynchronous import synchronous
from depyf.base.messages import error_line
from depyf.base.visible import visible

_COMPILER = "torch._dynamo"
_PACKAGE = "torch"


def when_compiler_is_imported(call: Callable[[], object]) -> Callable[[], None]:
    """Call ``call`` once, as soon as torch's compiler has been imported; return a function that cancels it."""
    watch = _Watch(call, _COMPILER)
    watch.begin()
    return watch.end


def when_torch_is_imported(call: Callable[[], object]) -> Callable[[], None]:
    """Call ``call`` once, as soon as torch has been imported, mostly without its compiler; return a function that
    cancels it."""
    watch = _Watch(call, _PACKAGE)
    watch.begin()
    return watch.end


class _Watch(importlib.abc.MetaPathFinder):
    """Counts the nested executions of torch's modules. The compiler may be imported by another module of torch, which
    is not complete then; ``call`` needs all modules. So it is called when the outermost has been executed."""

    def __init__(self, call: Callable[[], object], name: str) -> None:
        self._call = call
        self._name = name
        self._thread = threading.local()
        self._waiting = True

    def begin(self) -> None:
        if _is_imported(self._name):
            self._fire()
        else:
            meta_path.insert_first(self)

    def end(self) -> None:
        self._waiting = False
        meta_path.remove(self)

    def _fire(self) -> None:
        if self._waiting:
            self.end()
            try:
                self._call()
            except synchronous() as error:  # this is the program's own import
                error_line(visible(f"depyf: torch.compile is not observed: {type(error).__name__}: {error}"))

    def find_spec(
        self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        if not self._waiting or name.partition(".")[0] != _PACKAGE or getattr(self._thread, "asks", False):
            return None
        self._thread.asks = True  # other finders may ask all finders, as this one does
        try:
            spec = self._found_by_others(name, path, target)
        finally:
            self._thread.asks = False
        if spec is not None:
            self._count_execution(spec.loader)
        return spec

    def _found_by_others(
        self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType]
    ) -> Optional[importlib.machinery.ModuleSpec]:
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: Optional[importlib.machinery.ModuleSpec] = None if find is None else find(name, path, target)
            if spec is not None:
                return spec
        return None

    def _count_execution(self, loader: Any) -> None:
        """Make the loader, which is this module's alone, report that it executes the module; restore it then."""
        original = getattr(loader, "exec_module", None)
        if original is None:
            return

        def exec_module(module: ModuleType) -> None:
            with contextlib.suppress(AttributeError):
                del loader.exec_module
            depth = getattr(self._thread, "depth", 0)
            self._thread.depth = depth + 1
            try:
                original(module)
            finally:
                self._thread.depth = depth
            if depth == 0 and self._name in sys.modules:
                self._fire()

        with contextlib.suppress(AttributeError):  # a loader without a dictionary: its modules are not counted
            loader.exec_module = exec_module


def compiler_is_imported() -> bool:
    """Return whether torch's compiler has been imported, and is not being imported right now."""
    return _is_imported(_COMPILER)


def _is_imported(name: str) -> bool:
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return spec is not None and not getattr(spec, "_initializing", False)
