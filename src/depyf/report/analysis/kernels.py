"""Find the kernels in an Inductor module: their lines, their launches, and the lines that they compute."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.lazy_pattern import re_compile
from depyf.quick_dataclass import dataclass, replace
from depyf.report.analysis.facts import KernelFact, Provenance
from depyf.report.analysis.graph_links import union
from depyf.report.analysis.launches import launch_of
from depyf.report.analysis.sources import Sources
from depyf.report.model.run import Artifact, Kernel, Link, Place

_DEFINITION = re_compile(r"^(\w+) = (?:async_compile|_?\w*async_compile)\.(\w+)\(")
_EXTERN = re_compile(
    r"^\s+(?:\w+ = )?((?:extern_kernels|torch\.ops\.[\w.]+?|aten|inductor_ops|_quantized|prims)\.[\w.]+)\("
)
_CALL = re_compile(r"^\s+(?:\w+ = )?(\w+)(?:\.run)?\(")
_NODES = re_compile(r"^\s*# (?:Topologically Sorted|Unsorted) Source Nodes: \[(.*?)\], Original ATen: \[(.*?)\]")
_FRAGMENT = re_compile(r"^\s*#\s+%(\w+) : .*= call_function\[")
_END_OF_RUNNER = re_compile(r"^(?:runner = |def (?:get_args|benchmark)|if __name__)")

_NO_KERNELS = frozenset({"torch.ops.aten.set_.source_Tensor", "extern_kernels.record_function"})


@dataclass(frozen=True)
class NodePlaces:
    """The places of graph nodes by name. Graphs of different stages use one name for different nodes: ``lowered`` are
    those of the graph that was lowered, ``source`` those of the captured graph, each with other stages behind it.
    """

    lowered: Mapping[str, Tuple[Place, ...]]
    source: Mapping[str, Tuple[Place, ...]]


@dataclass(frozen=True)
class _Nodes:
    """Names of nodes in a comment, and whether they are those of the captured graph."""

    names: Tuple[str, ...] = ()
    source: bool = False

    def places(self, known: NodePlaces) -> List[Tuple[Place, ...]]:
        by_name = known.source if self.source else known.lowered
        return [by_name.get(name, ()) for name in self.names]


@dataclass
class _Launch:
    name: str
    line: int
    extern: bool
    nodes: _Nodes


@dataclass
class _Module:
    definitions: Dict[str, Tuple[int, int]] = field(default_factory=dict)
    launches: List[_Launch] = field(default_factory=list)
    nodes: Dict[str, _Nodes] = field(default_factory=dict)
    """Of defined kernels, from the comments above them, which are about the first launch."""


def kernels_of(
    artifact: Artifact, known: Optional[Provenance], places_of_node: NodePlaces, sources: Sources
) -> Tuple[List[Kernel], List[Link]]:
    """Return the kernels of a generated module and the links of its lines. ``known`` has further facts of the process
    that generated it: what each launch computes, and torch's origins of its lines."""
    text = artifact.content or ""
    module = _read(text)
    code = text.splitlines()
    facts = _by_name(known.kernels if known else ())
    lines = _LinePlaces(known, sources)
    kernels: Dict[str, Kernel] = {}
    links: List[Link] = []
    found: List[Kernel] = []
    for launch in module.launches:
        fact = _next(facts, launch.name)
        nodes = _Nodes(fact.nodes) if fact is not None else _reported(module, launch, first=launch.name not in kernels)
        places = union(
            [
                *(sources.places(stack) for stack in (fact.stacks if fact is not None else ())),
                *nodes.places(places_of_node),
                lines.at(launch.line),
            ]
        )
        links.append(Link(launch.line, launch.line, places, (launch.name, *nodes.names)))
        kernel = Kernel(
            artifact=artifact.id,
            name=launch.name,
            compile_id=artifact.compile_id,
            backward=artifact.backward,
            extern=launch.extern,
            calls=(launch.line,),
            places=places,
            nodes=nodes.names,
        )
        if launch.extern:
            found.append(kernel)
        elif launch.name in kernels:
            kernels[launch.name] = _joined(kernels[launch.name], kernel)
        else:
            kernels[launch.name] = kernel
    for name, (first, last) in module.definitions.items():
        kernel = kernels.get(name) or Kernel(artifact.id, name, artifact.compile_id, artifact.backward)
        kernels[name] = kernel = replace(kernel, first=first, last=last)
        launched = launch_of(code[first - 1 : last], [code[line - 1] for line in kernel.calls])
        kernels[name] = kernel = replace(kernel, launch=launched)
        links.append(Link(first, last, kernel.places, (name, *kernel.nodes)))
    order = [*kernels.values(), *found]
    order.sort(key=lambda kernel: kernel.calls[:1] or (kernel.first,))
    return order, sorted((link for link in links if link.places or link.names), key=lambda link: link.first)


def _reported(module: _Module, launch: _Launch, *, first: bool) -> _Nodes:
    """Return the nodes that comments name for a launch. For the first launch these are the comments above the kernel,
    if they are of the lowered graph; else those above the launch."""
    above = module.nodes.get(launch.name, _Nodes())
    if launch.nodes.names and not (first and above.names and not above.source):
        return launch.nodes
    return above


def _joined(kernel: Kernel, other: Kernel) -> Kernel:
    return replace(
        kernel,
        calls=(*kernel.calls, *other.calls),
        places=union([kernel.places, other.places]),
        nodes=tuple(dict.fromkeys([*kernel.nodes, *other.nodes])),
    )


def _by_name(facts: Sequence[KernelFact]) -> Dict[str, List[KernelFact]]:
    """Return what is known of the launches of each kernel, in their order."""
    found: Dict[str, List[KernelFact]] = {}
    for fact in facts:
        found.setdefault(_short(fact.name), []).append(fact)
    return found


def _next(facts: Dict[str, List[KernelFact]], name: str) -> Optional[KernelFact]:
    left = facts.get(_short(name))
    return left.pop(0) if left else None


def _short(name: str) -> str:
    """Return a short name: torch has ``torch.ops.aten.sort.stable`` in the code and ``aten.sort.stable`` elsewhere."""
    return name[len("torch.ops.") :] if name.startswith("torch.ops.") else name


class _LinePlaces:
    """Torch's origin of a line of the module: that of the last line at or before it that has one."""

    def __init__(self, known: Optional[Provenance], sources: Sources) -> None:
        entries = sorted(known.lines, key=lambda entry: entry.line) if known else []
        self._lines = [entry.line for entry in entries]
        self._places = [sources.places(entry.stack) for entry in entries]

    def at(self, line: int) -> Tuple[Place, ...]:
        index = bisect_right(self._lines, line)
        return self._places[index - 1] if index else ()


def _read(text: str) -> _Module:
    module = _Module()
    lines = text.splitlines()
    comment: List[str] = []
    comment_start = 0
    index = 0
    while index < len(lines):
        line = lines[index]
        number = index + 1
        definition = _DEFINITION.match(line)
        if line.lstrip().startswith("#"):
            comment_start = comment_start if comment else number
            comment.append(line)
        elif definition is not None:
            end = _end_of_definition(lines, index)
            module.definitions[definition.group(1)] = (comment_start if comment else number, end + 1)
            module.nodes[definition.group(1)] = _nodes_in(comment)
            comment = []
            index = end
        elif _END_OF_RUNNER.match(line):
            break
        else:
            launch = _launch(line, number, module, comment)
            if launch is not None:
                module.launches.append(launch)
            if launch is not None or not line.strip():
                comment = []
        index += 1
    return module


def _launch(line: str, number: int, module: _Module, comment: Sequence[str]) -> Optional[_Launch]:
    extern = _EXTERN.match(line)
    if extern is not None and extern.group(1) not in _NO_KERNELS:
        return _Launch(extern.group(1), number, True, _nodes_in(comment))
    call = _CALL.match(line)
    if call is not None and call.group(1) in module.definitions:
        return _Launch(call.group(1), number, False, _nodes_in(comment))
    return None


def _end_of_definition(lines: Sequence[str], start: int) -> int:
    """Return the index of the last line of a definition whose code is a string over several lines."""
    if lines[start].count("'''") != 1:
        return start
    for index in range(start + 1, len(lines)):
        if "'''" in lines[index]:
            return index
    return start


def _nodes_in(comment: Sequence[str]) -> _Nodes:
    """Return the graph nodes that comments name: those of the graph that was lowered, if they are listed."""
    fragment = [match.group(1) for match in map(_FRAGMENT.match, comment) if match is not None]
    if fragment:
        return _Nodes(tuple(dict.fromkeys(fragment)))
    return _Nodes(tuple(dict.fromkeys(_source_nodes(comment))), source=True)


def _source_nodes(comment: Sequence[str]) -> Iterator[str]:
    for line in comment:
        match = _NODES.match(line)
        if match is not None:
            yield from (name.strip() for name in match.group(1).split(",") if name.strip())
