"""Parse recompilations as torch reports them: the event ``recompile_reasons`` lists the failed guards as texts."""

from __future__ import annotations

import json
import re
from dataclasses import field
from typing import Dict, List, Mapping, Optional, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass
from depyf.torch_trace.events import Event
from depyf.torch_trace.guard_comments import frame_of, hint_in, split_comment, users_line
from depyf.torch_trace.json_text import parsed
from depyf.torch_trace.tracebacks import Frame, frames_of

_ENTRY = regex(r"^(\[?!?\d*\]?/?\d+/\d+(?:_\d+)?):\s+(.*)\Z", re.DOTALL)
_USER_STACK = regex(r"\nUser stack trace:\n(.*)\Z", re.DOTALL)


REMOVED = "removed by depyf, which had it made to observe the graph"
"""Why a cache entry is invalid that ``depyf.dynamo.observe`` had made. PyTorch may keep such entries in its list and
name them among the reasons of a recompilation: they are none."""


@dataclass(frozen=True)
class FailedGuardText:
    """One guard that failed: its cache entry (None where torch does not say), its text, the user's frames that
    made Dynamo guard it (outermost first; where torch names one only, its file may be cut off on the left). ``hint`` is
    what torch recommends, if anything. ``facts`` are fields of the guard that depyf knew when the function was compiled
    again, such as the names of the two members of an enum. ``user_code`` is the user's line, if torch quotes it.
    """

    entry: Optional[str]
    text: str
    stack: Tuple[Frame, ...]
    hint: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    user_code: str = ""

    @property
    def differences(self) -> int:
        """In how many guards and properties of tensors the call differs from the entry; 0 if that is not known."""
        number = self.facts.get(DIFFERENCES, "")
        return int(number) if number.isdecimal() and len(number) < 9 else 0

    @property
    def together(self) -> Tuple[Tuple[str, str], ...]:
        """The tensors whose sizes have changed with this one, each with its dimensions; empty if not known."""
        try:
            found = parsed(self.facts.get(TOGETHER, "[]"))
        except synchronous(ValueError):
            return ()
        pairs = found if isinstance(found, list) else []
        return tuple((str(each[0]), str(each[1])) for each in pairs if isinstance(each, list) and len(each) == 2)

    @property
    def others(self) -> Optional[Tuple[FailedGuardText, ...]]:
        """The guards of the same entry that fail on their own, too; None if that is not known."""
        if OTHERS not in self.facts:
            return None
        try:
            found = parsed(self.facts[OTHERS])
        except synchronous(ValueError):
            return None
        return tuple(failed_guard(str(each)) for each in found) if isinstance(found, list) else None


def reasons_of(event: Event) -> List[str]:
    """Return the texts of a ``recompile_reasons`` event, one a guard: a JSON list, or one text. Those of entries that
    depyf has removed are left out."""
    payload = event.payload or ""
    try:
        found = parsed(payload or "[]")
    except synchronous(ValueError):
        found = payload
    reasons = [str(reason) for reason in found] if isinstance(found, list) else [str(found)]
    return [reason for reason in reasons if REMOVED not in reason]


def failed_guards(event: Event) -> List[FailedGuardText]:
    """Return the failed guards of such an event, parsed; the most recent cache entry first."""
    return [failed_guard(reason) for reason in reasons_of(event)]


DIFFERENCES, TOGETHER, OTHERS = "differences", "together", "others"
_FACTS = "  # depyf: "
"""What stands between a reason and the facts that depyf adds to it."""


def with_facts(reason: str, facts: Mapping[str, str]) -> str:
    """Return a text of such an event with facts, which ``failed_guard`` reads."""
    stack = _USER_STACK.search(reason)
    end = len(reason) if stack is None else stack.start()
    return f"{reason[:end]}{_FACTS}{json.dumps(dict(facts))}{reason[end:]}"


def without_facts(reason: str) -> str:
    """Return a text of such an event as PyTorch wrote it."""
    stack = _USER_STACK.search(reason)
    end = len(reason) if stack is None else stack.start()
    return reason[:end].partition(_FACTS)[0] + reason[end:]


def facts_in(text: str) -> Dict[str, str]:
    """Return the facts of a text; empty for any other text."""
    try:
        found = parsed(text or "{}")
    except synchronous(ValueError):
        return {}
    return {key: value for key, value in found.items() if isinstance(value, str)} if isinstance(found, dict) else {}


def failed_guard(reason: str) -> FailedGuardText:
    """Parse one such text."""
    # ``0/0: L['n'] == 3  # if n:  # a.py:9 in f``, and below it ``User stack trace:``, if torch has one
    stack = _USER_STACK.search(reason)
    body, _, facts = (reason[: stack.start()] if stack else reason).partition(_FACTS)
    entry = _ENTRY.match(body)
    code, comment = split_comment(entry.group(2) if entry else body)
    frame = frame_of(comment)
    frames = tuple(frames_of(stack.group(1))) if stack else (() if frame is None else (frame,))
    line = users_line(comment)
    user_code, number = "" if line is None else line[0], entry.group(1) if entry else None
    return FailedGuardText(number, code, frames, hint_in(body), facts_in(facts), user_code)
