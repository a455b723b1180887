"""Add files of a dump that its manifest does not list.

A manifest is written while the process runs, shortly after each burst of compilations. A process that is killed, or
that still runs, has written files since. They are read as those of a dump without a manifest.
A module of its own: it joins two ways of reading, which know nothing of each other.
"""

from __future__ import annotations

import os
from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple, TypeVar

from depyf.base.asynchronous import suppressed
from depyf.base.messages import listed
from depyf.base.quick_dataclass import replace
from depyf.report.model.run import Artifact, Compilation, Function, Link, Place, Run
from depyf.report.read.from_files import runs_of_files
from depyf.torch_trace import file_names

_MOST_NAMED = 8

T = TypeVar("T")


def with_unlisted(directory: str, runs: Mapping[str, Run]) -> Tuple[Dict[str, Run], Dict[str, Run]]:
    """Return the runs of the manifests in a directory with files that no manifest lists, and the runs of processes
    that have files and no manifest; all by their marks (``rank_1``, empty for the plain names).

    Files from before all of these processes were left by an earlier run, which the manifests replaced, or by sessions
    that a manifest no longer shows.
    """
    names = _unlisted(directory, list(runs.values()))
    if not names:
        return dict(runs), {}
    whole, others = dict(runs), {}
    for mark, more in runs_of_files(directory, names).items():
        if mark in runs:
            whole[mark] = _joined(runs[mark], more)
        else:
            others[mark] = more
    return whole, others


def _unlisted(directory: str, runs: Sequence[Run]) -> List[str]:
    starts = (run.started if run.shown_since is None else run.shown_since for run in runs)
    begun = min((start for start in starts if start is not None), default=None)
    if begun is None:
        return []
    known: Set[Optional[str]] = {artifact.path for run in runs for artifact in run.artifacts}
    found = []
    for name in file_names.listed(directory):
        if name not in known and file_names.kinds_of(name):
            with suppressed(OSError):
                if os.lstat(os.path.join(directory, name)).st_mtime >= begun:
                    found.append(name)
    return found


def _joined(run: Run, more: Run) -> Run:
    """Return the run with the files of ``more``, and the compilations and functions that are known of them."""
    sources, functions = list(run.sources), list(run.functions)
    source_at = _indices([each.path for each in sources], [each.path for each in more.sources])
    sources += [each for each, at in zip(more.sources, source_at) if at >= len(run.sources)]
    moved = [replace(each, source=source_at[each.source]) for each in more.functions]
    function_at = _indices([_key(each) for each in functions], [_key(each) for each in moved])
    functions += [
        replace(each, resumes=None if each.resumes is None else function_at[each.resumes])
        for each, at in zip(moved, function_at)
        if at >= len(run.functions)
    ]
    seen = {each.compile_id: _moved(each, source_at, function_at) for each in more.compilations}
    known = [_completed(each, seen.pop(each.compile_id, None)) for each in run.compilations]
    return replace(
        run,
        sources=tuple(sources),
        functions=tuple(functions),
        compilations=(*known, *seen.values()),
        artifacts=(*run.artifacts, *(_linked(each, source_at) for each in more.artifacts)),
        notes=(*run.notes, _note([each.id for each in more.artifacts])),
    )


def _note(names: Sequence[str]) -> str:
    count = f"{len(names)} files are" if len(names) > 1 else "1 file is"
    return (
        f"{count} not in the manifest: the process was killed before it wrote the manifest again, it still "
        "runs, or depyf failed to describe them. Graph breaks, recompilations, guards and times of what was compiled "
        "since are not known. If the process still runs, report again a little later. "
        f"The files: {listed(names, _MOST_NAMED)}"
    )


def _key(function: Function) -> Tuple[str, int, int]:
    return function.qualified_name, function.source, function.first_line


def _indices(known: Sequence[T], more: Sequence[T]) -> List[int]:
    """Return the index of each of ``more`` in ``known``; what is not there comes after it, in order."""
    at: Dict[T, int] = {}
    for index, each in enumerate(known):
        at.setdefault(each, index)
    found, following = [], len(known)
    for each in more:
        if each in at:
            found.append(at[each])
        else:
            found.append(following)
            following += 1
    return found


def _completed(known: Compilation, seen: Optional[Compilation]) -> Compilation:
    """Return a compilation of the manifest with what its files show, if the manifest was written in the middle of it:
    Dynamo had reported its end, and its transformed code was not written."""
    if seen is None or seen.transformed is None or known.transformed is not None:
        return known
    return replace(
        known,
        function=seen.function,
        status=seen.status,
        graph=seen.graph,
        verdict=seen.verdict,
        verdict_reason=seen.verdict_reason,
        transformed=seen.transformed,
        calls=seen.calls,
    )


def _moved(compilation: Compilation, source_at: Sequence[int], function_at: Sequence[int]) -> Compilation:
    """Return the compilation with the indices of the joined run."""
    calls = tuple(
        each if each.function is None else replace(each, function=function_at[each.function])
        for each in compilation.calls
    )
    return replace(
        compilation,
        function=None if compilation.function is None else function_at[compilation.function],
        calls=calls,
        callers=_places(compilation.callers, source_at),
        compiled_at=next(iter(_places([compilation.compiled_at] if compilation.compiled_at else [], source_at)), None),
    )


def _linked(artifact: Artifact, source_at: Sequence[int]) -> Artifact:
    links: Tuple[Link, ...] = tuple(replace(each, places=_places(each.places, source_at)) for each in artifact.links)
    return replace(artifact, links=links)


def _places(places: Sequence[Place], source_at: Sequence[int]) -> Tuple[Place, ...]:
    return tuple((source_at[source], line) for source, line in places)
