"""Parse recompilations as torch reports them: the event ``recompile_reasons`` lists the failed guards as texts."""

from __future__ import annotations

import re
from typing import List, Optional, Tuple

from depyf.asynchronous import synchronous
from depyf.lazy_pattern import re_compile
from depyf.quick_dataclass import dataclass
from depyf.torch_trace.events import Event
from depyf.torch_trace.guard_comments import frame_of, split_comment
from depyf.torch_trace.json_text import parsed
from depyf.torch_trace.tracebacks import Frame, frames_of

_ENTRY = re_compile(r"^(\[?!?\d*\]?/?\d+/\d+(?:_\d+)?):\s+(.*)\Z", re.DOTALL)
_USER_STACK = re_compile(r"\nUser stack trace:\n(.*)\Z", re.DOTALL)


REMOVED = "removed by depyf, which had it made to observe the graph"
"""Why a cache entry is invalid that ``depyf.dynamo.observe`` had made. PyTorch may keep such entries in its list and
name them among the reasons of a recompilation: they are none."""


@dataclass(frozen=True)
class FailedGuardText:
    """One guard that failed: of which cache entry (None where torch does not say), its text, the user's frames that
    made Dynamo guard it (outermost first; where torch names one only, its file may be cut off on the left).
    """

    entry: Optional[str]
    text: str
    stack: Tuple[Frame, ...]


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
    """Return the failed guards of such an event, parsed: those of the most recent cache entry first."""
    return [failed_guard(reason) for reason in reasons_of(event)]


def failed_guard(reason: str) -> FailedGuardText:
    """Parse one such text."""
    stack = _USER_STACK.search(reason)
    body = reason[: stack.start()] if stack else reason
    entry = _ENTRY.match(body)
    code, comment = split_comment(entry.group(2) if entry else body)
    frame = frame_of(comment)
    frames = tuple(frames_of(stack.group(1))) if stack else (() if frame is None else (frame,))
    return FailedGuardText(entry.group(1) if entry else None, code, frames)
