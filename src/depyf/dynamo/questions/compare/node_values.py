"""Replay a graph in order, and keep a copy of each node's value from the moment when it was made.

What a node gave is not what its tensor holds at the end: an input, buffer or cache may be written to after it was
viewed. So values are copied as they are made, results are read at the end, as compiled code returns them, and views
are told from computations. The copies are bounded; the nodes whose values are left out are counted.
"""

from __future__ import annotations

import sys
from dataclasses import field
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.hooks import private_names, torch_names
from depyf.dynamo.hooks.pytree import leaves
from depyf.dynamo.observe.graph_facts import output_nodes, placeholders
from depyf.dynamo.observe.replay import writes_in_place
from depyf.dynamo.questions.compare.recorded import kept
from depyf.dynamo.questions.compare.wide import in_float64
from depyf.dynamo.scripts.tensors import is_tensor

if TYPE_CHECKING:
    import torch

MOST_BYTES = 2 << 30
"""How many bytes of values one replay of a graph keeps, in the types of the graph and again in float64."""


class Outcome:
    """The values of one replay: ``nodes`` as each was made, ``results`` and ``inputs`` as they are at the end."""

    def __init__(self) -> None:
        self.nodes: Dict[torch.fx.Node, object] = {}
        self.results: List[object] = []
        self.inputs: List[object] = []
        self.views: Dict[torch.fx.Node, torch.fx.Node] = {}
        self.rewritten: Set[torch.fx.Node] = set()
        self.late: Dict[torch.fx.Node, List[torch.fx.Node]] = {}
        self.left_out = 0


@dataclass
class NodeValues:
    """The values of all nodes of a graph: ``nodes`` in the types of the graph, ``wide`` in float64 (empty if the graph
    can't run in float64). ``results`` and ``written`` (the inputs) are values at the end, each with its reference.
    ``views`` are the nodes that share the memory of an operand, each with it, and do not write to it. ``rewritten`` are
    the nodes whose memory is written to later. ``late`` are the nodes that compute, with their operands whose memory
    is. Of ``left_out`` nodes no value is kept.
    """

    module: torch.fx.GraphModule
    nodes: Dict[torch.fx.Node, object]
    wide: Dict[torch.fx.Node, object]
    results: List[Tuple[object, object]] = field(default_factory=list)
    written: List[Tuple[object, object]] = field(default_factory=list)
    views: Mapping[torch.fx.Node, torch.fx.Node] = field(default_factory=dict)
    rewritten: Set[torch.fx.Node] = field(default_factory=set)
    late: Mapping[torch.fx.Node, Sequence[torch.fx.Node]] = field(default_factory=dict)
    left_out: int = 0

    @property
    def outputs(self) -> List[Tuple[Optional[torch.fx.Node], object, object]]:
        """Node, value at the end, and reference of each output; the node is None for constants."""
        from torch import fx

        nodes = output_nodes(self.module.graph)
        known = [each if isinstance(each, fx.Node) else None for each in nodes]
        return [(node, *pair) for node, pair in zip(known, self.results)]

    @property
    def inputs(self) -> List[Tuple[torch.fx.Node, object, object]]:
        """Node, value at the end, and reference of each input."""
        return [(node, *pair) for node, pair in zip(placeholders(self.module.graph), self.written)]


def interpreted(
    module: torch.fx.GraphModule,
    inputs: Sequence[object],
    rng_state: Optional[torch.Tensor],
    wanted: Optional[Set[torch.fx.Node]] = None,
) -> NodeValues:
    """Return the values of the graph's nodes (of those ``wanted`` only) for these inputs, which are not changed."""
    import torch

    plain = _interpret(module, kept(inputs), rng_state, wanted)
    # Random numbers are drawn in the type of the original run: another type draws others.
    narrow = next((v.dtype for v in inputs if isinstance(v, torch.Tensor) and v.dtype.is_floating_point), torch.float32)
    try:
        with in_float64(narrow):
            wide = _interpret(module, [_widened(value) for value in inputs], rng_state, wanted)
    except synchronous():  # values without float64 have no reference
        wide = Outcome()
    return NodeValues(
        module,
        plain.nodes,
        wide.nodes,
        _with_references(plain.results, wide.results),
        _with_references(plain.inputs, wide.inputs),
        plain.views,
        plain.rewritten,
        plain.late,
        max(plain.left_out, wide.left_out),
    )


def writes(node: torch.fx.Node) -> bool:
    """Return whether a node writes to one of its operands, by its schema, or by its name in Dynamo's graph."""
    if node.op not in ("call_function", "call_method"):
        return False
    schema = private_names.SCHEMA.of(node.target)
    if schema is not None:
        return bool(schema.is_mutable)
    return writes_in_place(node) or "out" in node.kwargs or node.kwargs.get("inplace") is True


class _Memory:
    """Which nodes share memory, and which of them something writes to later."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._holders: Dict[object, List[torch.fx.Node]] = {}
        self._readers: Dict[object, List[Tuple[torch.fx.Node, torch.fx.Node]]] = {}

    def note(self, node: torch.fx.Node, value: object, operands: Mapping[torch.fx.Node, object]) -> None:
        """Note a node that has run, with its value and those of its operands."""
        addresses = {each: storage_of(operand) for each, operand in operands.items()}
        if writes(node):
            for each in written_operands(node):
                for other in self._holders.pop(addresses.get(each), ()):
                    self._outcome.rewritten.add(other)
                for reader, operand in self._readers.pop(addresses.get(each), ()):
                    self._outcome.late.setdefault(reader, []).append(operand)
        own = storage_of(value)
        if own is not None:
            self._holders.setdefault(own, []).append(node)
        if node.op.startswith("call") and own is not None and own in addresses.values() and not writes(node):
            self._outcome.views[node] = next(each for each, address in addresses.items() if address == own)
        elif node.op.startswith("call") and not writes(node):
            for each, address in addresses.items():
                if address is not None:
                    self._readers.setdefault(address, []).append((node, each))


def written_operands(node: torch.fx.Node) -> List[torch.fx.Node]:
    """Return the operands that a node writes to."""
    schema = private_names.SCHEMA.of(node.target)
    if schema is None:
        given = node.kwargs.get("out")
        return _nodes(given if given is not None else (node.args or (None,))[0])
    found: List[torch.fx.Node] = []
    for position, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = node.args[position] if position < len(node.args) else node.kwargs.get(argument.name)
            found += _nodes(value)
    return found


def _nodes(argument: object) -> List[torch.fx.Node]:
    from torch import fx

    return [each for each in leaves(argument) if isinstance(each, fx.Node)]


def _with_references(values: List[object], wide: List[object]) -> List[Tuple[object, object]]:
    return list(zip(values, wide if len(wide) == len(values) else [None] * len(values)))


def _widened(value: object) -> object:
    import torch

    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().to(torch.float64) if value.dtype.is_floating_point else value.detach().clone()


def _interpret(
    module: torch.fx.GraphModule,
    inputs: List[object],
    rng_state: Optional[torch.Tensor],
    wanted: Optional[Set[torch.fx.Node]],
) -> Outcome:
    import torch

    interpreter = torch_names.module("torch.fx").Interpreter
    outcome = Outcome()
    view, reshape = torch.ops.aten.view.default, torch.ops.aten.reshape.default
    memory = _Memory(outcome)
    room = [MOST_BYTES if wanted is None else sys.maxsize]

    class Noting(interpreter):  # type: ignore[misc, valid-type]
        def call_function(self, target: object, args: Any, kwargs: Any) -> object:
            try:
                return super().call_function(target, args, kwargs)
            except synchronous(RuntimeError):
                # Strides that were planned for compiled convolutions are not those that eager mode gives.
                if target is not view:
                    raise
                return reshape(*args, **kwargs)

        def run_node(self, node: torch.fx.Node) -> object:
            operands = {each: self.env.get(each) for each in node.all_input_nodes}
            value = super().run_node(node)
            memory.note(node, value, operands)
            if node.op == "output" or (wanted is not None and node not in wanted):
                return value
            if isinstance(value, torch.Tensor):
                room[0] -= value.numel() * value.element_size()
                if room[0] < 0:
                    outcome.left_out += 1
                    return value
            outcome.nodes[node] = value.detach().clone() if isinstance(value, torch.Tensor) else value
            return value

    with torch.random.fork_rng(devices=[]), torch.no_grad():
        if rng_state is not None:
            torch.set_rng_state(rng_state)
        returned = Noting(module).run(*inputs)
        outcome.results = kept(leaves(returned))
        outcome.inputs = inputs
    return outcome


def storage_of(value: object) -> Optional[object]:
    """Return what tells the memory of a tensor from that of others, None without any."""
    if not is_tensor(value):
        return None
    try:
        storage = value.untyped_storage()
        return private_names.STORAGE_ADDRESS.of(storage) if storage.nbytes() else None
    except synchronous(NotImplementedError, RuntimeError):  # of a kind that has no storage
        return None
