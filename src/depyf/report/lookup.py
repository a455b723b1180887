"""The answer of ``why``: what a call finds in Dynamo's cache, as data, as text and as a table."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Iterable, Iterator, List, Optional, Tuple

from depyf.diagnosis.guard_advice import GuardCause
from depyf.report.guard_words import GuardWords
from depyf.report.happening import counted

_SHOWN = 2
"""Of an entry, so many guards that fail are shown after the first."""


@dataclass(frozen=True)
class FailedGuard:
    """A guard that does not hold for the call.

    ``kind`` is PyTorch's class of guard, ``code`` its text, ``source`` what it looks at, in PyTorch's terms. ``told``
    has the same in words, with the value it was compiled for, the value now, and what would avoid it. ``user_code`` is
    the user's line that made Dynamo guard this, and ``place`` its file and number, where PyTorch tells.
    """

    kind: str
    code: str
    source: str
    told: GuardWords
    user_code: str = ""
    place: Optional[Tuple[str, int]] = None


@dataclass(frozen=True)
class Entry:
    """A cache entry, and whether the call could run it.

    ``failed`` is empty when it could; else the guard that PyTorch names comes first. ``follow`` are guards that fail
    because of those, and would hold without them. ``note`` says what else keeps it from being used.
    """

    compile_id: Optional[str]
    hit: bool
    failed: Tuple[FailedGuard, ...]
    note: str = ""
    follow: Tuple[FailedGuard, ...] = ()


def nearest_first(entries: Iterable[Entry]) -> List[Entry]:
    """The entry that would run, then those that the call misses by the least; for another object or class, last."""

    def distance(each: Entry) -> Tuple[bool, bool, bool, int, int]:
        is_for_another = any(guard.told.cause in _FOR_ANOTHER for guard in each.failed)
        return not each.hit, bool(each.note), is_for_another, len(each.failed), len(each.follow)

    return sorted(entries, key=distance)


_FOR_ANOTHER = (GuardCause.IDENTITY, GuardCause.FUNCTION, GuardCause.CLASS, GuardCause.GONE)


@dataclass(frozen=True)
class Why:
    """What a call would do; prints as text, and as a table in Jupyter.

    ``entries`` are the cache entries in the order in which they are tried. ``hit`` is the one that would run, None
    where there is none: then ``outcome`` says what happens. ``limit`` is the name and the value of the limit that keeps
    Dynamo from compiling once more, None where none is reached. ``left_alone`` says that Dynamo compiles nothing of
    such a call, whatever its arguments. ``advice`` is what would have avoided the compilation, ``notes`` say what the
    answer takes for granted.
    """

    function: str
    filename: str
    first_line: int
    entries: Tuple[Entry, ...]
    outcome: str
    limit: Optional[Tuple[str, int]] = None
    resumes: Tuple[str, ...] = ()
    advice: Tuple[str, ...] = field(default=())
    notes: Tuple[str, ...] = ()
    left_alone: bool = False

    @property
    def hit(self) -> Optional[Entry]:
        return next((entry for entry in self.entries if entry.hit), None)

    @property
    def would_compile(self) -> bool:
        """Whether Dynamo would compile for this call."""
        return self.hit is None and self.limit is None and not self.left_alone

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def _repr_html_(self) -> str:
        return _table(self)


def _lines(answer: Why) -> Iterator[str]:
    yield f"{answer.function} ({answer.filename}:{answer.first_line}): this call {answer.outcome}"
    for entry in nearest_first(answer.entries):
        name = f"  {entry.compile_id or 'an entry'}: "
        if entry.hit:
            yield f"{name}runs; all its guards hold"
        elif entry.note:
            yield f"{name}{entry.note}"
        else:
            yield f"{name}{entry.failed[0].told.words}"
            where = _where(entry.failed[0])
            if where:
                yield f"      {where}"
            yield from (f"      {text}" for text in _others(entry))
    if answer.hit is None and answer.advice:
        yield "  What avoids it:"
        for text in answer.advice:
            yield f"    - {text}"
    if answer.resumes and answer.hit is not None:
        names = ", ".join(answer.resumes)
        yield f"  After its graph breaks it goes on in {names}, which this does not look at: watch() tells of those"
    for note in answer.notes:
        yield f"  note: {note}"


def _others(entry: Entry) -> Iterator[str]:
    """What else does not hold, after the first: two guards by their words, the rest as a number."""
    others = entry.failed[1:]
    if others:
        more = f"; and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        yield "also: " + "; ".join(each.told.words for each in others[:_SHOWN]) + more
    if entry.follow:
        yield f"({_followers(entry)})"


def _followers(entry: Entry) -> str:
    number = len(entry.follow)
    return f"{counted(number, 'more guard')} fail{'s' if number == 1 else ''} because of that"


def _where(guard: FailedGuard) -> str:
    place = "" if guard.place is None else f"{guard.place[0]}:{guard.place[1]}"
    return ": ".join(text for text in (place, guard.user_code) if text)


def _table(answer: Why) -> str:
    rows: List[str] = []
    for entry in nearest_first(answer.entries):
        name = html.escape(entry.compile_id or "an entry")
        if entry.hit or entry.note or not entry.failed:
            rows.append(_row(name, "runs; all its guards hold" if entry.hit else entry.note, "", "", ""))
        for guard in entry.failed if not entry.note else ():
            told = guard.told
            rows.append(_row(name, told.words, told.before or "", told.now or "", _where(guard)))
            name = ""
        if entry.follow and not entry.note:
            rows.append(_row("", _followers(entry), "", "", ""))
    head = "".join(f"<th>{text}</th>" for text in ("entry", "guard that does not hold", "compiled for", "now", "line"))
    advice = "".join(f"<li>{html.escape(text)}</li>" for text in answer.advice)
    return (
        f"<p><code>{html.escape(answer.function)}</code>: this call {html.escape(answer.outcome)}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        + (f"<p>What avoids it:</p><ul>{advice}</ul>" if advice else "")
        + "".join(f"<p>note: {html.escape(note)}</p>" for note in answer.notes)
    )


def _row(name: str, *cells: str) -> str:
    return f"<tr><td>{name}</td>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
