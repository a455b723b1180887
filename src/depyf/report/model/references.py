"""Check that everything that a run refers to by index exists: manifests may be damaged or edited."""

from __future__ import annotations

from typing import Any, Iterator, Optional, Tuple

from depyf.report.model.run import Place, Run


def dangling(run: Run) -> Optional[str]:
    """Return a message about a dangling reference; None if there is none."""
    kinds = {"source": len(run.sources), "function": len(run.functions), "phase": len(run.phases)}
    for kind, index in _references(run):
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < kinds[kind]:
            return f"there is no {kind} {index!r}"
    for each in run.recompiles:
        if not each.failed:
            return f"no guard failed for the recompilation {each.compile_id}"
    return _endless(run)


def _references(run: Run) -> Iterator[Tuple[str, object]]:
    """Yield each kind of reference, with its index."""
    yield from (("source", place[0] if place else None) for place in _places(run))
    for function in run.functions:
        yield "source", function.source
    functions = [each.resumes for each in run.functions] + [each.function for each in run.compilations]
    functions += [call.function for each in run.compilations for call in each.calls]
    functions += [each.function for each in run.fallbacks]
    yield from (("function", index) for index in functions if index is not None)
    yield from (("function", each.function) for each in run.recompiles)
    yield from (("phase", each.parent) for each in run.phases if each.parent is not None)


def _places(run: Run) -> Iterator[Place]:
    for artifact in run.artifacts:
        for link in artifact.links:
            yield from link.places
    for kernel in run.kernels:
        yield from kernel.places
    for stacks in ([e.stack for e in run.breaks], [e.stack for e in run.shapes], [e.callers for e in run.compilations]):
        for stack in stacks:
            yield from stack
    yield from (each.compiled_at for each in run.compilations if each.compiled_at is not None)
    with_place: Tuple[Tuple[Any, ...], ...] = (run.breaks, run.recompiles, run.fallbacks, run.findings)
    with_place += (run.cudagraph_skips, run.cudagraph_rerecords)
    with_place += tuple(each.guards for each in run.compilations) + tuple(each.failed for each in run.recompiles)
    yield from (each.place for group in with_place for each in group if each.place is not None)


def _endless(run: Run) -> Optional[str]:
    """Resume functions that form a cycle have no first function."""
    for start in range(len(run.functions)):
        index, steps = start, 0
        while True:
            following = run.functions[index].resumes
            if following is None or following == index:
                break
            index, steps = following, steps + 1
            if steps > len(run.functions):
                return f"function {start} resumes itself in a circle"
    return None
