"""Classify graphs as forward or backward by the nodes that they share with graphs of known side."""

from __future__ import annotations

from typing import Dict, FrozenSet, List, Optional, Tuple

from depyf.quick_dataclass import replace
from depyf.report.model.run import Artifact, Run


def with_sides(run: Run) -> Run:
    """Return the run with ``backward`` set for the later graphs of compilations that have a forward and a backward one.
    Inductor's passes run on both alike and keep most names of nodes; a graph is on the side that it has more names of.
    Joint graphs are both, and earlier graphs are neither."""
    known: Dict[Optional[str], List[Artifact]] = {}
    for each in run.artifacts:
        if each.kind == "graph" and each.backward is not None:
            known.setdefault(each.compile_id, []).append(each)
    return replace(run, artifacts=tuple(_with_side(each, known) for each in run.artifacts))


def _with_side(artifact: Artifact, known: Dict[Optional[str], List[Artifact]]) -> Artifact:
    graphs = known.get(artifact.compile_id, [])
    if artifact.kind != "graph" or artifact.backward is not None or len({each.backward for each in graphs}) < 2:
        return artifact
    if artifact.order <= min(each.order for each in graphs) or "joint" in artifact.stage.lower():
        return artifact
    names = _names(artifact)
    shared: List[Tuple[int, bool]] = [(len(names & _names(each)), bool(each.backward)) for each in graphs]
    most, side = max(shared)
    return replace(artifact, backward=side) if most else artifact


def _names(artifact: Artifact) -> FrozenSet[str]:
    return frozenset(name for link in artifact.links for name in link.names)
