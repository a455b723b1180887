"""Select the node of a chain to report, if any: the one that first made the value. An Inf that the user wrote into a
tensor (a mask), or passed in, is intended; it is reported as the origin if it becomes NaN. A non-finite parameter, or a
NaN input, is reported itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Optional, Sequence

from depyf.dynamo.observe import graph_facts
from depyf.dynamo.observe.observation import GraphCall
from depyf.dynamo.questions.nonfinite.origin import Chain, is_written_down
from depyf.lazy_pattern import re_compile
from depyf.quick_dataclass import dataclass

if TYPE_CHECKING:
    import torch

_STATE = re_compile(r"_(?:parameters|buffers)\[")


@dataclass(frozen=True)
class Verdict:
    """The node to report, and its call: for a backward it may be the forward, which saved the value. ``entered`` is
    whether the node is an input of the graph. ``source`` is the origin of an Inf that became NaN in ``node``;
    ``becomes_nan`` is where an Inf of ``node`` did."""

    call: GraphCall
    node: torch.fx.Node
    kind: str
    entered: bool = False
    source: Optional[torch.fx.Node] = None
    becomes_nan: Optional[torch.fx.Node] = None


Saved = Callable[["torch.fx.Node"], Optional[Verdict]]
"""Returns what to report about a value that the forward saved, for the node of the backward that takes it."""


def judge(
    call: GraphCall, chain: Chain, saved: Saved = lambda _: None, computed: Callable[[int], bool] = lambda _: False
) -> Optional[Verdict]:
    """Return what to report about a chain; None if nothing. ``computed`` returns whether the input of that number is
    known to be made by an operation outside of the graph, and not as an intended Inf.
    """
    inputs = {node: number for number, node in enumerate(graph_facts.placeholders(call.graph.module.graph))}
    nans = [node for node in chain.becomes_nan() if node not in inputs and not is_written_down(node)]
    for node in chain.nodes:
        if node not in chain.made and chain.causes[node]:
            continue
        if node in inputs:
            reported = saved(node) if call.graph.backward else None
            if reported is not None:
                return reported
            if _is_reported_itself(call, chain, node, inputs[node], computed):
                return Verdict(call, node, chain.bad[node].kind, entered=True, becomes_nan=_after(chain, node, nans))
            if call.graph.backward and chain.bad[node].nans:
                return _first_user(call, chain, node)
            continue
        if is_written_down(node) and not chain.bad[node].nans:
            continue
        return Verdict(call, node, chain.bad[node].kind, becomes_nan=_after(chain, node, nans))
    if nans:
        sources = chain.sources_of(nans[0])
        return Verdict(call, nans[0], "NaN", source=sources[0] if sources else None)
    return None


def _is_reported_itself(
    call: GraphCall, chain: Chain, node: torch.fx.Node, number: int, computed: Callable[[int], bool]
) -> bool:
    if call.graph.backward:  # else it was saved by the forward, which has its own line
        return "tangent" in node.name
    state = _STATE.search(call.graph.input_names[number]) is not None
    return state or bool(chain.bad[node].nans) or computed(number)


def _first_user(call: GraphCall, chain: Chain, node: torch.fx.Node) -> Verdict:
    """Judge a NaN that the forward saved: it reached no result there."""
    user = next(each for each in chain.nodes if node in chain.causes[each])
    return Verdict(call, user, "NaN", source=node)


def _after(chain: Chain, node: torch.fx.Node, nans: Sequence[torch.fx.Node]) -> Optional[torch.fx.Node]:
    """Return the node at which the Inf of ``node`` becomes NaN."""
    if chain.bad[node].nans:
        return None
    return next((each for each in nans if each is not node and node in chain.sources_of(each)), None)
