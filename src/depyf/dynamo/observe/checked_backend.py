"""A backend that calls the user's own and observes the graphs that it compiles, wherever they are compiled.

Three places are watched, from the outside in: the backend itself (Dynamo's graph), the compilers that AOTAutograd is
given (forward, backward, inference), and what Inductor calls for one graph, because AOTAutograd hands Inductor graphs
in which Inductor has yet to replace random numbers by its own. A graph is observed at the innermost place that
it reaches.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from depyf.dynamo.hooks import compile_ids, private_names, torch_names
from depyf.dynamo.hooks.backward_methods import all_backward_classes, replace_backward
from depyf.dynamo.hooks.compiled_names import watch_compiled_names
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.observe import graph_facts
from depyf.dynamo.observe.graph_facts import GraphCopy
from depyf.dynamo.observe.observation import ATEN, DYNAMO, Observation, ObservedGraph
from depyf.dynamo.observe.shadow_entries import OwnBackend, OwnEntries
from depyf.dynamo.store.names import compiled_fn_number
from depyf.quick_dataclass import replace

if TYPE_CHECKING:
    import torch

_OFF = ("enable_autograd_cache", "donated_buffer")
"""Settings of AOTAutograd's: its cache would give us compiled code without a graph, and code that was given its inputs
to keep would write into those that the observers still look at."""


_EARLIER = "for the backward of a forward that had run before"


class _Compilation:
    """A compilation on a thread. ``inside`` is set when an inner compilation takes it over."""

    def __init__(self, function: str, names: Tuple[str, ...], backend: str, *, backward: bool = False) -> None:
        self.function = function
        self.names = names
        self.backend = backend
        self.backward = backward
        self.inside = False

    def part(self, *, backward: bool) -> _Compilation:
        return _Compilation(self.function, self.names, self.backend, backward=backward)


class _Here(threading.local):
    compilation: Optional[_Compilation] = None
    name = "__compiled_fn"


_here = _Here()


def begin(observation: Observation) -> None:
    """Install everything, until what it registers (``patching.collecting``) is undone."""
    for install in (lambda _: watch_compiled_names(_note_name), _watch_aot, _watch_inductor, _count_earlier_backwards):
        safely("beginning to observe compiled graphs")(install)(observation)
    # Last: what another thread compiles with our backend has to be seen on its whole way.
    OwnEntries(functools.partial(_Backend, observation), observation.tally).install()


class _Backend(OwnBackend):
    """The user's backend, observed."""

    def __init__(self, observation: Observation, compiler: Callable[..., object], user_backend: object) -> None:
        self._observation = observation
        super().__init__(compiler, user_backend)

    def __call__(self, module: torch.fx.GraphModule, example_inputs: Sequence[object], **kwargs: object) -> object:
        if not self._observation.is_open:
            return self._compiler(module, example_inputs, **kwargs)
        compilation = _Compilation(_here.name, _names(module) or (), self.__name__)
        note = _describe(compilation, module, DYNAMO)
        with _compiling(compilation), _settings():
            compiled = self._compiler(module, example_inputs, **kwargs)
        if compilation.inside or note is None or not callable(compiled):
            return compiled
        return _observed(self._observation, note, compiled, boxed=bool(private_names.BOXED_CALL.of(compiled, False)))


def _note_name(name: str) -> None:
    _here.name = name


def _watch_aot(observation: Observation) -> None:
    """Observe what AOTAutograd's compilers make; which function is given them depends on the version."""
    name = torch_names.first_row_of(private_names.AOT_COMPILE_GRAPHS, private_names.AOT_COMPILE_GRAPHS_BEFORE)
    if name is None:
        torch_names.report_once(
            "observe aot", "this PyTorch's AOTAutograd is not known: backward graphs are not observed"
        )
        return
    original = name.find()
    signature = inspect.signature(original)

    @functools.wraps(original)
    def with_observed_compilers(*args: object, **kwargs: object) -> object:
        compilation = _here.compilation
        if compilation is None or not observation.is_open:
            return original(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        given = bound.arguments
        if "fw_compiler" in signature.parameters:
            given.update(_observed_compilers(observation, compilation, given.get))
        else:
            config = given.get("aot_config") or getattr(given.get("aot_state"), "aot_config", None)
            for each, compiler in _observed_compilers(observation, compilation, vars(config).get).items():
                setattr(config, each, compiler)
        compilation.inside = True
        return original(*bound.args, **bound.kwargs)

    name.replace(with_observed_compilers)


def _count_earlier_backwards(observation: Observation) -> None:
    """Count the backwards that are not observed, because their forwards have run before."""
    for owner in all_backward_classes():
        replace_backward(owner, functools.partial(_counted, observation))


def _counted(observation: Observation, method: Callable[..., object]) -> Callable[..., object]:
    def counted(*args: object, **kwargs: object) -> object:
        before = observation.reported
        try:
            return method(*args, **kwargs)
        finally:
            if observation.reported == before:  # else its forward ran in an earlier context of ours
                observation.tally.miss(_EARLIER)

    return counted


def _observed_compilers(
    observation: Observation, compilation: _Compilation, given: Callable[[str], Any]
) -> Dict[str, Callable[..., object]]:
    forward = given("fw_compiler")
    return {
        name: _observed_compiler(observation, compilation.part(backward=backward), given(name) or forward)
        for name, backward in (("fw_compiler", False), ("bw_compiler", True), ("inference_compiler", False))
    }


def _observed_compiler(
    observation: Observation, compilation: _Compilation, compiler: Callable[..., Callable[..., object]]
) -> Callable[..., object]:
    @functools.wraps(compiler)
    def compile_one(
        module: torch.fx.GraphModule, example_inputs: Sequence[object], *args: object, **kwargs: object
    ) -> object:
        if not observation.is_open:
            return compiler(module, example_inputs, *args, **kwargs)
        mine = compilation.part(backward=compilation.backward)
        note = _describe(mine, module, ATEN)
        with _compiling(mine):
            compiled = compiler(module, example_inputs, *args, **kwargs)
        if mine.inside or note is None:
            return compiled
        return _observed(observation, note, compiled, boxed=bool(private_names.BOXED_CALL.of(compiled, False)))

    return compile_one


def _watch_inductor(observation: Observation) -> None:
    original = private_names.COMPILE_FX_INNER.find()
    if original is None:
        return

    @functools.wraps(original)
    def compile_one(
        module: torch.fx.GraphModule, example_inputs: Sequence[object], *args: object, **kwargs: object
    ) -> object:
        compilation = _here.compilation
        if compilation is None or not observation.is_open:
            return original(module, example_inputs, *args, **kwargs)
        note = _describe(compilation, module, ATEN)
        compiled: Any = original(module, example_inputs, *args, **kwargs)
        if note is None:
            return compiled
        compilation.inside = True
        if hasattr(compiled, "current_callable"):
            code = getattr(compiled.current_callable, "__code__", None)
            note = replace(note, generated=getattr(code, "co_filename", None))
            compiled.current_callable = _observed(observation, note, compiled.current_callable, boxed=True)
            return compiled
        return _observed(observation, note, compiled, boxed=bool(private_names.BOXED_CALL.of(compiled, False)))

    private_names.COMPILE_FX_INNER.replace(compile_one)


def _observed(
    observation: Observation, graph: ObservedGraph, compiled: Callable[..., object], *, boxed: bool
) -> Callable[..., object]:
    """Return a callable like ``compiled`` whose calls are reported to the observers."""
    if boxed:

        def run(arguments: List[object]) -> object:
            return observation.run(graph, compiled, arguments, boxed=True)

        setattr(run, private_names.BOXED_CALL.name, True)
        return run

    def run_unboxed(*arguments: object) -> object:
        return observation.run(graph, compiled, list(arguments), boxed=False)

    return run_unboxed


@safely("noting a graph that is compiled")
def _describe(compilation: _Compilation, module: torch.fx.GraphModule, level: str) -> ObservedGraph:
    copied = GraphCopy(module)
    inputs = len(graph_facts.placeholders(copied.graph))
    outputs = len(graph_facts.output_nodes(copied.graph))
    # Dynamo's graph does not say what it writes to: all that is given is kept.
    written = graph_facts.written_inputs(copied.graph) if level == ATEN else tuple(range(inputs))
    names = compilation.names if len(compilation.names) == inputs and not compilation.backward else ("",) * inputs
    return ObservedGraph(
        compile_id=compile_ids.current_compile_id(),
        function=_without_suffix(compilation.function),
        backward=compilation.backward,
        level=level,
        copied=copied,
        input_names=names,
        results=tuple(range(_count_of_results(outputs) if level == ATEN and not compilation.backward else outputs)),
        written=written,
        random=level == DYNAMO or graph_facts.is_random(module),
        backend=compilation.backend,
    )


def _count_of_results(outputs: int) -> int:
    """Return how many outputs of a forward graph belong to the program, as AOTAutograd records it."""
    tracing = compile_ids.tracing_context()
    count = getattr(getattr(tracing, "fw_metadata", None), "num_forward_returns", None)
    return outputs if not isinstance(count, int) or count > outputs else count


def _without_suffix(name: str) -> str:
    number = compiled_fn_number(name)
    return name if number is None else f"__compiled_fn_{number}"


@safely("reading the names of a graph's inputs")
def _names(module: torch.fx.GraphModule) -> Tuple[str, ...]:
    return graph_facts.names_of_inputs(module)


@contextlib.contextmanager
def _compiling(compilation: _Compilation) -> Iterator[None]:
    before, _here.compilation = _here.compilation, compilation
    try:
        yield
    finally:
        _here.compilation = before


@contextlib.contextmanager
def _settings() -> Iterator[None]:
    config = private_names.AOT_CONFIG.find()
    with config.patch({name: False for name in _OFF if hasattr(config, name)}):
        yield
