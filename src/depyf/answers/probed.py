"""What ``probe`` recorded: tensors by the user's names, as data, as text and as a table."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from depyf.answers.consoles import in_console
from depyf.answers.nonfinite import Line, TensorFacts
from depyf.answers.watch import counted
from depyf.base.plain_data import NOT_DATA, Answer

COMPILED, REPLAYED = "compiled", "replayed"
_MOST_LINES = 40


@dataclass(frozen=True)
class Probed:
    """One value: what a name was bound to, or a line computed, in one call of a graph.

    ``name`` is the variable (``.name`` an attribute, ``return`` what a function returns), ``part`` where in a tuple or
    dictionary the tensor stands. ``operation`` made it, in ``graph`` (``__compiled_fn_<n>``), which was called for the
    ``call``-th time. ``value`` is a copy of the tensor, None if only statistics are kept; ``facts`` are its statistics.
    ``source`` is ``compiled`` where the compiled graph itself gives this value out, and ``replayed`` where the graph
    was run once more without the compiler to get it. ``grad`` is its gradient, once backward has run, where asked for.
    ``note`` says what else is to be known of it.
    """

    name: str
    part: str
    function: str
    line: Line
    operation: str
    graph: str
    compile_id: Optional[str]
    call: int
    source: str
    value: Any = field(repr=False, default=None, metadata=NOT_DATA)
    facts: Optional[TensorFacts] = None
    note: str = ""
    gradient: List[Any] = field(default_factory=list, repr=False, compare=False, metadata=NOT_DATA)

    @property
    def grad(self) -> Any:
        """The gradient of this value (None: no backward has come by, or it has none)."""
        return self.gradient[0] if self.gradient else None

    def __str__(self) -> str:
        number = "" if self.compile_id is None else f" [{self.compile_id}]"
        facts = "" if self.facts is None else str(self.facts)
        notes = "; ".join(text for text in (self.source, self.note) if text)
        return f"{facts} ({self.operation}, {self.function}{number} call {self.call}, {self.line}) {notes}"


@dataclass(frozen=True)
class ProbedValues(Answer, kind="probe"):
    """All that was recorded, by what was asked for. ``problems`` say why something is not there."""

    values: Mapping[str, Tuple[Probed, ...]]
    problems: Mapping[str, str]
    notes: Tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for asked, found in self.values.items():
            yield f"{asked}: {counted(len(found), 'value')}"
            half = _MOST_LINES // 2
            for each in found if len(found) <= _MOST_LINES else found[:half]:
                yield f"  {each}"
            if len(found) > _MOST_LINES:
                yield "  ..."
                for each in found[-half:]:
                    yield f"  {each}"
            if asked in self.problems:
                yield f"  {self.problems[asked]}"
        for note in self.notes:
            yield f"note: {note}"

    _repr_pretty_ = in_console

    def _repr_html_(self) -> str:
        rows = []
        for asked, found in self.values.items():
            for each in found[-_MOST_LINES:]:
                cells: Dict[str, str] = {
                    "asked": asked,
                    "value": "" if each.facts is None else str(each.facts),
                    "operation": each.operation,
                    "where": str(each.line),
                    "call": f"{each.function} {each.compile_id or ''} #{each.call}",
                    "source": "; ".join(text for text in (each.source, each.note) if text),
                }
                rows.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells.values()) + "</tr>")
            if asked in self.problems:
                why = html.escape(self.problems[asked])
                rows.append(f'<tr><td>{html.escape(asked)}</td><td colspan="5">{why}</td></tr>')
        head = "".join(f"<th>{t}</th>" for t in ("asked for", "value", "operation", "line", "call", "computed by"))
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table><ul>{notes}</ul>"
