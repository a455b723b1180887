"""What ``depyf fix`` has found: a row for each finding, and the edits that were kept as a unified diff.

A module of its own: it is the answer of one question, as plain data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import List, Mapping, Sequence, Tuple

from depyf.base.plain_data import NOT_DATA, Answer


@dataclass(frozen=True)
class TriedEdit:
    """An edit that was tried for a finding. ``before`` and ``after`` are counts of the runs, ``time`` the times of
    calls before and after; ``reason`` says why it was refused, and is empty where it was kept."""

    edit: str
    before: str = ""
    after: str = ""
    time: str = ""
    reason: str = ""

    _properties = ("kept",)

    @property
    def kept(self) -> bool:
        return not self.reason


@dataclass(frozen=True)
class FixRow:
    """A finding, with its line, the advice that depyf has, and the edits that were tried in order. ``reason`` says why
    no other edit was made. ``gone`` is whether the edits of other findings have removed it."""

    finding: str
    place: str
    advice: str
    tried: Tuple[TriedEdit, ...] = ()
    reason: str = ""
    gone: bool = False

    _properties = ("kept",)

    @property
    def kept(self) -> bool:
        """Whether an edit of it was kept."""
        return any(each.kept for each in self.tried)


@dataclass(frozen=True)
class Fixed(Answer, kind="fix"):
    """The result for a program. ``refused`` says why nothing was tried at all; empty otherwise. ``diff`` has the edits
    that were kept; ``files`` the whole text of each changed file, relative to the program's folder, as bytes."""

    command: Sequence[str]
    rows: Tuple[FixRow, ...] = ()
    diff: str = ""
    refused: str = ""
    before: str = ""
    after: str = ""
    time: str = ""
    notes: Tuple[str, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False, metadata=NOT_DATA)
    originals: Mapping[str, bytes] = field(default_factory=dict, repr=False, metadata=NOT_DATA)
    """The same files as they were when they were tried."""

    _properties = ("changed",)

    @property
    def changed(self) -> Tuple[str, ...]:
        """The names of the files with an edit."""
        return tuple(sorted(self.files))

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> List[str]:
        """Return the table as text: a paragraph for each finding."""
        if self.refused:
            return [f"nothing was tried: {self.refused}"]
        found: List[str] = []
        for row in self.rows:
            found.append(f"{row.place}: {row.finding}")
            for each in row.tried:
                found.append(f"  {'kept   ' if each.kept else 'refused'}  {each.edit}")
                if each.reason:
                    found.append(f"           because {each.reason}")
                if each.after:
                    found.append(f"           before: {each.before}")
                    found.append(f"           after:  {each.after}")
                if each.kept and each.time:
                    found.append(f"           time:   {each.time}")
            if row.gone:
                found.append("  gone     with the edits of other findings")
            elif row.reason and not row.kept:
                found.append(f"  no edit  {row.reason}")
        kept = sum(row.kept or row.gone for row in self.rows)
        count = f"{len(self.rows)} finding{'s' * (len(self.rows) != 1)}"
        found.append(f"{count}, {kept} fixed" if self.rows else "there is no finding to fix")
        if kept:
            found += [f"before: {self.before}", f"after:  {self.after}", f"time:   {self.time}"]
        return [*found, *(f"note: {each}" for each in self.notes)]
