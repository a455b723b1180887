"""Let the profiler see Inductor's kernels: on a CPU they are functions of C++ that it knows nothing of.

Inductor has settings for that, which change the code that it generates. Instead each kernel is wrapped where the
generated module looks it up, while something is profiled. A Triton kernel marks itself.
"""

from __future__ import annotations

import contextlib
from types import ModuleType
from typing import Callable, ContextManager, Dict, Iterator, List, Optional, Set, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.capture import launches
from depyf.dynamo.hooks import frame_evaluation, private_names
from depyf.dynamo.hooks.patching import Undo
from depyf.dynamo.questions.profile.listing import Listing

KERNEL = "depyf kernel "
NUMBERED = "depyf operation "
STEP = "depyf step "
COMPILED = "depyf compiled in "
"""The names of marks: of a kernel, of an operation in a listing, of the begin of a step, of the end of a compilation
(with its seconds)."""
_PREFIX = "cpp_"
"""How the names of kernels of C++ begin. One of Triton's is no function: the generated code calls a method of it."""


@dataclass(frozen=True)
class MarkedKernel:
    """A kernel of a generated module."""

    path: str
    name: str


class Marks:
    """The kernels that are wrapped, by the number in the names of their spans."""

    def __init__(self) -> None:
        self.kernels: List[MarkedKernel] = []
        self.paths: Set[str] = set()
        """The files of the generated modules."""
        self.listing: Optional[Listing] = None
        """Where kernels are listed as they are called, too."""
        self._wrapped: List[Tuple[Dict[str, object], str, object, object]] = []
        self._record = private_names.RECORD_FUNCTION_FAST.find_or_report() or contextlib.nullcontext

    def watch(self) -> List[Undo]:
        """Wrap the kernels of all modules that are loaded, and of those that will be; return what undoes it."""
        undo: List[Undo] = [self._put_back]
        for path, module in _loaded():
            self._wrap(path, module)
        undo.append(launches.when_loaded(self._wrap))
        return undo

    def numbered(self, number: int) -> ContextManager[object]:
        """Return a context that shows an operation to the profiler under its number in a listing."""
        made: ContextManager[object] = self._record(f"{NUMBERED}{number}")
        return made

    def _put_back(self) -> None:
        while self._wrapped:
            namespace, name, marked, kernel = self._wrapped.pop()
            if namespace.get(name) is marked:
                namespace[name] = kernel

    def _wrap(self, path: str, module: ModuleType) -> None:
        self.paths.add(path)
        namespace = vars(module)
        for name, kernel in list(namespace.items()):
            if name.startswith(_PREFIX) and callable(kernel) and not hasattr(kernel, "_depyf_marked"):
                self.kernels.append(MarkedKernel(path, name))
                marked = self._marked(kernel, len(self.kernels) - 1)
                namespace[name] = marked
                self._wrapped.append((namespace, name, marked, kernel))

    def _marked(self, kernel: Callable[..., object], number: int) -> Callable[..., object]:
        record, name = self._record, f"{KERNEL}{number}"

        def marked(*args: object) -> object:
            if self.listing is not None:
                self.listing.add_kernel(name, args)
            with record(name):
                return kernel(*args)

        marked._depyf_marked = True  # type: ignore[attr-defined]
        frame_evaluation.skip_code(marked.__code__)
        return marked


def _loaded() -> Iterator[Tuple[str, ModuleType]]:
    """Yield the modules that Inductor has loaded, with their files."""
    known = private_names.LOADED_MODULES.find() or ()
    for module in list(known.values() if isinstance(known, dict) else known):
        path = getattr(module, "__file__", None)
        if isinstance(module, ModuleType) and path:
            yield path, module
