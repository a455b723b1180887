"""Calls of compiled graphs, observed while a program runs; of code that was compiled before, too.

``observation.add(observer, begin)`` registers an observer, which is called with a ``GraphCall`` after each call of a
compiled graph, in the thread that made it: the graph as it was before the backend changed it, the inputs before the
call, and the outputs of the compiled code. Interpreting ``call.graph.module`` with ``call.inputs`` computes the same
once more. The program gets the results of its own backend, with its options.

How it works: compiled code does not keep the graph that it was compiled from, and a compiler cache never had it. So
Dynamo gets a backend that calls the user's own and records the graphs on their way (``recorder.py``), and
compiles the functions that are called inside once more (``shadow_entries.py``). At the end these shadow cache entries
are invalidated. The entries from before are neither used nor moved meanwhile. Backwards of forwards that ran before are
not observed.

Levels: a backend that uses AOTAutograd (Inductor, aot_eager and most others) is observed at ``"aten"``, forward and
backward. Any other is observed at ``"dynamo"``: the graph that Dynamo captured, forward only.

Observers run with Dynamo disabled and without gradients, and must not change values. What one raises is reported and
goes no further; an exception that it *returns* is raised in the program. Several observers may be registered: all are
called.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import field
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from depyf.base.locks import Lock
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.hooked_context import uninstall
from depyf.dynamo.hooks.patching import Undo, collecting
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.observe.graph_facts import GraphCopy
from depyf.dynamo.observe.random_state import RandomState, is_capturing
from depyf.dynamo.observe.tally import Tally

if TYPE_CHECKING:
    import torch

ATEN, DYNAMO = "aten", "dynamo"

_CAPTURING = "of a graph came while a CUDA graph was captured, when nothing may be read"
_NOT_KEPT = "of a graph could not be observed: depyf has reported the reason"


@dataclass(frozen=True, eq=False)
class ObservedGraph:
    """A graph that a backend compiled.

    ``function`` is Dynamo's name for it, ``__compiled_fn_<n>``. ``input_names`` are the user's names of its inputs in
    Dynamo's terms, with "" where they are not known. ``results`` are the numbers of the outputs that the program gets
    (the others are saved for the backward), ``written`` the numbers of the inputs that the graph writes to. ``random``
    is whether the graph draws random numbers, ``backend`` the name of the user's backend, ``generated`` the file of
    Inductor's code.
    """

    compile_id: Optional[str]
    function: str
    backward: bool
    level: str
    copied: GraphCopy = field(repr=False)
    input_names: Tuple[str, ...]
    results: Tuple[int, ...]
    written: Tuple[int, ...]
    random: bool
    backend: str
    generated: Optional[str] = None

    @property
    def graph(self) -> torch.fx.Graph:
        """The ``torch.fx.Graph``."""
        return self.copied.graph

    @property
    def module(self) -> torch.fx.GraphModule:
        """The ``torch.fx.GraphModule`` to interpret."""
        return self.copied.module()


@dataclass(frozen=True, eq=False)
class GraphCall:
    """One call of a compiled graph. ``written`` has the inputs that the graph wrote to as they are after the call, by
    their numbers; ``inputs`` has copies of these, from before it. ``random_state`` is the state before the call, None
    if the graph draws no random numbers.
    """

    graph: ObservedGraph
    inputs: Tuple[Any, ...]
    outputs: Tuple[Any, ...]
    written: Mapping[int, torch.Tensor]
    random_state: Optional[RandomState]

    @property
    def rng_state(self) -> Optional[torch.Tensor]:
        """The state of the CPU's generator before the call, None if the graph draws none."""
        return None if self.random_state is None else self.random_state.cpu

    def given(self, number: int) -> Any:
        """Return the input of that number itself where ``inputs`` has a copy: the graph may have written to it."""
        return self.written.get(number, self.inputs[number])


Observer = Callable[[GraphCall], Optional[BaseException]]


def _cloned(value: torch.Tensor) -> torch.Tensor:
    return value.detach().clone()


class Observation:
    """The observers of the calls of all graphs (``observation``), or of one graph. ``copy`` copies an input that a
    graph writes to."""

    def __init__(self, tally: Tally, copy: Callable[[torch.Tensor], torch.Tensor] = _cloned) -> None:
        self._copy = copy
        self._here = threading.local()
        self._observers: List[Observer] = []
        self._lock = Lock()
        self._undo: List[Undo] = []
        self.reported = 0
        """How many calls of graphs were passed to observers."""
        self.tally = tally
        """Counts the calls of compiled functions during an observation, and those that are not observed."""

    @property
    def is_open(self) -> bool:
        return bool(self._observers)

    def add(self, observer: Observer, begin: Callable[[Observation], None]) -> None:
        """Call ``observer`` from now on. For the first one ``begin`` installs the hooks; they are removed with the
        last."""
        try:
            with self._lock:
                # Before anything is installed: what another thread compiles meanwhile is observed as well.
                self._observers.append(observer)
                if len(self._observers) == 1:
                    collecting(self._undo, lambda: begin(self))
        except BaseException:
            self.remove(observer)
            raise

    def remove(self, observer: Observer) -> None:
        """Stop calling ``observer``. May be called again if it was interrupted."""
        with self._lock:
            if observer in self._observers:
                self._observers.remove(observer)
            if not self._observers:
                uninstall(self._undo, "ending to observe compiled graphs")

    def around(self, graph: ObservedGraph, compiled: Callable[..., object], *, boxed: bool) -> Callable[..., object]:
        """Return a callable like ``compiled``, the code of ``graph``, whose calls are passed to the observers.
        ``boxed``: it is called with one list, which it has to empty."""
        if boxed:

            def run(arguments: List[object]) -> object:
                return self._run(graph, compiled, arguments, boxed=True)

            setattr(run, private_names.BOXED_CALL.name, True)
            return run

        return lambda *arguments: self._run(graph, compiled, list(arguments), boxed=False)

    def _run(
        self, graph: ObservedGraph, compiled: Callable[..., object], arguments: List[object], *, boxed: bool
    ) -> object:
        """Call ``compiled``, the code of ``graph``, and then the observers."""
        # Copies are made before the call, since the graph may write to its inputs. Not while a CUDA graph is captured:
        # the copies would become a part of it.
        before = None
        if self.is_open:
            self.tally.graph_runs()
            before = None if is_capturing() else _before(graph, arguments, self._copy)
            if before is None:
                self.tally.miss(_CAPTURING if is_capturing() else _NOT_KEPT)
        given = list(arguments)
        if boxed:
            arguments.clear()  # a boxed call empties its list, so that inputs can be freed early
        was_inside, self._here.inside = self.inside_a_graph(), True
        try:
            outputs = compiled(given) if boxed else compiled(*given)
        finally:
            self._here.inside = was_inside
        if before is not None:
            self.reported += 1
            error = self._notify(before, outputs)
            if error is not None:
                raise error
        return outputs

    def inside_a_graph(self) -> bool:
        """Return whether this thread runs a compiled graph now."""
        return getattr(self._here, "inside", False)

    @safely("looking at what a compiled graph has computed")
    def _notify(self, before: _Before, outputs: object) -> Optional[BaseException]:
        call = before.finished(outputs)
        with _unseen():
            for observer in list(self._observers):
                error = observer(call)
                if error is not None:
                    return error
        return None


observation = Observation(Tally())


@dataclass(frozen=True, eq=False)
class _Before:
    graph: ObservedGraph
    inputs: Tuple[object, ...]
    originals: Dict[int, torch.Tensor]
    random_state: Optional[RandomState]

    def finished(self, outputs: object) -> GraphCall:
        many = tuple(outputs) if isinstance(outputs, (list, tuple)) else (outputs,)
        return GraphCall(self.graph, self.inputs, many, self.originals, self.random_state)


@safely("keeping what goes into a compiled graph")
def _before(graph: ObservedGraph, arguments: List[object], copy: Callable[[torch.Tensor], torch.Tensor]) -> _Before:
    import torch

    with _unseen():
        given = [(i, arguments[i]) for i in graph.written]
        originals = {i: value for i, value in given if isinstance(value, torch.Tensor)}
        inputs = tuple(copy(originals[i]) if i in originals else value for i, value in enumerate(arguments))
        return _Before(graph, inputs, originals, RandomState(arguments) if graph.random else None)


@contextlib.contextmanager
def _unseen() -> Iterator[None]:
    """Disable gradients and the user's dispatch modes, which would see depyf's operations."""
    import torch

    disable = private_names.DISABLE_MODES.find() or contextlib.nullcontext
    with disable(), torch.no_grad():
        yield
