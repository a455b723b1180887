"""Trace values that a forward graph saved for its backward to where the forward made them. A bad value may reach no
result of the forward (``torch.where`` discards it), and still ruin the gradient; and compilers move parts of the
backward into the forward. Calls of forward graphs are therefore kept until their backward has run: their inputs, which
are mostly alive anyway, not the saved values.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Deque, Dict, Optional, Tuple

from depyf.dynamo.observe import graph_facts
from depyf.dynamo.observe.observation import GraphCall, ObservedGraph
from depyf.dynamo.questions.nonfinite.origin import follow
from depyf.dynamo.questions.nonfinite.verdict import Verdict, judge
from depyf.quick_dataclass import dataclass, replace

if TYPE_CHECKING:
    import torch

_KEPT = 4
"""How many calls of a graph are kept: forwards may run several times before the first backward."""

_Key = Tuple[Optional[str], str]


@dataclass(frozen=True)
class _Forward:
    call: GraphCall
    addresses: Tuple[int, ...]
    """The memory of the outputs: the backward gets the same memory."""


class SavedValues:
    """The calls of forward graphs whose backward has not run yet."""

    def __init__(self) -> None:
        self._forwards: Dict[_Key, Deque[_Forward]] = {}

    def has_run(self, call: GraphCall) -> None:
        """Store a forward that has saved something; drop that of a backward."""
        key = _key(call.graph)
        if call.graph.backward:
            forward = self._forward_of(call)
            if forward is not None:
                self._forwards[key].remove(forward)
        elif len(call.outputs) > len(call.graph.results):
            addresses = tuple(map(_address, call.outputs))
            kept = _Forward(replace(call, outputs=()), addresses)
            self._forwards.setdefault(key, deque(maxlen=_KEPT)).append(kept)

    def judge(self, call: GraphCall, node: torch.fx.Node) -> Optional[Verdict]:
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

    def _forward_of(self, call: GraphCall) -> Optional[_Forward]:
        """Return the forward that saved the inputs of this backward, ``None`` if none did."""
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
