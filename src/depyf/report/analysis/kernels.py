"""Find the kernels in an Inductor module: their lines, how they are launched, the user's lines that they compute."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field
from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass, replace
from depyf.report.analysis.facts import KernelFact, LineOrigins
from depyf.report.analysis.graph_links import union
from depyf.report.analysis.sources import Sources
from depyf.report.model.run import Artifact, Link, ModuleKernel, Place

_DEFINITION = regex(r"^(\w+) = (?:async_compile|_?\w*async_compile)\.(\w+)\(")
_EXTERN = regex(r"^\s+(?:\w+ = )?((?:extern_kernels|torch\.ops\.[\w.]+?|aten|inductor_ops|_quantized|prims)\.[\w.]+)\(")
_CALL = regex(r"^\s+(?:\w+ = )?(\w+)(?:\.run)?\(")
_NODES = regex(r"^\s*# (?:Topologically Sorted|Unsorted) Source Nodes: \[(.*?)\], Original ATen: \[(.*?)\]")
_FRAGMENT = regex(r"^\s*#\s+%(\w+) : .*= call_function\[")
_END_OF_RUNNER = regex(r"^(?:runner = |def (?:get_args|benchmark)|if __name__)")

_NO_KERNELS = frozenset({"torch.ops.aten.set_.source_Tensor", "extern_kernels.record_function"})


@dataclass(frozen=True)
class NodePlaces:
    """The places of graph nodes by name. Graphs of different stages use one name for different nodes: ``lowered``
    searches the graph that was lowered first, ``source`` the captured graph first, then the other stages.
    """

    lowered: Mapping[str, Tuple[Place, ...]]
    source: Mapping[str, Tuple[Place, ...]]


@dataclass(frozen=True)
class _Nodes:
    """Names of nodes in a comment; ``source``: they are nodes of the captured graph."""

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
    artifact: Artifact, known: Optional[LineOrigins], places_of_node: NodePlaces, sources: Sources
) -> Tuple[List[ModuleKernel], List[Link]]:
    """Return the kernels of a generated module and the links of its lines. ``known`` adds facts from the process that
    generated the module: the nodes that each launch computes, and torch's origins of lines."""
    text = artifact.content or ""
    module = _read(text)
    code = text.splitlines()
    facts = _by_name(known.kernels if known else ())
    lines = _LinePlaces(known, sources)
    kernels: Dict[str, ModuleKernel] = {}
    links: List[Link] = []
    found: List[ModuleKernel] = []
    for launch in module.launches:
        left = facts.get(_short(launch.name))
        # Facts of launches of one kernel are in the order of its launches.
        fact = left.pop(0) if left else None
        nodes = _Nodes(fact.nodes) if fact is not None else _reported(module, launch, first=launch.name not in kernels)
        # The user's lines: from the noted stacks, from the nodes in comments, and torch's own origin of the line.
        noted = [sources.places(stack) for stack in (fact.stacks if fact is not None else ())]
        places = union([*noted, *nodes.places(places_of_node), lines.at(launch.line)])
        links.append(Link(launch.line, launch.line, places, (launch.name, *nodes.names)))
        kernel = ModuleKernel(
            artifact=artifact.id,
            name=launch.name,
            compile_id=artifact.compile_id,
            backward=artifact.backward,
            extern=launch.extern,
            calls=(launch.line,),
            places=places,
            nodes=nodes.names,
            unfused=() if fact is None else fact.unfused,
        )
        # Each call of a library is a kernel of its own; launches of a generated kernel are added up.
        if launch.extern:
            found.append(kernel)
        elif launch.name in kernels:
            kernels[launch.name] = _joined(kernels[launch.name], kernel)
        else:
            kernels[launch.name] = kernel
    for name, (first, last) in module.definitions.items():
        # A definition that nothing launches is a kernel, too.
        kernel = kernels.get(name) or ModuleKernel(artifact.id, name, artifact.compile_id, artifact.backward)
        launched = launch_of(code[first - 1 : last], [code[line - 1] for line in kernel.calls])
        kernels[name] = kernel = replace(kernel, first=first, last=last, launch=launched)
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


def _joined(kernel: ModuleKernel, other: ModuleKernel) -> ModuleKernel:
    return replace(
        kernel,
        calls=(*kernel.calls, *other.calls),
        places=union([kernel.places, other.places]),
        nodes=tuple(dict.fromkeys([*kernel.nodes, *other.nodes])),
        unfused=tuple(dict.fromkeys([*kernel.unfused, *other.unfused])),
    )


def _by_name(facts: Sequence[KernelFact]) -> Dict[str, List[KernelFact]]:
    """Return what is known of the launches of each kernel, in their order."""
    found: Dict[str, List[KernelFact]] = {}
    for fact in facts:
        found.setdefault(_short(fact.name), []).append(fact)
    return found


def _short(name: str) -> str:
    """Return a short name: torch has ``torch.ops.aten.sort.stable`` in the code and ``aten.sort.stable`` elsewhere."""
    return name[len("torch.ops.") :] if name.startswith("torch.ops.") else name


class _LinePlaces:
    """torch's origins of the lines of a module; a line without an origin has the nearest one above."""

    def __init__(self, known: Optional[LineOrigins], sources: Sources) -> None:
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
        # The comments above a statement are about it:
        #   # Topologically Sorted Source Nodes: [sin, add], Original ATen: [aten.sin, aten.add]
        #   triton_poi_fused_add_sin_0 = async_compile.triton(...
        if line.lstrip().startswith("#"):
            comment_start = comment_start if comment else number
            comment.append(line)
        elif definition is not None:
            end = _end_of_definition(lines, index)
            module.definitions[definition.group(1)] = (comment_start if comment else number, end + 1)
            module.nodes[definition.group(1)] = _nodes_in(comment)
            comment = []
            index = end
        # Below are benchmarks, which launch kernels again.
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
    """Return the graph nodes that comments name: nodes of the lowered graph if these are listed."""
    # ``#   %add : [num_users=1] = call_function[target=...]``: the nodes of the graph that was lowered. Else the nodes
    # of the captured graph: ``# Topologically Sorted Source Nodes: [h, relu], ...``.
    fragment = [match.group(1) for match in map(_FRAGMENT.match, comment) if match is not None]
    if fragment:
        return _Nodes(tuple(dict.fromkeys(fragment)))
    return _Nodes(tuple(dict.fromkeys(_source_nodes(comment))), source=True)


def _source_nodes(comment: Sequence[str]) -> Iterator[str]:
    for line in comment:
        match = _NODES.match(line)
        if match is not None:
            yield from (name.strip() for name in match.group(1).split(",") if name.strip())


_HEURISTIC = regex(r"@triton_heuristics\.(\w+)\(")
_IN_DECORATOR = regex(
    r"(?:\b(size_hints)=(\{[^}]*\}|\[[^\]]*\])|\b(reduction_hint)=ReductionHint\.(\w+)|'(grid_type)': '(\w+)'"
    r"|\b(num_warps|num_stages|num_ctas)=(\d+))"
)
_BLOCK = regex(r"^\s+(\w*BLOCK\w*)\s*:\s*tl\.constexpr = (\d+)$")
_RUN = regex(r"\.run\((.*?)(?:, grid=(.*?))?, stream=")
_SIZE = regex(r"\d+|[us]\d+|\w*numel\w*")

_PARALLEL = regex(r"#pragma omp parallel(?: num_threads\((\d+)\))?\s*$")
_FOR = regex(r"#pragma omp for\b(.*)$")
_LOOP = regex(
    r"for\s*\(\s*(?:int64_t|long|int) (\w+)=(?:static_cast<\w+>\()?(\w+)\)?; "
    r"\1<(?:static_cast<\w+>\()?(.+?)\)?; \1\+=(?:static_cast<\w+>\()?(.+?)\)?\)\s*\{?$"
)
_LONG = regex(r"(?<=\d)L\b")


def launch_of(code: Sequence[str], calls: Iterable[str]) -> Mapping[str, str]:
    """Return facts about the launch of a kernel by name, from the lines of its code and of its calls."""
    if any("@triton_heuristics." in line for line in code):
        return _triton(code, calls)
    return _cpp(code)


def _triton(code: Sequence[str], calls: Iterable[str]) -> Dict[str, str]:
    found: Dict[str, str] = {}
    for line in code:
        # ``@triton_heuristics.pointwise(size_hints={'x': 1024}, ...)``, ``XBLOCK: tl.constexpr = 64``
        heuristic, block = _HEURISTIC.search(line), _BLOCK.match(line)
        if heuristic is not None:
            found["heuristic"] = heuristic.group(1)
        elif block is not None:
            found.setdefault(block.group(1), block.group(2))
        if not line.startswith("def "):
            for match in _IN_DECORATOR.finditer(line):
                name, value = (each for each in match.groups() if each is not None)
                found.setdefault(name, value)
    for line in calls:
        # ``triton_poi_fused_0.run(buf0, 1024, grid=grid(1024), stream=stream0)``: of the arguments only the sizes
        run = _RUN.search(line)
        if run is not None:
            sizes = [each.strip() for each in run.group(1).split(",") if _SIZE.fullmatch(each.strip())]
            _add_fact(found, "launched for", ", ".join(sizes))
            _add_fact(found, "grid", run.group(2) or "")
    return found


def _cpp(code: Sequence[str]) -> Dict[str, str]:
    found: Dict[str, str] = {}
    loops: List[str] = []
    for line in code:
        # ``#pragma omp parallel num_threads(8)``, ``#pragma omp for``, ``for(int64_t x0=0L; x0<1024L; x0+=16L)``
        parallel, shared, loop = _PARALLEL.search(line), _FOR.search(line), _LOOP.search(line.strip())
        if parallel is not None:
            found["threads"] = parallel.group(1) or "of the process"
        elif shared is not None:
            _add_fact(found, "parallel loops", shared.group(1).strip() or "one")
        elif loop is not None:
            name, start, end, step = (_LONG.sub("", each) for each in loop.groups())
            loops.append(f"{name} {start} to {end}" + (f" by {step}" if step != "1" else ""))
    if loops:
        found["loops"] = ", ".join(loops)
    if loops and "threads" not in found:
        found["threads"] = "1"
    return found


def _add_fact(found: Dict[str, str], name: str, value: str) -> None:
    if value and value not in found.get(name, "").split("; "):
        found[name] = f"{found[name]}; {value}" if name in found else value
