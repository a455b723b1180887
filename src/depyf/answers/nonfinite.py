"""The answer of ``find_nonfinite``: where the first NaN or Inf was made, as data, as text and as a table."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Iterator, List, Optional, Tuple

from depyf.answers.consoles import in_console
from depyf.answers.coverage import Coverage
from depyf.answers.watch import shortened
from depyf.base.plain_data import Answer

OPERATION, INPUT, COMPILED, EAGER, RESULT = "operation", "input", "compiled code", "eager code", "result"
"""What a value that is not finite comes from (``NonFinite.source``)."""


@dataclass(frozen=True)
class Line:
    """A line of the user's code."""

    file: str
    line: int
    code: str = ""

    def __str__(self) -> str:
        return f"{shortened(self.file)}:{self.line}" + (f": {self.code}" if self.code else "")


@dataclass(frozen=True)
class TensorFacts:
    """A tensor in numbers. ``minimum``, ``maximum`` and ``mean`` are those of its finite values, None if it has none.

    ``name`` is that of the graph node, or the user's name of an input.
    """

    name: str
    dtype: str
    shape: Tuple[int, ...]
    device: str
    count: int
    nans: int
    infs: int
    zeros: int
    minimum: Optional[float] = None
    maximum: Optional[float] = None
    mean: Optional[float] = None

    def __str__(self) -> str:
        of = "" if self.device == "cpu" else f" on {self.device}"
        words = [f"{self.name}: {self.dtype}{list(self.shape)}{of}"]
        if self.minimum is not None and self.maximum is not None and self.mean is not None:
            words.append(f"{_number(self.minimum)} to {_number(self.maximum)}, mean {_number(self.mean)}")
        counts = ((self.nans, "NaN"), (self.infs, "Inf"), (self.zeros, "zero"))
        words += [f"{count} {name} of {self.count}" for count, name in counts if count]
        return "; ".join(words)


@dataclass(frozen=True)
class Step:
    """Another place on the path of a value: what happens there, in words, the operation, and the user's line."""

    words: str
    operation: str = ""
    line: Optional[Line] = None

    def __str__(self) -> str:
        where = "" if self.line is None else f" at {self.line}"
        return f"{self.words}{f' ({self.operation})' if self.operation else ''}{where}"


@dataclass(frozen=True)
class NonFinite:
    """The first value of a chain that is not finite.

    ``kind`` is ``NaN`` or ``Inf``; ``source`` says what it comes from: an ``operation`` of a compiled graph, an
    ``input`` of one (``name`` is the user's name of it), or the ``compiled code`` alone, where the same graph without
    the compiler gives finite values, or ``eager code``; or it is a ``result`` of a graph that can't be replayed.
    ``operation`` is the
    operator, ``called`` what the user called. ``line`` is the user's, ``module`` the module in it; of a backward they
    are those of the forward that it belongs to. ``inputs`` and ``output`` are those of the operation. ``steps`` are
    other places that matter: where an Inf comes from that became NaN, or where it becomes NaN. ``called_from`` is the
    line that ran the graph. ``directory`` has ``finding.txt``, and ``replay`` is a script in it, where one could be
    written: it runs the operation with its ``inputs.pt``, or, where only compiled code is to blame, the graph.
    """

    kind: str
    source: str
    operation: str = ""
    called: str = ""
    name: str = ""
    line: Optional[Line] = None
    module: str = ""
    backward: bool = False
    graph: str = ""
    compile_id: Optional[str] = None
    inputs: Tuple[TensorFacts, ...] = ()
    output: Optional[TensorFacts] = None
    steps: Tuple[Step, ...] = ()
    called_from: Optional[Line] = None
    directory: Optional[str] = None
    replay: Optional[str] = None
    notes: Tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What was found, on one line."""
        return " ".join(_title(self).split())

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    _repr_pretty_ = in_console

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(label)}</td><td><code>{html.escape(text)}</code></td></tr>"
            for label, text in _details(self)
        )
        return f"<p><b>{html.escape(self.title)}</b></p><table><tbody>{rows}</tbody></table>"


@dataclass(frozen=True)
class NonFinitesFound(Answer, kind="nonfinite"):
    """All that ``find_nonfinite`` has found, in order, and what it has looked at; prints what was checked if it has
    found nothing."""

    found: Tuple[NonFinite, ...]
    looked: Coverage

    def __str__(self) -> str:
        if self.found:
            return "\n".join(str(each) for each in self.found)
        looked = self.looked
        first = f"no value that is not finite was made: {looked.extent}" if looked else looked.extent
        return "\n".join([first, *(f"  note: {gap}" for gap in looked.gaps)])


def _title(found: NonFinite) -> str:
    direction = "backward" if found.backward else "forward"
    number = "" if found.compile_id is None else f" [{found.compile_id}]"
    graph = f" in the {direction} of {found.graph}{number}" if found.graph else ""
    if found.source == INPUT:
        name = found.name or "an input"
        return f"{found.kind} comes in from outside as {name},{graph}"
    if found.source == COMPILED:
        return f"{found.kind} made by the compiled code only{graph}: the same graph without the compiler is finite"
    if found.source == RESULT:
        return f"{found.kind} in a result{graph}, which could not be replayed"
    if found.source == EAGER:
        what = found.operation + (f" (of {found.called})" if found.called else "")
        return f"{found.kind} first made by {what} in code that is not compiled, {direction}"
    what = found.operation + (f" (of {found.called})" if found.called and found.called not in found.operation else "")
    return f"{found.kind} first made by {what}{graph}"


def _details(found: NonFinite) -> Iterator[Tuple[str, str]]:
    if found.line is not None:
        yield ("line of the forward" if found.backward else "line"), str(found.line)
    if found.module:
        yield "module", found.module
    for step in found.steps:
        yield "also", str(step)
    for facts in found.inputs:
        yield "input", str(facts)
    if found.output is not None:
        yield "output", str(found.output)
    if found.called_from is not None:
        yield "called from", str(found.called_from)
    if found.replay is not None:
        yield "replay", f"python {shortened(found.replay)}"
    elif found.directory is not None:
        yield "saved", shortened(found.directory)
    for note in found.notes:
        yield "note", note


def _lines(found: NonFinite) -> List[str]:
    return [found.title, *(f"  {label}: {text}" for label, text in _details(found))]


def _number(value: float) -> str:
    return f"{value:.6g}"
