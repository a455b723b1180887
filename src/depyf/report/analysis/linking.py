"""Link the lines of all artifacts of a run to the user's lines, and find the kernels and modules in them.

depyf's provenance events (stacks of graph nodes, launches of kernels) are assigned to artifacts first, by names.
"""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.base.quick_dataclass import replace
from depyf.diagnosis.guard_sources import module_path
from depyf.report.analysis.anchors import Anchored
from depyf.report.analysis.facts import KernelFact, LineOrigins, LineStack, TransformedFact
from depyf.report.analysis.graph_links import LinkedGraphs, places_of_names, union, whole_stacks
from depyf.report.analysis.in_parts import Parts
from depyf.report.analysis.kernels import NodePlaces, kernels_of
from depyf.report.analysis.sources import Sources
from depyf.report.model.run import Artifact, Link, ModuleKernel, ModulePart, Place
from depyf.torch_trace.events import Event
from depyf.torch_trace.provenance import (
    CAPTURED,
    GENERATED_LINES,
    KERNEL_LAUNCHES,
    NODE_STACKS,
    Launch,
    ModuleChain,
    Stack,
    generated_lines,
    kernel_launches,
    node_in,
    node_modules,
    node_stacks,
    quoted,
)
from depyf.torch_trace.resume_names import resumed
from depyf.torch_trace.tracebacks import Frame


def linked(
    artifacts: Sequence[Artifact],
    anchored: Anchored,
    sources: Sources,
    transformed: Mapping[Optional[str], TransformedFact],
    parts: Parts,
) -> Tuple[List[Artifact], List[ModuleKernel]]:
    """Return the artifacts with their links, in order, and the kernels in them. Links that an artifact has are kept."""
    links: Dict[str, Sequence[Link]] = {}
    kernels: List[ModuleKernel] = []
    graphs = LinkedGraphs(sources)
    by_compile_id: Dict[Optional[str], List[Artifact]] = {}
    for artifact in artifacts:
        by_compile_id.setdefault(artifact.compile_id, []).append(artifact)
    for ours in by_compile_id.values():
        # Compilations are independent: a text that can't be read costs the links of its own one.
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


_Linked = Tuple[Dict[str, Sequence[Link]], List[ModuleKernel]]
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
    kernels: List[ModuleKernel] = []
    graphs = [artifact for artifact in ours if artifact.kind == "graph"]
    known = [provenance[each.id].nodes for each in graphs if each.id in provenance]
    # A comment of torch names the innermost frame only; the whole stack is known where only one ends with it.
    outer = whole_stacks(iter(known), sources)
    for each in graphs:
        stacks = provenance[each.id].nodes if each.id in provenance else {}
        links[each.id] = each.links or linked_graphs.links_of(each, stacks, outer, moves.get(each.id))
    for each in ours:
        if each.kind == "kernels":
            # Nodes that the module names have the places that graphs of its side and piece, or of the whole, give them.
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
    # One name may stand for different nodes: ``add`` before and after a pass. So there are two orders of search.
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
        # ``__compiled_fn_1(x)``: all lines captured in that graph. ``__resume_at_30_2(x)``: the line where it goes on.
        for name in [*fact.graphs, *fact.resumes]:
            if f"{name}(" in line and not line.lstrip().startswith("#"):
                resume = fact.resumes.get(name)
                places = captured.get(name, ()) if resume is None else _resume_place(resume[0], sources)
                into = by_line.setdefault(number, ([], []))
                into[0].extend(places)
                into[1].append(name)
    path = fact.function[1]
    # All other lines: those that the decompiler took over from the user's file.
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


def module_parts(modules: Mapping[str, ModuleChain]) -> Tuple[ModulePart, ...]:
    """Return the modules of graph nodes, each once, and after the module around it."""
    numbers: Dict[ModuleChain, int] = {}
    nodes: List[List[str]] = []

    def number_of(chain: ModuleChain) -> Optional[int]:
        for length in range(1, len(chain) + 1):
            if chain[:length] not in numbers:
                numbers[chain[:length]] = len(numbers)
                nodes.append([])
        return numbers[chain] if chain else None

    for node, chain in modules.items():
        number = number_of(chain)
        if number is not None:
            nodes[number].append(node)
    return tuple(
        ModulePart(module_path(chain[-1][0]), chain[-1][1], numbers.get(chain[:-1]), tuple(nodes[number]))
        for chain, number in numbers.items()
    )


Code = Mapping[Frame, str]


def with_noted(artifacts: Sequence[Artifact], events: Sequence[Event]) -> Dict[str, LineOrigins]:
    """Return what the provenance events say about each artifact, by its id."""
    found: Dict[str, LineOrigins] = {}
    stacks: Dict[Tuple[Optional[str], str], List[_Noted]] = {}
    launches: Dict[Optional[str], List[Tuple[List[Launch], Code]]] = {}
    for event in events:
        if event.name == NODE_STACKS:
            stage, nodes = node_stacks(event)
            stacks.setdefault((event.compile_id, stage), []).append((nodes, quoted(event), node_modules(event)))
        elif event.name == KERNEL_LAUNCHES:
            launches.setdefault(event.compile_id, []).append((kernel_launches(event), quoted(event)))
        elif event.name == GENERATED_LINES:
            file, lines = generated_lines(event)
            found[file] = LineOrigins(lines=[LineStack(line, stack) for line, stack in lines])
    for artifact in artifacts:
        if artifact.kind == "graph":
            nodes, code, modules = _best_nodes(artifact, stacks.get((artifact.compile_id, artifact.stage), ()))
            if nodes or modules:
                found[artifact.id] = LineOrigins(nodes=nodes, code=code, modules=modules)
        elif artifact.kind == "kernels":
            listed, code = _take_launches(artifact, launches.get(artifact.compile_id, []))
            if listed:
                facts = [KernelFact(each.name, each.nodes, each.stacks, each.unfused) for each in listed]
                found[artifact.id] = replace(found.get(artifact.id, LineOrigins()), kernels=facts, code=code)
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
