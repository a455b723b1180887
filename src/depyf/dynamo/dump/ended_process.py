"""The files of another process of the same launch that has ended: its lock is gone, and its files are to stay."""

from __future__ import annotations

import os
from typing import Callable, Container, FrozenSet, Optional, Tuple

from depyf import file_names
from depyf.asynchronous import synchronous
from depyf.report.model.manifest import ManifestError
from depyf.report.model.run import Run
from depyf.report.read.own_files import manifest_name
from depyf.report.read.reading import load_manifest, may_be_of_the_same_launch, of_the_same_launch


class EndedProcess:
    """The process that has left the plain names in ``directory``, if it belongs to the launch of ``ours``."""

    def __init__(self, directory: str, ours: Callable[[], Run]) -> None:
        self._directory = directory
        self._ours = ours
        self._name = ""
        self._seen: Optional[Tuple[int, int, int]] = None
        self._files: FrozenSet[str] = frozenset()

    def files(self, own: Container[str]) -> FrozenSet[str]:
        """Return the names of its files, none if it is the process that has written ``own``, or of an earlier launch.
        The manifest is read again when it is a new one.
        """
        self._name = self._name or manifest_name(self._directory)
        if self._name in own:
            return frozenset()
        path = os.path.join(self._directory, self._name)
        try:
            status = os.stat(path)
            seen = status.st_ino, status.st_size, status.st_mtime_ns
            if seen != self._seen:
                self._seen, self._files = seen, frozenset()
                self._files = self._read(path, status.st_mtime)
        except synchronous(OSError, ManifestError):  # no process of depyf has ended here
            return frozenset()
        return self._files

    def _read(self, path: str, written: float) -> FrozenSet[str]:
        ours = self._ours()
        if not may_be_of_the_same_launch(written, ours):
            return frozenset()
        loaded = load_manifest(path)
        if not of_the_same_launch([loaded], ours):
            return frozenset()
        about_all = file_names.page_file(), file_names.index_file(), self._name, file_names.summary_file()
        paths = (each.path for each in loaded.run.artifacts)
        return frozenset((*about_all, *(each for each in paths if each is not None)))
