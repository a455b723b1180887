"""Links for all artifacts of a run, from its lines to the user's, and its kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from depyf.report.analysis.anchors import Anchored
from depyf.report.analysis.facts import TransformedFact
from depyf.report.analysis.graph_links import graph_links, places_of_names, union, whole_stacks
from depyf.report.analysis.kernels import NodePlaces, kernels_of
from depyf.report.analysis.sources import Sources
from depyf.report.model.run import Artifact, Kernel, Link, Place
from depyf.torch_trace.provenance import CAPTURED
from depyf.torch_trace.resume_names import resumed


def linked(
    artifacts: Sequence[Artifact],
    anchored: Anchored,
    sources: Sources,
    transformed: Mapping[Optional[str], TransformedFact],
) -> Tuple[List[Artifact], List[Kernel]]:
    """The artifacts with their links, in order, and the kernels in them. Links that an artifact has are kept."""
    provenance, moves = anchored.provenance, anchored.moves
    links: Dict[str, Sequence[Link]] = {}
    kernels: List[Kernel] = []
    by_compile_id: Dict[Optional[str], List[Artifact]] = {}
    for artifact in artifacts:
        by_compile_id.setdefault(artifact.compile_id, []).append(artifact)
    for ours in by_compile_id.values():
        graphs = [artifact for artifact in ours if artifact.kind == "graph"]
        known = [provenance[each.id].nodes for each in graphs if each.id in provenance]
        outer = whole_stacks(iter(known), sources)
        for each in graphs:
            stacks = provenance[each.id].nodes if each.id in provenance else {}
            links[each.id] = each.links or graph_links(each.text or "", stacks, outer, sources, moves.get(each.id))
        for each in ours:
            if each.kind == "kernels":
                nodes = _nodes_for(each, [graph for graph in graphs if graph.piece in ("", each.piece)], links)
                found, of_lines = kernels_of(each, provenance.get(each.id), nodes, sources)
                links[each.id] = each.links or of_lines
                kernels += found
        for each in ours:
            fact = transformed.get(each.id)
            if each.kind == "transformed" and fact is not None:
                links[each.id] = each.links or _of_transformed(each, fact, ours, links, sources)
    return [replace(each, links=tuple(links.get(each.id, each.links))) for each in artifacts], kernels


def _nodes_for(module: Artifact, graphs: Sequence[Artifact], links: Mapping[str, Sequence[Link]]) -> NodePlaces:
    """The places of the nodes that a generated module names: by the last graph before it, and by the first of all."""
    same_side = [each for each in graphs if each.backward is None or each.backward == module.backward]
    first_to_last = sorted(same_side, key=lambda each: each.order)
    names = [places_of_names(links.get(graph.id, ())) for graph in first_to_last]
    return NodePlaces(lowered=_first_known(reversed(names)), source=_first_known(names))


def _first_known(many: Iterable[Mapping[str, Tuple[Place, ...]]]) -> Dict[str, Tuple[Place, ...]]:
    found: Dict[str, Tuple[Place, ...]] = {}
    for each in many:
        for name, places in each.items():
            found.setdefault(name, places)
    return found


def _of_transformed(
    artifact: Artifact,
    fact: TransformedFact,
    ours: Sequence[Artifact],
    links: Mapping[str, Sequence[Link]],
    sources: Sources,
) -> List[Link]:
    """The lines of transformed code: those that are still the user's, calls of graphs (all lines that were captured in
    them), calls of resume functions (the line that they go on at). ``ours`` are the artifacts of its compilation."""
    by_line: Dict[int, Tuple[List[Place], List[str]]] = {}
    captured: Dict[str, Tuple[Place, ...]] = {}
    for graph in ours:
        if graph.stage == CAPTURED:
            places = union([link.places for link in links.get(graph.id, ())])
            captured.setdefault(_graph_name(graph), places)
    for number, line in enumerate((artifact.text or "").splitlines(), 1):
        for name in [*fact.graphs, *fact.resumes]:
            if f"{name}(" in line and not line.lstrip().startswith("#"):
                resume = fact.resumes.get(name)
                places = captured.get(name, ()) if resume is None else _resume_place(resume[0], sources)
                into = by_line.setdefault(number, ([], []))
                into[0].extend(places)
                into[1].append(name)
    path = fact.function[1]
    for number, user_line in fact.lines.items():
        place = sources.place(path, user_line)
        into = by_line.setdefault(number, ([], []))
        if place is not None and not into[1]:
            into[0].append(place)
    return [
        Link(number, number, tuple(dict.fromkeys(places)), tuple(names))
        for number, (places, names) in sorted(by_line.items())
        if places or names
    ]


def _graph_name(graph: Artifact) -> str:
    """``__compiled_fn_3`` of an artifact that is called ``Captured_Graph of __compiled_fn_3``."""
    return graph.title.rpartition(" of ")[2].split(" ")[0].rstrip(",")


def _resume_place(resume: Tuple[str, str, int], sources: Sources) -> Tuple[Place, ...]:
    name, path, first_line = resume
    at = (resumed(name) or ("", None))[1] or first_line
    place = sources.place(path, at)
    return () if place is None else (place,)
