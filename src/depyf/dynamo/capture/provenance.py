"""Record the origins of graph nodes and kernels while torch compiles and still has the nodes.

torch attaches the user's whole stack to every node, but reports only the innermost frame. It reports which nodes a
kernel computes only with ``trace.provenance_tracking_level`` on, which would change the cache keys. Both are read here
without changing a setting.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from depyf.base.own_builtins import keep_builtins
from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.patching import Undo, replace_everywhere
from depyf.dynamo.hooks.safely import safely
from depyf.torch_trace.events import KERNELS, Event
from depyf.torch_trace.provenance import ModuleChain, kernel_launches_event, node_in, node_stacks_event
from depyf.torch_trace.stages import stage_of

keep_builtins(globals())

if TYPE_CHECKING:
    import torch

    from depyf.dynamo.capture.fusions import FusionNotes

_Launch = Tuple[str, List[str], List[str]]
_Noted = Tuple[_Launch, Dict[str, List[str]]]
"""A launch, and the operations of Inductor's scheduler that it computes, with their graph nodes."""


class LaunchNotes:
    """Inductor's data about each launch that it writes, until it reports the module."""

    def __init__(self) -> None:
        self._thread = threading.local()

    def watch(self) -> List[Undo]:
        """Start to record every launch; return the functions that stop it.

        PyTorch 2.13 calls ``set_kernel_post_grad_provenance_tracing(nodes, kernel_name, ...)`` for each launch that it
        writes, with provenance tracking off as well: the function returns at once then.
        """
        tracer = private_names.LAUNCH_TRACER
        original = tracer.find()  # that of a session around this one
        if original is None:
            return []

        @functools.wraps(original)
        def and_note(*args: object, **kwargs: object) -> object:
            self._note(*args, **kwargs)
            return original(*args, **kwargs)

        # Modules of Inductor import the function by name.
        return [replace_everywhere(tracer.name, original, and_note, package=private_names.INDUCTOR.whole)]

    def take(self) -> List[_Noted]:
        """Return what was recorded on this thread since the last call."""
        launches: List[_Noted] = getattr(self._thread, "launches", [])
        self._thread.launches = []
        return launches

    @safely("noting what a kernel computes")
    def _note(self, nodes: object, kernel_name: object, *args: object, **kwargs: object) -> None:
        if not hasattr(self._thread, "launches"):
            self._thread.launches = []
        names: Dict[str, None] = {}
        stacks: Dict[str, None] = {}
        for origin in _origins(nodes):
            names.setdefault(str(origin.name))
            trace = origin.meta.get("stack_trace")
            if trace:
                stacks.setdefault(str(trace))
        from depyf.dynamo.capture.fusions import operation_of

        launch = str(kernel_name), list(names), list(stacks)
        operations: Dict[str, List[str]] = {}
        for each in nodes if isinstance(nodes, (list, tuple)) else [nodes]:
            operations.setdefault(operation_of(each), []).extend(str(origin.name) for origin in _origins(each))
        self._thread.launches.append((launch, operations))


def _origins(nodes: object) -> Iterator[torch.fx.Node]:
    """Yield the graph nodes that these nodes of Inductor compute, in the order of the graph."""
    # An extern kernel comes as one IR node. Its ``origin_node``, if it has one, is exactly what it computes, whereas
    # ``origins`` has all that went into it. A fused kernel comes as a list of scheduler nodes, each with an IR node
    # (``node``); marks such as ``EnableReduction`` among them have none.
    one = getattr(nodes, "origin_node", None)
    found: Dict[torch.fx.Node, None] = {} if one is None else {one: None}
    for each in nodes if isinstance(nodes, (list, tuple)) else [nodes] if one is None else []:
        below = getattr(each, "node", None) or each
        for origin in getattr(below, "origins", None) or ():
            if getattr(origin, "op", None) not in (None, "placeholder", "output"):
                found.setdefault(origin)
    # ``origins`` is a set: without sorting the order would be another one in every run.
    graphs = {id(origin.graph) for origin in found}
    if len(graphs) == 1:
        order = {node: number for number, node in enumerate(next(iter(found)).graph.nodes)}
        yield from sorted(found, key=lambda origin: order.get(origin, 0))
    else:
        yield from found


class Provenance:
    """Makes provenance events for a graph or a generated module when torch reports it."""

    def __init__(self, modules: Callable[[str], Sequence[torch.fx.GraphModule]]) -> None:
        self._modules = modules
        self.launches = LaunchNotes()

    @functools.cached_property
    def fusions(self) -> FusionNotes:
        """Why Inductor keeps nodes apart."""
        from depyf.dynamo.capture.fusions import FusionNotes  # with Inductor: a session without it needs none

        return FusionNotes()

    @safely("noting where graph nodes come from")
    def of(self, event: Event) -> Optional[Event]:
        """Return a further event if more is known about what this event reports."""
        # The launches of a module were written before its code is reported, on the same thread.
        if event.name == KERNELS:
            noted = self.launches.take()
            unfused = self.fusions.take([operations for _, operations in noted])
            return kernel_launches_event(event, [launch for launch, _ in noted], unfused) if noted else None
        stage = stage_of(event.name, event.payload)
        if stage is None or event.payload is None or event.compile_id is None:
            return None
        module = _module_of(event.payload, self._modules(event.compile_id))
        if module is None:
            return None
        traces = {node.name: node.meta.get("stack_trace") for node in module.graph.nodes}
        modules = {node.name: _modules_of(node) for node in module.graph.nodes if node.op not in _NO_OPERATION}
        found = {name: trace for name, trace in traces.items() if trace}
        return node_stacks_event(event, stage.value, found, modules, dict(_inputs(module)))


def _inputs(module: torch.fx.GraphModule) -> Iterator[Tuple[str, str]]:
    """Yield what Dynamo calls each input of a graph that it has captured, and its node."""
    for node in module.graph.nodes:
        source = getattr(node.meta.get("grapharg"), "source", None) if node.op == "placeholder" else None
        if source is not None:
            yield str(source.name() if callable(source.name) else source.name), node.name


_NO_OPERATION = ("placeholder", "output", "get_attr")


def _modules_of(node: torch.fx.Node) -> ModuleChain:
    """Return the chain of modules in which a node was called; a backward node has the chain of its forward node."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    entries = stack.values() if isinstance(stack, dict) else ()
    return tuple(
        (str(entry[0]), str(getattr(entry[1], "__name__", entry[1])))
        for entry in entries
        if isinstance(entry, tuple) and len(entry) == 2
    )


def _module_of(text: str, modules: Sequence[torch.fx.GraphModule]) -> Optional[torch.fx.GraphModule]:
    """Return the graph module that was printed as ``text``: it has the same nodes.

    The text may hold more, since graphs in a graph are printed with it: the module with the most nodes among those that
    are in the text completely is the outer one. Of equal modules it is the latest, which torch has just printed.
    """
    printed: Set[str] = {name for name in map(node_in, text.splitlines()) if name is not None}
    best, most = None, 0
    for module in reversed(modules):
        names = {node.name for node in module.graph.nodes if node.op not in ("placeholder", "output")}
        common = len(names & printed)
        if common == len(names) and common > most:
            best, most = module, common
    return best
