"""Parse graph breaks as torch reports them: the event ``dynamo_graph_break_reason`` is one text."""

from __future__ import annotations

import enum
import re
from dataclasses import field
from typing import Optional, Tuple

from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass
from depyf.torch_trace.addresses import without_addresses
from depyf.torch_trace.events import Event
from depyf.torch_trace.tracebacks import Frame, frames_of


class Unresumed(enum.Enum):
    """Where Dynamo can't resume after a graph break, so that what follows is not compiled."""

    LOOP = "in a loop"
    CONTEXT = "in a with block of a context manager that it can't leave and enter again"
    REST = "anywhere up to the end of the function"
    FRAME = "anywhere in the function"


_PLACE = regex(r"^Graph break in user code at (.*):(\d{1,9})$", re.MULTILINE)
_REASON = regex(r"^Graph Break Reason: (.*?)(?=^User code traceback:|\Z)", re.MULTILINE | re.DOTALL)
_USER_STACK = regex(r"^User code traceback:\n((?:[ \t]+.*\n?)*)", re.MULTILINE)
_ANOTHER = regex(r"^\*\*\* While handling this graph break", re.MULTILINE)
_UNRESUMED = (
    (Unresumed.LOOP, regex(r"^graph break in loop$", re.MULTILINE)),
    (Unresumed.CONTEXT, regex(r"^Graph break under GenericContextWrappingVariable$", re.MULTILINE)),
    (Unresumed.REST, regex(r"\AEncountered graph break that we cannot resume from\b")),
    (Unresumed.FRAME, regex(r"\AFailed to handle graph break gracefully\b")),
)
"""What torch says it could not do about a break, the most specific first."""
_EXPLANATION = regex(r"^ *Explanation: (.*?)(?=^ *Hint:|^ *Developer debug context:|\Z)", re.MULTILINE | re.DOTALL)
_HINT = regex(r"^ *Hint: (.*?)(?=^ *Hint:|^ *Developer debug context:|^\s*$|\Z)", re.MULTILINE | re.DOTALL)
_RAISED = regex(r"^ *Developer debug context: (raised exception .+)$", re.MULTILINE)
_TYPE = regex(r"\A\s*(?:[A-Za-z_]\w*\.)*[A-Z]\w*: (?=\S)")
_URL = regex(r"please visit: (\S+)")
_OLD_TITLES = (
    (regex(r"generic_jump TensorVariable\("), "Data-dependent branching"),
    (regex(r"call torch\._dynamo\.disable\(\) wrapped"), "Skip calling `torch.compiler.disable()`d function"),
    (regex(r"'?skip function graph_break in file"), "Call to `torch._dynamo.graph_break()`"),
)
"""Reasons of PyTorch up to 2.5, in the terms of its own source, with the titles of later versions."""


@dataclass(frozen=True)
class Reason:
    """torch's text of a graph break, or of an error, in its parts: the line with the kind, torch's explanation, its
    hints, and the address of its page. ``unresumed`` is None where Dynamo resumes, or where torch does not say it."""

    title: str
    explanation: str
    hints: Tuple[str, ...]
    url: str
    unresumed: Optional[Unresumed] = None


@dataclass(frozen=True)
class BreakReport:
    """One graph break: the line of the user at which it happened, torch's reason with its hints, the whole message.

    Object addresses are removed: two runs of a program report the same. ``title`` is the line of the reason with the
    kind of the break. ``stack`` has the outermost frame first.
    """

    filename: Optional[str]
    line: Optional[int]
    reason: str
    title: str
    explanation: str
    hints: Tuple[str, ...]
    url: str
    stack: Tuple[Frame, ...]
    text: str = field(repr=False)
    unresumed: Optional[Unresumed] = None


def break_report(event: Event) -> BreakReport:
    """Parse an event named ``dynamo_graph_break_reason``. A text of another form is used as the reason."""
    text = without_addresses(event.payload or "")
    place, found = _PLACE.search(text), _REASON.search(text)
    reason = (found.group(1) if found else text).strip()
    # ``Graph break in user code at a.py:3``, ``Graph Break Reason: ...``, ``User code traceback:`` with indented lines
    stack, parts = _USER_STACK.search(text), reason_in_parts(reason)
    return BreakReport(
        filename=place.group(1) if place else None,
        line=int(place.group(2)) if place else None,
        reason=reason,
        title=parts.title,
        explanation=parts.explanation,
        hints=parts.hints,
        url=parts.url,
        stack=tuple(frames_of(stack.group(1))) if stack else (),
        text=text,
        unresumed=parts.unresumed,
    )


def reason_in_parts(reason: str) -> Reason:
    """Parse the reason of a graph break, or the message of an error that Dynamo made of one."""
    first = _ANOTHER.split(reason)[0]  # what broke; then what Dynamo could not do about it
    url, line = _URL.search(first), title_line(first)
    # Up to 2.5: ``generic_jump TensorVariable()`` is what later versions call ``Data-dependent branching``.
    title = next((words for pattern, words in _OLD_TITLES if pattern.match(line)), line)
    # Of an exception of the program, torch's explanation says that there is one; the next part, which.
    raised = _RAISED.search(first)
    explained = _EXPLANATION.findall(first) if raised is None else [raised.group(1)]
    return Reason(
        title=title,
        explanation=_one_paragraph(next(iter(explained), "" if title == line else line)),
        hints=tuple(_one_paragraph(hint) for hint in _HINT.findall(first)),
        url=url.group(1) if url else "",
        unresumed=next((each for each, pattern in _UNRESUMED if pattern.search(reason)), None),
    )


def without_type(error: str) -> str:
    """Return the text of an error, as ``describe`` writes it, without the type at its start."""
    return _TYPE.sub("", error, count=1)


def title_line(reason: str) -> str:
    """Return the line of a reason with the kind of the break. Dynamo puts one that ends with a colon before it:
    ``Encountered graph break when attempting to trace ...:``, an empty line, and then the break."""
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    return next((line for line in lines if not line.endswith(":")), reason.strip())


def _one_paragraph(text: str) -> str:
    """Return the text without empty lines at its ends, and on one line if it is one paragraph."""
    text = text.strip()
    return text if "\n\n" in text else " ".join(text.split())
