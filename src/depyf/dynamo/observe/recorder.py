"""Record graphs on their way to the user's backend, and pass each call of their compiled code to an ``Observation``.

A ``GraphRecorder`` gives Dynamo a backend that calls the user's own. With ``inner`` it watches three levels, from the
outside in: the backend itself (Dynamo's graph), the compilers that AOTAutograd is given (forward, backward, inference),
and what Inductor calls for one graph, because AOTAutograd hands Inductor graphs in which Inductor has yet to replace
random numbers by its own. A graph is observed at the innermost level that it reaches. Without ``inner`` it is always
Dynamo's graph, whose nodes are the calls that the user wrote; the backend then keeps all its settings and caches.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from depyf.base.quick_dataclass import replace
from depyf.dynamo.hooks import compile_ids, private_names, torch_names
from depyf.dynamo.hooks.backward_methods import all_backward_classes, replace_backward
from depyf.dynamo.hooks.compiled_names import watch_compiled_names
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.observe import graph_facts
from depyf.dynamo.observe.graph_facts import GraphCopy
from depyf.dynamo.observe.observation import ATEN, DYNAMO, Observation, ObservedGraph
from depyf.dynamo.observe.shadow_entries import ShadowBackend, ShadowEntries
from depyf.dynamo.observe.tally import Tally
from depyf.dynamo.store.names import compiled_fn_number

if TYPE_CHECKING:
    import torch

_OFF = ("enable_autograd_cache", "donated_buffer")
"""Settings of AOTAutograd's: its cache would give us compiled code without a graph, and code that was given its inputs
to keep would write into those that the observers still look at."""


_EARLIER = "for the backward of a forward that had run before"


class _OpenCompilation:
    """A compilation on a thread. ``inside`` is set when an inner compilation takes it over."""

    def __init__(self, function: str, names: Tuple[str, ...], backend: str, *, backward: bool = False) -> None:
        self.function = function
        self.names = names
        self.backend = backend
        self.backward = backward
        self.inside = False

    def part(self, *, backward: bool) -> _OpenCompilation:
        return _OpenCompilation(self.function, self.names, self.backend, backward=backward)


class _CompilingThread(threading.local):
    compilation: Optional[_OpenCompilation] = None
    name = "__compiled_fn"


_here = _CompilingThread()

Subscriber = Callable[[], Optional[Observation]]
"""Returns what observes the calls of a graph, once it is compiled; None: its calls are only counted."""

Subscribe = Callable[[ObservedGraph, "torch.fx.GraphModule"], Optional[Subscriber]]
"""Called with a graph that is about to be compiled, which may fail. None is the same as a subscriber's None."""


def begin(observation: Observation) -> None:
    """Install everything for observers of all graphs, until what it registers (``patching.collecting``) is undone."""
    safely("beginning to observe compiled graphs")(_count_earlier_backwards)(observation)
    GraphRecorder(
        lambda *_: lambda: observation, observation.tally, inner=True, is_open=lambda: observation.is_open
    ).start()


class GraphRecorder:
    """Records the graphs that are compiled, and asks ``subscribe`` who observes their calls.

    ``is_open`` returns whether anybody observes now: backwards may be compiled after the recorder was uninstalled, and
    for observers that came after that.
    """

    def __init__(
        self, subscribe: Subscribe, tally: Tally, *, inner: bool, is_open: Callable[[], bool] = lambda: True
    ) -> None:
        self._subscribe = subscribe
        self._tally = tally
        self.inner = inner
        self.is_open = is_open

    def start(self) -> None:
        """Install everything, until what it registers (``patching.collecting``) is undone. Raises ``RuntimeError``
        where this torch can't be observed.
        """
        hooks: List[Callable[[], object]] = [lambda: watch_compiled_names(_note_name)]
        if self.inner:
            hooks += [lambda: _watch_aot(self), lambda: _watch_inductor(self)]
        for install in hooks:
            safely("beginning to observe compiled graphs")(install)()
        # Last: what another thread compiles with our backend has to be seen on its whole way.
        ShadowEntries(functools.partial(_Backend, self), self._tally).install()

    def recorded(
        self, note: Optional[_Note], compiled: object, *, boxed: Optional[bool] = None, generated: Optional[str] = None
    ) -> object:
        """Return the callable that replaces ``compiled``, the code of a graph; ``boxed``: see ``Observation.around``,
        by default as ``compiled`` itself is marked."""
        if note is None or not callable(compiled):
            return compiled
        observation = None if note.subscriber is None else note.subscriber()
        if observation is None:
            return self._counted(compiled)
        graph = note.graph if generated is None else replace(note.graph, generated=generated)
        return observation.around(graph, compiled, boxed=_is_boxed(compiled) if boxed is None else boxed)

    def _counted(self, compiled: Callable[..., object]) -> Callable[..., object]:
        def run(*arguments: object) -> object:
            self._tally.graph_runs()
            return compiled(*arguments)

        return run

    def note(self, compilation: _OpenCompilation, module: torch.fx.GraphModule, level: str) -> Optional[_Note]:
        """Record a graph before it is compiled: backends change graphs in place."""
        graph = _describe(compilation, module, level)
        return None if graph is None else _Note(graph, self._subscribe(graph, module))


class _Note(NamedTuple):
    graph: ObservedGraph
    subscriber: Optional[Subscriber]


class _Backend(ShadowBackend):
    """The user's backend, observed."""

    def __init__(self, recorder: GraphRecorder, compiler: Callable[..., object], user_backend: object) -> None:
        self._recorder = recorder
        super().__init__(compiler, user_backend)

    def __call__(self, module: torch.fx.GraphModule, example_inputs: Sequence[object], **kwargs: object) -> object:
        if not self._recorder.is_open():
            return self._compiler(module, example_inputs, **kwargs)
        compilation = _OpenCompilation(_here.name, _names(module) or (), self.__name__)
        note = self._recorder.note(compilation, module, DYNAMO)
        if self._recorder.inner:
            with _compiling(compilation), _settings():
                compiled = self._compiler(module, example_inputs, **kwargs)
        else:
            compiled = self._compiler(module, example_inputs, **kwargs)
        # Dynamo's bytecode passes arguments one by one, also to what AOTAutograd has marked as boxed.
        return compiled if compilation.inside else self._recorder.recorded(note, compiled, boxed=False)


def _is_boxed(compiled: object) -> bool:
    return bool(private_names.BOXED_CALL.of(compiled, False))


def _note_name(name: str) -> None:
    number = compiled_fn_number(name)
    if number is not None:
        _here.name = f"__compiled_fn_{number}"


def _watch_aot(recorder: GraphRecorder) -> None:
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
        if compilation is None or not recorder.is_open():
            return original(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        given = bound.arguments
        # From 2.9 on the compilers are arguments (``aot_stage2_compile``). Before, they are fields of the ``AOTConfig``
        # that is an argument (``create_aot_dispatcher_function``).
        if "fw_compiler" in signature.parameters:
            given.update(_observed_compilers(recorder, compilation, given.get))
        else:
            config = given.get("aot_config") or getattr(given.get("aot_state"), "aot_config", None)
            for each, compiler in _observed_compilers(recorder, compilation, vars(config).get).items():
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
    recorder: GraphRecorder, compilation: _OpenCompilation, given: Callable[[str], Any]
) -> Dict[str, Callable[..., object]]:
    forward = given("fw_compiler")
    return {
        name: _observed_compiler(recorder, compilation.part(backward=backward), given(name) or forward)
        for name, backward in (("fw_compiler", False), ("bw_compiler", True), ("inference_compiler", False))
    }


def _observed_compiler(
    recorder: GraphRecorder, compilation: _OpenCompilation, compiler: Callable[..., Callable[..., object]]
) -> Callable[..., object]:
    @functools.wraps(compiler)
    def compile_one(
        module: torch.fx.GraphModule, example_inputs: Sequence[object], *args: object, **kwargs: object
    ) -> object:
        if not recorder.is_open():
            return compiler(module, example_inputs, *args, **kwargs)
        mine = compilation.part(backward=compilation.backward)
        note = recorder.note(mine, module, ATEN)
        with _compiling(mine):
            compiled = compiler(module, example_inputs, *args, **kwargs)
        return compiled if mine.inside else recorder.recorded(note, compiled)

    return compile_one


def _watch_inductor(recorder: GraphRecorder) -> None:
    original = private_names.COMPILE_FX_INNER.find()
    if original is None:
        return

    @functools.wraps(original)
    def compile_one(
        module: torch.fx.GraphModule, example_inputs: Sequence[object], *args: object, **kwargs: object
    ) -> object:
        compilation = _here.compilation
        if compilation is None or not recorder.is_open():
            return original(module, example_inputs, *args, **kwargs)
        note = recorder.note(compilation, module, ATEN)
        compiled: Any = original(module, example_inputs, *args, **kwargs)
        if note is None:
            return compiled
        compilation.inside = True
        # A ``CompiledFxGraph`` calls its ``current_callable``, which always takes a list; AOTAutograd needs the object
        # itself, for the attributes that it has beside that.
        if hasattr(compiled, "current_callable"):
            code = compiled.current_callable
            file = getattr(getattr(code, "__code__", None), "co_filename", None)
            compiled.current_callable = recorder.recorded(note, code, boxed=True, generated=file)
            return compiled
        return recorder.recorded(note, compiled)

    private_names.COMPILE_FX_INNER.replace(compile_one)


@safely("noting a graph that is compiled")
def _describe(compilation: _OpenCompilation, module: torch.fx.GraphModule, level: str) -> ObservedGraph:
    copied = GraphCopy(module)
    inputs = len(graph_facts.placeholders(copied.graph))
    outputs = len(graph_facts.output_nodes(copied.graph))
    # Dynamo's graph does not say what it writes to: all that is given is kept.
    written = graph_facts.written_inputs(copied.graph) if level == ATEN else tuple(range(inputs))
    names = compilation.names if len(compilation.names) == inputs and not compilation.backward else ("",) * inputs
    return ObservedGraph(
        compile_id=compile_ids.current_compile_id(),
        function=compilation.function,
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


@safely("reading the names of a graph's inputs")
def _names(module: torch.fx.GraphModule) -> Tuple[str, ...]:
    return graph_facts.names_of_inputs(module)


@contextlib.contextmanager
def _compiling(compilation: _OpenCompilation) -> Iterator[None]:
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
