"""Assign depyf's provenance events about nodes and kernels to artifacts: those with the same names."""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.quick_dataclass import replace
from depyf.report.analysis.facts import KernelFact, Provenance
from depyf.report.model.run import Artifact
from depyf.torch_trace.events import Event
from depyf.torch_trace.provenance import (
    KERNEL_LAUNCHES,
    NODE_STACKS,
    Launch,
    ModuleChain,
    Stack,
    kernel_launches,
    node_in,
    node_modules,
    node_stacks,
    quoted,
)
from depyf.torch_trace.tracebacks import Frame

Code = Mapping[Frame, str]


def with_noted(
    artifacts: Sequence[Artifact], events: Sequence[Event], known: Mapping[str, Provenance]
) -> Dict[str, Provenance]:
    """Return ``known`` with the provenance events added, by artifact."""
    found = dict(known)
    stacks: Dict[Tuple[Optional[str], str], List[_Noted]] = {}
    launches: Dict[Optional[str], List[Tuple[List[Launch], Code]]] = {}
    for event in events:
        if event.name == NODE_STACKS:
            stage, nodes = node_stacks(event)
            stacks.setdefault((event.compile_id, stage), []).append((nodes, quoted(event), node_modules(event)))
        elif event.name == KERNEL_LAUNCHES:
            launches.setdefault(event.compile_id, []).append((kernel_launches(event), quoted(event)))
    for artifact in artifacts:
        if artifact.kind == "graph":
            nodes, code, modules = _best_nodes(artifact, stacks.get((artifact.compile_id, artifact.stage), ()))
            if nodes or modules:
                known_of_it = found.get(artifact.id, Provenance())
                found[artifact.id] = replace(known_of_it, nodes=nodes, code=code, modules=modules)
        elif artifact.kind == "kernels":
            listed, code = _take_launches(artifact, launches.get(artifact.compile_id, []))
            if listed:
                facts = [KernelFact(each.name, each.nodes, each.stacks) for each in listed]
                found[artifact.id] = replace(found.get(artifact.id, Provenance()), kernels=facts, code=code)
    return found


_Noted = Tuple[Dict[str, Stack], Code, Mapping[str, ModuleChain]]
"""Of one graph: stacks of nodes, what their lines say, modules of nodes."""


def _best_nodes(artifact: Artifact, candidates: Sequence[_Noted]) -> _Noted:
    """Return the stacks of the nodes in this graph; with warm caches they may be recorded twice."""
    if not candidates:
        return {}, {}, {}
    printed: Set[str] = {name for name in map(node_in, (artifact.content or "").splitlines()) if name is not None}
    return max(candidates, key=lambda each: len(printed & set(each[0])) - len(set(each[0]) - printed) / 1000)


def _take_launches(artifact: Artifact, candidates: List[Tuple[List[Launch], Code]]) -> Tuple[List[Launch], Code]:
    """Remove and return the noted launches of this module: those whose kernels are all in its text."""
    text = artifact.content or ""
    for number, (launches, _) in enumerate(candidates):
        if all(each.name.rpartition(".")[2] in text for each in launches):
            return candidates.pop(number)
    return [], {}
