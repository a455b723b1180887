"""What ran, for a terminal and for a notebook: one line for each thing, indented by what it ran inside of."""

from __future__ import annotations

import html
from typing import Iterator, List, NamedTuple, Optional, Sequence

from depyf.answers.happening import counted, shortened
from depyf.answers.ran import BACKWARD, COMPILATION, GRAPH, PLAIN, Event, Repeated, ThingKind, WhatRan

_MOST_LINES = 400


class _Line(NamedTuple):
    """One line; ``times`` is how often in a row, for a line that says only that."""

    depth: int
    text: str
    place: str = ""
    start: Optional[float] = None
    mean: Optional[float] = None
    total: Optional[float] = None
    kind: Optional[ThingKind] = None


def text_of(answer: WhatRan) -> str:
    """Return all lines; if there are many, the first and the last ones."""
    lines = [_summary(answer)]
    for number, thread in enumerate(answer.threads):
        if len(answer.threads) > 1:
            lines.append(f"  in {thread.name}:")
        if not number:
            lines.append(f"  {'start':>9} {'mean':>9} {'in all':>9}")
        if thread.dropped:
            lines.append(f"  ({thread.dropped} runs before are only in the counts)")
        lines += _shortened([_as_text(line) for line in _lines(thread.events)])
    return "\n".join([*lines, *(f"  note: {note}" for note in answer.notes)])


def html_of(answer: WhatRan) -> str:
    """Return a table of the lines."""
    rows: List[str] = []
    for thread in answer.threads:
        if len(answer.threads) > 1:
            rows.append(_row("", "", "", f"<i>in {html.escape(thread.name)}</i>"))
        if thread.dropped:
            rows.append(_row("", "", "", f"({thread.dropped} runs before are only in the counts)"))
        rows += _shortened([_as_row(line) for line in _lines(thread.events)], _row("", "", "", "..."))
    head = "".join(f"<th>{text}</th>" for text in ("start", "mean", "in all", "what ran"))
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in answer.notes)
    return (
        f"<p>{html.escape(_summary(answer))}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        + (f"<ul>{notes}</ul>" if notes else "")
    )


def duration(seconds: Optional[float]) -> str:
    """Return a time with its unit, three digits; empty for None."""
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            digits = max(0, 2 - len(str(int(seconds / size))) + 1)
            return f"{seconds / size:.{digits}f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def _summary(answer: WhatRan) -> str:
    runs = sum(answer.counts.values())
    things = len(answer.counts)
    return f"depyf traced {duration(answer.seconds) or '0 s'}: {counted(runs, 'run')} of {counted(things, 'thing')}"


def _lines(events: Sequence[Event], depth: int = 0) -> Iterator[_Line]:
    for event in events:
        if isinstance(event, Repeated):
            yield _Line(depth, f"{event.count} times:")
            yield from _lines(event.events, depth + 1)
            continue
        thing = event.thing
        mean = None if event.seconds is None else event.seconds / event.count
        place = f"{shortened(thing.filename)}:{thing.line}" if thing.filename and thing.line else ""
        shown = place if thing.kind not in (GRAPH, BACKWARD) else ""
        text = f"{thing.label} ({thing.note})" if thing.note else thing.label
        yield _Line(depth, text, shown, event.start, mean, event.seconds if event.count > 1 else None, thing.kind)
        yield from _lines(event.inside, depth + 1)


def _as_text(line: _Line) -> str:
    times = f"{duration(line.start):>9} {duration(line.mean):>9} {duration(line.total):>9}"
    place = f"  {line.place}" if line.place else ""
    return f"  {times}  {'  ' * line.depth}{line.text}{place}".rstrip()


def _as_row(line: _Line) -> str:
    text = html.escape(line.text)
    if line.kind in (COMPILATION, PLAIN):
        text = f"<b>{text}</b>"
    place = f" <small>{html.escape(line.place)}</small>" if line.place else ""
    cell = f'<span style="padding-left:{1.5 * line.depth}em">{text}{place}</span>'
    return _row(duration(line.start), duration(line.mean), duration(line.total), cell)


def _row(start: str, mean: str, total: str, cell: str) -> str:
    return f'<tr><td>{start}</td><td>{mean}</td><td>{total}</td><td style="text-align:left">{cell}</td></tr>'


def _shortened(lines: List[str], gap: str = "  ...") -> List[str]:
    if len(lines) <= _MOST_LINES:
        return lines
    half = _MOST_LINES // 2
    return [*lines[:half], gap, *lines[-half:]]
