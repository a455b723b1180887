"""``watch``: print a line for each recompile, graph break and fallback to eager while a program runs. It listens to
torch's structured trace and to Dynamo's fallbacks. Compiled code runs as before: depyf is not called while it runs.
"""

from __future__ import annotations

import sys
from typing import Callable, Dict, List, Optional, Set, TextIO, Tuple

from depyf.answers.watch import BREAK, FALLBACK, Watched, WatchEvent, summary
from depyf.base.late_regex import regex
from depyf.base.locks import Lock
from depyf.base.plain_data import HasAnswer
from depyf.diagnosis.break_advice import advice_for_break, advice_for_fallback, described_break
from depyf.dynamo.capture.fallbacks import Fallbacks
from depyf.dynamo.capture.progress import CompilationProgress, remove_line
from depyf.dynamo.capture.records import Cause, FrameSkipped
from depyf.dynamo.capture.trace_by_hooks import supplement
from depyf.dynamo.hooks import torch_names
from depyf.dynamo.hooks.hooked_context import CallbackContext, install, uninstall
from depyf.dynamo.hooks.patching import Undo
from depyf.dynamo.hooks.safely import safely, say, users
from depyf.dynamo.hooks.structured_trace_listener import listen
from depyf.dynamo.questions.watched_recompiles import WatchedRecompiles, in_users_lines, whole_stack
from depyf.dynamo.store.names import StableNames
from depyf.report.analysis.compilation_events import GRAPHS
from depyf.report.analysis.sources import read_source
from depyf.torch_trace.breaks import break_report
from depyf.torch_trace.events import FORWARD_METRICS, GRAPH_BREAK, PHASE, RECOMPILATION, Event
from depyf.torch_trace.user_code import innermost_frame, innermost_line

_NOTHING_TO_COMPILE = regex("No ops traced|no content in function call")
"""Why Dynamo skips a frame with nothing to compile, such as a resume function that only returns: in errors of PyTorch
that reports such skips so."""

Callback = Callable[[WatchEvent], object]


class Watch(CallbackContext, HasAnswer):
    """The context manager that ``watch`` returns. ``happened`` lists what it has reported, in order. It can also be
    given to a training framework as a callback: it watches from ``on_train_begin`` (``on_fit_start``) to
    ``on_train_end`` (``on_fit_end``), and takes whatever arguments these pass."""

    _name = "watch()"

    def __init__(self, callback: Optional[Callback] = None, stream: Optional[TextIO] = None) -> None:
        torch_names.require_torch("watch")
        super().__init__()
        self.happened: List[WatchEvent] = []
        self.compiled = False
        """Whether Dynamo has tried to compile anything since it began."""
        self._graphs = 0
        self._captured: Set[str] = set()
        """The compile ids with a graph whose compilation has not ended."""
        self._stable = StableNames()
        self._callback = callback
        self._stream = stream
        self._lock = Lock()
        self._wanted: Dict[Optional[str], WatchEvent] = {}
        """Recompilations that Dynamo has given a reason for, and may still refuse: the limit may be reached."""
        self._recompiles = WatchedRecompiles()
        self._known: Set[Tuple[object, ...]] = set()
        self._undo: List[Undo] = []
        self._ended = False
        # A callback is told what has happened, and nothing is written.
        shown = sys.stderr if stream is None else stream
        self._progress = None if callback is not None or shown is None else CompilationProgress(shown)

    def _start(self, entry: object) -> None:
        if self._progress is not None:
            self._progress.begin()
        for hook in (
            lambda: [listen(self._receive)],
            lambda: supplement(self._receive),
            Fallbacks(lambda: [self]).watch,
        ):
            install(self._undo, "starting to watch", hook)

    def _drop(self, entry: object) -> None:
        self._ended = True
        if self._progress is not None:
            self._progress.end()
        uninstall(self._undo, "ending to watch")

    def _stopped(self, *, failed: bool) -> None:
        for compile_id in list(self._wanted):
            self._report_wanted(compile_id)
        if self._callback is None:
            say(self._stream, summary(self.happened, compiled=self.compiled))

    def __str__(self) -> str:
        """Return what has happened, and the summary."""
        if not self._undo and not self._ended:
            return "depyf.watch() has not started: enter it (with depyf.watch() as watched: ...)"
        return str(self.answer)

    @property
    def answer(self) -> Watched:
        """All that has happened, as data."""
        return Watched(tuple(self.happened), self.compiled, self.graphs)

    __repr__ = __str__

    @property
    def graphs(self) -> int:
        """The number of compilations with a graph, as docs/glossary.md defines it."""
        return self._graphs + len(self._captured)

    @property
    def stable(self) -> StableNames:
        """What takes ids and addresses out of texts."""
        return self._stable

    def add(self, record: FrameSkipped) -> None:
        """Record a fallback."""
        self.compiled = True
        if not self._undo or record.cause is Cause.SKIPPED or _NOTHING_TO_COMPILE.search(record.reason):
            return
        wanted = self._wanted.pop(record.compile_id, None) if record.cause is Cause.LIMIT else None
        if wanted is not None:
            words = f"runs as plain Python: {record.cause.value}, and {wanted.words}"
        elif record.cause is Cause.GRAPH_BREAK and self._is_known(BREAK, record.place):
            words = "runs as plain Python from now on, because of the graph break"
        else:
            words = f"runs as plain Python: {record.cause.value}"
            reason = next((line.strip() for line in record.reason.splitlines() if line.strip()), "")
            words += f" ({reason})" if reason else ""
        place = record.place or (record.filename, record.first_line)
        advice = advice_for_fallback(record.cause.value, record.reason, record.stack or (), read_source)
        stack = whole_stack(*(record.stack or ((*place, record.function),)))
        place = innermost_line(stack) or place
        cause = (record.cause.value,)
        self._report(WatchEvent(FALLBACK, record.compile_id, record.function, place, words, advice, cause, stack))

    @safely("reporting what happens in torch.compile")
    def _receive(self, event: Event) -> None:
        self.compiled = self.compiled or event.compile_id is not None
        if not self._undo:  # closed, but a wrapper of one of its hooks still calls that
            return
        self._count_graph(event)
        if self._progress is not None:
            self._progress(event)
        if self._recompiles.note(event):
            with self._lock:
                self.happened[:] = map(self._recompiles.with_advice, self.happened)
        if event.name == RECOMPILATION:
            found = self._recompiles.recompile(event)
            if found is not None:
                self._wanted[event.compile_id] = found
            return
        if event.name == FORWARD_METRICS:
            if event.meta.get("has_guarded_code", True):
                self._report_wanted(event.compile_id)
        elif event.name != PHASE:  # which is also reported for frames that are skipped
            self._report_wanted(event.compile_id)
        if event.name == GRAPH_BREAK:
            self._report(_graph_break(event))

    def _count_graph(self, event: Event) -> None:
        compile_id = event.compile_id
        if compile_id is None or "/" not in compile_id:
            return
        if event.name in GRAPHS:
            self._captured.add(compile_id)
        elif event.name == FORWARD_METRICS and compile_id in self._captured:
            self._captured.discard(compile_id)
            self._graphs += not event.meta.get("fail_type") and event.meta.get("has_guarded_code") is not False

    def _report_wanted(self, compile_id: Optional[str]) -> None:
        found = self._wanted.pop(compile_id, None)
        if found is not None:
            self._report(found)

    def _is_known(self, kind: str, place: Optional[Tuple[str, int]]) -> bool:
        return any(each.kind == kind and each.place == place for each in self.happened)

    def _report(self, found: WatchEvent) -> None:
        with self._lock:
            found = self._recompiles.with_advice(found)
            # Dynamo may report a break again when it traces a frame once more.
            key = (found.kind, found.compile_id, found.function, found.place, found.words)
            if key in self._known:
                return
            self._known.add(key)
            self.happened.append(found)
        if self._callback is None:
            remove_line()
            say(self._stream, [f"depyf: {found}"])
        else:
            users("the callback of depyf.watch", self._callback)(found)


def watch(callback: Optional[Callback] = None, *, stream: Optional[TextIO] = None) -> Watch:
    """Return a context manager that reports each recompilation, graph break and fallback to eager when it happens.

    Each is one line on ``stream`` (default: the error stream), with a summary at the end. ``callback``, if given, is
    called with a ``WatchEvent`` instead; what it raises is reported once and goes no further. ``with depyf.watch() as
    watched:`` makes ``watched.happened`` the list of them, and ``print(watched)`` shows it. What the program computes
    does not change, and code that is compiled already runs at full speed.

    Raises ``ImportError`` without PyTorch.
    """
    return Watch(callback, stream)


def _graph_break(event: Event) -> WatchEvent:
    report = break_report(event)
    place = None if report.filename is None or report.line is None else (report.filename, report.line)
    stack = tuple(in_users_lines(report.stack))
    place = innermost_line(stack) or place
    parts = (report.title, report.explanation, report.hints, report.stack, report.unresumed)
    advice = advice_for_break(*parts, read_source)
    frame = innermost_frame(stack)  # not a function of PyTorch's that Dynamo traces for a function of C
    function = "" if frame is None else frame[2]
    words, cause = described_break(report.title, report.explanation), (report.title, report.filename, report.line)
    return WatchEvent(BREAK, event.compile_id, function, place, words, advice, cause, whole_stack(*stack))
