"""The answer of ``why``: what a call finds in Dynamo's cache, as data, as text and as a table."""

from __future__ import annotations

import html
import os
import re
from dataclasses import dataclass, field
from typing import Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from depyf.answers.consoles import in_console
from depyf.answers.graph_ids import id_in_dump
from depyf.answers.watch import counted
from depyf.base.plain_data import Answer
from depyf.diagnosis.guard_explanations import GuardExplanation

_SHOWN = 2
"""Of an entry, so many guards that fail are shown after the first."""


@dataclass(frozen=True)
class GuardFailure:
    """A guard that does not hold for the call.

    ``kind`` is PyTorch's class of guard, ``code`` its text, ``source`` what it looks at, in PyTorch's terms.
    ``explanation`` has the same in words, with the value it was compiled for, the value now, and what would avoid it.
    ``user_code`` is the user's line that made Dynamo guard this, and ``location`` its file and number, where
    PyTorch reports them.
    """

    kind: str
    code: str
    source: str
    explanation: GuardExplanation
    user_code: str = ""
    location: Optional[Tuple[str, int]] = None


@dataclass(frozen=True)
class WhyEntry:
    """A cache entry, and whether the call could run it; prints with every guard that fails.

    ``failed`` is empty when it could, unless the stance skips guards (``skip_guard_eval_unsafe``); else the guard that
    PyTorch names comes first. ``follow`` are guards that fail because of those, and would hold without them. ``note``
    says what else keeps it from being used. ``graphs`` are the names of the compiled graphs that it runs, as in a dump.
    """

    compile_id: Optional[str]
    hit: bool
    failed: Tuple[GuardFailure, ...]
    note: str = ""
    follow: Tuple[GuardFailure, ...] = ()
    graphs: Tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The compile id; where PyTorch does not report it, the names of its graphs."""
        return self.compile_id or ", ".join(self.graphs) or "an entry"

    def __str__(self) -> str:
        return "\n".join(_all_of(self))

    _repr_pretty_ = in_console

    def _repr_html_(self) -> str:
        return f"<table>{_HEAD}<tbody>{''.join(_rows(self))}</tbody></table>"


def nearest_first(entries: Iterable[WhyEntry]) -> List[WhyEntry]:
    """Return the entry that would run, then those missed by the fewest guards; for another object or class, last."""

    def distance(each: WhyEntry) -> Tuple[bool, bool, bool, int, int, bool]:
        causes = [guard.explanation for guard in each.failed]
        is_for_another = any(cause.is_for_another for cause in causes)
        is_of_a_kind = any(cause.is_of_a_kind for cause in causes)
        number, following = len(each.failed), len(each.follow)
        return not each.hit, bool(each.note), is_for_another, number, following, is_of_a_kind

    return sorted(entries, key=distance)


@dataclass(frozen=True)
class Why(Answer, kind="why"):
    """What a call would do; prints as text, and as a table in Jupyter.

    ``entries`` are the cache entries in the order in which they are tried. ``hit`` is the one that would run, None
    where there is none: then ``outcome`` says what happens. ``limit`` is the name and the value of the limit that keeps
    Dynamo from compiling once more, None where none is reached. ``left_alone`` says that Dynamo compiles nothing of
    such a call. ``raises`` names the exception that the call raises before any code of the program runs, empty if it
    raises none. ``advice`` is what would have avoided the compilation, ``notes`` say what the answer takes for granted.
    """

    function: str
    filename: str
    first_line: int
    entries: Tuple[WhyEntry, ...]
    outcome: str
    limit: Optional[Tuple[str, int]] = None
    resumes: Tuple[str, ...] = ()
    advice: Tuple[str, ...] = field(default=())
    notes: Tuple[str, ...] = ()
    left_alone: bool = False
    raises: str = ""

    @property
    def hit(self) -> Optional[WhyEntry]:
        return next((entry for entry in self.entries if entry.hit), None)

    def entry(self, entry_id: Union[str, int]) -> WhyEntry:
        """Return the cache entry that ``entry_id`` names; ``print`` it to see every guard that fails.

        ``entry_id`` is a compile id as shown here, by ``watch`` and on the page (``"0/1"``, ``"f [0/1]"``), or a graph
        that the entry runs (``"__compiled_fn_3"``, ``3``), or a file of a dump.

        Raises ``LookupError``, which lists the entries that there are, when it names none of them.
        """
        wanted = entry_id if isinstance(entry_id, int) else id_in_dump(os.path.dirname(entry_id), entry_id)
        found = [each for each in self.entries if _is_called(each, wanted)]
        if len(found) == 1:
            return found[0]
        known = f"there are: {_listed(self.entries)}" if self.entries else f"there are none: this call {self.outcome}"
        more = f"; for entries of {', '.join(self.resumes)}, ask why(frame) in a debugger" if self.resumes else ""
        raise LookupError(f"no cache entry of {self.function} is called {entry_id!r}; {known}{more}")

    @property
    def would_compile(self) -> bool:
        """Whether Dynamo would compile for this call."""
        return self.hit is None and self.limit is None and not self.left_alone

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    _repr_pretty_ = in_console

    def _repr_html_(self) -> str:
        return _table(self)


def _is_called(entry: WhyEntry, wanted: Union[str, int]) -> bool:
    """Return whether an id, as ``graph_ids`` normalizes it, is that of this entry. A stage of a graph makes no
    difference."""
    if isinstance(wanted, int):
        return f"__compiled_fn_{wanted}" in entry.graphs
    generation = re.sub(r"#\d+", "", wanted)  # of the page, which numbers what a reset repeats
    name = wanted.partition(".")[0]
    return generation == entry.compile_id or name in entry.graphs or f"__compiled_fn_{name}" in entry.graphs


def _listed(entries: Sequence[WhyEntry]) -> str:
    """Return the valid ids as text."""
    graphs = [f" ({', '.join(each.graphs)})" if each.compile_id and each.graphs else "" for each in entries]
    return ", ".join(f"{each.name}{names}" for each, names in zip(entries, graphs))


def _all_of(entry: WhyEntry) -> Iterator[str]:
    """Yield the lines for one entry, with all guards that fail."""
    graphs = f" ({', '.join(entry.graphs)})" if entry.compile_id and entry.graphs else ""
    if entry.hit or entry.note:
        yield f"{entry.name}{graphs}: {_without_guards(entry)}"
    else:
        yield f"{entry.name}{graphs}: {counted(len(entry.failed), 'guard')} {_FAIL[len(entry.failed) == 1]}"
    if entry.note:
        return
    for guard in entry.failed:
        yield f"  {guard.explanation.words}"
        yield from (f"      {text}" for text in (_where(guard), guard.explanation.advice) if text)
    if entry.follow:
        yield f"  {_followers(entry)}:"
        yield from (f"      {guard.explanation.words}" for guard in entry.follow)


_FAIL = ("do not hold", "does not hold")


def _without_guards(entry: WhyEntry) -> str:
    if entry.hit and entry.failed:
        number = len(entry.failed)
        return f"runs; the stance skips {counted(number, 'guard')} that {'does' if number == 1 else 'do'} not hold"
    return "runs; all its guards hold" if entry.hit else entry.note


def _lines(answer: Why) -> Iterator[str]:
    yield f"{answer.function} ({answer.filename}:{answer.first_line}): this call {answer.outcome}"
    for entry in nearest_first(answer.entries):
        name = f"  {entry.name}: "
        if entry.hit or entry.note:
            yield f"{name}{_without_guards(entry)}"
            name = "      "
        if entry.failed and not entry.note:
            yield f"{name}{entry.failed[0].explanation.words}"
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
        yield f"  After its graph breaks it resumes in {names}, which why() does not analyse: watch() reports those"
    for note in answer.notes:
        yield f"  note: {note}"


def _others(entry: WhyEntry) -> Iterator[str]:
    """Yield the other failing guards, after the first: two guards by their words, the rest as a number."""
    others = entry.failed[1:]
    if others:
        more = f"; and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        yield "also: " + "; ".join(each.explanation.words for each in others[:_SHOWN]) + more
    if entry.follow:
        yield f"({_followers(entry)})"


def _followers(entry: WhyEntry) -> str:
    number = len(entry.follow)
    return f"{counted(number, 'more guard')} fail{'s' if number == 1 else ''} as a result"


def _where(guard: GuardFailure) -> str:
    location = "" if guard.location is None else "{}:{}".format(*guard.location)
    return ": ".join(text for text in (location, guard.user_code) if text)


def _table(answer: Why) -> str:
    rows = [row for entry in nearest_first(answer.entries) for row in _rows(entry)]
    advice = "".join(f"<li>{html.escape(text)}</li>" for text in answer.advice)
    return (
        f"<p><code>{html.escape(answer.function)}</code>: this call {html.escape(answer.outcome)}</p>"
        f"<table>{_HEAD}<tbody>{''.join(rows)}</tbody></table>"
        + (f"<p>What avoids it:</p><ul>{advice}</ul>" if advice else "")
        + "".join(f"<p>note: {html.escape(note)}</p>" for note in answer.notes)
    )


_COLUMNS = ("entry", "guard that does not hold", "compiled for", "now", "line")
_HEAD = f"<thead><tr>{''.join(f'<th>{text}</th>' for text in _COLUMNS)}</tr></thead>"


def _rows(entry: WhyEntry) -> Iterator[str]:
    name = html.escape(entry.name)
    if entry.hit or entry.note or not entry.failed:  # of a hit: the guards that the stance skips follow
        yield _row(name, _without_guards(entry), "", "", "")
    for guard in entry.failed if not entry.note else ():
        explanation = guard.explanation
        yield _row(name, explanation.words, explanation.before or "", explanation.now or "", _where(guard))
        name = ""
    if entry.follow and not entry.note:
        yield _row("", _followers(entry), "", "", "")


def _row(name: str, *cells: str) -> str:
    return f"<tr><td>{name}</td>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
