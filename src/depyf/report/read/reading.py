"""Read runs: from dumps with a manifest, dumps without one, and logs of torch's trace."""

from __future__ import annotations

import glob
import os
from dataclasses import field, replace
from typing import List, Optional, Sequence, Tuple

from depyf import file_names
from depyf.asynchronous import synchronous
from depyf.quick_dataclass import dataclass
from depyf.regular_files import path_inside, read_text
from depyf.report.diff.matching import Side
from depyf.report.model.manifest import ForeignManifestError, ManifestError, from_json
from depyf.report.model.run import Artifact, Run
from depyf.report.read.from_files import runs_of_files
from depyf.report.read.from_log import run_of_log
from depyf.report.read.own_files import may_be_written
from depyf.torch_trace.log_file import find_logs, is_log, read_log

_BETWEEN_RANKS = 10.0
"""Seconds within which a launcher starts all ranks, including the import of their compilers."""


class NothingToRead(ValueError):
    """A path with nothing captured in it; the message says what was searched for."""


@dataclass(frozen=True)
class Loaded:
    """A run that was read: ``directory`` is where its files are (None for a log), ``name`` is its own.

    ``has_manifest`` says that it was read from a manifest beside its files, ``is_child`` that a process wrote it which
    another one of the same program has forked.
    """

    name: str
    run: Run = field(repr=False)
    directory: Optional[str]
    has_manifest: bool = False
    is_child: bool = False

    def text_of(self, artifact: Artifact) -> Optional[str]:
        """The text of an artifact; None when its file is gone."""
        if artifact.text is not None or artifact.path is None or self.directory is None:
            return artifact.text
        try:  # a manifest may name anything, and what is read is shown on a page
            return read_text(path_inside(self.directory, artifact.path), follow=False)
        except synchronous(OSError):
            return None

    def named(self, name: str) -> Loaded:
        """The same under another name."""
        return replace(self, name=name)

    @property
    def side(self) -> Side:
        """The same, for comparisons."""
        return Side(self.name, self.run, self.text_of)


def load(paths: Sequence[str]) -> List[Loaded]:
    """The runs that these paths hold, those of ranks by rank. Their names are unique.

    Raises ``NothingToRead``, ``ManifestError`` and ``OSError``.
    """
    runs = [run for path in paths for run in _load_one(path)]
    runs.sort(key=lambda loaded: -1 if loaded.run.rank is None else loaded.run.rank)
    return named_apart(runs)


def runs_in_directory(directory: str) -> List[Loaded]:
    """Return the runs of the manifests in a dump directory; without a manifest of depyf, of its files. Only the run of
    a damaged manifest is lost: notes of the others name it. Raises ``ManifestError`` and ``OSError`` if there is
    nothing else.
    """
    runs, damaged = manifests_in_directory(directory)
    folders = file_names.process_folders(directory)
    for name in folders:
        try:
            runs += _of_process(runs_in_directory(os.path.join(directory, name)), name, alone=len(folders) == 1)
        except synchronous(FileNotFoundError):  # removed meanwhile
            pass
        except synchronous(ManifestError, OSError) as error:  # the others are read, and name it
            damaged.append(error)
    if not runs:
        found = runs_of_files(directory)
        runs = [Loaded(_name(run, mark or _base(directory)), run, directory) for mark, run in found.items()]
    if damaged and not runs:
        raise damaged[0]
    return named_apart([with_damaged(loaded, damaged) for loaded in runs])


def _of_process(runs: Sequence[Loaded], folder: str, *, alone: bool) -> List[Loaded]:
    """Return the runs of one process of a followed program. Only ranks are compared with each other."""
    is_rank = file_names.is_folder_of_rank(folder)
    by_number = not folder.startswith("rank")  # and it may have become a rank later
    name = folder.replace("_", " ").replace("rank", "rank ").replace("pid", "process ")
    return [
        replace(
            each,
            name=each.name if is_rank or (by_number and each.run.rank is not None) else name,
            is_child=each.is_child or not (is_rank or alone or (by_number and each.run.rank is not None)),
        )
        for each in runs
    ]


def manifests_in_directory(directory: str) -> Tuple[List[Loaded], List[Exception]]:
    """The runs of the manifests in a dump directory, and what is wrong with those that can't be read."""
    runs: List[Loaded] = []
    damaged: List[Exception] = []
    for path in sorted(glob.glob(file_names.manifests_in(glob.escape(directory)))):
        if not os.path.isfile(path):  # a pipe by that name, say
            continue
        try:
            runs.append(_of_manifest(path))
        except synchronous(ForeignManifestError) as error:  # that of a web application, say
            if not may_be_written(path):
                continue
            damaged.append(ManifestError(f"{path}: a damaged manifest, of which a part is missing ({error.__cause__})"))
        except synchronous(ManifestError, OSError) as error:
            damaged.append(error)
    return runs, damaged


def with_damaged(loaded: Loaded, damaged: Sequence[Exception]) -> Loaded:
    """The same with notes that name the manifests that could not be read beside its own."""
    notes = (*loaded.run.notes, *(left_out(each) for each in damaged))
    return replace(loaded, run=replace(loaded.run, notes=notes)) if damaged else loaded


def left_out(error: Exception) -> str:
    """The note about a manifest that can't be read."""
    return f"left out: {error}"


def of_the_same_launch(runs: Sequence[Loaded], ours: Run) -> List[Loaded]:
    """Those of ``runs`` that belong to the launch of the run ``ours``: itself, its children, and its other ranks.

    A directory keeps the manifests of earlier runs, which began before; other ranks may have begun a little earlier.
    """
    return [loaded for loaded in runs if _began_with(loaded.run, ours)]


def _began_with(run: Run, ours: Run) -> bool:
    if run.started is None or ours.started is None:
        return False
    if run.started >= ours.started:
        return True
    other_rank = run.rank is not None and ours.rank is not None and run.rank != ours.rank
    return other_rank and run.command == ours.command and ours.started - run.started <= _BETWEEN_RANKS


def _load_one(path: str) -> List[Loaded]:
    if not os.path.exists(path):
        raise NothingToRead(f"{path}: there is no such file or directory")
    if os.path.isfile(path) and file_names.is_manifest(os.path.basename(path)) and not is_log(path):
        return [_of_manifest(path)]
    runs = runs_in_directory(path) if os.path.isdir(path) else []
    runs = runs or [loaded for log in find_logs(path) for loaded in _of_log(log)]
    if not runs:
        raise NothingToRead(
            f"{path}: nothing that depyf reads: neither a directory that prepare_debug has dumped into, "
            "nor logs that were recorded with TORCH_TRACE"
        )
    return runs


def _of_manifest(path: str) -> Loaded:
    run = from_json(read_text(path), path)
    directory = os.path.dirname(path)
    mark = file_names.mark_of_manifest(os.path.basename(path))
    name = _name(run, mark or _base(directory))
    return Loaded(name, run, directory, has_manifest=True, is_child=file_names.is_mark_of_process(mark))


def _of_log(path: str) -> List[Loaded]:
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
    return [Loaded(_name(run, _base(path)), run, None) for run in runs]


def _name(run: Run, otherwise: str) -> str:
    return otherwise.replace("_", " ") if run.rank is None else f"rank {run.rank}"


def _base(path: str) -> str:
    return os.path.basename(os.path.abspath(path)) or path


def named_apart(runs: Sequence[Loaded]) -> List[Loaded]:
    """The same, with names that no two of them share."""
    names = [loaded.name for loaded in runs]
    seen: List[str] = []
    found = []
    for loaded in runs:
        seen.append(loaded.name)
        number = seen.count(loaded.name)
        several = names.count(loaded.name) > 1
        found.append(replace(loaded, name=f"{loaded.name} ({number})") if several else loaded)
    return found
