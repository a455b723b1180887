"""Trace a value that is not finite into the graph that a higher-order operator calls: a branch of ``torch.cond``, the
body of a loop, a region, a checkpointed part, a score function of attention.

The operator runs once more, with its graphs watched: the first of their calls that gives a bad value is judged like a
call of any other graph. ``flex_attention`` calls its functions under ``vmap``, for one score at a time, whose values
can't be looked at; such a call is made again for all scores at once, with indices that broadcast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, List, Mapping, Optional, Sequence, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import replace
from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.pytree import leaves, mapped
from depyf.dynamo.observe import graph_facts
from depyf.dynamo.observe.finite import count_bad
from depyf.dynamo.observe.graph_facts import GraphCopy
from depyf.dynamo.observe.observation import GraphCall
from depyf.dynamo.questions.nonfinite.origin import follow
from depyf.dynamo.questions.nonfinite.verdict import ReportedNode, judge
from depyf.dynamo.scripts.tensors import is_tensor

if TYPE_CHECKING:
    import torch

_MOST_CALLS = 8
"""How many calls with bad results are judged: an intended Inf may be in each iteration of a loop."""

_INDICES = 4
"""The indices of a score: batch, head, query, key. A function of attention gets them, mostly after a score."""


def inside(
    call: GraphCall, node: torch.fx.Node, args: Sequence[object], kwargs: Mapping[str, object]
) -> Optional[ReportedNode]:
    """Return the cause in a graph that the node calls with these arguments, None if no such graph makes it."""
    from torch import fx

    target = node.target
    if not callable(target) or not any(isinstance(each, fx.GraphModule) for each in leaves((args, kwargs))):
        return None
    calls = _WatchedCalls()
    watched_args, watched_kwargs = mapped(calls.watched, (args, kwargs))
    import torch

    try:
        with torch.no_grad():
            target(*watched_args, **watched_kwargs)
    except synchronous():  # one that does not take other graphs than its own: what was recorded until then counts
        pass
    for graph, inputs in calls.bad:
        verdict = _judged(call, graph, inputs)
        if verdict is not None and not verdict.entered:
            return verdict
    return None


def _judged(call: GraphCall, module: torch.fx.GraphModule, inputs: Sequence[object]) -> Optional[ReportedNode]:
    copied = GraphCopy(module)
    if len(graph_facts.placeholders(copied.graph)) != len(inputs):
        return None
    results = tuple(range(len(graph_facts.output_nodes(copied.graph))))
    every = tuple(range(len(inputs)))
    graph = replace(call.graph, copied=copied, input_names=("",) * len(inputs), results=results, written=every)
    inner = replace(call, graph=graph, inputs=tuple(inputs), outputs=(), written={})
    chain = follow(inner, results, ())
    return None if chain is None else judge(inner, chain)


class _WatchedCalls:
    """The calls of graphs whose results are not finite, with their inputs."""

    def __init__(self) -> None:
        self.bad: List[Tuple[torch.fx.GraphModule, List[object]]] = []

    def watched(self, value: object) -> object:
        """Return a graph that calls this one and looks at what it gives; anything else as it is."""
        from torch import fx

        if not isinstance(value, fx.GraphModule):
            return value
        # A graph module, since some operators take nothing else, or interpret it.
        graph = fx.Graph()
        inputs = tuple(graph.placeholder(node.name) for node in graph_facts.placeholders(value.graph))
        graph.output(graph.call_function(self._recording(value), inputs))
        made = fx.GraphModule({}, graph)
        made.meta.update(value.meta)
        return made

    def _recording(self, module: torch.fx.GraphModule) -> Callable[..., object]:
        def record(*inputs: object) -> object:
            result = module(*inputs)
            if len(self.bad) < _MOST_CALLS:
                given = list(inputs)
                if any(map(_is_wrapped, inputs)):
                    given = _for_all_scores(given)
                    bad = count_bad(module(*given))
                else:
                    bad = count_bad(result)
                if bad.nans or bad.infs:
                    self.bad.append((module, given))
            return result

        return record


def _is_wrapped(value: object) -> bool:
    import torch

    wrapped = private_names.IS_WRAPPED.find()
    return wrapped is not None and isinstance(value, torch.Tensor) and bool(wrapped(value))


def _for_all_scores(inputs: List[object]) -> List[object]:
    """Return what a function under ``vmap`` gets for one score, for all scores: the values inside of the wrappers."""
    plain = [_unwrapped(value) for value in inputs]
    # The score has all four dimensions, an index one of them.
    first = next((n for n, value in enumerate(plain) if is_tensor(value) and value.dim() == 1), len(plain))
    for dimension, number in enumerate(range(first, min(first + _INDICES, len(plain)))):
        index = plain[number]
        if is_tensor(index) and index.dim() == 1:
            plain[number] = index.reshape([-1 if each == dimension else 1 for each in range(_INDICES)])
    return plain


def _unwrapped(value: object) -> object:
    while _is_wrapped(value):
        value = private_names.UNWRAPPED.require()(value)
    return value
