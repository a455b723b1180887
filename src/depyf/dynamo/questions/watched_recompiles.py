"""The recompilations that ``watch`` sees: their cause, and the advice for it as far as the entries made so far show it.

What is a constant of the program shows when a function has several entries: the advice of earlier events of the same
frame is then replaced.
"""

from __future__ import annotations

import os
import threading
from typing import Dict, Hashable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from depyf.answers.watch import RECOMPILE, WatchEvent
from depyf.base.quick_dataclass import replace
from depyf.diagnosis.changed_keys import with_changed_keys
from depyf.diagnosis.compiled_meanwhile import COMPILED_MEANWHILE, explain_meanwhile, fits_now
from depyf.diagnosis.guard_advice import GuardedFrame
from depyf.diagnosis.guard_explanations import GuardExplanation, explain
from depyf.diagnosis.guard_history import SETTINGS, EntryHistory, under
from depyf.diagnosis.guard_text import read_failed
from depyf.dynamo.capture.hub import capture
from depyf.dynamo.capture.recompile_facts import with_live_facts
from depyf.dynamo.capture.records import TransformedCode
from depyf.dynamo.entries.decorated import short_name_now
from depyf.dynamo.entries.guarded_frame import guarded_frame_of
from depyf.dynamo.guards.current_values import as_known_here
from depyf.dynamo.guards.failing import with_whole_path
from depyf.dynamo.hooks import frames, torch_settings
from depyf.dynamo.questions.why import line_that_guards
from depyf.report.analysis.causes import nearest, required_values, what_is_new
from depyf.torch_trace.events import GUARDS, START, Event
from depyf.torch_trace.file_names import is_dumped_code
from depyf.torch_trace.guards import guards_of
from depyf.torch_trace.recompiles import FailedGuardText, failed_guards
from depyf.torch_trace.tracebacks import Frame
from depyf.torch_trace.user_code import innermost_line, is_library

_SHOWN = 2
"""So many guards of the nearest entry that fail are named after the first."""


class _Explained(NamedTuple):
    """Why there was a recompilation; ``key`` identifies the frame whose entries did not fit."""

    key: Hashable
    failed: Sequence[GuardExplanation]
    frame: GuardedFrame


class WatchedRecompiles:
    """The recompilations of a watch, by compile id, and what the entries of each frame show together."""

    def __init__(self) -> None:
        self._threads: Dict[Optional[str], int] = {}
        """The threads that compiled the entries."""
        self._explained: Dict[Optional[str], _Explained] = {}
        self._history = EntryHistory()
        self._seen: Dict[Hashable, Set[Tuple[str, str]]] = {}
        """The values that each frame was compiled for."""

    def note(self, event: Event) -> bool:
        """Note what an event shows of entries; return whether the advice of earlier recompilations may differ now."""
        if event.name == START:
            self._threads[event.compile_id] = threading.get_ident()
        known = self._explained.get(event.compile_id) if event.name in GUARDS else None
        if known is None:
            return False
        self._history.add(known.key, known.failed, known.frame, required_values(guards_of(event)))
        return True

    def recompile(self, event: Event) -> Optional[WatchEvent]:
        """Return the recompilation in an event."""
        guards = failed_guards(with_live_facts(event))
        if not guards:
            return None
        code = frames.code_being_compiled()
        frame = under({name: torch_settings.dynamo_setting(name) for name in SETTINGS}, guarded_frame_of(code))
        key = (code, (event.compile_id or "").partition("/")[0])
        known = [(each, _explanation(each, frame, self._threads)) for each in guards]
        explained = nearest(*what_is_new(known, self._seen.setdefault(key, set())))
        guards, explanations = [guard for guard, _ in explained], [words for _, words in explained]
        if explanations[0].kind == COMPILED_MEANWHILE:  # why the call waited
            del explanations[1:]
        self._explained[event.compile_id] = _Explained(key, explanations, frame)
        self._history.add(key, explanations, frame)
        # Of several entries, the nearest one's.
        by_subject = {each.subject or each.words: each for each in reversed(explanations)}
        first, *rest = reversed(list(by_subject.values()))
        phrases = [phrase for each in (first, *first.others[:_SHOWN], *rest) for phrase in each.words.split("; ")]
        words = "; ".join(dict.fromkeys(phrases))
        place = innermost_line(guards[0].stack)
        if code is None:
            function, stack = "", whole_stack(*guards[0].stack)
        else:
            function, start = short_name_now(code), (code.co_filename, code.co_firstlineno)
            place = with_whole_path(place, code.co_filename) or line_that_guards(code, explanations[0].subject) or start
            stack = whole_stack((*place, function))
            place = innermost_line((*stack[:-1], (*start, function), stack[-1]))
        found = WatchEvent(RECOMPILE, event.compile_id, function, place, words, "", (), stack)
        return self.with_advice(found)

    def with_advice(self, found: WatchEvent) -> WatchEvent:
        """Return a recompilation with the advice that fits all entries made so far."""
        known = self._explained.get(found.compile_id)
        if found.kind != RECOMPILE or known is None:
            return found
        return replace(found, advice=self._history.applied(known.key, known.failed[0], known.frame).whole_advice)


def _explanation(guard: FailedGuardText, frame: GuardedFrame, threads: Mapping[Optional[str], int]) -> GuardExplanation:
    if fits_now(guard.text):
        return explain_meanwhile(guard.entry, threading.get_ident(), threads.get(guard.entry))
    # Which keys have changed, torch does not say here.
    found = with_changed_keys(explain(as_known_here(read_failed(guard)), frame), set(), None, frame)
    return replace(found, others=tuple(explain(read_failed(each), frame) for each in guard.others or ()))


def in_users_lines(callers: Sequence[Frame]) -> List[Frame]:
    """Return the calls with the user's lines for transformed code that runs from a file of a dump."""
    if not any(is_dumped_code(os.path.basename(path)) for path, _, _ in callers):
        return list(callers)
    dumped = {
        record.path: record
        for session in capture.receivers()
        for record in session.records(TransformedCode)
        if record.path is not None
    }

    def as_written(frame: Frame) -> Frame:
        path, line, name = frame
        record = dumped.get(path)
        known = None if record is None else record.lines.get(line)
        return frame if record is None or known is None else (record.filename, known, name)

    return list(map(as_written, callers))


def whole_stack(*compiled: Frame) -> Tuple[Frame, ...]:
    """Return the user's frames that call compiled code now, and behind them those that PyTorch names of that code.

    Later versions of PyTorch name the callers, too; each is in the result once.
    """
    callers = in_users_lines(frames.callers())
    within, known = tuple(in_users_lines(compiled)), {each[:2] for each in callers}
    last = within[-1:]
    while within and within[0][:2] in known:
        within = within[1:]
    return (*(each for each in callers if not is_library(each[0])), *(within or last))
