"""The result for each line of the user's files, for views of the source that are rendered without a browser."""

from __future__ import annotations

from dataclasses import field
from typing import Dict, List

from depyf.quick_dataclass import dataclass
from depyf.report.model.counts import lost, raised
from depyf.report.model.run import Fallback, GraphBreak, Place, Recompile, Run


@dataclass
class Marks:
    """The known facts about one line. ``graphs`` are compile ids, in the order of the run."""

    breaks: List[GraphBreak] = field(default_factory=list)
    recompiles: List[Recompile] = field(default_factory=list)
    fallbacks: List[Fallback] = field(default_factory=list)
    graphs: List[str] = field(default_factory=list)
    guards: int = 0
    kernels: int = 0


def marks_of(run: Run) -> Dict[Place, Marks]:
    """Return the marks of every line that has some."""
    marks: Dict[Place, Marks] = {}

    def at(place: Place) -> Marks:
        return marks.setdefault((place[0], place[1]), Marks())

    for each in run.breaks:
        if each.place is not None:
            at(each.place).breaks.append(each)
    for fallback in (*lost(run), *raised(run)):
        if fallback.place is not None:
            at(fallback.place).fallbacks.append(fallback)
    for recompile in run.recompiles:
        if recompile.place is not None:
            at(recompile.place).recompiles.append(recompile)
    for compilation in run.compilations:
        for guard in compilation.guards:
            if guard.place is not None:
                at(guard.place).guards += 1
    for kernel in run.kernels:
        for place in kernel.places:
            at(place).kernels += not kernel.extern
    _graphs(run, marks)
    return marks


def _graphs(run: Run, marks: Dict[Place, Marks]) -> None:
    """Add the graphs of each line, from the links of graphs and from kernels."""
    found: Dict[Place, Dict[str, None]] = {}
    for artifact in run.artifacts:
        if artifact.kind == "graph" and artifact.compile_id:
            for link in artifact.links:
                for place in link.places:
                    found.setdefault((place[0], place[1]), {})[artifact.compile_id] = None
    for kernel in run.kernels:
        if kernel.compile_id:
            for place in kernel.places:
                found.setdefault((place[0], place[1]), {})[kernel.compile_id] = None
    for place, graphs in found.items():
        marks.setdefault(place, Marks()).graphs = list(graphs)
