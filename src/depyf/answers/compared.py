"""The answer of ``compare``: which stage and which operation compute something else than eager mode."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Iterator, List, Optional, Tuple

from depyf.answers.bisected import Bisected
from depyf.answers.consoles import in_console
from depyf.answers.watch import counted
from depyf.base.plain_data import Answer

EAGER, DYNAMO, AOT, DECOMPOSITIONS, BACKEND = "eager", "Dynamo", "AOTAutograd", "decompositions", "the backend"
"""What runs in plain Python, and the stages of a compilation in their order; the last one is called by its name."""


@dataclass(frozen=True)
class Errors:
    """How far a tensor is from its reference: the largest error, the largest one against its element, and the root mean
    square of the errors against that of the values."""

    largest: float
    relative: float
    rms: float

    def __str__(self) -> str:
        return f"max {self.largest:.3g}, max relative {self.relative:.3g}, rms {self.rms:.3g}"


@dataclass(frozen=True)
class Measured:
    """One value of a run against the same one of eager mode.

    ``name`` is ``output``, ``gradient of ...`` or ``... afterwards`` (what the call wrote to). ``eager`` and
    ``compiled`` are their errors against float64 where ``reference`` says so, else ``compiled`` is against eager and
    ``eager`` is None. ``reason`` is empty when the value is right.
    """

    name: str
    kind: str
    eager: Optional[Errors]
    compiled: Optional[Errors]
    reason: str = ""
    reference: bool = True

    @property
    def right(self) -> bool:
        return not self.reason


@dataclass(frozen=True)
class StageResult:
    """A run with the backend that stops at a stage. ``error`` is the exception that it ended with, in words."""

    stage: str
    backend: str
    values: Tuple[Measured, ...] = field(repr=False)
    error: str = ""

    @property
    def right(self) -> bool:
        return not self.error and all(value.right for value in self.values)

    @property
    def wrong(self) -> Tuple[Measured, ...]:
        return tuple(value for value in self.values if not value.right)


@dataclass(frozen=True)
class StaleRead:
    """A value that the call reads, and that no guard of the entry checks.

    ``name`` is how ``function`` writes it, in the ``code`` at ``place``. ``proof`` is the change of this one value, or
    of this one and another, that makes eager mode compute what the entry computes; without one, the value may be the
    reason. ``alone`` is whether no other change was found that does so. ``dropped``: a guard on it was dropped
    (``guard_filter_fn``). ``advice`` is what makes Dynamo guard it, empty where nothing is known to.
    """

    name: str
    function: str
    place: Optional[Tuple[str, int]]
    code: str = ""
    proof: str = ""
    dropped: bool = False
    advice: str = ""
    alone: bool = True


@dataclass(frozen=True)
class EntryRun:
    """The cache entry that the call hits, run on copies.

    ``name`` is its compile id. ``result`` is how it compares with eager mode, None if it was not run: then ``not_run``
    says why. ``skipped`` are the guards that do not hold and that the stance skips, in words. ``reads`` are the values
    that no guard checks and that explain a difference, ``is_stale`` says that only the entry differs: what is compiled
    anew is right.
    """

    name: str
    result: Optional[StageResult]
    not_run: str = ""
    skipped: Tuple[str, ...] = ()
    reads: Tuple[StaleRead, ...] = ()
    is_stale: bool = False

    @property
    def right(self) -> bool:
        """Whether the entry was run and computes what eager mode does."""
        return self.result is not None and self.result.right and not self.not_run


@dataclass(frozen=True)
class Culprit:
    """The first operation that computes something else.

    ``graph`` says which graph it is in, ``backward`` whether that computes gradients, ``node`` is its name there,
    ``operation`` what it does, ``place`` the user's file and line with the ``code`` there. ``measured`` is its value in
    the compiled run. ``step`` says what made it wrong: a stage's passes over the graph, or the code made of it.
    ``module`` is the module that it runs in. ``instead`` is what stands there instead, where that is known. ``kernels``
    compute it. ``script`` runs the ``region``, the smallest part of the graph that was seen to differ when it was
    compiled alone. ``confirmed`` is whether the script was run in a process of its own and showed the difference;
    if it did not, ``doubt`` says why, and ``seen`` how the operation was found ("": it is only an output that differs).
    """

    graph: str
    backward: bool
    node: str
    operation: str
    place: Optional[Tuple[str, int]]
    code: str
    measured: Optional[Measured]
    step: str
    instead: str = ""
    kernels: Tuple[str, ...] = ()
    script: Optional[str] = None
    confirmed: bool = False
    region: str = ""
    doubt: str = ""
    seen: str = ""
    module: str = ""

    @property
    def title(self) -> str:
        """What is known of the operation."""
        if self.confirmed:
            return "first wrong operation"
        if self.region:
            return "differs in this process, not confirmed in another"
        return "no operation is confirmed; not found after that step" if self.seen else "an output that differs"


@dataclass(frozen=True)
class Compared(Answer, kind="compare"):
    """Eager mode against a compiled run; prints as text, and as a table in Jupyter.

    ``stages`` has the run of the backend first, then, if that differs, those of the stages before it, in their order.
    ``stage`` is the first stage whose results differ (None: all is as in eager mode, within what rounding explains, or
    nothing was compared).
    ``culprit`` is the first operation that does, where it was found. ``bisected`` is what PyTorch's bisector says, if
    it was asked. ``entry`` is the cache entry that the call hits (None: it hits none, and would be compiled as the run
    of the backend was). ``notes`` say what limits the answer.
    """

    function: str
    backend: str
    stages: Tuple[StageResult, ...]
    stage: Optional[str] = None
    culprit: Optional[Culprit] = None
    notes: Tuple[str, ...] = ()
    bisected: Optional[Bisected] = None
    entry: Optional[EntryRun] = None

    _properties = ("same",)

    @property
    def same(self) -> bool:
        """Whether a fresh compilation and the cache entry that the call hits compute what eager mode does; not, where
        there was nothing to compare, or where the entry was not run.
        """
        fresh = self.stage is None and bool(self.stages and self.stages[0].values)
        return fresh and (self.entry is None or self.entry.right)

    def __bool__(self) -> bool:
        return self.same

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    _repr_pretty_ = in_console

    def _repr_html_(self) -> str:
        return _table(self)


def _verdict(answer: Compared) -> str:
    run, entry = (answer.stages[0] if answer.stages else None), answer.entry
    if answer.same and run is not None:
        return f"{answer.backend} computes what eager mode does ({counted(len(run.values), 'value')} compared)"
    if answer.stage is None and not (run is not None and run.values):
        return "nothing was compared"
    if answer.stage is None and entry is not None:
        if entry.is_stale:
            return f"{_wrong_entry(entry)}; compiled anew with {answer.backend}, its results are right"
        return f"compiled anew with {answer.backend}, its results are right; {entry_line(entry)}"
    if run is not None and run.error and not run.values:
        return f"compiling it anew with {answer.backend} fails where eager mode does not: {run.error}"
    return f"{answer.backend} computes something else than eager mode, beginning with {answer.stage}"


def _wrong_entry(entry: EntryRun) -> str:
    what = f"the cache entry {entry.name}, which this call runs, computes something else than eager mode"
    if entry.skipped:
        return f"{what}: torch.compiler.set_stance(skip_guard_eval_unsafe=True) skips guards that do not hold"
    return f"{what}: it is stale"


def entry_line(entry: EntryRun) -> str:
    """Return the line about the cache entry that the call hits."""
    name = f"the cache entry {entry.name}, which this call runs"
    if entry.result is None:
        return f"{name}, was not run: {entry.not_run}"
    partly = f", but {entry.not_run}" if entry.not_run else ""
    return f"{name}: {_result(entry.result)}{partly}"


def _result(stage: StageResult) -> str:
    as_eager = "as eager mode" if stage.values else "it runs"
    return as_eager if stage.right else stage.error or f"{len(stage.wrong)} of {len(stage.values)} differ"


def _entry_lines(entry: EntryRun) -> Iterator[str]:
    """Yield what is known of the entry: the guards that are skipped, the values that no guard checks, its results."""
    yield from (f"  guard that is skipped: {words}" for words in entry.skipped)
    for read in entry.reads:
        guard = (
            f"the guard of {entry.name} on it was dropped" if read.dropped else f"no guard of {entry.name} covers it"
        )
        explains = f"; {_EXPLAINS[read.alone]}: {read.proof}" if read.proof else "; it may be what has changed"
        yield f"  {read.name}, read by {read.function}: {guard}{explains}"
        if read.place is not None:
            yield f"    {read.place[0]}:{read.place[1]}: {read.code}".rstrip(": ")
        if read.advice:
            yield f"    what avoids it: {read.advice}"
    yield f"  {entry_line(entry)}"
    for value in entry.result.wrong[:_SHOWN] if entry.result is not None else ():
        yield f"    {value.name}: {value.kind}: {value.reason}"
        yield from (f"      {line}" for line in _errors(value))


_EXPLAINS = ("it may be what has changed, as other values may", "it explains the difference")
_SHOWN = 5
"""So many wrong values of a run are shown."""


def _lines(answer: Compared) -> Iterator[str]:
    yield f"{answer.function}: {_verdict(answer)}"
    culprit = answer.culprit
    if culprit is not None:
        yield f"  {culprit.title}: {culprit.node} = {culprit.operation}"
        yield f"    in the {culprit.graph}; {culprit.step}"
        if culprit.module:
            yield f"    module: {culprit.module}"
        if culprit.place is not None:
            yield f"    {culprit.place[0]}:{culprit.place[1]}: {culprit.code}".rstrip(": ")
        if culprit.instead:
            yield f"    computed instead: {culprit.instead}"
        if culprit.measured is not None:
            yield from (f"    {line}" for line in _errors(culprit.measured))
        if culprit.kernels:
            yield f"    computed by {', '.join(culprit.kernels)}"
        if culprit.region:
            yield f"    compiled alone, this differs: {culprit.region}"
        if culprit.doubt:
            yield f"    not confirmed: {culprit.doubt}"
        if culprit.script:
            what = "to reproduce it (it was run, and differs)" if culprit.confirmed else "its graph and inputs"
            yield f"    {what}: python {culprit.script}"
    if answer.bisected is not None:
        yield f"  {answer.bisected}"
    if answer.entry is not None:
        yield from _entry_lines(answer.entry)
    for stage in _in_order(answer):
        yield f"  {stage.stage} ({stage.backend}): {_result(stage)}"
        for value in stage.wrong[:_SHOWN]:
            yield f"    {value.name}: {value.kind}: {value.reason}"
            yield from (f"      {line}" for line in _errors(value))
    for note in answer.notes:
        yield f"  note: {note}"


def _in_order(answer: Compared) -> List[StageResult]:
    return [*answer.stages[1:], *answer.stages[:1]]


def _errors(value: Measured) -> Iterator[str]:
    against = "float64" if value.reference else "eager"
    if value.eager is not None:
        yield f"error of eager against {against}:    {value.eager}"
    if value.compiled is not None:
        yield f"error of compiled against {against}: {value.compiled}"


def _table(answer: Compared) -> str:
    rows = []
    entry = answer.entry
    of_entry = [entry.result] if entry is not None and entry.result is not None else []
    for stage in (*of_entry, *_in_order(answer)):
        name = f"{stage.stage} ({stage.backend})"
        if stage.error:
            rows.append((name, "", "", "", stage.error))
        for value in stage.values:
            eager, compiled = (str(each) if each is not None else "" for each in (value.eager, value.compiled))
            rows.append((name, value.name, eager, compiled, value.reason or "same"))
            name = ""
    culprit = answer.culprit
    found = ""
    if culprit is not None:
        where = f"{culprit.place[0]}:{culprit.place[1]}" if culprit.place else ""
        facts = (
            (culprit.title, f"{culprit.node} = {culprit.operation}"),
            ("where", f"{culprit.graph}; {culprit.step}"),
            ("module", culprit.module),
            ("line", f"{where} {culprit.code}".strip()),
            ("instead", culprit.instead),
            ("errors", "; ".join(_errors(culprit.measured)) if culprit.measured else ""),
            ("computed by", ", ".join(culprit.kernels)),
            ("compiled alone", culprit.region),
            ("not confirmed", culprit.doubt),
            ("script", culprit.script or ""),
        )
        cells = "".join(f"<tr><th>{name}</th><td>{html.escape(text)}</td></tr>" for name, text in facts if text)
        found = f"<table>{cells}</table>"
    head = "".join(f"<th>{text}</th>" for text in ("stage", "value", "error of eager", "error of compiled", ""))
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    about = [] if entry is None else [line.strip() for line in _entry_lines(entry)]
    said = (*about, *answer.notes, *([] if answer.bisected is None else [str(answer.bisected)]))
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in said)
    return (
        f"<p><code>{html.escape(answer.function)}</code>: {html.escape(_verdict(answer))}</p>{found}"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" + (f"<ul>{notes}</ul>" if notes else "")
    )
