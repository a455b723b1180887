"""A run as an answer for programs: what ``depyf report --json`` and ``depyf run --json`` say of it.

The manifest has everything; this has what a person reads first: the headline, the counts, and the findings with the
files and lines that they are about.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from depyf.answers.nonfinite import NonFinitesFound
from depyf.answers.profiled import Profiled
from depyf.answers.shadowed import Shadowed
from depyf.answers.trace import TraceResult
from depyf.base.plain_data import Answer
from depyf.report.model.counts import Counts, counts_of
from depyf.report.model.headline import headline
from depyf.report.model.run import Run


@dataclass(frozen=True)
class ReportedFinding:
    """A finding (docs/manifest.md) with the path and the line of its place, None where the place is not known."""

    kind: str
    title: str
    text: str
    file: Optional[str]
    line: Optional[int]
    count: int
    compile_id: Optional[str]
    seconds: Optional[float]


@dataclass(frozen=True)
class ReportedRun:
    """What is said of one process. ``name`` is its rank or the name of its files, ``directory`` where its dump is."""

    name: str
    directory: Optional[str]
    headline: str
    counts: Counts
    findings: Tuple[ReportedFinding, ...]
    notes: Tuple[str, ...]
    failures: Tuple[str, ...]


@dataclass(frozen=True)
class Reported(Answer, kind="report"):
    """The answer of ``depyf report``: the page that was written, each process, and where processes differ."""

    page: Optional[str]
    runs: Tuple[ReportedRun, ...]
    differences: Tuple[str, ...] = ()


@dataclass(frozen=True)
class RanProgram(Answer, kind="run"):
    """The answer of ``depyf run``. ``run`` is None where nothing was compiled; the others are None unless they were
    asked for. ``ended_with`` says how the program ended, empty if it was with its last line.
    """

    directory: str
    page: Optional[str]
    ended_with: str
    run: Optional[ReportedRun]
    profile: Optional[Profiled] = None
    trace: Optional[TraceResult] = None
    nonfinite: Optional[NonFinitesFound] = None
    shadow: Optional[Shadowed] = None


def reported(run: Run, name: str, directory: Optional[str]) -> ReportedRun:
    """Return what is said of a run."""
    findings = []
    for each in run.findings:
        known = each.place is not None and 0 <= each.place[0] < len(run.sources)
        source, line = each.place if each.place is not None and known else (None, None)
        path = None if source is None else run.sources[source].path
        findings.append(
            ReportedFinding(each.kind, each.title, each.text, path, line, each.count, each.compile_id, each.seconds)
        )
    return ReportedRun(name, directory, headline(run), counts_of(run), tuple(findings), run.notes, run.failures)
