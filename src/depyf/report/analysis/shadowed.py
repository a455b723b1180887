"""What ``shadow`` did, in the model of a run: how far it has looked, and entries that are not what the program says."""

from __future__ import annotations

from typing import Iterator

from depyf.answers.shadowed import DROPPED, summary
from depyf.report.analysis.facts import ShadowFact
from depyf.report.analysis.sources import Sources
from depyf.report.model.run import Finding, NotShadowed, Run, Shadow, ShadowedEntry


def shadow_of(fact: ShadowFact, sources: Sources) -> Shadow:
    """Return it for the model; files that the run does not have yet become sources of it."""
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


def shadow_note(fact: ShadowFact) -> str:
    """Return in one sentence how far it has looked, for the notes of the run."""
    first, *more = summary([found for _, found in fact.found], fact.counts)
    return first + "".join(f";{line[1:]}" for line in more)


def shadow_findings(run: Run) -> Iterator[Finding]:
    """Yield the findings of what is not what the program says."""
    for each in () if run.shadow is None else run.shadow.found:
        fails = "has a dropped guard that fails" if each.kind == DROPPED else "computes something else than eager mode"
        title = f"Compiled {each.function} {fails}: {each.cause}"
        text = " ".join(f"{part[:1].upper()}{part[1:]}." for part in (each.difference, each.advice) if part)
        yield Finding(title, text, 1, each.place, each.compile_id, kind=each.kind)
