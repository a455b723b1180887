"""The result of ``trace``: what ran, in which order, as data, as text and as a table.

Events are in the order of their starts; the ``inside`` of an event has the events that ran inside of it. A sequence
that occurred several times in a row is listed once, as ``Repeated``; its events have the times of all iterations.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Dict, Final, Iterator, List, Literal, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from depyf.answers.watch import counted, shortened
from depyf.base.messages import duration
from depyf.base.plain_data import Answer

ThingKind = Literal["code", "graph", "backward", "compilation", "plain Python"]
CODE: Final = "code"
GRAPH: Final = "graph"
BACKWARD: Final = "backward"
COMPILATION: Final = "compilation"
PLAIN: Final = "plain Python"


@dataclass(frozen=True)
class Thing:
    """Something that runs.

    ``kind`` is ``code`` (transformed code of Dynamo's), ``graph`` (a compiled graph, forward), ``backward``,
    ``compilation`` or ``plain Python`` (a function that Dynamo had to leave as it is). ``name`` is that of the
    function or ``__compiled_fn_<id>``; ``filename`` and ``line`` are where the function begins.
    """

    kind: ThingKind
    name: str
    compile_id: Optional[str] = None
    filename: str = ""
    line: int = 0
    note: str = ""

    @property
    def label(self) -> str:
        """How it is called in texts, and in ``counts``."""
        number = "" if self.compile_id is None else f" [{self.compile_id}]"
        if self.kind == GRAPH:
            return self.name
        if self.kind == BACKWARD:
            return f"{self.name} backward"
        if self.kind == COMPILATION:
            return f"compile {self.name}{number}"
        if self.kind == PLAIN:
            return f"{self.name} as plain Python"
        return f"{self.name}{number}"


@dataclass(frozen=True)
class Ran:
    """A thing that ran ``count`` times at this place of the order.

    ``start`` is when it began first, in seconds since the record began. ``seconds`` is the time of all these runs,
    ``fastest`` and ``slowest`` are those of single ones: None where it is not known when a run ends.
    """

    thing: Thing
    count: int
    start: float
    seconds: Optional[float] = None
    fastest: Optional[float] = None
    slowest: Optional[float] = None
    inside: Tuple[Event, ...] = ()


@dataclass(frozen=True)
class Repeated:
    """``events`` came ``count`` times, one turn after the other."""

    count: int
    events: Tuple[Event, ...]

    @property
    def start(self) -> float:
        return self.events[0].start


Event = Union[Ran, Repeated]


@dataclass(frozen=True)
class ThreadTrace:
    """What ran in one thread. ``dropped`` counts the runs before it, which are only in ``counts`` any more."""

    name: str
    events: Tuple[Event, ...]
    dropped: int = 0


@dataclass(frozen=True)
class Total:
    """All runs of one thing together; times as in ``Ran``."""

    thing: Thing
    count: int
    seconds: Optional[float]
    fastest: Optional[float]
    slowest: Optional[float]

    @property
    def mean(self) -> Optional[float]:
        return None if self.seconds is None or not self.count else self.seconds / self.count


@dataclass(frozen=True)
class TraceResult(Answer, kind="trace"):
    """All that a trace recorded; prints as an indented list, and shows as a table in Jupyter.

    ``seconds`` is how long it recorded, ``notes`` say what could not be recorded and why.
    """

    seconds: float
    threads: Tuple[ThreadTrace, ...]
    totals: Tuple[Total, ...]
    notes: Tuple[str, ...] = field(default=())

    @property
    def events(self) -> Tuple[Event, ...]:
        """Those of all threads, one thread after the other."""
        return tuple(event for thread in self.threads for event in thread.events)

    @property
    def counts(self) -> Mapping[str, int]:
        """How often each thing ran, by its label: ``{"f [0/0]": 3, "__compiled_fn_1": 3}``."""
        found: Dict[str, int] = {}
        for total in self.totals:
            found[total.thing.label] = found.get(total.thing.label, 0) + total.count
        return found


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


def text_of(answer: TraceResult) -> str:
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


def html_of(answer: TraceResult) -> str:
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


def _summary(answer: TraceResult) -> str:
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
