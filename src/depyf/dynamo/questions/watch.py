"""``watch``: print a line for each recompile, graph break and fallback to eager while a program runs. It listens to
torch's structured trace and to Dynamo's fallbacks. Compiled code runs as before: depyf is not called while it runs.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Optional, Set, TextIO, Tuple

from depyf.answers.happening import BREAK, FALLBACK, RECOMPILE, Happening, summary
from depyf.diagnosis.break_advice import advice_for_break, advice_for_fallback, described_break
from depyf.diagnosis.changed_keys import with_changed_keys
from depyf.diagnosis.guard_explanations import explain
from depyf.diagnosis.guard_text import read
from depyf.dynamo.capture.fallbacks import Fallbacks
from depyf.dynamo.capture.records import Cause, FrameSkipped
from depyf.dynamo.capture.trace_by_hooks import supplement
from depyf.dynamo.entries.decorated import short_name_now
from depyf.dynamo.entries.guarded_frame import guarded_frame_of
from depyf.dynamo.guards.current_values import as_known_here
from depyf.dynamo.guards.failing import with_whole_path
from depyf.dynamo.hooks import frames, torch_names
from depyf.dynamo.hooks.hooked_context import HookedContext, install, uninstall
from depyf.dynamo.hooks.locks import Lock
from depyf.dynamo.hooks.patching import Undo
from depyf.dynamo.hooks.safely import safely, say, users
from depyf.dynamo.hooks.structured_trace_listener import listen
from depyf.dynamo.questions.why import line_that_guards
from depyf.dynamo.store.names import StableNames
from depyf.lazy_pattern import re_compile
from depyf.report.analysis.compilation_events import GRAPHS
from depyf.torch_trace.breaks import break_report
from depyf.torch_trace.events import FORWARD_METRICS, GRAPH_BREAK, PHASE, RECOMPILATION, Event
from depyf.torch_trace.recompiles import failed_guards
from depyf.torch_trace.tracebacks import Frame
from depyf.user_code import innermost_line, is_library

_NOTHING_TO_COMPILE = re_compile("No ops traced|no content in function call")
"""Why Dynamo skips a frame with nothing to compile, such as a resume function that only returns: in errors of PyTorch
that reports such skips so."""

Callback = Callable[[Happening], object]


class Watch(HookedContext[object]):
    """The context manager that ``watch`` returns. ``happened`` lists what it has reported, in order. It can also be
    given to a training framework as a callback: it watches from ``on_train_begin`` (``on_fit_start``) to
    ``on_train_end`` (``on_fit_end``), and takes whatever arguments these pass."""

    _name = "watch()"

    def __init__(self, callback: Optional[Callback] = None, stream: Optional[TextIO] = None) -> None:
        torch_names.require_torch("watch")
        super().__init__()
        self.happened: List[Happening] = []
        self.compiled = False
        """Whether Dynamo has tried to compile anything since it began."""
        self._graphs = 0
        self._captured: Set[str] = set()
        """The compile ids with a graph whose compilation has not ended."""
        self._stable = StableNames()
        self._callback = callback
        self._stream = stream
        self._lock = Lock()
        self._wanted: Dict[Optional[str], Happening] = {}
        """Recompilations that Dynamo has given a reason for, and may still refuse: the limit may be reached."""
        self._known: Set[Tuple[object, ...]] = set()
        self._undo: List[Undo] = []
        self._ended = False

    def _start(self, entry: object) -> None:
        for hook in (
            lambda: [listen(self._receive)],
            lambda: supplement(self._receive),
            Fallbacks(lambda: [self]).watch,
        ):
            install(self._undo, "starting to watch", hook)

    def _drop(self, entry: object) -> None:
        self._ended = True
        uninstall(self._undo, "ending to watch")

    def _stopped(self, *, failed: bool) -> None:
        for compile_id in list(self._wanted):
            self._report_wanted(compile_id)
        if self._callback is None:
            say(self._stream, summary(self.happened, compiled=self.compiled))

    def __str__(self) -> str:
        """Return what has happened, and the summary."""
        if not self._undo and not self._ended:
            return "depyf.watch(): it has not begun: enter it (with depyf.watch() as watched: ...)"
        return "\n".join([*map(str, self.happened), *summary(self.happened, compiled=self.compiled)])

    __repr__ = __str__

    def on_train_begin(self, *_: object, **__: object) -> None:
        """Start to watch: training frameworks call this. An earlier training that failed has not called the end."""
        if not self._open:
            self.__enter__()

    def on_train_end(self, *_: object, **__: object) -> None:
        """Stop watching: training frameworks call this last."""
        self.__exit__(None, None, None)

    on_fit_start, on_fit_end = on_train_begin, on_train_end

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("on_"):  # the other things that happen in a training
            return lambda *_, **__: None
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

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
        advice = advice_for_fallback(record.cause.value, record.reason, record.stack or ())
        stack = whole_stack(*(record.stack or ((*place, record.function),)))
        place = innermost_line(stack) or place
        cause = (record.cause.value,)
        self._report(Happening(FALLBACK, record.compile_id, record.function, place, words, advice, cause, stack))

    @safely("reporting what happens in torch.compile")
    def _receive(self, event: Event) -> None:
        self.compiled = self.compiled or event.compile_id is not None
        if not self._undo:  # closed, but a wrapper of one of its hooks still calls that
            return
        self._count_graph(event)
        if event.name == RECOMPILATION:
            happening = _recompile(event)
            if happening is not None:
                self._wanted[event.compile_id] = happening
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
        happening = self._wanted.pop(compile_id, None)
        if happening is not None:
            self._report(happening)

    def _is_known(self, kind: str, place: Optional[Tuple[str, int]]) -> bool:
        return any(each.kind == kind and each.place == place for each in self.happened)

    def _report(self, happening: Happening) -> None:
        with self._lock:
            # Dynamo may report a break again when it traces a frame once more.
            key = (happening.kind, happening.compile_id, happening.function, happening.place, happening.words)
            if key in self._known:
                return
            self._known.add(key)
            self.happened.append(happening)
        if self._callback is None:
            say(self._stream, [f"depyf: {happening}"])
        else:
            users("the callback of depyf.watch", self._callback)(happening)


def watch(callback: Optional[Callback] = None, *, stream: Optional[TextIO] = None) -> Watch:
    """Return a context manager that reports each recompilation, graph break and fallback to eager when it happens.

    Each is one line on ``stream`` (default: the error stream), with a summary at the end. ``callback``, if given, is
    called with a ``Happening`` instead; what it raises is reported once and goes no further. ``with depyf.watch() as
    watched:`` makes ``watched.happened`` the list of them, and ``print(watched)`` shows it. What the program computes
    does not change, and code that is compiled already runs at full speed.

    Raises ``ImportError`` without PyTorch.
    """
    return Watch(callback, stream)


def _graph_break(event: Event) -> Happening:
    report = break_report(event)
    place = None if report.filename is None or report.line is None else (report.filename, report.line)
    place = innermost_line(report.stack) or place
    advice = advice_for_break(report.title, report.explanation, report.hints, report.stack)
    function = report.stack[-1][2] if report.stack else ""
    words, cause = described_break(report.title, report.explanation), (report.title, report.filename, report.line)
    return Happening(BREAK, event.compile_id, function, place, words, advice, cause, whole_stack(*report.stack))


def _recompile(event: Event) -> Optional[Happening]:
    guards = failed_guards(event)
    if not guards:
        return None
    code = frames.code_being_compiled()
    frame = guarded_frame_of(code)
    explanations = [explain(as_known_here(read(guard.text)), frame) for guard in guards]
    # Which keys have changed, torch does not say here.
    explanations = [with_changed_keys(each, set(), None, frame) for each in explanations]
    # Of several entries, the first one's.
    by_subject = {each.subject or each.words: each for each in reversed(explanations)}
    phrases = [phrase for each in reversed(list(by_subject.values())) for phrase in each.words.split("; ")]
    words = "; ".join(dict.fromkeys(phrases))
    place = innermost_line(guards[0].stack)
    if code is None:
        function, stack = "", whole_stack(*guards[0].stack)
    else:
        function, start = short_name_now(code), (code.co_filename, code.co_firstlineno)
        place = with_whole_path(place, code.co_filename) or line_that_guards(code, explanations[0].subject) or start
        stack = whole_stack((*place, function))
        place = innermost_line((*stack[:-1], (*start, function), stack[-1]))
    return Happening(RECOMPILE, event.compile_id, function, place, words, explanations[0].advice, (), stack)


def whole_stack(*compiled: Frame) -> Tuple[Frame, ...]:
    """Return the user's frames that call compiled code now, and behind them those that PyTorch names of that code.

    Later versions of PyTorch name the callers, too; each is in the result once.
    """
    callers = frames.callers()
    within, known = compiled, {each[:2] for each in callers}
    while within and within[0][:2] in known:
        within = within[1:]
    return (*(each for each in callers if not is_library(each[0])), *(within or compiled[-1:]))
