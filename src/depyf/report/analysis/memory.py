"""The memory of graphs and of the code that Inductor generates for them, from their texts.

Counted are tensors between their first and last use, as the graph run operation by operation has them. What a kernel
needs inside, and how an allocator rounds, is not known here.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from depyf.base.quick_dataclass import replace
from depyf.base.stored_text import identity_of
from depyf.report.analysis.graph_memory import GraphReading, read_graph
from depyf.report.analysis.ledger import Ledger, by_size
from depyf.report.analysis.module_memory import read_module
from depyf.report.model.memory import Memory
from depyf.report.model.run import Artifact
from depyf.torch_trace.events import Event
from depyf.torch_trace.stages import Stage

_MOST = 10
"""Keep at most this many of the tensors alive at the peak."""

_MOST_SAVED = 100

_Side = Tuple[str, bool]
"""The piece, and whether it is the backward."""


def with_memory(artifacts: Sequence[Artifact], events: Iterable[Event]) -> List[Artifact]:
    """Return the artifacts; forward and backward graphs, and the modules generated for them, with their memory."""
    sizes = _sizes_of_symbols(events)
    by_compile_id: Dict[Optional[str], List[Artifact]] = {}
    for each in artifacts:
        by_compile_id.setdefault(each.compile_id, []).append(each)
    found: Dict[str, Memory] = {}
    known: Dict[Tuple[object, ...], List[Optional[Memory]]] = {}
    for compile_id, ours in by_compile_id.items():
        symbols = sizes.get(compile_id, {})
        counted = [each for each in ours if each.kind in ("graph", "kernels")]
        key = (*symbols.items(), *(_identity(each) for each in counted))
        if key not in known:  # layers that are compiled one by one have the same texts
            made = _of_compilation(counted, symbols)
            known[key] = [made.get(each.id) for each in counted]
        found.update((each.id, memory) for each, memory in zip(counted, known[key]) if memory is not None)
    return [replace(each, memory=found[each.id]) if each.id in found else each for each in artifacts]


def _identity(artifact: Artifact) -> Tuple[object, ...]:
    """Return the key of an artifact: artifacts with equal keys have equal memory."""
    text = identity_of(artifact.text) or object()  # nothing else is equal to it
    return artifact.kind, artifact.stage, artifact.piece, artifact.backward, text


def _of_compilation(artifacts: Sequence[Artifact], symbols: Mapping[str, int]) -> Dict[str, Memory]:
    """Return the memory of the graphs and modules of one compilation, by artifact."""
    read: Dict[_Side, List[Tuple[str, GraphReading]]] = {}
    found: Dict[str, Memory] = {}
    forwards = [each for each in artifacts if each.kind == "graph" and each.stage == Stage.FORWARD.value]
    backwards = [each for each in artifacts if each.kind == "graph" and each.stage == Stage.BACKWARD.value]
    for each in (*forwards, *backwards):
        backward = each.stage == Stage.BACKWARD.value
        done = read.setdefault((each.piece, backward), [])
        before = read.get((each.piece, False), [])
        # The n-th backward of a piece belongs to the n-th forward.
        forward = before[len(done)] if backward and len(done) < len(before) else None
        graph = read_graph(each.content or "", symbols, forward and forward[1], backward=backward)
        if graph is not None:
            done.append((each.id, graph))
            found[each.id] = _summary(graph.ledger, symbols)
            if forward is not None:
                found[forward[0]] = _with_saved(found[forward[0]], forward[1], graph)
    for each in artifacts:
        # A module does not print the sizes of its inputs: its graph has them, if the side has one graph only.
        graphs = read.get((each.piece, each.backward is True), [])
        if each.kind == "kernels" and len(graphs) == 1:
            module = read_module(each.content or "", graphs[0][1].inputs, symbols, backward=each.backward is True)
            if module is not None:
                found[each.id] = _summary(module, symbols)
    return found


def _with_saved(memory: Memory, forward: GraphReading, backward: GraphReading) -> Memory:
    """Return the memory of a forward, with what it keeps for its backward: what it returns under the names of the
    backward's inputs."""
    outputs = {name: tensor for name, tensor in forward.outputs.items() if name in backward.inputs and tensor.bytes}
    saved = by_size({tensor.name: tensor for tensor in outputs.values()}.values())
    kept = sum(each.bytes for each in saved if not each.input)
    return replace(memory, saved=tuple(saved[:_MOST_SAVED]), saved_bytes=kept)


def _summary(ledger: Ledger, symbols: Mapping[str, int]) -> Memory:
    peak = ledger.peak()
    return Memory(
        peak=ledger.moments[peak].bytes,
        line=ledger.moments[peak].line,
        inputs=ledger.inputs,
        largest=tuple(ledger.alive_at(peak)[:_MOST]),
        uncounted=ledger.uncounted,
        sizes=symbols,
    )


def _sizes_of_symbols(events: Iterable[Event]) -> Dict[Optional[str], Dict[str, int]]:
    """Return the values that each compilation saw of its symbols."""
    found: Dict[Optional[str], Dict[str, int]] = {}
    for event in events:
        if event.name == "create_symbol" and isinstance(event.meta, Mapping):
            value = str(event.meta.get("val"))
            if value.isdigit() and len(value) < 20:
                found.setdefault(event.compile_id, {})[str(event.meta.get("symbol"))] = int(value)
    return found
