"""Observe calls of the graphs that Dynamo captures, with the user's names in them. ``observe/checked_backend.py``
observes ATen graphs where they exist. Here it is always Dynamo's graph: its nodes are the calls that the user wrote.
The backend compiles as usual, with all its settings and caches.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Callable, Optional, Sequence, Tuple

from depyf.dynamo.hooks import compile_ids
from depyf.dynamo.hooks.compiled_names import watch_compiled_names
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.observe import graph_facts
from depyf.dynamo.observe.graph_facts import GraphCopy
from depyf.dynamo.observe.observation import DYNAMO, GraphCall, Observation, ObservedGraph
from depyf.dynamo.observe.shadow_entries import OwnBackend, OwnEntries
from depyf.dynamo.observe.tally import Tally
from depyf.dynamo.questions.probe.bindings import Binding, bindings_so_far, watch_bindings
from depyf.dynamo.store.names import compiled_fn_number
from depyf.quick_dataclass import dataclass

if TYPE_CHECKING:
    import torch


class _Here(threading.local):
    name = ""


_here = _Here()

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
        OwnEntries(functools.partial(_Backend, self), self.tally).install()
        for install in (watch_bindings, lambda: watch_compiled_names(_note_name)):
            safely("beginning to probe")(install)()

    def observed(self, module: torch.fx.GraphModule, backend: str, compiled: object) -> object:
        """Return the callable that Dynamo calls instead of ``compiled``."""
        captured = self._capture(module, backend)
        if not callable(compiled):
            return compiled
        if captured is None:
            return _counted(self.tally, compiled)
        observation = Observation(self.tally)
        observation.add(functools.partial(self._observer, captured), lambda _: None)

        def run(*arguments: object) -> object:
            return observation.run(captured.graph, compiled, list(arguments), boxed=False)

        return run

    @safely("noting a graph that Dynamo has captured")
    def _capture(self, module: torch.fx.GraphModule, backend: str) -> Optional[Captured]:
        copied = GraphCopy(module)
        inputs = [node.name for node in graph_facts.placeholders(module.graph)]
        number = compiled_fn_number(_here.name)
        graph = ObservedGraph(
            compile_id=compile_ids.current_compile_id(),
            function="" if number is None else f"__compiled_fn_{number}",
            backward=False,
            level=DYNAMO,
            copied=copied,
            input_names=graph_facts.names_of_inputs(module),
            results=tuple(range(len(graph_facts.output_nodes(copied.graph)))),
            # Dynamo's graph does not say what it writes to and what it draws: optimizers write to parameters, and what
            # is checkpointed draws in a graph of its own.
            written=tuple(range(len(inputs))),
            random=True,
            backend=backend,
        )
        captured = Captured(graph, bindings_so_far(module.graph, dict(zip(inputs, graph.input_names))))
        return captured if self._compiled(captured) else None


def _counted(tally: Tally, compiled: Callable[..., object]) -> Callable[..., object]:
    """Return a graph without queries: only its runs are counted."""

    def run(*arguments: object) -> object:
        tally.graph_runs()
        return compiled(*arguments)

    return run


class _Backend(OwnBackend):
    """The user's backend, observed."""

    def __init__(self, graphs: CapturedGraphs, compiler: Callable[..., object], user_backend: object) -> None:
        self._graphs = graphs
        super().__init__(compiler, user_backend)

    def __call__(self, module: torch.fx.GraphModule, example_inputs: Sequence[object], **kwargs: object) -> object:
        compiled = self._compiler(module, example_inputs, **kwargs)
        return self._graphs.observed(module, self.__name__, compiled)


def _note_name(name: str) -> None:
    if compiled_fn_number(name) is not None:
        _here.name = name


_RANDOM = ("rand", "dropout", "bernoulli", "normal", "multinomial", "exponential", "uniform", "poisson", "gumbel")


def draws(node: torch.fx.Node, attribute: Callable[[str], object]) -> bool:
    """Return whether a node of Dynamo's graph draws random numbers, by its name; ``attribute`` resolves names."""
    if node.op == "call_module":
        return _module_draws(attribute(str(node.target)))
    if any(_graph_draws(attribute(str(each.target))) for each in node.all_input_nodes if each.op == "get_attr"):
        return True  # what is checkpointed, a branch of ``torch.cond``
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
    """Return whether a module that a node calls draws: older versions of PyTorch have those of torch.nn as one node."""
    name = type(module).__name__.lower()
    if "dropout" in name:
        return bool(getattr(module, "training", False) and getattr(module, "p", 0))
    return _is_random(name) or _graph_draws(module)


def _is_on(node: torch.fx.Node) -> bool:
    """Return whether a call of dropout drops values: not where ``training`` is false."""
    training = node.kwargs.get("training", node.args[2] if len(node.args) > 2 else True)
    chance = node.kwargs.get("p", node.args[1] if len(node.args) > 1 else 0.5)
    return training is not False and bool(chance != 0)
