"""A run in a few lines for the terminal: what was compiled, what went wrong, what it cost."""

from __future__ import annotations

from typing import Dict, List, Sequence, Tuple

from depyf.report.findings import lost, own_seconds
from depyf.report.model import Phase, Place, Run

_WIDTH = 24
_LONGEST = 110


def summary_lines(run: Run, findings: int = 5, phases: int = 6) -> List[str]:
    """The counts, the time by phase and the findings that cost most. Nothing compiled is one line that says so."""
    if not run.compilations and not run.fallbacks:
        if run.artifacts:  # a dump of the original depyf
            return [f"{_many(len(run.artifacts), 'file')} of a dump that do not say which compilations they belong to"]
        return ["nothing was compiled"]
    lines = [f"{name:<{_WIDTH}}{text}" for name, text in _counts(run)]
    for name, seconds in phase_totals(run)[:phases]:
        lines.append(f"{'  ' + name:<{_WIDTH + 12}}{seconds:7.2f} s")
    for finding in sorted(run.findings, key=lambda each: -each.weight)[:findings]:
        where = "" if finding.place is None else f" ({place_text(run, finding.place)})"
        lines.append(_short(f"! {finding.title}{where}"))
    return lines


def _counts(run: Run) -> List[Tuple[str, str]]:
    compiled = [each for each in run.compilations if each.status == "compiled"]
    functions = {each.function for each in compiled if each.function is not None}
    resumed = {index for index in functions if run.functions[index].resumes is not None}
    others = [each for each in run.compilations if each.status in ("failed", "skipped")]
    kernels = [kernel for kernel in run.kernels if not kernel.extern]
    extern = len(run.kernels) - len(kernels)
    seconds = compile_seconds(run)
    parts = f" and {_many(len(resumed), 'part')} after graph breaks" if resumed else ""
    always = [
        ("functions compiled", f"{len(functions) - len(resumed)}{parts}, in {_many(len(compiled), 'compilation')}"),
        ("graphs", str(len(compiled))),
        ("kernels", str(len(kernels)) + (f" generated, {extern} of libraries" if extern else "")),
    ]
    if run.origin == "files":
        return [*always, ("graph breaks, times", "not known: there is no manifest")]
    return [
        *always[:2],
        ("graph breaks", str(len(run.breaks)) + _places(run, [each.place for each in run.breaks])),
        ("recompiles", str(len(run.recompiles)) + _named(run, [each.function for each in run.recompiles])),
        ("fallbacks to eager", str(len(lost(run))) + _named(run, [each.function for each in lost(run)])),
        *([("failed or skipped", str(len(others)))] if others else []),
        always[2],
        ("compile time", f"{seconds:.2f} s"),
    ]


def compile_seconds(run: Run) -> float:
    """The time in compilations, backwards included."""
    return sum((each.seconds or 0.0) + (each.backward_seconds or 0.0) for each in run.compilations)


def phase_totals(run: Run) -> List[Tuple[str, float]]:
    """The phases with the time spent in each and in no phase inside of it, the longest first."""
    totals: Dict[str, float] = {}
    for phase, seconds in zip(run.phases, own_seconds(run)):
        name = _phase_name(phase)
        totals[name] = totals.get(name, 0.0) + seconds
    return sorted(((name, seconds) for name, seconds in totals.items() if seconds >= 0.005), key=lambda each: -each[1])


def _phase_name(phase: Phase) -> str:
    return phase.name + (" (backward)" if phase.backward and "backward" not in phase.name else "")


def place_text(run: Run, place: Place) -> str:
    """``file.py:12``."""
    source, line = place
    name = run.sources[source].path.replace("\\", "/").rsplit("/", 1)[-1] if 0 <= source < len(run.sources) else "?"
    return f"{name}:{line}"


def _places(run: Run, places: Sequence[object]) -> str:
    known = dict.fromkeys(place_text(run, place) for place in places if isinstance(place, tuple))
    return _listed(list(known))


def _named(run: Run, functions: Sequence[object]) -> str:
    known = dict.fromkeys(run.functions[each].qualified_name for each in functions if isinstance(each, int))
    return _listed(list(known))


def _listed(names: List[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f" ({', '.join(names[:3])}{more})"


def _many(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _short(line: str) -> str:
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."
