"""Links for all artifacts of a run, from its lines to the user's, and its kernels."""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.quick_dataclass import replace
from depyf.report.analysis.anchors import Anchored
from depyf.report.analysis.facts import TransformedFact
from depyf.report.analysis.graph_links import LinkedGraphs, places_of_names, union, whole_stacks
from depyf.report.analysis.in_parts import Parts
from depyf.report.analysis.kernels import NodePlaces, kernels_of
from depyf.report.analysis.modules import module_parts
from depyf.report.analysis.sources import Sources
from depyf.report.model.module_part import ModulePart
from depyf.report.model.run import Artifact, Kernel, Link, Place
from depyf.torch_trace.provenance import CAPTURED
from depyf.torch_trace.resume_names import resumed


def linked(
    artifacts: Sequence[Artifact],
    anchored: Anchored,
    sources: Sources,
    transformed: Mapping[Optional[str], TransformedFact],
    parts: Parts,
) -> Tuple[List[Artifact], List[Kernel]]:
    """Return the artifacts with their links, in order, and the kernels in them. Links that an artifact has are kept."""
    links: Dict[str, Sequence[Link]] = {}
    kernels: List[Kernel] = []
    graphs = LinkedGraphs(sources)
    by_compile_id: Dict[Optional[str], List[Artifact]] = {}
    for artifact in artifacts:
        by_compile_id.setdefault(artifact.compile_id, []).append(artifact)
    for ours in by_compile_id.values():
        what = "which lines of a compilation belong together"
        of_it, its_kernels = parts.part(what, _NONE, _linked, ours, anchored, sources, transformed, graphs)
        links.update(of_it)
        kernels += its_kernels
    modules: Dict[str, Tuple[ModulePart, ...]] = {
        each.id: parts.part("modules of a graph", (), module_parts, anchored.provenance[each.id].modules)
        for each in _with_modules(by_compile_id, anchored)
    }
    return [
        replace(each, links=tuple(links.get(each.id, each.links)), modules=modules.get(each.id, each.modules))
        for each in artifacts
    ], kernels


_Linked = Tuple[Dict[str, Sequence[Link]], List[Kernel]]
_NONE: _Linked = ({}, [])


def _linked(
    ours: Sequence[Artifact],
    anchored: Anchored,
    sources: Sources,
    transformed: Mapping[Optional[str], TransformedFact],
    linked_graphs: LinkedGraphs,
) -> _Linked:
    """Return the links of the artifacts of one compilation, by artifact, and its kernels."""
    provenance, moves = anchored.provenance, anchored.moves
    links: Dict[str, Sequence[Link]] = {}
    kernels: List[Kernel] = []
    graphs = [artifact for artifact in ours if artifact.kind == "graph"]
    known = [provenance[each.id].nodes for each in graphs if each.id in provenance]
    outer = whole_stacks(iter(known), sources)
    for each in graphs:
        stacks = provenance[each.id].nodes if each.id in provenance else {}
        links[each.id] = each.links or linked_graphs.links_of(each, stacks, outer, moves.get(each.id))
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
    return links, kernels


def _with_modules(by_compile_id: Mapping[Optional[str], Sequence[Artifact]], anchored: Anchored) -> Iterator[Artifact]:
    """Yield the graphs whose modules are kept: the last of each compilation, forward and backward."""
    for ours in by_compile_id.values():
        known = [each for each in ours if each.id in anchored.provenance and anchored.provenance[each.id].modules]
        for backward in (True, False):
            side = [each for each in known if each.kind == "graph" and (each.backward is True) == backward]
            last = max((each.order for each in side), default=0)
            yield from (each for each in side if each.order == last)


def _nodes_for(module: Artifact, graphs: Sequence[Artifact], links: Mapping[str, Sequence[Link]]) -> NodePlaces:
    """Return the places of the nodes that a generated module names: by the last graph before it, and by the first of
    all."""
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
    """Return the links of transformed code; ``ours`` are the artifacts of its compilation.

    Linked are lines that are still the user's, calls of graphs (to all lines captured in them), and calls of resume
    functions (to the line where they continue).
    """
    by_line: Dict[int, Tuple[List[Place], List[str]]] = {}
    captured: Dict[str, Tuple[Place, ...]] = {}
    for graph in ours:
        if graph.stage == CAPTURED:
            places = union([link.places for link in links.get(graph.id, ())])
            captured.setdefault(_graph_name(graph), places)
    for number, line in enumerate((artifact.content or "").splitlines(), 1):
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
    """Return ``__compiled_fn_3`` of an artifact that is called ``Captured_Graph of __compiled_fn_3``."""
    return graph.title.rpartition(" of ")[2].split(" ")[0].rstrip(",")


def _resume_place(resume: Tuple[str, str, int], sources: Sources) -> Tuple[Place, ...]:
    name, path, first_line = resume
    at = (resumed(name) or ("", None))[1] or first_line
    place = sources.place(path, at)
    return () if place is None else (place,)
