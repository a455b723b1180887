"""To which lines and modules a unit of work belongs, by what the records of a session know.

A kernel computes graph nodes, and a node has the stack of the user's lines and the modules that it was called in. A
kernel that computes several nodes belongs to each with an equal share.
"""

from __future__ import annotations

import functools
import os
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from depyf.answers.nonfinite import Line
from depyf.base.quick_dataclass import dataclass
from depyf.base.source_lines import source_line
from depyf.dynamo.capture.records import KernelFile, Record
from depyf.dynamo.hooks import known_code
from depyf.dynamo.questions.profile.listing import Site
from depyf.report.analysis.graph_links import places_of_names
from depyf.report.model.run import Artifact, ModuleKernel, Place, Run
from depyf.torch_trace.user_code import is_library

_OWN_NAMES = ("self", "fn")
"""How a compiled module is called in its own graph."""


@dataclass(frozen=True)
class Owner:
    """A line with the module that runs there, and the share of a unit that is theirs. ``line`` is None where only the
    module is known, ``module`` is None outside of modules."""

    line: Optional[Line]
    module: Optional[Tuple[str, str]]
    share: float

    @property
    def library(self) -> bool:
        return self.line is not None and is_library(self.line.file)


Owners = Tuple[Owner, ...]


class _Graph:
    """The nodes of the graphs of one compilation, forward or backward: the latest graph that has a node counts."""

    def __init__(self) -> None:
        self.places: Dict[str, Tuple[Place, ...]] = {}
        self.modules: Dict[str, Tuple[str, str]] = {}

    def add(self, artifact: Artifact) -> None:
        self.places.update(places_of_names(artifact.links))
        for part in artifact.modules:
            for node in part.nodes:
                self.modules[node] = own_path(part.name), part.type


def own_path(path: str) -> str:
    """Return the path of a module without the name of the compiled module itself in front: ``layers.0``."""
    first, _, rest = path.partition(".")
    return rest if first in _OWN_NAMES else path


class KnownOwners:
    """What the model of a run knows. ``is_torch`` says of a path whether it is a file of PyTorch's own. ``root`` is the
    class of a module that is compiled as a whole: Dynamo says of no operation that it is in that module itself."""

    def __init__(
        self, run: Run, records: Sequence[Record], is_torch: Callable[[str], bool], root: Optional[str] = None
    ) -> None:
        self._root = None if root is None else ("", root)
        self._run = run
        self._is_torch = is_torch
        self._artifacts: Dict[str, str] = {}
        for record in records:
            if isinstance(record, KernelFile):
                for path in (record.path, record.generated):
                    self._artifacts[path] = os.path.basename(record.path)
        self._kernels: Dict[Tuple[str, str], ModuleKernel] = {}
        self._calls: Dict[Tuple[str, int], ModuleKernel] = {}
        for kernel in run.kernels:
            self._kernels[kernel.artifact, kernel.name] = kernel
            for line in kernel.calls:
                self._calls[kernel.artifact, line] = kernel
        self._graphs: Dict[Tuple[Optional[str], Optional[bool]], _Graph] = {}
        for artifact in sorted(run.artifacts, key=lambda each: each.order):
            if artifact.kind == "graph":
                self._graphs.setdefault((artifact.compile_id, artifact.backward), _Graph()).add(artifact)
        self._texts = {artifact.id: artifact for artifact in run.artifacts}
        self._lines: Dict[Place, Line] = {}

    def kernel(self, path: str, name: str) -> Optional[ModuleKernel]:
        """Return the kernel of this name in a generated module."""
        return self._kernels.get((self._artifacts.get(path, ""), name))

    def launched(self, compile_id: str, name: str, *, backward: bool) -> Optional[ModuleKernel]:
        """Return the kernel of this name in a compiled graph."""
        for kernel in self._run.kernels:
            if (kernel.compile_id, kernel.name, kernel.backward is True) == (compile_id, name, backward):
                return kernel
        return None

    def called_at(self, site: Site) -> Optional[ModuleKernel]:
        """Return the kernel or library call on a line of a generated module."""
        return self._calls.get((self._artifacts.get(site.file, ""), site.line))

    def dumped(self, site: Site) -> Optional[Artifact]:
        """Return the file of the dump that runs at a site."""
        return self._texts.get(os.path.basename(site.file)) if site.dumped else None

    def of_line(self, artifact: Artifact, line: int) -> Owners:
        """Return the owners of a line of a file of the dump: of its graph node, or the origin of transformed code."""
        for link in artifact.links:
            if link.first <= line <= link.last:
                nodes = self.of_nodes(artifact.compile_id, link.names, backward=artifact.backward)
                return nodes or self._of_places(link.places[-1:])
        return ()

    def of_kernel(self, kernel: ModuleKernel) -> Owners:
        """Return the owners of a kernel: one share for each node whose line is known."""
        found = self.of_nodes(kernel.compile_id, kernel.nodes, backward=kernel.backward)
        return found or self._of_places(kernel.places)

    def of_nodes(self, compile_id: Optional[str], nodes: Sequence[str], *, backward: Optional[bool]) -> Owners:
        """Return the owners of nodes of a graph: one share for each node whose line is known."""
        graphs = [self._graphs.get((compile_id, which)) for which in dict.fromkeys((backward, None, False, True))]
        found: List[Tuple[Optional[Line], Optional[Tuple[str, str]]]] = []
        for node in nodes:
            has = next((each for each in graphs if each is not None and node in each.places), None)
            line = None if has is None else self._line(has.places[node])
            if line is not None and has is not None:
                module = next((each.modules[node] for each in graphs if each and node in each.modules), self._root)
                found.append((line, module))
        return _shares(found)

    def _of_places(self, places: Sequence[Place]) -> Owners:
        return _shares([(self._line([each]), None) for each in places if not self._is_torch(self._path(each))])

    def _path(self, place: Place) -> str:
        return self._run.sources[place[0]].path

    def _line(self, places: Sequence[Place]) -> Optional[Line]:
        """Return the innermost line of a stack that is not PyTorch's own."""
        place = next((each for each in reversed(places) if not self._is_torch(self._path(each))), None)
        if place is None:
            return None
        if place not in self._lines:
            path = self._path(place)
            self._lines[place] = Line(path, place[1], source_line(path, place[1]))
        return self._lines[place]

    def why_outside(self, site: Optional[Site], region: str) -> str:
        """Return why an operation is in no compiled graph, as far as it is known."""
        breaks = [each for each in self._run.breaks if each.place is not None]
        if site is not None:
            for each in breaks:
                if each.place is not None and self._path(each.place) == site.file and each.place[1] == site.line:
                    return f"a graph break: {each.reason}"
            for fallback in self._run.fallbacks:
                if fallback.place is not None and self._path(fallback.place) == site.file:
                    return f"{fallback.cause}: {fallback.reason}" if fallback.reason else fallback.cause
        if region:
            here = [each for each in breaks if each.compile_id == region]
            if here:
                return f"between graphs, after a graph break: {here[-1].reason}"
            return "between graphs"
        return "not inside of a compiled call"


def owner_of_site(site: Site) -> Owners:
    """Return the owner of an operation that eager code called."""
    line = Line(site.file, site.line, source_line(site.file, site.line))
    return (Owner(line, (site.module, site.type) if site.type else None, 1.0),)


def owner_of_caller(site: Optional[Site]) -> Owners:
    """Return the line that calls a graph as the owner of what is in the graph and has no line of its own."""
    return () if site is None or site.caller is None else owner_of_site(Site(*site.caller))


def _shares(found: Sequence[Tuple[Optional[Line], Optional[Tuple[str, str]]]]) -> Owners:
    shares: Dict[Tuple[Optional[Line], Optional[Tuple[str, str]]], int] = {}
    for each in found:
        shares[each] = shares.get(each, 0) + 1
    return tuple(Owner(line, module, count / len(found)) for (line, module), count in shares.items())


@functools.lru_cache(maxsize=None)
def is_torch_file(path: str) -> bool:
    """Return whether a path is of a file of PyTorch's own; remembered, as lines are many and files are few."""
    return known_code.is_torch_file(path)
