"""Read runs: from dumps with a manifest, dumps without one, and logs of torch's trace."""

from __future__ import annotations

import glob
import os
import re
from dataclasses import field
from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.messages import listed
from depyf.base.quick_dataclass import dataclass, replace
from depyf.base.regular_files import path_inside, read_text
from depyf.report.diff.matching import ComparedRun
from depyf.report.model.manifest import ForeignManifestError, ManifestError, from_json
from depyf.report.model.run import Artifact, Run
from depyf.report.read.from_files import runs_of_files
from depyf.report.read.from_log import run_of_log
from depyf.report.read.own_files import may_be_written
from depyf.report.read.unlisted import with_unlisted
from depyf.torch_trace import file_names
from depyf.torch_trace.launches import BETWEEN_RANKS, Followed, of_replaced_launches
from depyf.torch_trace.log_file import find_logs, is_log, read_log

EARLIER = "folders of an earlier launch are not shown"
_MOST_NAMED = 8


class NothingToRead(ValueError):
    """A path with nothing captured in it; the message has what was searched for."""


@dataclass(frozen=True)
class Loaded:
    """A run that was read: ``directory`` is where its files are (None for a log), ``name`` is its own. ``has_manifest``
    is whether it was read from a manifest beside its files, ``is_child`` whether a process wrote it that another one of
    the same program has forked. ``written`` is when, in seconds since the epoch; ``mark`` is what its files
    have in their names (``rank_1``)."""

    name: str
    run: Run = field(repr=False)
    directory: Optional[str]
    has_manifest: bool = False
    is_child: bool = False
    written: float = 0.0
    mark: str = ""

    def text_of(self, artifact: Artifact) -> Optional[str]:
        """Return the text of an artifact, ``None`` if its file was deleted."""
        if artifact.text is not None or artifact.path is None or self.directory is None:
            return artifact.content
        try:  # a manifest may name anything, and what is read is shown on a page
            return read_text(path_inside(self.directory, artifact.path, file_names.STAGES), follow=False)
        except synchronous(OSError):
            return None

    def named(self, name: str) -> Loaded:
        """Return the run under another name."""
        return replace(self, name=name)

    @property
    def side(self) -> ComparedRun:
        """The same, for comparisons."""
        return ComparedRun(self.name, self.run, self.text_of)


def load(paths: Sequence[str]) -> List[Loaded]:
    """Return the runs that these paths hold, ranks in order, with unique names.

    Raises ``NothingToRead``, ``ManifestError`` and ``OSError``.
    """
    runs: List[Loaded] = []
    for known, logs in map(runs_or_logs, paths):
        runs += [*known, *(loaded for log in logs for loaded in load_log(log))]
    return by_rank(runs)


def by_rank(runs: Sequence[Loaded]) -> List[Loaded]:
    """Return the runs, ranks in order, with unique names."""
    return named_apart(sorted(runs, key=lambda loaded: -1 if loaded.run.rank is None else loaded.run.rank))


def runs_in_directory(directory: str) -> List[Loaded]:
    """Return the runs of the manifests in a dump directory; without a manifest of depyf, of its files. Only the run of
    a damaged manifest is lost: notes of the others name it. Raises ``ManifestError`` and ``OSError`` if there is
    nothing else.
    """
    # 1. Manifests of this process, or of ranks that share the directory. 2. Folders of followed processes.
    # 3. Without either the files themselves.
    runs, damaged = manifests_in_directory(directory)
    if not damaged:  # else files may be those of a manifest that can't be read
        runs = _with_unlisted(directory, runs)
    followed: Dict[str, List[Loaded]] = {}
    for name in file_names.process_folders(directory):
        try:
            followed[name] = runs_in_directory(os.path.join(directory, name))
        except synchronous(FileNotFoundError):  # removed meanwhile
            pass
        except synchronous(ManifestError, OSError) as error:  # the others are read, and name it
            damaged.append(error)
    # A directory that is dumped into again keeps folders of the launch before.
    earlier = _of_earlier_launches(followed)
    shown = {name: of_one for name, of_one in followed.items() if name not in earlier}
    for name, of_one in shown.items():
        runs += _of_process(of_one, name, alone=len(shown) == 1)
    if not runs:
        found = runs_of_files(directory)
        name, written = base_name(directory), os.stat(directory).st_mtime
        runs = [Loaded(_name(run, mark or name), run, directory, written=written) for mark, run in found.items()]
    if damaged and not runs:
        raise damaged[0]
    if earlier:
        names = listed([name for name in followed if name in earlier], _MOST_NAMED)
        runs = [with_note(loaded, f"{EARLIER}: {names}") for loaded in runs]
    return named_apart([with_damaged(loaded, damaged) for loaded in runs])


def _with_unlisted(directory: str, runs: Sequence[Loaded]) -> List[Loaded]:
    """Return the runs of a directory with the files that their manifests do not list."""
    by_mark = {re.sub(r"\.?depyf$", "", loaded.mark): loaded for loaded in runs}  # beside a file of the user
    if len(by_mark) < len(runs):  # which files are whose is not known
        return list(runs)
    whole, others = with_unlisted(directory, {mark: loaded.run for mark, loaded in by_mark.items()})
    written = os.stat(directory).st_mtime
    return [
        *(replace(by_mark[mark], run=run) for mark, run in whole.items()),
        *(Loaded(_name(run, mark), run, directory, written=written) for mark, run in others.items()),
    ]


def _of_earlier_launches(followed: Mapping[str, Sequence[Loaded]]) -> Set[str]:
    return of_replaced_launches(
        Followed(name, loaded.run.launch, loaded.run.rank, loaded.written)
        for name, runs in followed.items()
        for loaded in runs
    )


def _of_process(runs: Sequence[Loaded], folder: str, *, alone: bool) -> List[Loaded]:
    """Return the runs of one process of a followed program. Only ranks are compared with each other."""
    is_rank = file_names.is_folder_of_rank(folder)
    by_number = not folder.startswith("rank")  # and it may have become a rank later
    name = folder.replace("_", " ").replace("rank", "rank ").replace("pid", "process ")
    return [
        replace(
            each,
            name=each.name if each.run.rank is not None and (is_rank or by_number) else name,
            is_child=each.is_child or not (is_rank or alone or (by_number and each.run.rank is not None)),
        )
        for each in runs
    ]


def manifests_in_directory(directory: str) -> Tuple[List[Loaded], List[Exception]]:
    """Return the runs of the manifests in a dump directory, and the errors of those that can't be read."""
    runs: List[Loaded] = []
    damaged: List[Exception] = []
    for path in sorted(glob.glob(file_names.manifests_in(glob.escape(directory)))):
        if not os.path.isfile(path):  # a pipe by that name, say
            continue
        try:
            runs.append(load_manifest(path))
        except synchronous(ForeignManifestError) as error:  # of a web application, say
            if not may_be_written(path):
                continue
            damaged.append(ManifestError(f"{path}: a damaged manifest, a part is missing ({error.__cause__})"))
        except synchronous(ManifestError, OSError) as error:
            damaged.append(error)
    return runs, damaged


def with_damaged(loaded: Loaded, damaged: Sequence[Exception]) -> Loaded:
    """Return the run with notes that name the manifests beside its own that could not be read."""
    return with_note(loaded, *(left_out(each) for each in damaged)) if damaged else loaded


def with_note(loaded: Loaded, *notes: str) -> Loaded:
    """Return the run with these notes."""
    return replace(loaded, run=replace(loaded.run, notes=(*loaded.run.notes, *notes)))


def left_out(error: Exception) -> str:
    """Return the note about a manifest that can't be read."""
    return f"left out: {error}"


def of_the_same_launch(runs: Sequence[Loaded], ours: Run) -> List[Loaded]:
    """Return those of ``runs`` that belong to the launch of the run ``ours``: itself, its children, and its other
    ranks. A directory keeps the manifests of earlier runs, which began before; other ranks may have begun a little
    earlier."""
    return [loaded for loaded in runs if _began_with(loaded.run, ours)]


def may_be_of_the_same_launch(written: float, ours: Run) -> bool:
    """Return whether a manifest that was written at this time (seconds since the epoch) may pass
    ``of_the_same_launch``: an older one need not be read.
    """
    return ours.started is None or written >= ours.started - BETWEEN_RANKS


def _began_with(run: Run, ours: Run) -> bool:
    if run.started is None or ours.started is None:
        return False
    if run.started >= ours.started:
        return True
    other_rank = run.rank is not None and ours.rank is not None and run.rank != ours.rank
    return other_rank and run.command == ours.command and ours.started - run.started <= BETWEEN_RANKS


def runs_or_logs(path: str) -> Tuple[List[Loaded], List[str]]:
    """Return the runs that a path holds, or the logs there, which are not read yet. Raises as ``load``."""
    if not os.path.exists(path):
        raise NothingToRead(f"{path}: there is no such file or directory")
    if os.path.isfile(path) and file_names.is_manifest(os.path.basename(path)) and not is_log(path):
        return [load_manifest(path)], []
    logs = logs_of(path)
    runs = runs_in_directory(path) if os.path.isdir(path) and not logs else []
    if not runs and not logs:
        raise NothingToRead(
            f"{path}: nothing that depyf reads: neither a directory that prepare_debug has dumped into, "
            "nor logs that were recorded with TORCH_TRACE"
        )
    return runs, logs


def logs_of(path: str) -> List[str]:
    """Return the logs that a path is read from; none if it is a dump. Manifests beside the logs are what an earlier
    report has written, and may lack what was logged since.
    """
    logs = find_logs(path)
    if not logs or not os.path.isdir(path):
        return logs
    if file_names.process_folders(path):
        return []
    runs, _ = manifests_in_directory(path)
    dumped = any(loaded.run.origin != "torch_trace" for loaded in runs) if runs else runs_of_files(path)
    return [] if dumped else logs


def load_manifest(path: str) -> Loaded:
    """Return the run of one manifest. Raises ``ManifestError`` and ``OSError``."""
    run = from_json(read_text(path), path)
    directory = os.path.dirname(path)
    mark = file_names.mark_of_manifest(os.path.basename(path))
    name = _name(run, mark or base_name(directory))
    is_child = file_names.is_mark_of_process(mark)
    return Loaded(name, run, directory, has_manifest=True, is_child=is_child, written=os.stat(path).st_mtime, mark=mark)


def load_log(path: str) -> List[Loaded]:
    """Return the runs of a log, without processes that compiled nothing (helpers that only log their version), if
    others did.

    Raises ``NothingToRead``.
    """
    try:
        runs = [run_of_log(log) for log in read_log(path)]
    except synchronous(LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        # Records may contain anything. PyTorch's own records can be read: this is a bug of depyf, or not a log of
        # PyTorch.
        raise NothingToRead(f"{path}: a damaged log ({type(error).__name__}: {error})") from error
    runs = [run for run in runs if run.compilations] or runs[:1]
    return [Loaded(_name(run, base_name(path)), run, None) for run in runs]


def _name(run: Run, otherwise: str) -> str:
    return otherwise.replace("_", " ") if run.rank is None else f"rank {run.rank}"


def base_name(path: str) -> str:
    """Return the base name of a path; for ``.``, the base name of the working directory."""
    return os.path.basename(os.path.abspath(path)) or path


def named_apart(runs: Sequence[Loaded]) -> List[Loaded]:
    """Return the runs, with unique names."""
    names = [loaded.name for loaded in runs]
    seen: List[str] = []
    found = []
    for loaded in runs:
        seen.append(loaded.name)
        number = seen.count(loaded.name)
        several = names.count(loaded.name) > 1
        found.append(replace(loaded, name=f"{loaded.name} ({number})") if several else loaded)
    return found
