"""``find_nonfinite``: find the first operation of compiled code that produces a NaN or an Inf, forward or backward.

The results of each call of a compiled graph are checked (``observation.py``). If some are not finite, the graph is
replayed to find the origin (``origin.py``). Non-finite values that reach no result do not count; nor does an Inf that
the user wrote or passed in, such as a mask, before it becomes NaN.
"""

from __future__ import annotations

import functools
import html
import os
from typing import Dict, List, Optional, Set, TextIO, Tuple

from depyf.answers.coverage import Coverage
from depyf.answers.nonfinite import NonFinite, NonFinitesFound
from depyf.base.asynchronous import synchronous
from depyf.base.locks import Lock
from depyf.base.plain_data import HasAnswer
from depyf.dynamo.hooks import torch_names
from depyf.dynamo.hooks.hooked_context import HookedContext, uninstall
from depyf.dynamo.hooks.patching import Undo
from depyf.dynamo.hooks.safely import safely, say
from depyf.dynamo.observe.finite import all_finite, count_bad, tensors_in
from depyf.dynamo.observe.observation import DYNAMO, GraphCall, ObservedGraph, observation
from depyf.dynamo.observe.recorder import begin
from depyf.dynamo.observe.tally import Looking
from depyf.dynamo.questions.nonfinite.describe import Describer
from depyf.dynamo.questions.nonfinite.eager_operations import EagerOperations
from depyf.dynamo.questions.nonfinite.origin import follow
from depyf.dynamo.questions.nonfinite.verdict import SavedValues, judge

DIRECTORY = "depyf_nonfinite"

_MOST_JUDGED = 50
"""How many kinds of intended non-finite results are distinguished for a graph."""
_ANOTHER_THREAD = "of a graph came from another thread, whose operations outside of graphs are not seen"
_NO_GRADIENTS = "of a graph whose backward {!r} does not compile: gradients are not seen (eager=True sees them)"


class FindNonFinite(HookedContext[object], HasAnswer):
    """The context manager that ``find_nonfinite`` returns. ``found`` lists what was found; it is false while empty."""

    _name = "find_nonfinite()"

    def __init__(
        self,
        directory: Optional[str] = None,
        *,
        eager: bool = False,
        stop: bool = False,
        all_graphs: bool = False,
        stream: Optional[TextIO] = None,
    ) -> None:
        torch_names.require_torch("find_nonfinite")
        super().__init__()
        self.found: List[NonFinite] = []
        self._raises = stop
        self._all_graphs = all_graphs
        self._stream = stream
        self._lock = Lock()
        self._undo: List[Undo] = []
        self._eager = EagerOperations() if eager else None
        births = None if self._eager is None else self._eager.birth_of
        self._describer = Describer(os.path.abspath(directory or DIRECTORY), births)
        self._saved = SavedValues()
        self._judged: Dict[Tuple[int, Tuple[object, ...]], str] = {}
        """Graphs with intended bad results, and these results: they need not be replayed again."""
        self._reported: Set[int] = set()
        self._kept: Dict[int, ObservedGraph] = {}
        self._looking = Looking(observation.tally)

    def _start(self, entry: object) -> None:
        self._undo.append(functools.partial(observation.remove, self._observe))
        observation.add(self._observe, begin)
        if self._eager is not None:
            self._undo.append(self._eager.stop)
            self._eager.start()
        self._looking.begin()

    def _stop(self, entry: object) -> None:
        if self._eager is not None:
            self._eager.stop()
            self._report_what_is_left()
        self._drop(entry)

    def _drop(self, entry: object) -> None:
        uninstall(self._undo, "stopping the search for non-finite values")
        self._looking.end()

    def _stopped(self, *, failed: bool) -> None:
        if not failed and not self.found and (not self.looked or self.looked.missed):
            say(self._stream, (f"depyf: {line}" for line in str(self).splitlines()))

    @safely("looking for values that are not finite")
    def _report_what_is_left(self) -> None:
        """Report non-finite values of eager code that entered no graph and still exist."""
        birth = None if self._eager is None or self.found else next(self._eager.living(), None)
        if birth is not None:
            notes = ["the value entered no compiled graph, and still exists at the end"]
            notes += [] if birth.kind == "NaN" else ["it may be meant, as in a mask"]
            self._report(self._describer.born(birth, tuple(notes)))

    @property
    def first(self) -> Optional[NonFinite]:
        """The first finding; None without findings."""
        return self.found[0] if self.found else None

    def __bool__(self) -> bool:
        return bool(self.found)

    @property
    def looked(self) -> Coverage:
        """How many calls of how many graphs were checked, and which were not, and why."""
        return self._looking.so_far(0 if self._eager is None else self._eager.looked_at)

    @property
    def answer(self) -> NonFinitesFound:
        """All that was found, and how far it has looked, as data."""
        return NonFinitesFound(tuple(self.found), self.looked)

    def __str__(self) -> str:
        return str(self.answer)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(each._repr_html_() for each in self.found) or f"<p>{html.escape(str(self))}</p>"

    def _observe(self, call: GraphCall) -> Optional[BaseException]:
        if self.found and not self._all_graphs:
            return None
        with self._lock:
            found = self._examine(call)
            self._looking.at(call.graph.function, backward=call.graph.backward)
            if self._eager is None and _has_backward_elsewhere(call):
                self._looking.left_out(_NO_GRADIENTS.format(call.graph.backend))
            if self._eager is not None and not call.graph.backward and not self._eager.is_here():
                self._looking.left_out(_ANOTHER_THREAD)
            self._describer.has_run(call.graph)
            self._saved.has_run(call)
        if found is None:
            return None
        self._report(found)
        return FloatingPointError(str(found)) if self._raises else None

    def _examine(self, call: GraphCall) -> Optional[NonFinite]:
        results = {number: call.outputs[number] for number in call.graph.results if tensors_in([call.outputs[number]])}
        written = {number: value for number, value in call.written.items() if tensors_in([value])}
        if all_finite([*results.values(), *written.values()]) or id(call.graph) in self._reported:
            return None
        # The same pattern of bad values that was judged as intended before is not replayed again: a mask is in each
        # call.
        bad = {("output", number): count_bad([value]) for number, value in results.items()}
        bad.update({("input", number): count_bad([value]) for number, value in written.items()})
        bad = {position: counted for position, counted in bad.items() if counted.nans or counted.infs}
        pattern = (id(call.graph), tuple(sorted((position, each.nans, each.infs) for position, each in bad.items())))
        if pattern in self._judged:
            self._looking.passed_on(self._judged[pattern])
            return None
        if sum(graph == id(call.graph) for graph, _ in self._judged) >= _MOST_JUDGED:
            self._looking.left_out(f"gave other NaN or Inf than the {_MOST_JUDGED} that were looked at closely")
            return None
        self._kept[id(call.graph)] = call.graph  # so that no other gets its id
        error: Optional[Exception] = None
        try:
            chain = follow(
                call,
                [number for kind, number in bad if kind == "output"],
                [number for kind, number in bad if kind == "input"],
            )
            saved = functools.partial(self._saved.judge, call)
            verdict = None if chain is None else judge(call, chain, saved, functools.partial(self._is_computed, call))
            if chain is not None and verdict is None:
                self._judged[pattern] = self._describer.meant(call, chain)
                self._looking.passed_on(self._judged[pattern])
                return None
            self._reported.add(id(call.graph))
            if verdict is not None:
                return self._describer.describe(call, verdict)
        except synchronous() as failed:  # there is a bad value anyway, and it is reported
            error = failed
            self._reported.add(id(call.graph))
        position, counted = next(iter(bad.items()))
        return self._describer.result(call, position, counted, error)

    def _is_computed(self, call: GraphCall, number: int) -> bool:
        """Return whether an operation outside of compiled graphs made this input, and its Inf is not written in the
        program."""
        birth = None if self._eager is None else self._eager.birth_of(call.given(number))
        return birth is not None and not birth.written_down

    def _report(self, found: NonFinite) -> None:
        self.found.append(found)
        if self._eager is not None:
            self._eager.enough = not self._all_graphs
        say(self._stream, (f"depyf: {line}" for line in str(found).splitlines()))


def _has_backward_elsewhere(call: GraphCall) -> bool:
    """Return whether autograd runs the backward of this call operation by operation."""
    return call.graph.level == DYNAMO and any(getattr(each, "requires_grad", False) for each in call.outputs)


def find_nonfinite(
    directory: Optional[str] = None,
    *,
    eager: bool = False,
    stop: bool = False,
    all_graphs: bool = False,
    stream: Optional[TextIO] = None,
) -> FindNonFinite:
    """Return a context manager that finds the first operation of compiled code that produces a NaN or an Inf.

    ``with depyf.find_nonfinite() as found: train()`` reports it once on ``stream`` (default: the error stream), and
    stores it in ``found.first``: the operation, the user's line, statistics of the inputs. The inputs are saved, with a
    script that replays the operation, to ``nonfinite_<n>`` in ``directory`` (default: ``depyf_nonfinite``). The program
    continues and computes the same as without depyf. ``stop``: raise ``FloatingPointError`` in the program at that
    point. ``all_graphs``: continue after the first; ``found.found`` has one for each graph. ``eager``: also observe the
    operations outside of compiled graphs, on this thread, which makes them slow.

    Code that is already compiled is compiled again in the block. Raises ``ImportError`` without PyTorch, and
    ``RuntimeError`` on entering if this PyTorch can't be observed (before 2.6; with ``eager``, before 2.9).
    """
    return FindNonFinite(directory, eager=eager, stop=stop, all_graphs=all_graphs, stream=stream)
