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

from depyf.base.quick_dataclass import dataclass, replace
from depyf.dynamo.capture.provenance import LaunchNotes
from depyf.dynamo.hooks import compile_ids, frames, private_names, torch_settings
from depyf.dynamo.hooks.patching import Undo, replace_everywhere
from depyf.dynamo.observe.graph_facts import GraphCopy, output_nodes, placeholders
from depyf.dynamo.observe.observation import ATEN, DYNAMO, GraphCall, Observation, ObservedGraph
from depyf.dynamo.observe.shadow_entries import ShadowBackend
from depyf.dynamo.observe.tally import Tally
from depyf.dynamo.scripts.tensors import compact, is_real
from depyf.torch_trace.stages import Stage

if TYPE_CHECKING:
    import torch

_MOST_CALLS = 4
"""Of a graph that is called many times, only the first calls are kept."""


Backend = Callable[..., Callable[..., object]]
"""Compiles a graph: called with the graph and its inputs, returns the compiled code."""


@dataclass
class RecordedGraph:
    """A graph as it was when it was passed on. ``compiler`` is its compiler, ``launches`` its kernels that Inductor
    wrote, with the nodes that they compute.
    """

    kind: Stage
    copied: GraphCopy
    compiler: Optional[Backend] = None
    launches: List[Tuple[str, List[str]]] = field(default_factory=list)
    calls: List[GraphCall] = field(default_factory=list)

    @property
    def module(self) -> torch.fx.GraphModule:
        return self.copied.module()


def code_key(code: Optional[CodeType]) -> Tuple[str, str, int]:
    """Return name, file and first line of code: copies of the code have the same."""
    return ("", "", 0) if code is None else (code.co_name, code.co_filename, code.co_firstlineno)


@dataclass
class RecordedCompilation:
    """All graphs made from one Dynamo graph, by kind.

    ``name`` is ``__compiled_fn_<n>``, ``code`` name, file and first line of the compiled code.
    """

    number: int
    name: str
    code: Tuple[str, str, int] = ("", "", 0)
    graphs: Dict[Stage, RecordedGraph] = field(default_factory=dict)

    def graph(self, kind: Stage) -> Optional[RecordedGraph]:
        return self.graphs.get(kind)


class StageRecorder(ShadowBackend):
    """A backend for ``torch.compile`` that calls ``backend`` and records its graphs, inputs and outputs."""

    def __init__(self, backend: Backend, name: str) -> None:
        super().__init__(backend, backend)
        self._backend = backend
        self.__name__ = name
        self._tally = Tally()
        self.compilations: List[RecordedCompilation] = []
        self._here = threading.local()
        self._launches = LaunchNotes()

    def __call__(
        self, module: torch.fx.GraphModule, inputs: Sequence[object], **kwargs: object
    ) -> Callable[..., object]:
        code = code_key(frames.code_being_compiled())
        compilation = RecordedCompilation(len(self.compilations), frames.name_of_captured() or "", code)
        self.compilations.append(compilation)
        graph = compilation.graphs[Stage.CAPTURED] = RecordedGraph(Stage.CAPTURED, GraphCopy(module))
        self._here.compilation = compilation
        try:
            compiled = self._backend(module, inputs, **kwargs)
        finally:
            self._here.compilation = None
        # AOTAutograd's result for Dynamo has the mark of a boxed call, too, but takes its arguments one by one.
        return self._recorded(graph, compiled, boxed=False)

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
        self, compilation: RecordedCompilation, module: torch.fx.GraphModule, given: Dict[str, Any]
    ) -> Dict[str, object]:
        # Inductor has run its pre-grad passes before it calls AOTAutograd, or passes them on for AOTAutograd to run
        # (newer versions): then the graph after them is what these passes return.
        kwargs = dict(given)
        graphs = compilation.graphs
        if hasattr(module, "graph"):
            graphs[Stage.AFTER_PRE_GRAD] = RecordedGraph(Stage.AFTER_PRE_GRAD, GraphCopy(module))
        passes = kwargs.get("pre_grad_passes")
        if passes is not None:

            def pre_grad_passes(module: torch.fx.GraphModule, inputs: object) -> object:
                answer: torch.fx.GraphModule = passes(module, inputs)
                graphs[Stage.AFTER_PRE_GRAD] = RecordedGraph(Stage.AFTER_PRE_GRAD, GraphCopy(answer))
                return answer

            kwargs["pre_grad_passes"] = pre_grad_passes
        partition: Any = kwargs.get("partition_fn") or private_names.DEFAULT_PARTITION.find()

        def partition_fn(joint: torch.fx.GraphModule, *args: object, **more: object) -> object:
            graphs.setdefault(Stage.JOINT, RecordedGraph(Stage.JOINT, GraphCopy(joint)))
            return partition(joint, *args, **more)

        kwargs["partition_fn"] = functools.wraps(partition)(partition_fn)
        forward = kwargs["fw_compiler"]
        for name, kind in (
            ("fw_compiler", Stage.FORWARD),
            ("inference_compiler", Stage.FORWARD),
            ("bw_compiler", Stage.BACKWARD),
        ):
            kwargs[name] = self._recording(compilation, kind, kwargs.get(name) or forward)
        return kwargs

    def _recording(self, compilation: RecordedCompilation, kind: Stage, compiler: Backend) -> Backend:
        def compile_one(
            module: torch.fx.GraphModule, inputs: Sequence[object], *args: object, **kwargs: object
        ) -> Callable[..., object]:
            graph = compilation.graphs[kind] = RecordedGraph(kind, GraphCopy(module), compiler)
            self._launches.take()
            compiled = compiler(module, inputs, *args, **kwargs)
            graph.launches = [(kernel, nodes) for (kernel, nodes, _), _ in self._launches.take()]
            return self._recorded(graph, compiled, boxed=bool(private_names.BOXED_CALL.of(compiled, False)))

        return compile_one

    def _recorded(self, graph: RecordedGraph, compiled: Callable[..., object], *, boxed: bool) -> Callable[..., object]:
        """Return a callable like ``compiled`` that adds its first calls to those of ``graph``."""
        observation = Observation(self._tally, _kept)

        def keep(call: GraphCall) -> None:
            # The program may write to the outputs. The originals of the inputs need not be kept alive: copies are, of
            # those that the graph has written to.
            written = {
                number: each for number, each in call.written.items() if not unchanged(each, call.inputs[number])
            }
            copies = {number: each for number, each in zip(written, kept(list(written.values()))) if is_real(each)}
            graph.calls.append(replace(call, outputs=tuple(kept(call.outputs)), written=copies))
            if len(graph.calls) == _MOST_CALLS:
                observation.remove(keep)

        observation.add(keep, lambda _: None)
        return observation.around(self._observed(graph), compiled, boxed=boxed)

    def _observed(self, graph: RecordedGraph) -> ObservedGraph:
        inputs = len(placeholders(graph.module.graph))
        return ObservedGraph(
            compile_id=compile_ids.current_compile_id(),
            function="",
            backward=graph.kind == Stage.BACKWARD,
            level=DYNAMO if graph.kind == Stage.CAPTURED else ATEN,
            copied=graph.copied,
            input_names=("",) * inputs,
            results=tuple(range(len(output_nodes(graph.module.graph)))),
            written=tuple(range(inputs)),  # all inputs are copied: what comes later may write to them, too
            random=True,
            backend=self.__name__,
        )


def unchanged(value: torch.Tensor, before: object) -> bool:
    """Return whether a tensor still has the values of the copy that was made of it; NaN equals NaN."""
    import torch

    if not is_real(value) or not is_real(before) or value.shape != before.shape:
        return True
    now, then = value.detach(), before.detach()
    if torch.equal(now, then):
        return True
    nans = now.dtype.is_floating_point and bool(((now == then) | (now.isnan() & then.isnan())).all())
    return nans


def kept(values: Sequence[object]) -> List[object]:
    """Return copies of the tensors among the values, as they are now."""
    import torch

    with torch.no_grad():
        return [_kept(value) if isinstance(value, torch.Tensor) else value for value in values]


def _kept(value: torch.Tensor) -> torch.Tensor:
    return compact(value).requires_grad_(value.requires_grad) if is_real(value) else value.detach().clone()
