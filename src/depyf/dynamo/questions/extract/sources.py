"""Find the graphs to extract: those that a compiled function still references, or from a run of a copy of it."""

from __future__ import annotations

import contextlib
from dataclasses import field
from types import FunctionType
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
)

from depyf.asynchronous import synchronous
from depyf.dynamo.dump.full_code.story import global_scope
from depyf.dynamo.entries.call_target import CallTarget
from depyf.dynamo.entries.called_entries import entries_of
from depyf.dynamo.hooks import backends, cache_entries, private_names, torch_names
from depyf.dynamo.hooks.hooked_context import undone_afterwards
from depyf.dynamo.hooks.patching import collecting
from depyf.dynamo.hooks.recovered import recover
from depyf.dynamo.observe.graph_facts import placeholders
from depyf.dynamo.questions.compare.observed_run import NoGradientsError, random_numbers_kept, run
from depyf.dynamo.questions.compare.private_copy import private_copy
from depyf.dynamo.questions.compare.question import backend_of
from depyf.dynamo.questions.compare.recorded import (
    Call,
    Compilation,
    Recorder,
    place_of,
)
from depyf.dynamo.questions.compare.stage_runs import compiled_with, nothing_left_behind, same_random_numbers
from depyf.dynamo.questions.compare.state_snapshot import Shared
from depyf.dynamo.questions.extract.ids import Compiled, known_ones
from depyf.dynamo.scripts import template as script_template
from depyf.dynamo.scripts.graph import names_of_inputs
from depyf.dynamo.scripts.tensors import Tensors
from depyf.dynamo.store.names import compiled_fn_number
from depyf.quick_dataclass import dataclass
from depyf.torch_trace.stages import AnyStage, Stage

if TYPE_CHECKING:
    import torch


@dataclass
class Source:
    """A graph that can be extracted: its module (or only its text), and how it was called.

    ``piece`` is the name of the piece of a split graph that it is, ``index`` its number among those of its stage.
    """

    function: str
    stage: AnyStage
    compile_id: Optional[str]
    module: Optional[torch.fx.GraphModule] = field(default=None, repr=False)
    text: str = field(default="", repr=False)
    call: Optional[Call] = field(default=None, repr=False)
    notes: Tuple[str, ...] = ()
    index: str = "0"
    piece: Optional[str] = None

    @property
    def name(self) -> str:
        return f"{self.function}.{self.stage.value}"


def compiled_functions(target: CallTarget) -> List[Compiled]:
    """Return all ``__compiled_fn_<n>`` in the cache entries of a function and of its resume functions, by their
    numbers."""
    found: Dict[str, Compiled] = {}
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
                    found[f"__compiled_fn_{number}"] = Compiled(
                        f"__compiled_fn_{number}", entry.compile_id, scope[name], place_of(code), captured
                    )
                elif name.startswith("__resume_at_") and isinstance(scope.get(name), FunctionType):
                    todo.append(scope[name].__code__)
    return sorted(found.values(), key=lambda each: compiled_fn_number(each.name) or 0)


def held(target: CallTarget) -> List[Source]:
    """Return the graphs that a compiled function still references; Inductor's forward and backward are made again."""
    sources: List[Source] = []
    for compiled in compiled_functions(target):
        found = recover(compiled.function)
        modules = dict(found.graphs)
        for stage in (Stage.CAPTURED, Stage.FORWARD, Stage.BACKWARD):
            module = modules.get(stage)
            if module is not None and _has_values(module):
                sources.append(Source(compiled.name, stage, compiled.compile_id, module))
        there = {source.stage for source in sources if source.function == compiled.name}
        if Stage.CAPTURED in there and found.kernels and Stage.FORWARD not in there:
            sources += list(_made_again(compiled, modules[Stage.CAPTURED]))
        for kernel in found.kernels:
            if kernel.post_grad and not kernel.backward:
                sources.append(Source(compiled.name, Stage.AFTER_POST_GRAD, compiled.compile_id, text=kernel.post_grad))
    return sources


def fake_inputs(module: torch.fx.GraphModule) -> List[object]:
    """Return the inputs of the graph while it was traced: fake tensors, sizes."""
    return [node.meta.get("val", node.meta.get("example_value")) for node in placeholders(module.graph)]


def _has_values(module: torch.fx.GraphModule) -> bool:
    return all("val" in node.meta or "example_value" in node.meta for node in placeholders(module.graph))


def _made_again(compiled: Compiled, captured: torch.fx.GraphModule) -> Iterator[Source]:
    """Yield the graphs that AOTAutograd makes of a captured one, with Inductor's decompositions and made-up inputs."""
    backend = backends.registered_backend("aot_eager_decomp_partition")
    if backend is None:
        return
    recorder = Recorder(backend, "aot_eager_decomp_partition")
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
            yield Source(compiled.name, stage, compiled.compile_id, graph.module, call=call, notes=(note,))


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
    wanted: Callable[[Compiled], bool] = lambda _: False,
) -> List[Source]:
    """Return the graphs that a call runs, with their inputs: a copy is run, and the user's objects do not change.
    Dynamo compiles a graph for the sizes of the call or for dynamic ones; if the first is not ``wanted``, the second is
    tried.
    """
    known = compiled_functions(target)
    configured = private_names.DYNAMIC.of(target.entered)
    may_be = any(wanted(each) for each in known)
    found: List[Source] = []
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
) -> List[Compilation]:
    backend, name = backend_of(None, target.entered)
    recorder = Recorder(backend, name)
    with contextlib.ExitStack() as stack:
        for manager in (random_numbers_kept(), nothing_left_behind(), same_random_numbers()):
            stack.enter_context(manager)
        undo = stack.enter_context(undone_afterwards("recording what is compiled"))
        collecting(undo, recorder.install)
        copied = private_copy(target, args, kwargs)
        function = copied.compiled(
            lambda each: compiled_with(each, recorder, dynamic=dynamic, isolate=cache_entries.has_regions())
        )
        stack.enter_context(Shared(target, (*args, *kwargs.values())).put_back())
        with contextlib.suppress(NoGradientsError):  # it has run its backward graphs itself
            run(copied, function, backward=torch_names.module("torch").is_grad_enabled())
    return recorder.compilations


def _sources(compilations: Sequence[Compilation], names: Sequence[Optional[Compiled]]) -> Iterator[Source]:
    """Yield the graphs that were called, numbered as those of the cache entries; others by their order."""
    for number, (compilation, known) in enumerate(zip(compilations, names)):
        function = f"graph_{number}" if known is None else known.name
        compile_id = None if known is None else known.compile_id
        for kind, graph in compilation.graphs.items():
            call = graph.calls[0] if graph.calls else None
            if call is not None:
                yield Source(function, kind, compile_id, graph.module, call=call)
