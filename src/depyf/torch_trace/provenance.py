"""depyf's own events from compile time: the full stacks of graph nodes, and what kernels compute. torch's texts name
only the innermost frame. These events go through the same stream as torch's, so that they are stored beside warm caches
as well.
"""

from __future__ import annotations

import json
import time
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass
from depyf.torch_trace.events import Event
from depyf.torch_trace.json_text import parsed
from depyf.torch_trace.stages import Stage
from depyf.torch_trace.tracebacks import Frame, code_of, frames_of

NODE_STACKS = "depyf_node_stacks"
"""Of one graph: the frames of each node, by name. It follows the event with the graph's text."""

CAPTURED = Stage.CAPTURED.value
"""The stage whose graph is always of this run, even with warm caches."""

KERNEL_LAUNCHES = "depyf_kernel_launches"
"""Of one generated module: what each launch computes, in their order. It follows ``inductor_output_code``."""

GENERATED_LINES = "depyf_generated_lines"
"""Of one generated module: the stack of the code from each line on to the next, as Inductor's map of lines has it."""

Stack = Tuple[Frame, ...]

UnfusedLaunches = Tuple[int, Sequence[str], int, Sequence[str], str]
"""Two parts of a module that Inductor has not fused: of each the position of the launch and the graph nodes; PyTorch's
reason."""

Unfused = Tuple[str, Tuple[str, ...], str, Tuple[str, ...], str]
"""The same with the names of the kernels."""

_NO_MODULES: Mapping[str, Tuple[Tuple[str, str], ...]] = {}

_NO_INPUTS: Mapping[str, str] = {}

_NODE = regex(r"^\s+(\w+)(?:\s*:\s*(?:\"[^\"]*\"|'[^']*'|[\w.\[\], ]+?))?\s*= ")


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel: its name, the graph nodes that it computes, and the stacks that they come from.

    ``unfused`` are the pairs that it is in of which Inductor has made no common kernel."""

    name: str
    nodes: Tuple[str, ...]
    stacks: Tuple[Stack, ...]
    unfused: Tuple[Unfused, ...] = ()


def node_in(line: str) -> Optional[str]:
    """Return the graph node that a line of a graph's text computes; ``None`` for other lines."""
    match = _NODE.match(line)
    return None if match is None else match.group(1)


class Frames:
    """A table of frames, so that a stack is a short list of numbers; stacks as texts are read once.

    The text of their lines is kept, too: line numbers in a cache belong to the run that filled the cache.
    """

    def __init__(self) -> None:
        self._numbers: Dict[Frame, int] = {}
        self._parsed: Dict[str, List[int]] = {}
        self._code: Dict[Frame, str] = {}

    def numbers(self, traceback: str) -> List[int]:
        """Return the numbers of the frames in a text of the form of Python's tracebacks."""
        if traceback not in self._parsed:
            frames = frames_of(traceback)
            self._code.update(code_of(traceback))
            self._parsed[traceback] = [self._numbers.setdefault(frame, len(self._numbers)) for frame in frames]
        return self._parsed[traceback]

    def table(self) -> List[Frame]:
        return list(self._numbers)

    def code(self) -> List[Optional[str]]:
        """Return the source lines of the table's frames, None if they are not quoted."""
        return [self._code.get(frame) for frame in self._numbers]


ModuleChain = Tuple[Tuple[str, str], ...]
"""The modules that a node was called in, outermost first: PyTorch's path of each, and the name of its class."""


def node_stacks_event(
    event: Event,
    stage: str,
    tracebacks: Mapping[str, str],
    modules: Mapping[str, ModuleChain] = _NO_MODULES,
    inputs: Mapping[str, str] = _NO_INPUTS,
) -> Event:
    """Return the event that follows ``event``, which brought the graph of that stage; ``modules`` are by node,
    ``inputs`` are the nodes of inputs by what Dynamo calls them (``L['x']``).
    """
    frames = Frames()
    nodes = {name: frames.numbers(traceback) for name, traceback in tracebacks.items()}
    data = {"stage": stage, "frames": frames.table(), "code": frames.code(), "nodes": nodes}
    # Chains of modules are a table, too: all nodes of a layer have one.
    chains: Dict[ModuleChain, int] = {}
    of = {name: chains.setdefault(chain, len(chains)) for name, chain in modules.items() if chain}
    if of:
        data["modules"] = {"chains": list(chains), "of": of}
    if inputs:
        data["inputs"] = dict(inputs)
    payload = json.dumps(data)
    return Event(NODE_STACKS, event.compile_id, event.attempt, {}, payload, event.created)


def kernel_launches_event(
    event: Event, launches: Sequence[Tuple[str, Sequence[str], Sequence[str]]], unfused: Sequence[UnfusedLaunches] = ()
) -> Event:
    """Return the event that follows ``event``, which brought a generated module; launches are kernel, nodes,
    tracebacks. ``unfused`` are pairs of these."""
    frames = Frames()
    listed = [[name, list(nodes), [frames.numbers(each) for each in stacks]] for name, nodes, stacks in launches]
    data = {"frames": frames.table(), "code": frames.code(), "launches": listed}
    if unfused:
        data["unfused"] = [list(each) for each in unfused]
    payload = json.dumps(data)
    return Event(KERNEL_LAUNCHES, event.compile_id, event.attempt, {}, payload, event.created)


def generated_lines_event(compile_id: Optional[str], file: str, lines: Sequence[Tuple[int, str]]) -> Event:
    """Return the event about the module in the artifact ``file``; ``lines`` are line numbers and tracebacks."""
    frames = Frames()
    listed = [[line, frames.numbers(traceback)] for line, traceback in lines]
    payload = json.dumps({"file": file, "frames": frames.table(), "lines": listed})
    return Event(GENERATED_LINES, compile_id, 0, {}, payload, time.time())


def node_stacks(event: Event) -> Tuple[str, Dict[str, Stack]]:
    """Return the stage of such an event, and the stacks of its nodes, outermost frame first."""
    data = parsed(event.payload or "{}")
    table = _table(data)
    stacks: Dict[Tuple[int, ...], Stack] = {}  # many nodes have one
    found = {}
    for name, numbers in data.get("nodes", {}).items():
        key = tuple(numbers)
        stack = stacks.get(key)
        if stack is None:
            stack = stacks[key] = _stack(key, table)
        found[name] = stack
    return str(data.get("stage")), found


def input_stacks(event: Event) -> Dict[str, Stack]:
    """Return the stacks of the inputs of the graph in such an event, by what Dynamo calls them."""
    inputs = parsed(event.payload or "{}").get("inputs")
    if not isinstance(inputs, dict) or not inputs:
        return {}
    _, stacks = node_stacks(event)
    return {str(name): stacks[str(node)] for name, node in inputs.items() if str(node) in stacks}


def node_modules(event: Event) -> Dict[str, ModuleChain]:
    """Return the modules of the nodes in such an event, by node; empty in those that older versions of depyf kept."""
    data = parsed(event.payload or "{}").get("modules") or {}
    chains = [tuple((str(path), str(kind)) for path, kind in chain) for chain in data.get("chains", ())]
    return {str(name): chains[number] for name, number in data.get("of", {}).items()}


def kernel_launches(event: Event) -> List[Launch]:
    """Return the data of such an event about each launch."""
    data = parsed(event.payload or "{}")
    table = _table(data)
    launches = data.get("launches", ())
    found = []
    for first, nodes, second, others, reason in data.get("unfused", ()):
        pair = str(launches[first][0]), tuple(nodes), str(launches[second][0]), tuple(others), str(reason)
        found.append(((first, second), pair))
    return [
        Launch(
            str(name),
            tuple(nodes),
            tuple(_stack(numbers, table) for numbers in stacks),
            tuple(pair for positions, pair in found if number in positions),
        )
        for number, (name, nodes, stacks) in enumerate(launches)
    ]


def generated_lines(event: Event) -> Tuple[str, List[Tuple[int, Stack]]]:
    """Return the artifact of such an event, and its lines with their stacks."""
    data = parsed(event.payload or "{}")
    table = _table(data)
    return str(data.get("file")), [(int(line), _stack(numbers, table)) for line, numbers in data.get("lines", ())]


def quoted(event: Event) -> Dict[Frame, str]:
    """Return the source lines of the frames in either event, as far as it quotes them."""
    data = parsed(event.payload or "{}")
    return {frame: str(code) for frame, code in zip(_table(data), data.get("code", ())) if code}


def _table(data: Mapping[str, Any]) -> List[Frame]:
    return [(str(path), int(line), str(name)) for path, line, name in data.get("frames", ())]


def _stack(numbers: Sequence[int], table: Sequence[Frame]) -> Stack:
    return tuple(table[number] for number in numbers)
