"""What ``shadow`` did, in the model of a run: how far it has looked, and entries that are not what the program says."""

from __future__ import annotations

from typing import Iterator, Optional

from depyf.answers.shadowed import DROPPED, summary
from depyf.base.quick_dataclass import replace
from depyf.report.analysis.facts import ShadowFact
from depyf.report.analysis.sources import Sources
from depyf.report.model.run import Finding, NotShadowed, Run, Shadow, ShadowedEntry


def with_shadow(run: Run, fact: Optional[ShadowFact], sources: Sources) -> Run:
    """Return the run with what ``shadow`` did, if one was open, and a note of how far it has looked."""
    if fact is None:
        return run
    first, *more = summary([found for _, found in fact.found], fact.counts)
    note = first + "".join(f";{line[1:]}" for line in more)
    return replace(run, shadow=_shadow_of(fact, sources), notes=(*run.notes, note))


def _shadow_of(fact: ShadowFact, sources: Sources) -> Shadow:
    counts = fact.counts
    return Shadow(
        counts.calls,
        counts.sampled,
        counts.checked,
        tuple(NotShadowed(reason, calls) for reason, calls in counts.reasons.items()),
        tuple(
            ShadowedEntry(
                compile_id,
                each.kind,
                each.function,
                each.cause,
                None if each.place is None else sources.place(*each.place),
                each.difference,
                each.advice,
                each.values,
            )
            for compile_id, each in fact.found
        ),
    )


def shadow_findings(run: Run) -> Iterator[Finding]:
    """Yield the findings of what is not what the program says."""
    for each in () if run.shadow is None else run.shadow.found:
        fails = "has a dropped guard that fails" if each.kind == DROPPED else "computes something else than eager mode"
        title = f"Compiled {each.function} {fails}: {each.cause}"
        text = " ".join(f"{part[:1].upper()}{part[1:]}." for part in (each.difference, each.advice) if part)
        yield Finding(title, text, 1, each.place, each.compile_id, kind=each.kind)
