"""Select the node of a chain to report, if any: the one that first made the value. An Inf that the user wrote into a
tensor (a mask), or passed in, is intended; it is reported as the origin if it becomes NaN. A non-finite parameter, or a
NaN input, is reported itself.

The value may come from elsewhere. ``inner_graphs`` traces it into the graph that a higher-order operator calls.
``SavedValues`` traces a value that a forward graph saved for its backward to where
the forward made it. Such a value may reach no result of the forward (``torch.where`` discards it), and still ruin the
gradient; and compilers move parts of the backward into the forward. Calls of forward graphs are therefore kept until
their backward has run: their inputs, which are mostly alive anyway, not the saved values.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Callable, Deque, Dict, Optional, Sequence, Tuple

from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass, replace
from depyf.dynamo.observe import graph_facts
from depyf.dynamo.observe.observation import GraphCall, ObservedGraph
from depyf.dynamo.questions.nonfinite.origin import Chain, follow, is_written_down

if TYPE_CHECKING:
    import torch


_STATE = regex(r"_(?:parameters|buffers)\[")


@dataclass(frozen=True)
class ReportedNode:
    """The node to report, and its call: for a backward it may be the forward, which saved the value. ``entered`` is
    whether the node is an input of the graph. ``source`` is the origin of an Inf that became NaN in ``node``;
    ``becomes_nan`` is where an Inf of ``node`` did."""

    call: GraphCall
    node: torch.fx.Node
    kind: str
    entered: bool = False
    source: Optional[torch.fx.Node] = None
    becomes_nan: Optional[torch.fx.Node] = None


Saved = Callable[["torch.fx.Node"], Optional[ReportedNode]]
"""Returns what to report about a value that the forward saved, for the node of the backward that takes it."""


def judge(
    call: GraphCall, chain: Chain, saved: Saved = lambda _: None, computed: Callable[[int], bool] = lambda _: False
) -> Optional[ReportedNode]:
    """Return what to report about a chain; None if nothing. ``computed`` returns whether the input of that number is
    known to be made by an operation outside of the graph, and not as an intended Inf.
    """
    inputs = {node: number for number, node in enumerate(graph_facts.placeholders(call.graph.module.graph))}
    nans = [node for node in chain.becomes_nan() if node not in inputs and not is_written_down(node)]
    # From the first node to the last. A node that only passes on is skipped, so the others are origins.
    for node in chain.nodes:
        if node not in chain.made and chain.causes[node]:
            continue
        # Case 1: an input. In a backward, the forward that saved it may have made it. A NaN saved by a forward that is
        # not known is reported where the backward uses it. An Inf that came in is intended.
        if node in inputs:
            reported = saved(node) if call.graph.backward else None
            if reported is not None:
                return reported
            if _is_reported_itself(call, chain, node, inputs[node], computed):
                return ReportedNode(
                    call, node, chain.bad[node].kind, entered=True, becomes_nan=_after(chain, node, nans)
                )
            if call.graph.backward and chain.bad[node].nans:
                return _first_user(call, chain, node)
            continue
        # Case 2: an Inf that the user wrote down is intended, as for a mask. Case 3: the operation made it.
        if is_written_down(node) and not chain.bad[node].nans:
            continue
        return ReportedNode(call, node, chain.bad[node].kind, becomes_nan=_after(chain, node, nans))
    # Only intended Infs: they are a fault where they have become NaN, as in Inf - Inf.
    if nans:
        sources = chain.sources_of(nans[0])
        return ReportedNode(call, nans[0], "NaN", source=sources[0] if sources else None)
    return None


def _is_reported_itself(
    call: GraphCall, chain: Chain, node: torch.fx.Node, number: int, computed: Callable[[int], bool]
) -> bool:
    if call.graph.backward:  # else it was saved by the forward, which has its own line
        return "tangent" in node.name
    state = _STATE.search(call.graph.input_names[number]) is not None
    return state or bool(chain.bad[node].nans) or computed(number)


def _first_user(call: GraphCall, chain: Chain, node: torch.fx.Node) -> ReportedNode:
    """Judge a NaN that the forward saved: it reached no result there."""
    user = next(each for each in chain.nodes if node in chain.causes[each])
    return ReportedNode(call, user, "NaN", source=node)


def _after(chain: Chain, node: torch.fx.Node, nans: Sequence[torch.fx.Node]) -> Optional[torch.fx.Node]:
    """Return the node at which the Inf of ``node`` becomes NaN."""
    if chain.bad[node].nans:
        return None
    return next((each for each in nans if each is not node and node in chain.sources_of(each)), None)


_KEPT = 4
"""How many calls of a graph are kept: forwards may run several times before the first backward."""

_Key = Tuple[Optional[str], str]


@dataclass(frozen=True)
class _KeptForward:
    call: GraphCall
    addresses: Tuple[int, ...]
    """The memory of the outputs: the backward gets the same memory."""


class SavedValues:
    """The calls of forward graphs whose backward has not run yet."""

    def __init__(self) -> None:
        self._forwards: Dict[_Key, Deque[_KeptForward]] = {}

    def has_run(self, call: GraphCall) -> None:
        """Store a forward that has saved something; drop the forward of a backward that has run."""
        key = _key(call.graph)
        if call.graph.backward:
            forward = self._forward_of(call)
            if forward is not None:
                self._forwards[key].remove(forward)
        elif len(call.outputs) > len(call.graph.results):
            addresses = tuple(map(_address, call.outputs))
            kept = _KeptForward(replace(call, outputs=()), addresses)
            self._forwards.setdefault(key, deque(maxlen=_KEPT)).append(kept)

    def judge(self, call: GraphCall, node: torch.fx.Node) -> Optional[ReportedNode]:
        """Return what to report about the input ``node`` of a backward; None if it was not saved, or is intended."""
        forward = self._forward_of(call)
        if forward is None:
            return None
        outputs = graph_facts.output_nodes(forward.call.graph.module.graph)
        number = next((i for i, output in enumerate(outputs) if getattr(output, "name", "") == node.name), None)
        if number is None or getattr(outputs[number], "op", "") == "placeholder":
            return None
        chain = follow(forward.call, [number], [])
        return None if chain is None else judge(forward.call, chain)

    def _forward_of(self, call: GraphCall) -> Optional[_KeptForward]:
        """Return the forward that saved the inputs of this backward, ``None`` if none did."""
        # By memory: several calls of a forward may wait for their backwards, and these need not run in order.
        given = set(map(_address, call.inputs)) - {0}
        for forward in reversed(self._forwards.get(_key(call.graph), ())):
            saved = set(forward.addresses[len(forward.call.graph.results) :]) - {0}
            if saved and saved <= given:
                return forward
        return None


def _key(graph: ObservedGraph) -> _Key:
    return graph.compile_id, graph.function


def _address(value: object) -> int:
    return int(value.data_ptr()) if hasattr(value, "data_ptr") else 0
