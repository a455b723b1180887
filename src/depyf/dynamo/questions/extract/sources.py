"""Find the graphs to extract: the graphs that a compiled function still references, or the graphs of a call of a copy.

A call of a copy compiles again, with other numbers each time. A graph is shown under the number and the compile id of
the cache entry with the same code, operations and input sizes.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import field
from types import FunctionType
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.entries.call_target import CallTarget
from depyf.dynamo.entries.called_entries import entries_of
from depyf.dynamo.hooks import backends, cache_entries, private_names, torch_names
from depyf.dynamo.hooks.cache_entries import global_scope
from depyf.dynamo.hooks.hooked_context import undone_afterwards
from depyf.dynamo.hooks.patching import collecting
from depyf.dynamo.hooks.recovered import recover
from depyf.dynamo.observe.graph_facts import placeholders
from depyf.dynamo.observe.observation import GraphCall
from depyf.dynamo.questions.compare.observed_run import NoGradientsError, random_numbers_kept, run
from depyf.dynamo.questions.compare.private_copy import private_copy
from depyf.dynamo.questions.compare.question import backend_of
from depyf.dynamo.questions.compare.recorded import RecordedCompilation, StageRecorder, code_key
from depyf.dynamo.questions.compare.stage_runs import compiled_with, nothing_left_behind, same_random_numbers
from depyf.dynamo.questions.compare.state_snapshot import StateSnapshot
from depyf.dynamo.scripts import template as script_template
from depyf.dynamo.scripts.graph import names_of_inputs
from depyf.dynamo.scripts.tensors import Tensors
from depyf.dynamo.store.names import compiled_fn_number
from depyf.torch_trace.stages import AnyStage, Stage

if TYPE_CHECKING:
    import torch


@dataclass
class GraphSource:
    """A graph that can be extracted: its module (or only its text), and how it was called.

    ``piece`` is the name of the piece, if the graph was split; ``index`` numbers the graphs of a stage.
    """

    function: str
    stage: AnyStage
    compile_id: Optional[str]
    module: Optional[torch.fx.GraphModule] = field(default=None, repr=False)
    text: str = field(default="", repr=False)
    call: Optional[GraphCall] = field(default=None, repr=False)
    notes: Tuple[str, ...] = ()
    index: str = "0"
    piece: Optional[str] = None

    @property
    def name(self) -> str:
        return f"{self.function}.{self.stage.value}"


def compiled_functions(target: CallTarget) -> List[CompiledFunction]:
    """Return all ``__compiled_fn_<n>`` in the cache entries of a function and of its resume functions, by their
    numbers."""
    found: Dict[str, CompiledFunction] = {}
    # From the function over its resume functions: transformed code names both, ``__compiled_fn_<n>`` and
    # ``__resume_at_<offset>_<n>``, in its globals.
    todo, seen = [target.code], set()
    while todo:
        code = todo.pop()
        if code in seen:
            continue
        seen.add(code)
        entries = entries_of(target, same_tensors=True) if code is target.code else cache_entries.cache_entries(code)
        for entry in entries:
            scope: Mapping[str, Any] = global_scope(entry.guard_manager)
            for name in entry.code.co_names if entry.code is not None else ():
                number = compiled_fn_number(name)
                if number is not None and name in scope:
                    captured = dict(recover(scope[name]).graphs).get(Stage.CAPTURED)
                    found[f"__compiled_fn_{number}"] = CompiledFunction(
                        f"__compiled_fn_{number}", entry.compile_id, scope[name], code_key(code), captured
                    )
                elif name.startswith("__resume_at_") and isinstance(scope.get(name), FunctionType):
                    todo.append(scope[name].__code__)
    return sorted(found.values(), key=lambda each: compiled_fn_number(each.name) or 0)


def held(target: CallTarget) -> List[GraphSource]:
    """Return the graphs that a compiled function still references; Inductor's forward and backward are made again."""
    sources: List[GraphSource] = []
    for compiled in compiled_functions(target):
        found = recover(compiled.function)
        modules = dict(found.graphs)
        for stage in (Stage.CAPTURED, Stage.FORWARD, Stage.BACKWARD):
            module = modules.get(stage)
            if module is not None and _has_values(module):
                sources.append(GraphSource(compiled.name, stage, compiled.compile_id, module))
        there = {source.stage for source in sources if source.function == compiled.name}
        if Stage.CAPTURED in there and found.kernels and Stage.FORWARD not in there:
            sources += list(_made_again(compiled, modules[Stage.CAPTURED]))
        for kernel in found.kernels:
            if kernel.post_grad and not kernel.backward:
                sources.append(
                    GraphSource(compiled.name, Stage.AFTER_POST_GRAD, compiled.compile_id, text=kernel.post_grad)
                )
    return sources


def fake_inputs(module: torch.fx.GraphModule) -> List[object]:
    """Return the inputs of the graph while it was traced: fake tensors, sizes."""
    return [node.meta.get("val", node.meta.get("example_value")) for node in placeholders(module.graph)]


def _has_values(module: torch.fx.GraphModule) -> bool:
    return all("val" in node.meta or "example_value" in node.meta for node in placeholders(module.graph))


def _made_again(compiled: CompiledFunction, captured: torch.fx.GraphModule) -> Iterator[GraphSource]:
    """Yield the graphs that AOTAutograd makes of a captured one, with Inductor's decompositions and made-up inputs."""
    backend = backends.registered_backend("aot_eager_decomp_partition")
    if backend is None:
        return
    recorder = StageRecorder(backend, "aot_eager_decomp_partition")
    inputs = _made_up(captured)
    try:
        with undone_afterwards("recording what is compiled") as undo, nothing_left_behind(), random_numbers_kept(0):
            collecting(undo, recorder.install)
            outputs = recorder(captured, inputs)(*inputs)
            _run_backward(outputs)
    except synchronous():  # made-up values may be out of some bounds; then there is only the captured graph
        return
    note = "made again from the captured graph by AOTAutograd, with the decompositions of Inductor"
    for stage in (Stage.FORWARD, Stage.BACKWARD):
        graph = recorder.compilations[0].graph(stage) if recorder.compilations else None
        if graph is not None and graph.calls:
            call = graph.calls[0]
            yield GraphSource(compiled.name, stage, compiled.compile_id, graph.module, call=call, notes=(note,))


def _run_backward(outputs: Any) -> None:
    import torch

    ends = [each for each in outputs if isinstance(each, torch.Tensor) and each.requires_grad]
    if ends:
        torch.autograd.backward(ends, [torch.ones_like(each) for each in ends])


def _made_up(module: torch.fx.GraphModule) -> List[object]:
    """Return real inputs for a graph with fake inputs, as a script makes them."""
    import torch

    tensors = Tensors(values=False)
    expressions = tensors.inputs(names_of_inputs(module), fake_inputs(module))
    names: Dict[str, object] = {"torch": torch}
    exec(script_template.TENSOR, names)
    for base in tensors.bases:
        exec(base, names)
    return [eval(expression, names) for expression in expressions]


def run_of(
    target: CallTarget,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    wanted: Callable[[CompiledFunction], bool] = lambda _: False,
) -> List[GraphSource]:
    """Return the graphs that a call runs, with their inputs: a copy is run, and the user's objects do not change.
    Dynamo compiles a graph for the sizes of the call or for dynamic ones; if the first is not ``wanted``, the second is
    tried.
    """
    # ``dynamic=None`` compiles the first call for its sizes. The wanted graph may be the one that a second call with
    # other sizes has made: try static and dynamic sizes as well.
    known = compiled_functions(target)
    configured = private_names.DYNAMIC.of(target.entered)
    may_be = any(wanted(each) for each in known)
    found: List[GraphSource] = []
    for dynamic in (configured, *(each for each in (False, True) if may_be and each != configured)):
        compilations = _recorded(target, args, kwargs, dynamic=dynamic)
        names = known_ones(compilations, known)
        sources = list(_sources(compilations, names))
        if not may_be or any(each is not None and wanted(each) for each in names):
            return sources
        found = found or sources
    return found


def _recorded(
    target: CallTarget, args: Sequence[object], kwargs: Mapping[str, object], *, dynamic: Optional[bool]
) -> List[RecordedCompilation]:
    backend, name = backend_of(None, target.entered)
    recorder = StageRecorder(backend, name)
    with contextlib.ExitStack() as stack:
        for manager in (random_numbers_kept(), nothing_left_behind(), same_random_numbers()):
            stack.enter_context(manager)
        undo = stack.enter_context(undone_afterwards("recording what is compiled"))
        collecting(undo, recorder.install)
        copied = private_copy(target, args, kwargs)
        function = copied.compiled(
            lambda each: compiled_with(each, recorder, dynamic=dynamic, isolate=cache_entries.has_regions())
        )
        stack.enter_context(StateSnapshot(target, (*args, *kwargs.values())).restored())
        with contextlib.suppress(NoGradientsError):  # it has run its backward graphs itself
            run(copied, function, backward=torch_names.module("torch").is_grad_enabled())
    return recorder.compilations


def _sources(
    compilations: Sequence[RecordedCompilation], names: Sequence[Optional[CompiledFunction]]
) -> Iterator[GraphSource]:
    """Yield the graphs that were called, under the numbers of their cache entries; graphs without an entry by their
    order."""
    for number, (compilation, known) in enumerate(zip(compilations, names)):
        function = f"graph_{number}" if known is None else known.name
        compile_id = None if known is None else known.compile_id
        for kind, graph in compilation.graphs.items():
            call = graph.calls[0] if graph.calls else None
            if call is not None:
                yield GraphSource(function, kind, compile_id, graph.module, call=call)


CodeKey = Tuple[str, str, int]
"""Name, file and first line of a code object: a copy has the same."""


@dataclass(frozen=True)
class CompiledFunction:
    """A compiled function of Dynamo's in a cache entry of ``code``; ``captured`` is its graph, if kept."""

    name: str
    compile_id: Optional[str]
    function: object
    code: CodeKey
    captured: Optional[torch.fx.GraphModule] = field(default=None, repr=False)


def known_ones(
    compilations: Sequence[RecordedCompilation], known: Sequence[CompiledFunction]
) -> List[Optional[CompiledFunction]]:
    """Return the ``known`` compiled function that each compilation made again; None: it made another one."""
    found: List[Optional[CompiledFunction]] = []
    for compilation in compilations:
        # The same code object, and among its graphs the one with the same operations and sizes. If the code was
        # compiled only once in both runs, there is nothing to confuse it with, whatever its graph looks like.
        of_code = [each for each in known if each.code == compilation.code and each not in found]
        alike = [each for each in of_code if _shown(each.captured) == _shown(compilation.graphs[Stage.CAPTURED].module)]
        once = sum(each.code == compilation.code for each in compilations) == 1
        only = of_code if once and sum(each.code == compilation.code for each in known) == 1 else []
        found.append(next(iter([*alike, *only]), None))
    return found


def _shown(module: Optional[torch.fx.GraphModule]) -> Tuple[object, ...]:
    """Return what distinguishes graphs of one code object: operations, and the sizes and types of inputs."""
    if module is None:
        return ()
    inputs = [node.meta.get("example_value", node.meta.get("val")) for node in placeholders(module.graph)]
    facts = [(str(getattr(each, "shape", each)), str(getattr(each, "dtype", ""))) for each in inputs]
    symbols: List[str] = []
    text = re.sub(r"\b[su]\d+\b", lambda match: _numbered(match.group(), symbols), f"{facts}")
    targets = [(node.op, str(node.target)) for node in module.graph.nodes if node.op not in ("placeholder", "get_attr")]
    return (text, tuple(targets))


def _numbered(symbol: str, symbols: List[str]) -> str:
    """Return the name of a symbol by its order: torch numbers symbols differently each time."""
    if symbol not in symbols:
        symbols.append(symbol)
    return f"s_{symbols.index(symbol)}"
