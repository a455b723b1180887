"""The answer of ``compare``: which stage and which operation compute something else than eager mode."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Iterator, List, Optional, Tuple

from depyf.answers.bisected import Bisected
from depyf.answers.consoles import in_console
from depyf.answers.happening import counted

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
class Culprit:
    """The first operation that computes something else.

    ``graph`` says which graph it is in, ``backward`` whether that computes gradients, ``node`` is its name there,
    ``operation`` what it does, ``place`` the user's file and line with the ``code`` there. ``measured`` is its value in
    the compiled run. ``step`` says what made it wrong: a stage's passes over the graph, or the code made of it.
    ``module`` is the module that it runs in. ``instead`` is what stands there instead, where that is known. ``kernels``
    compute it. ``script`` is a script of the graph up to it, which ``reproduces`` the fault unless something that ran
    can't be in it: the notes of the answer say what.
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
    reproduces: bool = True
    module: str = ""


@dataclass(frozen=True)
class Compared:
    """Eager mode against a compiled run; prints as text, and as a table in Jupyter.

    ``stages`` has the run of the backend first, then, if that differs, those of the stages before it, in their order.
    ``stage`` is the first stage whose results differ (None: all is as in eager mode, within what rounding explains, or
    nothing was compared).
    ``culprit`` is the first operation that does, where it was found. ``bisected`` is what PyTorch's bisector says, if
    it was asked. ``notes`` say what limits the answer.
    """

    function: str
    backend: str
    stages: Tuple[StageResult, ...]
    stage: Optional[str] = None
    culprit: Optional[Culprit] = None
    notes: Tuple[str, ...] = ()
    bisected: Optional[Bisected] = None

    @property
    def same(self) -> bool:
        """Whether the compiled run computes what eager mode does; not, where there was nothing to compare."""
        return self.stage is None and bool(self.stages and self.stages[0].values)

    def __bool__(self) -> bool:
        return self.same

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    _repr_pretty_ = in_console

    def _repr_html_(self) -> str:
        return _table(self)


def _verdict(answer: Compared) -> str:
    run = answer.stages[0] if answer.stages else None
    if answer.same and run is not None:
        return f"{answer.backend} computes what eager mode does ({counted(len(run.values), 'value')} compared)"
    if answer.stage is None:
        return "nothing was compared"
    if run is not None and run.error and not run.values:
        return f"{answer.backend} fails where eager mode does not: {run.error}"
    return f"{answer.backend} computes something else than eager mode, beginning with {answer.stage}"


def _lines(answer: Compared) -> Iterator[str]:
    yield f"{answer.function}: {_verdict(answer)}"
    culprit = answer.culprit
    if culprit is not None:
        yield f"  first wrong operation: {culprit.node} = {culprit.operation}"
        yield f"    in the {culprit.graph}; {culprit.step}"
        if culprit.module:
            yield f"    module: {culprit.module}"
        if culprit.place is not None:
            yield f"    {culprit.place[0]}:{culprit.place[1]}: {culprit.code}".rstrip(": ")
        if culprit.instead:
            yield f"    what stands there instead: {culprit.instead}"
        if culprit.measured is not None:
            yield from (f"    {line}" for line in _errors(culprit.measured))
        if culprit.kernels:
            yield f"    computed by {', '.join(culprit.kernels)}"
        if culprit.script:
            what = "to reproduce it" if culprit.reproduces else "its graph and inputs, without what is noted below"
            yield f"    {what}: python {culprit.script}"
    if answer.bisected is not None:
        yield f"  {answer.bisected}"
    for stage in _in_order(answer):
        as_eager = "as eager mode" if stage.values else "it runs"
        words = as_eager if stage.right else stage.error or f"{len(stage.wrong)} of {len(stage.values)} differ"
        yield f"  {stage.stage} ({stage.backend}): {words}"
        for value in stage.wrong[:5]:
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
    for stage in _in_order(answer):
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
            ("first wrong operation", f"{culprit.node} = {culprit.operation}"),
            ("where", f"{culprit.graph}; {culprit.step}"),
            ("module", culprit.module),
            ("line", f"{where} {culprit.code}".strip()),
            ("instead", culprit.instead),
            ("errors", "; ".join(_errors(culprit.measured)) if culprit.measured else ""),
            ("computed by", ", ".join(culprit.kernels)),
            ("script", culprit.script or ""),
        )
        cells = "".join(f"<tr><th>{name}</th><td>{html.escape(text)}</td></tr>" for name, text in facts if text)
        found = f"<table>{cells}</table>"
    head = "".join(f"<th>{text}</th>" for text in ("stage", "value", "error of eager", "error of compiled", ""))
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    said = (*answer.notes, *([] if answer.bisected is None else [str(answer.bisected)]))
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in said)
    return (
        f"<p><code>{html.escape(answer.function)}</code>: {html.escape(_verdict(answer))}</p>{found}"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" + (f"<ul>{notes}</ul>" if notes else "")
    )
