"""Subscribe to the graphs that Dynamo captures, with the user's names in them. It is always Dynamo's graph, because its
nodes are the calls that the user wrote.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Callable, Optional, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.observe import graph_facts
from depyf.dynamo.observe.observation import GraphCall, Observation, ObservedGraph
from depyf.dynamo.observe.recorder import GraphRecorder, Subscriber
from depyf.dynamo.observe.tally import Tally
from depyf.dynamo.questions.probe.bindings import Binding, bindings_so_far, watch_bindings

if TYPE_CHECKING:
    import torch


CapturedObserver = Callable[["Captured", GraphCall], None]


@dataclass(frozen=True, eq=False)
class Captured:
    """A graph that Dynamo captured, and the bindings of the user's names in it."""

    graph: ObservedGraph
    bindings: Tuple[Binding, ...]


class CapturedGraphs:
    """Calls ``compiled`` for each captured graph to ask whether it is wanted, and ``observer`` for each call of those.

    ``tally`` has how many calls of compiled functions there were, and why some were not observed.
    """

    def __init__(self, compiled: Callable[[Captured], bool], observer: CapturedObserver) -> None:
        self._compiled = compiled
        self._observer = observer
        self.tally = Tally()

    def watch(self) -> None:
        """Watch until what it registers (``patching.collecting``) is undone. Raises ``RuntimeError`` where this torch
        can't be observed.
        """
        safely("beginning to probe")(watch_bindings)()
        GraphRecorder(self._subscribe, self.tally, inner=False).start()

    @safely("noting a graph that Dynamo has captured")
    def _subscribe(self, graph: ObservedGraph, module: torch.fx.GraphModule) -> Subscriber:
        # The backend may change the graph: its names are read before. A graph that can't be compiled never runs.
        inputs = [node.name for node in graph_facts.placeholders(module.graph)]
        captured = Captured(graph, bindings_so_far(module.graph, dict(zip(inputs, graph.input_names))))
        return functools.partial(self._subscribed, captured)

    @safely("noting a graph that is compiled")
    def _subscribed(self, captured: Captured) -> Optional[Observation]:
        if not self._compiled(captured):
            return None
        observation = Observation(self.tally)
        observation.add(functools.partial(self._observer, captured), lambda _: None)
        return observation


_RANDOM = ("rand", "dropout", "bernoulli", "normal", "multinomial", "exponential", "uniform", "poisson", "gumbel")


def draws(node: torch.fx.Node, attribute: Callable[[str], object]) -> bool:
    """Return whether a node of Dynamo's graph draws random numbers, by its name; ``attribute`` resolves names."""
    if node.op == "call_module":
        return _module_draws(attribute(str(node.target)))
    if any(_graph_draws(attribute(str(each.target))) for each in node.all_input_nodes if each.op == "get_attr"):
        return True  # a checkpointed function, a branch of ``torch.cond``
    name = str(getattr(node.target, "__name__", node.target)).lower()
    if node.op not in ("call_function", "call_method") or not _is_random(name):
        return False
    return "dropout" not in name or _is_on(node)


def _is_random(name: str) -> bool:
    return any(word in name for word in _RANDOM) and not name.endswith("norm") and "normalize" not in name


def _graph_draws(module: object) -> bool:
    nodes = getattr(getattr(module, "graph", None), "nodes", ())
    return any(draws(node, functools.partial(graph_facts.attribute_at, module)) for node in nodes)


def _module_draws(module: object) -> bool:
    """Return whether a module that a node calls draws: in older versions of PyTorch a module of torch.nn is one
    node."""
    name = type(module).__name__.lower()
    if "dropout" in name:
        return bool(getattr(module, "training", False) and getattr(module, "p", 0))
    return _is_random(name) or _graph_draws(module)


def _is_on(node: torch.fx.Node) -> bool:
    """Return whether a call of dropout drops values: not where ``training`` is false."""
    training = node.kwargs.get("training", node.args[2] if len(node.args) > 2 else True)
    chance = node.kwargs.get("p", node.args[1] if len(node.args) > 1 else 0.5)
    return training is not False and bool(chance != 0)
