"""Record the graphs of one compiled run on their way to the backend, each with the values of its calls. The recorded
graphs are the one that Dynamo passes to the backend, and, if that uses AOTAutograd, the input of AOTAutograd (after
passes over Dynamo's graph), the joint graph, and the compiled forward and backward graphs. Nothing is changed, except
that the caches of compiled graphs are off, as a hit would skip graphs.
"""

from __future__ import annotations

import functools
import threading
from dataclasses import field
from types import CodeType
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Tuple

from depyf.dynamo.capture.provenance import LaunchNotes
from depyf.dynamo.hooks import frames, private_names, torch_settings
from depyf.dynamo.hooks.patching import Undo, replace_everywhere
from depyf.dynamo.scripts.tensors import compact, is_real
from depyf.quick_dataclass import dataclass
from depyf.torch_trace.stages import Stage

if TYPE_CHECKING:
    import torch

_MOST_CALLS = 4
"""Of a graph that is called many times, only the first calls are kept."""


Backend = Callable[..., Callable[..., object]]
"""What compiles a graph: called with it and its inputs, returns the compiled code."""


@dataclass
class Call:
    """One call: copies of its inputs and outputs, and the random state before it."""

    inputs: List[object]
    outputs: List[object]
    rng_state: Optional[torch.Tensor]


@dataclass
class Graph:
    """A graph as it was when it was passed on. ``compiler`` is its compiler, ``launches`` its kernels that Inductor
    wrote, with the nodes that they compute.
    """

    kind: Stage
    module: torch.fx.GraphModule
    compiler: Optional[Backend] = None
    launches: List[Tuple[str, List[str]]] = field(default_factory=list)
    calls: List[Call] = field(default_factory=list)


def place_of(code: Optional[CodeType]) -> Tuple[str, str, int]:
    """Name, file and first line of code, which its copies have, too."""
    return ("", "", 0) if code is None else (code.co_name, code.co_filename, code.co_firstlineno)


@dataclass
class Compilation:
    """All graphs made from one Dynamo graph, by kind.

    ``name`` is ``__compiled_fn_<n>``, ``place`` name, file and first line of the code that was compiled.
    """

    number: int
    name: str
    place: Tuple[str, str, int] = ("", "", 0)
    graphs: Dict[Stage, Graph] = field(default_factory=dict)

    def graph(self, kind: Stage) -> Optional[Graph]:
        return self.graphs.get(kind)


class Recorder:
    """A backend for ``torch.compile`` that calls ``backend`` and records its graphs, inputs and outputs."""

    def __init__(self, backend: Backend, name: str) -> None:
        self._backend = backend
        self.__name__ = name
        for each in ("get_compiler_config", "reset"):
            if hasattr(backend, each):
                setattr(self, each, getattr(backend, each))
        self.compilations: List[Compilation] = []
        self._here = threading.local()
        self._launches = LaunchNotes()

    def __call__(
        self, module: torch.fx.GraphModule, inputs: Sequence[object], **kwargs: object
    ) -> Callable[..., object]:
        place = place_of(frames.code_being_compiled())
        compilation = Compilation(len(self.compilations), frames.name_of_captured() or "", place)
        self.compilations.append(compilation)
        graph = compilation.graphs[Stage.CAPTURED] = Graph(Stage.CAPTURED, copy_of(module))
        self._here.compilation = compilation
        try:
            compiled = self._backend(module, inputs, **kwargs)
        finally:
            self._here.compilation = None
        return self._noted(graph, compiled, boxed=False)

    def install(self) -> List[Undo]:
        """Start to record graphs in AOTAutograd; return the functions that stop it."""
        original = private_names.AOT_MODULE.find()
        if original is None:
            return []

        @functools.wraps(original)
        def and_keep(module: torch.fx.GraphModule, inputs: Sequence[object], *args: object, **kwargs: object) -> object:
            compilation = getattr(self._here, "compilation", None)
            if compilation is None or args:
                return original(module, inputs, *args, **kwargs)
            return original(module, inputs, **self._watched(compilation, module, kwargs))

        undo = replace_everywhere(private_names.AOT_MODULE.name, original, and_keep)
        return [torch_settings.have_launches_reported(), *self._launches.watch(), undo]

    def _watched(
        self, compilation: Compilation, module: torch.fx.GraphModule, given: Dict[str, Any]
    ) -> Dict[str, object]:
        kwargs = dict(given)
        graphs = compilation.graphs
        if hasattr(module, "graph"):
            graphs[Stage.AFTER_PRE_GRAD] = Graph(Stage.AFTER_PRE_GRAD, copy_of(module))
        passes = kwargs.get("pre_grad_passes")
        if passes is not None:

            def pre_grad_passes(module: torch.fx.GraphModule, inputs: object) -> object:
                answer: torch.fx.GraphModule = passes(module, inputs)
                graphs[Stage.AFTER_PRE_GRAD] = Graph(Stage.AFTER_PRE_GRAD, copy_of(answer))
                return answer

            kwargs["pre_grad_passes"] = pre_grad_passes
        partition: Any = kwargs.get("partition_fn") or private_names.DEFAULT_PARTITION.find()

        def partition_fn(joint: torch.fx.GraphModule, *args: object, **more: object) -> object:
            graphs.setdefault(Stage.JOINT, Graph(Stage.JOINT, copy_of(joint)))
            return partition(joint, *args, **more)

        kwargs["partition_fn"] = functools.wraps(partition)(partition_fn)
        forward = kwargs["fw_compiler"]
        for name, kind in (
            ("fw_compiler", Stage.FORWARD),
            ("inference_compiler", Stage.FORWARD),
            ("bw_compiler", Stage.BACKWARD),
        ):
            kwargs[name] = self._compiler(compilation, kind, kwargs.get(name) or forward)
        return kwargs

    def _compiler(self, compilation: Compilation, kind: Stage, compiler: Backend) -> Backend:
        def compile_one(
            module: torch.fx.GraphModule, inputs: Sequence[object], *args: object, **kwargs: object
        ) -> Callable[..., object]:
            graph = compilation.graphs[kind] = Graph(kind, copy_of(module), compiler)
            self._launches.take()
            compiled = compiler(module, inputs, *args, **kwargs)
            graph.launches = [(kernel, nodes) for kernel, nodes, _ in self._launches.take()]
            return self._noted(graph, compiled, boxed=True)

        return compile_one

    def _noted(self, graph: Graph, compiled: Callable[..., object], *, boxed: bool) -> Callable[..., object]:
        import torch

        # AOTAutograd's result for Dynamo has the mark, too, but takes its arguments unboxed.
        takes_list = boxed and bool(private_names.BOXED_CALL.of(compiled, False))

        def call(arguments: List[object]) -> object:
            given = list(arguments)
            if boxed:
                arguments.clear()
            keep = len(graph.calls) < _MOST_CALLS
            before = kept(given) if keep else []
            state = torch.get_rng_state() if keep else None
            outputs = compiled(list(given)) if takes_list else compiled(*given)
            if keep:
                many = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
                graph.calls.append(Call(before, kept(many), state))
            return outputs

        if boxed:
            setattr(call, private_names.BOXED_CALL.name, True)
            return call
        return lambda *arguments: call(list(arguments))


def copy_of(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Return a graph module with a graph of its own: passes change the graph in place."""
    from torch import fx

    graph = fx.Graph(tracer_cls=private_names.TRACER_OF_GRAPH.of(module.graph))
    known: Dict[fx.Node, fx.Node] = {}
    for node in module.graph.nodes:
        known[node] = copied = graph.node_copy(node, lambda each: known[each])
        copied.meta = dict(node.meta)
    inner = {name: copy_of(each) for name, each in module.named_children() if isinstance(each, fx.GraphModule)}
    made = fx.GraphModule(module, graph)
    for name, each in inner.items():
        setattr(made, name, each)
    return made


def kept(values: Sequence[object]) -> List[object]:
    """Return copies of the tensors among the values, as they are now."""
    import torch

    with torch.no_grad():
        return [
            compact(value).requires_grad_(value.requires_grad) if is_real(value) else _odd(value) for value in values
        ]


def _odd(value: object) -> object:
    import torch

    return value.detach().clone() if isinstance(value, torch.Tensor) else value
