"""The ranks of a distributed program, read by their summaries: a full view is only built of the few that are shown.

Up to ``MOST_NAMED`` ranks are read as a whole. Of more only the summaries are read, which the ranks have written; that
of a rank without one is made from its dump or log, one after the other, or several at once in processes.
"""

from __future__ import annotations

import glob
import os
from dataclasses import field
from functools import partial
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple, TypeVar, Union

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass, replace
from depyf.base.regular_files import read_text
from depyf.report.diff.rank_groups import MOST_NAMED, Difference, listed, odd_ranks, ranks_in_numbers
from depyf.report.diff.rank_summary import RankSummary, run_of_summary, summary_from_json, summary_of
from depyf.report.diff.ranks import GraphOf, differences
from depyf.report.model.manifest import ManifestError
from depyf.report.read.reading import (
    Loaded,
    NothingToRead,
    base_name,
    by_rank,
    left_out,
    load,
    load_log,
    load_manifest,
    logs_of,
    runs_in_directory,
    runs_or_logs,
    with_damaged,
    with_note,
)
from depyf.report.read.side_by_side import jobs_for, side_by_side
from depyf.torch_trace import file_names

Result = TypeVar("Result")

_OF_A_RANK = regex(r"(?:^|[/_.])rank_?\d+(?:/[^/]*)?$|_rank_\d+_[^/]*$")
"""A folder or a manifest of a rank, or a log."""

_APART = 600.0
"""Seconds between the starts of two ranks which suggest that they are of two launches."""

_WRITTEN_TOGETHER = 2.0
"""Seconds between a manifest and the summary that belongs to it: an older summary is not up to date."""


@dataclass(frozen=True)
class Ranks:
    """``runs`` are shown with a full view; ``compared`` is all that is compared, in the order of the ranks. ``total``
    is the number of ranks, if only a part of the ranks is shown. ``alone`` is a run that is compared with no other.
    """

    runs: List[Loaded]
    compared: List[RankSummary] = field(default_factory=list)
    total: Optional[int] = None
    alone: Optional[Loaded] = None

    @property
    def summaries(self) -> List[RankSummary]:
        """What is compared of each rank."""
        return self.compared if self.alone is None else [summary_of(self.alone.side)]

    def differences(self) -> List[Difference]:
        """Return where the ranks differ, causes first."""
        paths = [source.path for source in self.runs[0].run.sources] if self.runs else []
        return differences(self.compared, paths, self._graph_of())

    def _graph_of(self) -> GraphOf:
        sides = {loaded.name: loaded.side for loaded in self.runs}
        return lambda name, compile_id: sides[name].captured_graph(compile_id) if name in sides else None

    def in_numbers(self) -> Optional[Difference]:
        """Return the head of the differences: how many ranks compiled the same. None where all ranks are shown."""
        return ranks_in_numbers(self.compared) if self.total is not None and self.total > 1 else None


def of_runs(runs: Sequence[Loaded]) -> Ranks:
    """Return ranks that were all read; forked children are not compared with their parents."""
    compared = [loaded for loaded in runs if not loaded.is_child]
    if len(compared) == 1:
        return Ranks(list(runs), alone=compared[0])
    summaries = [summary_of(loaded.side) for loaded in compared]
    if sum(each.rank is not None for each in summaries) <= MOST_NAMED:
        return Ranks(list(runs), summaries)
    return Ranks([compared[at] for at in odd_ranks(summaries)], summaries, len(summaries))


def load_ranks(paths: Sequence[str], progress: Callable[[str], object] = str, jobs: Optional[int] = 1) -> Ranks:
    """Return what these paths hold. ``progress`` is called with what is read next, in words. Logs are read in as many
    processes as ``jobs`` says, with ``None`` in as many as pays. More than one is for programs of depyf only: a process
    that is started runs the main module of this one again.

    Raises ``NothingToRead``, ``ManifestError`` and ``OSError``.
    """
    for path in paths:
        if not os.path.exists(path):
            load([path])  # raises
    sources = [source for path in paths for source in _sources(path)]
    # Many ranks: summaries only, and whole runs of those that are shown.
    if sum(source.is_rank for source in sources) > MOST_NAMED or any(source.load is None for source in sources):
        return _by_summaries(sources, progress, jobs)
    progress(f"reading {', '.join(paths)}")
    # Few: each as a whole. Dumps are read here, logs in processes, in the order of the paths.
    found = [runs_or_logs(path) for path in paths]
    logs = [log for _, several in found for log in several]
    read = side_by_side(
        load_log,
        [(log, log) for log in logs],
        jobs or jobs_for(logs),
        lambda number: progress(f"reading {logs[number]}"),
    )
    runs: List[Loaded] = []
    for known, several in found:
        runs += [*known, *(loaded for _ in several for loaded in _or_raised(next(read)))]
    return of_runs(by_rank(runs))


def _or_raised(result: Union[Result, Exception]) -> Result:
    if isinstance(result, Exception):
        raise result
    return result


@dataclass(frozen=True)
class _Source:
    """Where one rank is read from: its summary, or what that can be made from, or both."""

    name: str
    load: Optional[Callable[[], List[Loaded]]]
    summary: Optional[str] = None

    @property
    def is_rank(self) -> bool:
        """Whether it is named as a rank; several dumps that belong to no ranks are all shown."""
        return self.summary is not None or _OF_A_RANK.search(self.name.replace("\\", "/")) is not None


def _sources(path: str) -> List[_Source]:
    """Return the ranks that a path names. Only the first lines of logs are read."""
    if os.path.isfile(path):
        if file_names.is_summary(os.path.basename(path)):
            return [_Source(path, None, path)]
        return [_Source(path, partial(_of_file, path))]
    logs = [] if _by_mark(path, file_names.summaries_in, file_names.mark_of_summary) else logs_of(path)
    if logs:
        return [_Source(log, partial(load_log, log)) for log in logs]
    found = list(_of_directory(path))
    for name in file_names.process_folders(path):
        if file_names.is_folder_of_rank(name):
            folder = os.path.join(path, name)
            found += list(_of_directory(folder)) or [_Source(folder, partial(runs_in_directory, folder))]
    return found


def _of_directory(directory: str) -> Iterator[_Source]:
    """Yield the ranks that dumped into one directory, by the marks of their files."""
    manifests = _by_mark(directory, file_names.manifests_in, file_names.mark_of_manifest)
    summaries = _by_mark(directory, file_names.summaries_in, file_names.mark_of_summary)
    for mark, path in manifests.items():
        summary = summaries.pop(mark, None)
        if summary is not None and os.path.getmtime(summary) < os.path.getmtime(path) - _WRITTEN_TOGETHER:
            summary = None
        yield _Source(path, partial(_of_manifest, path), summary)
    for path in summaries.values():
        yield _Source(path, None, path)


def _by_mark(directory: str, pattern: Callable[[str], str], mark_of: Callable[[str], str]) -> Dict[str, str]:
    paths = sorted(glob.glob(pattern(glob.escape(directory))))
    marks = {mark_of(os.path.basename(path)): path for path in paths if os.path.isfile(path)}
    return {mark: path for mark, path in marks.items() if not file_names.is_mark_of_process(mark)}


def _of_file(path: str) -> List[Loaded]:
    return load([path])


def _of_manifest(path: str) -> List[Loaded]:
    return [load_manifest(path)]


def _by_summaries(sources: Sequence[_Source], progress: Callable[[str], object], jobs: Optional[int]) -> Ranks:
    """Return the summaries of all, and the runs of those that are shown."""
    damaged: List[Exception] = []
    read: List[Tuple[RankSummary, _Source]] = []
    jobs = jobs or jobs_for([source.name for source in sources if source.summary is None])

    def begun(number: int) -> None:
        progress(f"reading rank {number + 1} of {len(sources)}: {sources[number].name}")

    for source, found in zip(sources, side_by_side(_summaries, [(each.name, each) for each in sources], jobs, begun)):
        if isinstance(found, Exception):
            damaged.append(found)
            continue
        for summary in found:
            name = f"rank {summary.rank}" if summary.rank is not None else base_name(source.name)
            read.append((replace(summary, name=name), source))
    if not read:
        raise damaged[0] if damaged else NothingToRead("there is no summary of a rank")
    # By rank; those without a rank first.
    read.sort(key=lambda each: -1 if each[0].rank is None else each[0].rank)
    summaries = _named_apart([summary for summary, _ in read])
    # Whole runs of the first rank, of odd and of slow ones.
    shown = [(read[at][1].name, (summaries[at], read[at][1])) for at in odd_ranks(summaries)]
    runs = list(map(_or_raised, side_by_side(_run, shown, jobs)))
    earlier = _of_earlier_launches(summaries)
    runs = [with_damaged(loaded, damaged) for loaded in runs]
    return Ranks([with_note(each, earlier) for each in runs] if earlier else runs, summaries, len(summaries))


def _of_earlier_launches(summaries: Sequence[RankSummary]) -> Optional[str]:
    """Return a note that names ranks that began long before the others: a directory keeps files of earlier launches."""
    last = max((each.started for each in summaries if each.started is not None), default=0.0)
    names = [each.name for each in summaries if each.started is not None and last - each.started > _APART]
    if not names:
        return None
    return f"{listed(names)} began more than 10 minutes before the last: files of an earlier launch may be compared"


def _summaries(source: _Source) -> List[RankSummary]:
    if source.summary is not None:
        try:
            return [summary_from_json(read_text(source.summary), source.summary)]
        except synchronous(ManifestError, OSError):
            if source.load is None:
                raise
    return [summary_of(loaded.side) for loaded in _own(source)]


def _own(source: _Source) -> List[Loaded]:
    """Return the runs of ranks, without their forked processes. A log may have several ranks."""
    runs = source.load() if source.load is not None else []
    own = [loaded for loaded in runs if not loaded.is_child] or runs
    if not own:
        raise NothingToRead(f"{source.name}: nothing that depyf reads")
    return own


def _run(of: Tuple[RankSummary, _Source]) -> Loaded:
    """Return the run of a rank for its full view, from its summary if its dump is missing or damaged."""
    summary, source = of
    try:
        if source.load is not None:
            own = _own(source)
            return next((each for each in own if each.run.rank == summary.rank), own[0]).named(summary.name)
    except synchronous(ManifestError, NothingToRead, OSError) as error:
        run = run_of_summary(summary)
        return Loaded(summary.name, replace(run, notes=(*run.notes, left_out(error))), None)
    return Loaded(summary.name, run_of_summary(summary), None)


def _named_apart(summaries: Sequence[RankSummary]) -> List[RankSummary]:
    """Return the summaries, with unique names: there may be ranks of several launches."""
    seen: Dict[str, int] = {}
    found = []
    for each in summaries:
        seen[each.name] = number = seen.get(each.name, 0) + 1
        found.append(each if number == 1 else replace(each, name=f"{each.name} ({number})"))
    return found
