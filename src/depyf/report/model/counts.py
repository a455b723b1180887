"""The counts of a run. Every number that is shown comes from here; docs/glossary.md has the definitions."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Dict, Iterable, List, Optional, Sequence

from depyf.base.quick_dataclass import dataclass
from depyf.report.model.run import Compilation, Fallback, GraphBreak, Run

SKIPPED = "skipped"
"""The cause of fallbacks that cost nothing: Dynamo found nothing to compile in the frame."""

GRAPH_BREAK = "graph break that Dynamo can't go on from"
LIMIT = "recompile limit reached"
SUPPRESSED = "error while compiling, suppressed"
"""The causes of the other fallbacks."""

RAISED = "error while compiling, raised into the program"
"""The cause of an error that is no fallback: the call did not run, and the program got the error."""


@dataclass(frozen=True)
class Counts:
    """The numbers of a run, or of one function with its resume functions. Times are in seconds."""

    functions: int = 0
    resume_functions: int = 0
    compilations: int = 0
    graphs: int = 0
    graph_breaks: int = 0
    graph_breaks_met: int = 0
    recompilations: int = 0
    fallbacks: int = 0
    skipped: int = 0
    failed: int = 0
    kernels: int = 0
    library_kernels: int = 0
    kernels_with_a_line: int = 0
    guards: int = 0
    cudagraph_skips: int = 0
    compile_seconds: float = 0.0
    backward_compile_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        """The compile time, including backwards."""
        return self.compile_seconds + self.backward_compile_seconds


def counts_of(run: Run) -> Counts:
    """Count what is in a run."""
    compiled = [each for each in run.compilations if each.status == "compiled"]
    seen = {each.function for each in run.compilations if each.function is not None}
    generated = [kernel for kernel in run.kernels if not kernel.extern]
    fallbacks = lost(run)
    return Counts(
        functions=len({run.root(each.function) for each in compiled if each.function is not None}),
        resume_functions=sum(run.functions[index].resumes is not None for index in seen),
        compilations=len(run.compilations),
        graphs=len(compiled),
        graph_breaks=len(distinct_breaks(run.breaks)),
        graph_breaks_met=len(run.breaks),
        recompilations=len(run.recompiles),
        fallbacks=len(fallbacks),
        skipped=sum(each.cause == SKIPPED for each in run.fallbacks),
        failed=sum(each.status == "failed" for each in run.compilations),
        kernels=len(generated),
        library_kernels=len(run.kernels) - len(generated),
        kernels_with_a_line=sum(bool(kernel.places) for kernel in run.kernels),
        guards=sum(len(each.guards) for each in run.compilations),
        cudagraph_skips=len(run.cudagraph_skips),
        compile_seconds=_total(each.seconds for each in run.compilations),
        backward_compile_seconds=_total(each.backward_seconds for each in run.compilations),
    )


def status_in_words(one: Compilation) -> str:
    """Name the status of a compilation, as the page does."""
    return _STATUS_WORDS.get(one.status, one.status)


_STATUS_WORDS = {"empty": "no graph", "limit": "limit reached"}  # model.js has the same


def _total(seconds: Iterable[Optional[float]]) -> float:
    """Add up the times that are known, and are numbers."""
    return sum(each for each in seconds if each is not None and math.isfinite(each))


def added(one: Counts, other: Counts) -> Counts:
    """Return the sums of both."""
    names = [each.name for each in dataclasses.fields(Counts)]
    return Counts(**{name: getattr(one, name) + getattr(other, name) for name in names})


def counts_by_function(run: Run) -> Dict[int, Counts]:
    """Return the counts of each of the user's functions with its resume functions, by index of the function."""
    return {root: counts_of(part) for root, part in parts_by_function(run).items()}


_BY_COMPILE_ID = ("breaks", "kernels", "cudagraph_skips", "cudagraph_rerecords", "cache_lookups", "artifacts")
_BY_FUNCTION = ("compilations", "recompiles", "fallbacks")


def parts_by_function(run: Run) -> Dict[int, Run]:
    """Split a run by the user's functions, each with its resume functions: runs, by index of the function.

    Tables that are referred to by index, and parts without a compilation, are kept whole in every run.
    """
    roots = {index: run.root(index) for index in range(len(run.functions))}
    root_of_id = {e.compile_id: roots[e.function] for e in run.compilations if e.function is not None}

    def as_tuples(parts: Dict[str, List[object]]) -> Dict[str, Any]:
        return {name: tuple(part) for name, part in parts.items()}

    found: Dict[int, Dict[str, List[object]]] = {
        root: {name: [] for name in (*_BY_FUNCTION, *_BY_COMPILE_ID)} for root in roots.values()
    }
    for name in (*_BY_FUNCTION, *_BY_COMPILE_ID):
        for each in getattr(run, name):
            root = root_of_id.get(each.compile_id) if name in _BY_COMPILE_ID else roots.get(each.function)
            if root is not None:
                found[root][name].append(each)
    return {root: dataclasses.replace(run, **as_tuples(parts)) for root, parts in found.items()}


def lost(run: Run) -> List[Fallback]:
    """Return the fallbacks to eager. Frames in which Dynamo finds nothing to compile are not counted, nor errors that
    the program got: their calls did not run."""
    return [each for each in run.fallbacks if each.cause not in (SKIPPED, RAISED)]


def plain_calls(limit: Fallback) -> str:
    """Return how many calls ran as plain Python after a recompile limit, in words; empty if that is not known."""
    if limit.calls is None:
        return ""
    return f"{limit.calls} call{'' if limit.calls == 1 else 's'} ran as plain Python"


def raised(run: Run) -> List[Fallback]:
    """Return the errors that compilations raised into the program."""
    return [each for each in run.fallbacks if each.cause == RAISED]


def distinct_breaks(breaks: Sequence[GraphBreak]) -> List[GraphBreak]:
    """Return each graph break once: every compilation of a function hits its breaks again."""
    return list({(each.place, each.reason): each for each in reversed(breaks)}.values())[::-1]


def totals_of(run: Run) -> Dict[str, float]:
    """Return the counts by name, as the manifest and the page have them."""
    return dataclasses.asdict(counts_of(run))
