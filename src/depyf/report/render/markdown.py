"""``index.md``: the model of a run for a terminal or an issue tracker."""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Sequence, Tuple, Union

from depyf.base.visible import visible
from depyf.diagnosis.break_advice import described_break, described_error_in_line
from depyf.diagnosis.recompile_limits import in_words
from depyf.report.model.cache_lookup import CacheLookup, changed_in_words
from depyf.report.model.counts import (
    RAISED,
    SKIPPED,
    counts_of,
    distinct_breaks,
    parts_by_function,
    plain_calls,
    status_in_words,
)
from depyf.report.model.headline import ORDER_OF_FINDINGS, compile_time, cost_of, headline, settings_in_words
from depyf.report.model.places import is_of_a_library, own_place, place_text
from depyf.report.model.run import Artifact, Compilation, FailedEntryGuard, Fallback, Function, Place, Run
from depyf.report.model.starts import PARTS, saved_seconds, total_parts
from depyf.report.render.markdown_text import code, inline, link
from depyf.report.render.memory_words import short_line, with_memory
from depyf.torch_trace import file_names
from depyf.torch_trace.events import STANDALONE
from depyf.torch_trace.stages import Stage

_FINDINGS = 10

_SHORT = 0.005
"""Seconds. Parts of the compile time that take less are left out."""

_STAGES = frozenset(stage.value for stage in Stage)

INCOMPLETE = "This dump is incomplete: depyf failed to make some parts."
"""The heading of ``Run.failures``; the page has the same."""


def index_markdown(run: Run) -> str:
    """Return the text of the file: the costs of time first, then function by function."""
    lines = ["# What torch.compile did", "", f"**{inline(headline(run))}**", "", *_head(run), ""]
    if run.failures:
        lines += [f"**{INCOMPLETE}**", "", *(f"- {inline(each)}" for each in run.failures), ""]
    lines += [*_overview(run), ""]
    if run.findings:
        lines += [
            "## Worth acting on",
            "",
            *([ORDER_OF_FINDINGS, ""] if len(run.findings) > 1 else []),
            *_findings(run),
            "",
        ]
    full_code = {artifact.id: artifact for artifact in run.artifacts if artifact.kind == "full_code"}
    for number, part in parts_by_function(run).items():
        function = run.functions[number]
        if function.resumes is None and _has_a_story(part, number):
            lines += [*_function(part, function, full_code.get(function.full_code or "")), ""]
    rest = [artifact for artifact in run.artifacts if artifact.kind == "note" or _of_no_compilation(artifact)]
    if rest:
        lines += ["## Other files", "", *(f"- {_link(artifact)}" for artifact in rest), ""]
    if run.notes:
        lines += ["## Notes", "", *(f"- {inline(note)}" for note in run.notes), ""]
    return visible("\n".join(lines))


def _head(run: Run) -> Iterator[str]:
    versions = [f"{name} {version}" for name, version in (("PyTorch", run.torch), ("Python", run.python)) if version]
    if run.command:
        yield code(" ".join(run.command)) + (f" ({inline(', '.join(versions))})" if versions else "")
    elif versions:
        yield inline(", ".join(versions))
    if run.rank is not None:
        yield f"Rank {run.rank}."


def _overview(run: Run) -> Iterator[str]:
    counts = counts_of(run)
    rows = [
        ("functions compiled", counts.functions),
        ("resume functions", counts.resume_functions),
        ("compilations", counts.compilations),
        ("graphs", counts.graphs),
        ("graph breaks", _if_known(run, counts.graph_breaks)),
        ("recompilations", _if_known(run, counts.recompilations)),
        ("fallbacks to eager", _if_known(run, counts.fallbacks)),
        ("kernels", counts.kernels),
        ("guards", _if_known(run, counts.guards)),
        ("compile time", _if_known(run, compile_time(counts))),
    ]
    yield "| | |"
    yield "|---|---:|"
    for title, number in rows:
        yield f"| {title} | {number} |"
    times = [f"{PARTS[part]} {seconds:.2f} s" for part, seconds in total_parts(run).items() if seconds >= _SHORT]
    if times and any(each.state == "hit" for each in run.cache_lookups):
        saved = saved_seconds(run.cache_lookups)
        told = "" if saved is None else f". PyTorch's caches report {saved:.2f} s as saved"
        yield f"\nA start from caches: {', '.join(times)}{told}"
    for where, settings in settings_in_words(run):
        yield f"\nSettings that are not PyTorch's defaults{where}: {', '.join(map(code, settings))}"


def _if_known(run: Run, value: object) -> object:
    """Return a value that only PyTorch's trace has: nothing was counted in a run that is made from files alone."""
    return "not known" if run.origin == "files" else value


def _findings(run: Run) -> Iterator[str]:
    for number, finding in enumerate(run.findings[:_FINDINGS], 1):
        place = f" ({_place(run, finding.place)})" if finding.place else ""
        yield f"{number}. **{inline(finding.title)}**{place}{cost_of(finding)}. {inline(finding.text)}".rstrip()
    if len(run.findings) > _FINDINGS:
        yield f"{_FINDINGS + 1}. ... and {len(run.findings) - _FINDINGS} more"


def _function(run: Run, function: Function, full_code: Optional[Artifact]) -> Iterator[str]:
    """Yield the section of a function; ``run`` is its part of the run."""
    place = f"{run.sources[function.source].path}:{function.first_line}"
    yield f"## {code(function.qualified_name)} ({inline(place)})"
    yield ""
    if run.compilations:
        yield "| compile id | what | status | seconds | guards | cache | runs |"
        yield "|---|---|---|---:|---:|---|---:|"
        yield from (_compilation(run, each) for each in run.compilations)
        yield ""
    sites = dict.fromkeys(each.compiled_at for each in run.compilations if each.compiled_at is not None)
    if sites:
        yield f"- `torch.compile` was called at {', '.join(_place(run, each) for each in sites)}"
    yield from _limits(run)
    # Every compilation meets a break again: it is listed once, with their ids.
    met: Dict[Tuple[Optional[Place], str], Dict[str, None]] = {}
    for one in run.breaks:
        met.setdefault((one.place, one.reason), {}).setdefault(str(one.compile_id))
    for each in distinct_breaks(run.breaks):
        where = inline(", ".join(met[each.place, each.reason]))
        title = inline(described_break(each.reason, each.explanation))
        yield f"- **Graph break** at {_at(run, each.place, each.stack)} ({where}): {title}"
        if each.advice:
            yield f"  - {inline(each.advice)}"
    for recompile in run.recompiles:
        # The guard that made it recompile, then the other entries that did not fit either.
        first = recompile.failed[0]
        yield f"- **Recompilation** {inline(recompile.compile_id)}: {_failed(run, first)}"
        for failed in recompile.failed[1:4]:
            yield f"  - and {inline(failed.entry or 'another entry')} did not fit: {_failed(run, failed)}"
        if recompile.advice:
            yield f"  - {inline(recompile.advice)}"
    yield from _fallbacks(run)
    yield from map(_lookup, (each for each in run.cache_lookups if each.reason or each.saved is not None))
    for artifact in with_memory(run):
        yield f"- **Memory** of {inline(short_line(run, artifact))}"
    # Last the files of the function, then tables of what a backend has printed or split.
    files = [*([] if full_code is None else [full_code]), *_files(run)]
    if files:
        yield ""
        yield "Files: " + ", ".join(_link(artifact) for artifact in files)
    yield from _printed(run)
    yield from _pieces(run)


def _limits(run: Run) -> Iterator[str]:
    """Yield where a function and its resume functions stand with Dynamo's limits."""
    for number in dict.fromkeys(each.function for each in run.compilations if each.function is not None):
        function = run.functions[number]
        if function.limits:
            which = "" if function.resumes is None else f" from line {function.resumes_at} on"
            close = any(each.is_close for each in function.limits)
            title = "**Cache entries, close to the limit**" if close else "Cache entries"
            yield f"- {title}{which}: {inline(in_words(function.limits))}"


def _fallbacks(run: Run) -> Iterator[str]:
    for fallback in run.fallbacks:
        where = f" at {_stack(run, fallback)}" if fallback.place else ""
        reason = inline(described_error_in_line(fallback.reason))
        if fallback.cause == RAISED:
            yield f"- **Failed to compile**{where}, and the call raised {reason}"
        else:
            calls = plain_calls(fallback)
            what = inline(fallback.cause) + (f", {calls}" if calls else "")
            yield f"- **Runs as plain Python**{where}: {what}. {reason}"
        if fallback.advice:
            yield f"  - {inline(fallback.advice)}"


def _at(run: Run, place: Optional[Place], stack: Sequence[Place]) -> str:
    """Return the user's line that leads to a place, with that place if it is in a library."""
    own = own_place(run, place, stack)
    return _place(run, own) + ("" if own == place else f" (in {_place(run, place)})")


def _stack(run: Run, each: Union[Fallback, FailedEntryGuard]) -> str:
    """Return the user's line that it is due to, and the user's calls that led there."""
    if not each.stack:
        return _place(run, each.place)
    before = each.stack[: each.stack.index(each.place)] if each.place in each.stack else ()
    callers = [_place(run, caller) for caller in reversed(before) if not is_of_a_library(run, caller)]
    return ", called from ".join([_at(run, each.stack[-1], each.stack), *callers])


def _lookup(each: CacheLookup) -> str:
    which = f"{each.cache} {each.state}" + (", backward" if each.backward else "")
    said = each.reason or f"saved {each.saved:.2f} s, as PyTorch reports it"
    return f"- **Cache** ({inline(f'{each.compile_id}, {which}')}): {inline(said)}" + inline(
        changed_in_words(each.changed)
    )


def _printed(run: Run) -> Iterator[str]:
    """Yield the graphs of the whole function that backends and passes have printed, in order; those that are rarely
    read are left out."""
    printed = [
        each
        for each in run.artifacts
        if each.path is not None and each.kind == "graph" and each.stage not in _STAGES and not each.equals
    ]
    printed = [each for each in printed if not file_names.is_in_stages(each.path or "")]
    whole = [_link(artifact) for artifact in printed if not artifact.piece]
    if whole:
        yield ""
        yield f"Graphs printed on the way: {', '.join(whole)}"


def _pieces(run: Run) -> Iterator[str]:
    """Yield the pieces of graphs that a backend has split, with the outcome of each."""
    pieces: Dict[Tuple[str, Optional[str]], List[Artifact]] = {}
    for artifact in run.artifacts:
        if artifact.path is not None and artifact.piece:
            pieces.setdefault((artifact.piece, artifact.compile_id), []).append(artifact)
    if not pieces:
        return
    yield ""
    yield "| piece | compile id | graphs | kernels |"
    yield "|---|---|---:|---|"
    for (piece, compile_id), ours in pieces.items():
        graphs = sum(each.kind == "graph" for each in ours)
        kernels = ", ".join(_link(each) for each in ours if each.kind == "kernels")
        yield f"| {inline(piece)} | {inline(compile_id)} | {graphs} | {kernels} |"


def _of_no_compilation(artifact: Artifact) -> bool:
    """Return whether this was printed, or loaded, outside of any compilation."""
    return artifact.compile_id is None and artifact.kind in ("graph", "kernels", "wrapper")


def _has_a_story(run: Run, number: int) -> bool:
    """Return whether Dynamo did more than skip the function; ``run`` is its part."""
    return bool(run.compilations) or any(each.function == number and each.cause != SKIPPED for each in run.fallbacks)


def _compilation(run: Run, each: Compilation) -> str:
    function = run.functions[each.function] if each.function is not None else None
    what = "the function" if function is None or function.resumes is None else f"from line {function.resumes_at} on"
    if each.compile_id.startswith(STANDALONE):
        what = "a graph, without Dynamo"
    seconds = (each.seconds or 0.0) + (each.backward_seconds or 0.0)
    cache = ", ".join(f"{name} {answer}" for name, answer in each.cache.items())
    runs = "" if each.runs is None else str(each.runs)
    known = run.origin != "files"
    numbers = [f"{seconds:.2f}", str(len(each.guards))] if known else ["", ""]
    cells = [each.compile_id, what, status_in_words(each), *numbers, cache, runs]
    return f"| {' | '.join(map(inline, cells))} |"


def _failed(run: Run, failed: FailedEntryGuard) -> str:
    return inline(failed.words) + (f" ({_stack(run, failed)})" if failed.place else "")


def _files(run: Run) -> List[Artifact]:
    kinds = ("transformed", "kernels")
    return [a for a in run.artifacts if a.path is not None and a.kind in kinds and not a.piece]


def _link(artifact: Artifact) -> str:
    return link(artifact.path, artifact.path) if artifact.path else inline(artifact.title)


def _place(run: Run, place: Optional[Place]) -> str:
    return inline(place_text(run, place))
