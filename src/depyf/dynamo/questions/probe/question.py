"""``probe``: record the tensors that the user's names are bound to in compiled code, while it runs. Graphs, kernels and
results do not change. After each call of a graph it is run again without the compiler, on the same inputs, up to the
requested values; outputs of the compiled graph are taken from the call. So the values are what eager code computes
there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Set, TextIO, Tuple, Union

from depyf.answers.nonfinite import Line
from depyf.answers.probed import COMPILED, REPLAYED, Probed, ProbedValues
from depyf.answers.watch import shortened
from depyf.base.asynchronous import synchronous
from depyf.base.locks import Lock
from depyf.base.plain_data import HasAnswer
from depyf.base.quick_dataclass import replace
from depyf.base.source_lines import source_line
from depyf.dynamo.dump.pausing import compiles_nothing
from depyf.dynamo.hooks import torch_names
from depyf.dynamo.hooks.hooked_context import HookedContext, uninstall
from depyf.dynamo.hooks.patching import Undo, collecting
from depyf.dynamo.hooks.safely import say
from depyf.dynamo.observe import graph_facts
from depyf.dynamo.observe.finite import facts
from depyf.dynamo.observe.node_words import line_of, operation_of, value_name
from depyf.dynamo.observe.observation import GraphCall, ObservedGraph
from depyf.dynamo.observe.replay import Replay, ValueOf
from depyf.dynamo.observe.tally import Looking
from depyf.dynamo.questions.probe.bindings import ELSEWHERE, Binding
from depyf.dynamo.questions.probe.captured import Captured, CapturedGraphs, draws
from depyf.dynamo.questions.probe.gradients import follow_gradients
from depyf.dynamo.questions.probe.queries import Query, QueryMatch, answers, lines_of, problem, query_of

if TYPE_CHECKING:
    import torch

TENSORS, STATISTICS = "tensors", "stats"
_NOT_THERE = "a compiled graph has it, and did not come to an end, or could not be run once more"
_DRAWN = "after random numbers: the compiled code may have drawn others"
_IN_DEBUG = (
    "depyf.probe compiles what it watches once more, and depyf.debug() lets nothing be compiled: enter probe first, "
    "call the function once, and then enter depyf.debug()"
)


class Probe(HookedContext[object], HasAnswer):
    """The context manager that ``probe`` returns. ``values["hidden"]`` is the list of what was recorded for it."""

    _name = "probe()"

    def __init__(
        self,
        asked: Iterable[Union[str, int]],
        *,
        keep: str = TENSORS,
        gradients: bool = False,
        limit: int = 1000,
        stream: Optional[TextIO] = None,
    ) -> None:
        torch_names.require_torch("probe")
        super().__init__()
        if keep not in (TENSORS, STATISTICS):
            raise ValueError(f"depyf.probe keeps {TENSORS!r} or {STATISTICS!r}, and not {keep!r}")
        self._queries = [query_of(each) for each in asked]
        if not self._queries:
            raise ValueError("depyf.probe needs the names of variables, or lines (as in 'model.py:41')")
        self._keep = keep
        self._gradients = gradients
        self._limit = limit
        self._stream = stream
        self._lock = Lock()
        self._graphs = CapturedGraphs(self._meet, self._observe)
        self._looking = Looking(self._graphs.tally)
        self._undo: List[Undo] = []
        self._found: Dict[str, List[Probed]] = {each.asked: [] for each in self._queries}
        self._left_out: Dict[str, int] = {}
        self._wanted: Dict[int, Tuple[Captured, List[QueryMatch], Set[str]]] = {}
        self._calls: Dict[int, int] = {}
        self._bindings: Dict[Binding, None] = {}
        self._lines: Set[Tuple[str, int]] = set()
        self._failed: Dict[str, None] = {}

    def _start(self, entry: object) -> None:
        if compiles_nothing():
            raise RuntimeError(_IN_DEBUG)
        collecting(self._undo, self._graphs.watch)
        self._looking.begin()

    def _drop(self, entry: object) -> None:
        uninstall(self._undo, "ending to probe")
        self._looking.end()

    def _stopped(self, *, failed: bool) -> None:
        if not failed:
            say(self._stream, (f"depyf: {asked}: {why}" for asked, why in self.problems.items()))

    def __getitem__(self, asked: Union[str, int]) -> List[Probed]:
        """Return what was recorded for a name or line, in the order of the calls. Raises ``KeyError`` if it was not
        requested.
        """
        return list(self._found[str(asked)])

    def keys(self) -> List[str]:
        """Return the queries."""
        return list(self._found)

    @property
    def problems(self) -> Dict[str, str]:
        """Why nothing was recorded for a name or line, by that."""
        found = {}
        for query in self._queries:
            if self._found[query.asked]:
                continue
            if not self._wanted:
                found[query.asked] = self._looking.so_far().extent
            elif any(each.query is query for _, wanted, _ in list(self._wanted.values()) for each in wanted):
                found[query.asked] = _NOT_THERE
            else:
                found[query.asked] = problem(query, self._bindings, self._lines)
        return found

    @property
    def answer(self) -> ProbedValues:
        """All that was recorded, as data."""
        notes = [f"{asked}: {count} more values were not kept" for asked, count in self._left_out.items()]
        notes += self._looking.so_far().left_out if self._wanted else ()
        notes += self._unseen()
        return ProbedValues(
            {asked: tuple(found) for asked, found in self._found.items()}, self.problems, (*notes, *self._failed)
        )

    def _unseen(self) -> Iterator[str]:
        """Yield where else the name of a query with results is bound, in code that is not observed."""
        for query in self._queries:
            for each in self._bindings if self._found[query.asked] else ():
                if each.constant == ELSEWHERE and query.matches(each):
                    yield f"{query.asked} is not observed at {shortened(each.filename)}:{each.line}: {ELSEWHERE}"

    def __str__(self) -> str:
        return str(self.answer)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.answer._repr_html_()

    def _meet(self, captured: Captured) -> bool:
        """Record the requested values of a graph before its first call; return whether it has any."""
        with self._lock:
            self._lines |= lines_of(captured.graph.graph)
            found = answers(self._queries, captured.bindings, captured.graph.graph)
            found = [each for each in found if not self._was_bound_before(each.binding)]
            self._bindings.update(dict.fromkeys(captured.bindings))
            self._wanted[id(captured)] = (captured, found, _after_random(captured.graph))
        return bool(found)

    def _was_bound_before(self, binding: Binding) -> bool:
        """Return whether a resume function receives a value that another graph has recorded already."""
        key = (binding.function, binding.name, binding.part)
        return binding.carried and any(
            (each.function, each.name, each.part) == key for each in self._bindings if each.node is not None
        )

    def _observe(self, captured: Captured, call: GraphCall) -> None:
        with self._lock:
            number = self._calls[id(captured)] = self._calls.get(id(captured), 0) + 1
            self._looking.at(captured.graph.function, backward=captured.graph.backward)
            _, wanted, random = self._wanted[id(captured)]
            wanted = [each for each in wanted if self._has_room(each.query)]
        if not wanted:
            return
        recorded: Dict[str, List[Probed]] = {}
        results: Iterable[Tuple[int, Any]] = enumerate(graph_facts.output_nodes(captured.graph.graph))
        outputs = {node.name: at for at, node in results if hasattr(node, "name")}
        names = {each.node for each in wanted}
        moments: Dict[str, List[int]] = {}
        nodes = list(captured.graph.module.graph.nodes)
        order = {node.name: at for at, node in enumerate(nodes)}
        # In-place operations change the value of a node later on. So a value is copied at the moment of its binding:
        # after its node, and after the last node that was traced by then.
        for at, each in enumerate(wanted):
            moment = max(each.node, each.binding.after or each.node, key=lambda name: order.get(name, -1))
            moments.setdefault(moment, []).append(at)
        last = next(node for node in reversed(nodes) if node.name in names or node.name in moments)
        alive: Dict[str, object] = {}
        values: Dict[int, Optional[torch.Tensor]] = {}

        def look(node: torch.fx.Node, _: ValueOf, value: object) -> None:
            if node.name in names:
                alive[node.name] = value
            for at in moments.get(node.name, ()):
                values[at] = self._copy(alive.get(wanted[at].node))

        try:
            Replay(call).run(look, until=last)
        except synchronous() as error:  # it needs a device or a state that no longer exists
            self._failed.setdefault(f"{captured.graph.function} could not be run once more: {error}")
        for at, each in enumerate(wanted):
            # What the compiled graph returns is taken from the call, unless something writes into it after the binding.
            source = REPLAYED
            value = values.get(at)
            if each.node in outputs and not _is_written_later(captured, each.node):
                source, value = COMPILED, self._copy(call.outputs[outputs[each.node]])
            if value is None:
                continue
            probed = self._probed(captured, each, value, source, number)
            if source == REPLAYED and each.node in random:
                probed = replace(probed, note=_DRAWN)
            recorded.setdefault(each.node, []).append(probed)
            with self._lock:
                self._found[each.query.asked].append(probed)
        if self._gradients:
            follow_gradients(call, recorded, keep=self._copy)

    def _has_room(self, query: Query) -> bool:
        if len(self._found[query.asked]) < self._limit:
            return True
        self._left_out[query.asked] = self._left_out.get(query.asked, 0) + 1
        return False

    def _copy(self, value: object) -> Optional[torch.Tensor]:
        import torch

        return value.detach().clone() if isinstance(value, torch.Tensor) else None

    def _probed(self, captured: Captured, found: QueryMatch, value: torch.Tensor, source: str, call: int) -> Probed:
        binding = found.binding
        node = next(each for each in captured.graph.graph.nodes if each.name == found.node)
        name = binding.owner + (binding.name or value_name(node)) + binding.part
        return Probed(
            name=binding.name,
            part=binding.part,
            function=binding.function,
            line=_line(binding, node),
            operation="an input" if node.op == "placeholder" else operation_of(node),
            graph=captured.graph.function,
            compile_id=captured.graph.compile_id,
            call=call,
            source=source,
            value=value if self._keep == TENSORS else None,
            facts=facts(name, value),
        )


def probe(
    *names: Union[str, int],
    lines: Iterable[Union[str, int]] = (),
    keep: str = TENSORS,
    gradients: bool = False,
    limit: int = 1000,
    stream: Optional[TextIO] = None,
) -> Probe:
    """Return a context manager that records the tensors that compiled code binds to names, or computes on lines.

    ``with depyf.probe("hidden", "model.py:41") as values: model(x)`` makes ``values["hidden"]`` the list of the values
    of the variable ``hidden``, in the order of the calls: each with ``value`` (a copy of the tensor), ``line``,
    ``operation``, ``graph`` and ``call``. ``names``: a variable, which may be qualified by its function
    (``"Model.forward.hidden"``), an attribute (``"self.hidden"``), what a function returns (``"forward.return"``), or a
    line. ``lines``: more lines, as ``"file.py:41"`` or ``41``. ``keep``: ``"tensors"``, or ``"stats"`` for statistics
    only. ``limit``: the largest number of values that are kept for each name. ``gradients``: also record the gradient
    of each value (``grad``).

    The graphs, their kernels and what the program computes stay the same. The values come from the same graph run
    without the compiler on the inputs of each call, and from the compiled code where it returns them. Code that is
    already compiled is compiled again in the block. What could not be recorded is reported on ``stream`` (default: the
    error stream) and in ``values.problems``.

    Raises ``ImportError`` without PyTorch, ``ValueError`` without names and lines, and ``RuntimeError`` on entering
    inside ``depyf.debug()`` or when this PyTorch (before 2.6) can't be observed.
    """
    return Probe([*names, *lines], keep=keep, gradients=gradients, limit=limit, stream=stream)


def _line(binding: Binding, node: torch.fx.Node) -> Line:
    """Return the line of the binding; for an input, the line of its first use."""
    used = None if binding.line else next(filter(None, map(line_of, node.users)), None)
    return used or Line(binding.filename, binding.line, source_line(binding.filename, binding.line))


def _is_written_later(captured: Captured, name: str) -> bool:
    """Return whether something may write into the value after its node: the output would differ from it."""
    node = next(each for each in captured.graph.graph.nodes if each.name == name)
    todo, seen = [node], {node}
    while todo:
        for user in todo.pop().users:
            target = str(getattr(user.target, "__name__", user.target))
            if user.op != "output" and (target.endswith("_") or target == "setitem" or target.startswith("i")):
                return True
            if user not in seen:  # it may give a view
                seen.add(user)
                todo.append(user)
    return False


def _after_random(graph: ObservedGraph) -> Set[str]:
    """Return the nodes that depend on random numbers that the graph draws."""
    found: Set[str] = set()
    for node in graph.graph.nodes:
        if draws(node, graph.copied.attribute) or any(each.name in found for each in node.all_input_nodes):
            found.add(node.name)
    return found
