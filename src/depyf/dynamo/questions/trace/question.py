"""``trace``: record what runs, in which order: transformed code, compiled graphs, compilations, fallbacks."""

from __future__ import annotations

import sys
import weakref
from time import perf_counter_ns
from types import CodeType
from typing import Any, Callable, Dict, List, Mapping, MutableMapping, Optional, Tuple

from depyf.answers.trace import (
    BACKWARD,
    CODE,
    COMPILATION,
    GRAPH,
    PLAIN,
    Event,
    Thing,
    ThreadTrace,
    Total,
    TraceResult,
    html_of,
    text_of,
)
from depyf.base.locks import Lock
from depyf.base.plain_data import HasAnswer
from depyf.dynamo.capture.fallbacks import Fallbacks
from depyf.dynamo.capture.hub import capture
from depyf.dynamo.capture.records import FrameSkipped
from depyf.dynamo.capture.session import Session
from depyf.dynamo.capture.trace_by_hooks import supplement
from depyf.dynamo.entries.decorated import short_name_now, short_name_of_entry
from depyf.dynamo.hooks import cache_entries, compile_ids, frame_evaluation, frames, known_code, torch_names
from depyf.dynamo.hooks.cache_entries import global_scope
from depyf.dynamo.hooks.hooked_context import HookedContext, install, uninstall
from depyf.dynamo.hooks.patching import Undo
from depyf.dynamo.hooks.run_callback import Monitoring, watch_runs
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.hooks.structured_trace_listener import listen
from depyf.dynamo.questions.trace.graphs import Graphs
from depyf.dynamo.questions.trace.lanes import Lanes, keep_dynamo_out
from depyf.dynamo.questions.trace.record import RunRecord
from depyf.dynamo.store.names import StableNames
from depyf.torch_trace import events as trace_events
from depyf.torch_trace.metrics import seconds_of

_NO_ENDS = (
    "this Python (before 3.12) does not report when a frame ends: only graphs have times, and what runs as plain "
    "Python is seen once"
)
_NO_STARTS = "this PyTorch (before 2.13) does not report what runs: transformed code that has no graph is not seen"


class Trace(HookedContext[object], HasAnswer):
    """The context manager that ``trace`` returns, and what it has recorded: prints as an indented list.

    It can be read while it records, and entered again after it was left, which starts a new record.
    """

    _name = "trace()"

    def __init__(self) -> None:
        torch_names.require_torch("trace")
        super().__init__()
        self._record: Optional[RunRecord] = None
        self._notes: Tuple[str, ...] = ()

    def _start(self, entry: object) -> None:
        _runs.open(self)

    def _stop(self, entry: object) -> None:
        _runs.close(self)

    def _drop(self, entry: object) -> None:
        _runs.drop(self)

    @property
    def answer(self) -> TraceResult:
        """All that has been recorded so far, as data."""
        record = self._record
        if record is None:
            return TraceResult(0.0, (), ())
        if self._open:
            _runs.catch_up()
        return record.answer(self._notes)

    @property
    def events(self) -> Tuple[Event, ...]:
        """What ran, in order (one thread after the other): ``Ran`` with what ran ``inside`` of it, and ``Repeated``."""
        return self.answer.events

    @property
    def threads(self) -> Tuple[ThreadTrace, ...]:
        """The same for each thread."""
        return self.answer.threads

    @property
    def counts(self) -> Mapping[str, int]:
        """How often each thing ran: ``{"f [0/0]": 3, "__compiled_fn_1": 3}``."""
        return self.answer.counts

    @property
    def totals(self) -> Tuple[Total, ...]:
        """Count and times of each thing."""
        return self.answer.totals

    def __str__(self) -> str:
        return text_of(self.answer)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_of(self.answer)


def trace() -> Trace:
    """Return a context manager that records what compiled code runs, in which order, how often and how long.

    ``with depyf.trace() as record:`` records in all threads: transformed code by function and compile id (resume
    functions too), compiled graphs (``__compiled_fn_<id>``) forward and backward, compilations, and functions that fell
    back to Python. ``record.events`` has them in order, with loops folded; ``record.counts`` how often each ran;
    ``print(record)`` shows it. Code that was compiled before is recorded as well. Times are host seconds: a GPU may
    still run what was launched.

    What the program computes does not change. Raises ``ImportError`` without PyTorch.
    """
    return Trace()


class _Runs:
    """The hooks of all traces that are open: installed for the first, removed with the last."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._open: Tuple[Trace, ...] = ()
        self._undo: List[Undo] = []
        self._lanes = Lanes(self._meet)
        self._graphs = Graphs(self._lanes, None)
        self._monitoring = Monitoring()
        self._reports_starts = False
        self._compiling: Dict[Optional[str], str] = {}
        self.stable = StableNames()
        self._notes: Tuple[str, ...] = ()

    @safely("starting to trace")
    def open(self, trace: Trace) -> None:
        """Start to record into ``trace``."""
        with self._lock:
            if not self._open:
                self._install()
            self._lanes.fold_all()
            trace._notes = self._notes
            trace._record = RunRecord(self._lanes.things, self._lanes.late)
            self._open = (*self._open, trace)
            self._lanes.takers = tuple(each._record.take for each in self._open if each._record is not None)

    def close(self, trace: Trace) -> None:
        """End the record of ``trace``."""
        with self._lock:
            self.catch_up()
            self._detach(trace)
            if trace._record is not None:
                trace._record.close()
                self._report_to_sessions(trace._record)

    def drop(self, trace: Trace) -> None:
        """End the record of ``trace`` without a report, however far ending it came."""
        with self._lock:
            self._detach(trace)

    def _detach(self, trace: Trace) -> None:
        self._open = tuple(each for each in self._open if each is not trace)
        self._lanes.takers = tuple(each._record.take for each in self._open if each._record is not None)
        if not self._open:
            uninstall(self._undo, "ending a trace")

    def _report_to_sessions(self, record: RunRecord) -> None:
        """Report to the open sessions what concerns them in a trace that has ended."""
        for session in capture.receivers():
            for total in record.answer().totals:
                thing = total.thing
                if thing.kind in (GRAPH, BACKWARD) and total.seconds is not None:
                    key = (thing.name, thing.kind == BACKWARD)
                    known = session.graph_times.get(key, (0, 0.0))
                    session.graph_times[key] = (known[0] + total.count, known[1] + total.seconds)
            if not frame_evaluation.reports_runs():
                self._report_runs(session, record)

    def _report_runs(self, session: Session, record: RunRecord) -> None:
        """Add the runs to a session. Sessions count runs themselves where torch reports them without a trace."""
        counts = record.counts()
        for code in known_code.transformed_codes():
            runs = counts.get(self._lanes.numbers.get(id(code), -1), 0)
            known = session.ran.setdefault(id(code), [weakref.ref(code), 0])
            known[1] += runs

    @safely("reading a trace")
    def catch_up(self) -> None:
        """Pass everything recorded to the records."""
        self._lanes.end_what_ended()
        self._lanes.fold_all()

    def _install(self) -> None:
        keep_dynamo_out()
        self._lanes = lanes = Lanes(self._meet)
        self._monitoring = Monitoring()
        self._compiling = {}
        notes: List[str] = []
        self._add(lambda: self._watch_ends(lanes))
        self._reports_starts = self._add(lambda: watch_runs(*lanes.notes.functions))
        by_graph = None if self._reports_starts or lanes.reports_ends else lanes.begin
        self._graphs = Graphs(lanes, by_graph)
        self._undo.append(self._graphs.stop)
        if not lanes.reports_ends:
            notes.append(_NO_ENDS)
        if by_graph is not None:
            notes.append(_NO_STARTS)
        self._add(lambda: listen(self._receive))
        self._add(lambda: supplement(self._receive))
        self._add(Fallbacks(lambda: [self]).watch)
        self._notes = tuple(notes)
        self._meet_all()
        safely("looking for backwards of earlier forwards")(self._graphs.time_forgotten)()

    def _add(self, hook: Callable[[], object]) -> bool:
        return install(self._undo, "starting to trace", hook)

    def _watch_ends(self, lanes: Lanes) -> Optional[Undo]:
        def on_start(code: CodeType, offset: int) -> None:
            lanes.begin(code, sys._getframe(1).f_back)

        def on_return(code: CodeType, offset: int, value: object) -> None:
            lanes.end(code)

        undo = self._monitoring.begin(on_start, on_return)
        lanes.reports_ends = undo is not None
        return undo

    def _meet(self, code: CodeType, number: int) -> Optional[Thing]:
        """Identify transformed code at its first run, and start to time its graphs."""
        original = known_code.original_of(code)
        if original is None:
            return None
        entry = next((each for each in cache_entries.cache_entries(original) if each.code is code), None)
        if entry is None:  # it is being compiled
            compile_id, scope = compile_ids.current_compile_id(), frames.frame_globals(original)
        else:
            compile_id, scope = entry.compile_id, global_scope(entry.guard_manager)
        name = short_name_now(original) if entry is None else short_name_of_entry(original, entry.guard_manager)
        thing = Thing(CODE, name, compile_id, original.co_filename, original.co_firstlineno)
        self._lanes.things[number] = thing
        if isinstance(scope, MutableMapping):
            self._graphs.time(code, scope, compile_id, thing)
        self._monitoring.watch(code, starts=not self._reports_starts)
        self._meet_plain(original)
        return thing

    def _meet_plain(self, original: CodeType, why: str = "") -> None:
        """Report when the user's function runs eagerly, although Dynamo has seen it; ``why`` is the reason."""
        lanes, number = self._lanes, self._lanes.numbers.get(id(original))
        thing = Thing(PLAIN, original.co_name, None, original.co_filename, original.co_firstlineno, why)
        if number is None:
            lanes.know(original, lanes.new_number(thing))
            self._monitoring.watch(original, starts=True)
        elif why:
            lanes.things[number] = thing

    @safely("looking for what was compiled earlier")
    def _meet_all(self) -> None:
        """Identify all transformed code before it runs, and start to time its graphs. A forward may have run before,
        whose backward runs now."""
        for code in known_code.transformed_codes():
            if id(code) not in self._lanes.numbers:
                self._lanes.meet(code)

    @safely("recording a compilation")
    def _receive(self, event: trace_events.Event) -> None:
        if event.name not in trace_events.METRICS:
            return
        meta: Any = event.meta if isinstance(event.meta, dict) else {}
        backward = event.name == trace_events.BACKWARD_METRICS
        name = meta.get("co_name") or self._compiling.get(event.compile_id)
        if name is None:  # the fallback came before the compilation began; ``add`` receives it
            return
        self._compiling[event.compile_id] = name
        thing = Thing(
            COMPILATION,
            f"backward of {name}" if backward else name,
            event.compile_id,
            str(meta.get("co_filename") or ""),
            int(meta.get("co_firstlineno") or 0),
        )
        start = perf_counter_ns() - int((seconds_of(meta) or 0.0) * 1e9)
        self._lanes.ran(self._lanes.number_of(thing), start, sys._getframe(1))
        self._meet_all()

    def add(self, record: FrameSkipped) -> None:
        """Record a fallback (called by ``Fallbacks``)."""
        code = None if record.original_code is None else record.original_code()
        if code is None:
            return
        self._meet_plain(code, record.cause.value)
        if not self._lanes.reports_ends:
            self._lanes.note(self._lanes.numbers[id(code)], sys._getframe(1))


_runs = _Runs()
"""The process's traces: hooks are global to the process, and so is this."""
