"""``index.md``: the model of a run for a terminal or an issue tracker."""

from __future__ import annotations

from typing import Iterator, List, Optional

from depyf.report.findings import SKIPPED
from depyf.report.model import Artifact, Compilation, FailedGuard, Function, Place, Run

_FINDINGS = 10


def index_markdown(run: Run) -> str:
    """The text of the file: what costs time first, then function by function."""
    lines = ["# What torch.compile did", "", *_head(run), ""]
    lines += [*_overview(run), ""]
    if run.findings:
        lines += ["## Worth acting on, by cost", "", *_findings(run), ""]
    for number, function in enumerate(run.functions):
        if function.resumes is None and _has_a_story(run, number):
            lines += [*_function(run, number, function), ""]
    rest = [artifact for artifact in run.artifacts if artifact.kind == "note"]
    if rest:
        lines += ["## Other files", "", *(f"- {_link(artifact)}" for artifact in rest), ""]
    if run.notes:
        lines += ["## Notes", "", *(f"- {note}" for note in run.notes), ""]
    return "\n".join(lines)


def _head(run: Run) -> Iterator[str]:
    versions = [f"{name} {version}" for name, version in (("PyTorch", run.torch), ("Python", run.python)) if version]
    if run.command:
        yield f"`{' '.join(run.command)}`" + (f" ({', '.join(versions)})" if versions else "")
    elif versions:
        yield ", ".join(versions)
    if run.rank is not None:
        yield f"Rank {run.rank}."


def _overview(run: Run) -> Iterator[str]:
    totals = run.totals
    rows = [
        ("functions compiled", "functions"),
        ("graphs", "graphs"),
        ("graph breaks", "graph_breaks"),
        ("recompilations", "recompiles"),
        ("fallbacks to plain Python", "fallbacks"),
        ("kernels", "kernels"),
    ]
    yield "| | |"
    yield "|---|---:|"
    for title, key in rows:
        yield f"| {title} | {int(totals.get(key, 0))} |"
    yield f"| compile time | {_time(totals.get('compile_seconds', 0) + totals.get('backward_compile_seconds', 0))} |"


def _findings(run: Run) -> Iterator[str]:
    for number, finding in enumerate(run.findings[:_FINDINGS], 1):
        place = f" ({_place(run, finding.place)})" if finding.place else ""
        yield f"{number}. **{_text(finding.title)}**{place}. {_text(finding.text)}"
    if len(run.findings) > _FINDINGS:
        yield f"{_FINDINGS + 1}. ... and {len(run.findings) - _FINDINGS} more"


def _function(run: Run, number: int, function: Function) -> Iterator[str]:
    ours = {number, *(index for index, each in enumerate(run.functions) if run.root(index) == number)}
    compilations = [each for each in run.compilations if each.function in ours]
    ids = {each.compile_id for each in compilations}
    place = f"{run.sources[function.source].path}:{function.first_line}"
    yield f"## `{function.qualified_name}` ({place})"
    yield ""
    if compilations:
        yield "| compile id | what | status | seconds | guards | cache | runs |"
        yield "|---|---|---|---:|---:|---|---:|"
        yield from (_compilation(run, each) for each in compilations)
        yield ""
    breaks = [each for each in run.breaks if each.compile_id in ids]
    for each in breaks:
        yield f"- **Graph break** at {_place(run, each.place)} ({each.compile_id}): {_text(each.reason)}"
        if each.advice:
            yield f"  - {_text(each.advice)}"
    for recompile in run.recompiles:
        if recompile.function in ours:
            first = recompile.failed[0]
            yield f"- **Recompilation** {recompile.compile_id}: {_failed(run, first)}"
            for failed in recompile.failed[1:4]:
                yield f"  - and {failed.entry or 'another entry'} did not fit: {_failed(run, failed)}"
            if recompile.advice:
                yield f"  - {_text(recompile.advice)}"
    for fallback in run.fallbacks:
        if fallback.function in ours:
            where = f" at {_place(run, fallback.place)}" if fallback.place else ""
            reason = _text(fallback.reason.strip().split("\n")[0])
            yield f"- **Runs as plain Python**{where}: {fallback.cause}. {reason}"
            if fallback.advice:
                yield f"  - {_text(fallback.advice)}"
    files = _files(run, ids, function)
    if files:
        yield ""
        yield "Files: " + ", ".join(_link(artifact) for artifact in files)


def _has_a_story(run: Run, number: int) -> bool:
    """Whether more happened than that Dynamo looked at the function and left it alone."""
    ours = any(each.function is not None and run.root(each.function) == number for each in run.compilations)
    return ours or any(each.function == number and each.cause != SKIPPED for each in run.fallbacks)


def _compilation(run: Run, each: Compilation) -> str:
    function = run.functions[each.function] if each.function is not None else None
    what = "the function" if function is None or function.resumes is None else f"from line {function.resumes_at} on"
    seconds = (each.seconds or 0.0) + (each.backward_seconds or 0.0)
    cache = ", ".join(f"{name} {answer}" for name, answer in each.cache.items())
    runs = "" if each.runs is None else str(each.runs)
    cells = [each.compile_id, what, each.status, f"{seconds:.2f}", str(len(each.guards)), cache, runs]
    return f"| {' | '.join(cells)} |"


def _failed(run: Run, failed: FailedGuard) -> str:
    return _text(failed.words) + (f" ({_place(run, failed.place)})" if failed.place else "")


def _files(run: Run, ids: object, function: Function) -> List[Artifact]:
    kinds = ("transformed", "kernels")
    found = [a for a in run.artifacts if a.id == function.full_code]
    return found + [a for a in run.artifacts if a.path and a.kind in kinds and a.compile_id in ids]  # type: ignore[operator]


def _link(artifact: Artifact) -> str:
    return f"[{artifact.path}]({artifact.path})" if artifact.path else artifact.title


def _place(run: Run, place: Optional[Place]) -> str:
    if place is None:
        return "an unknown line"
    path = run.sources[place[0]].path
    return f"{path.rpartition('/')[2]}:{place[1]}"


def _text(text: str) -> str:
    """On one line, with nothing that Markdown would take for more than text."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s"
