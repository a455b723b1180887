"""What is known of one dump directory: the records of this process over all sessions into it, when its page may be
rewritten, and the files of another process of the same launch that has ended.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from dataclasses import field
from typing import Callable, Container, Deque, Dict, FrozenSet, Iterator, List, Optional, Set, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.capture.records import Record
from depyf.dynamo.capture.session import Session
from depyf.dynamo.capture.shadow_looks import ShadowLook
from depyf.report.model.manifest import ManifestError
from depyf.report.model.run import Run
from depyf.report.read.own_files import manifest_name
from depyf.report.read.reading import load_manifest, may_be_of_the_same_launch, of_the_same_launch
from depyf.report.render.hidden_values import HiddenValues
from depyf.torch_trace import file_names

_AT_ONCE, _SHARE = 2.0, 0.1
"""Writing the page, the index and the manifest of one directory may take so many CPU seconds, and this share of the
time that has passed.
"""

BEHIND = "index_is_not_up_to_date.txt"

BEHIND_TEXT = """\
index.html, index.md and manifest.json do not show the last sessions of depyf.prepare_debug that dumped into this
directory: many followed each other quickly, and these files are not rewritten for each of them. They are when the
process ends, or when a session ends a little later; this file is removed then. Where it is still here and the process
is not, that was killed: all other files are complete, and `depyf report` reads them when manifest.json is deleted.
"""

MISSED_TEXT = """\
%s could not be written when a session of depyf.prepare_debug ended. Files of these names are of an earlier session.
They are written when the next one ends, or when the process does, as soon as that can be done; this file is removed
then. All other files are complete, and `depyf report` reads them when manifest.json is deleted.
"""


class Budget:
    """How much of a process's time may be spent on rewriting: a fixed amount, and a share of the rest."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._spent = 0.0
        self._last = 0.0

    def allows(self) -> bool:
        """Return whether it may be written again, assuming the cost of the last time."""
        return self._spent + self._last <= _AT_ONCE + _SHARE * (time.monotonic() - self._begun)

    @contextlib.contextmanager
    def spending(self) -> Iterator[None]:
        """Note what is spent inside, in CPU seconds of this thread."""
        begun = time.thread_time()
        try:
            yield
        finally:
            self._last = time.thread_time() - begun
            self._spent += self._last


@dataclass
class Chronicle:
    """The records of one directory in this process: records of sessions that have ended, and the open sessions."""

    started: float
    ended: EndedSessions = field(default_factory=lambda: EndedSessions())
    open: List[Session] = field(default_factory=list)
    skipped: Dict[int, int] = field(default_factory=dict)
    """How many records of each open session the parent had before it forked, by the session's id."""
    written: Optional[int] = None
    """The number of records at the last writing."""
    stale: bool = False
    postponed: bool = False
    missed: Tuple[str, ...] = ()
    """The files that could not be written the last time."""
    own_failures: Set[str] = field(default_factory=set)
    """The failures to write the page, the index or the manifest, which these files must not list."""
    logged: Set[str] = field(default_factory=set)
    """The failures to describe a part of the run that were logged."""
    behind: Optional[str] = None
    """The path of the note that says that page, index and manifest are not up to date."""
    budget: Budget = field(default_factory=Budget)
    forked: bool = False
    page: Optional[str] = None
    runs: Dict[Tuple[Optional[str], str, int], int] = field(default_factory=dict)
    """How often each transformed code has run."""
    times: Dict[Tuple[str, bool], Tuple[int, float]] = field(default_factory=dict)
    """How often each graph has run and how long, by name, and whether it is the backward; from traces."""
    notes: Dict[str, None] = field(default_factory=dict)
    """Notes of ended sessions: what the program ran eagerly, and why nothing was compiled."""

    looks: List[ShadowLook] = field(default_factory=list)
    """How far each ``shadow`` has looked beside a session that has ended."""

    hidden: Optional[HiddenValues] = None
    """The values that the files do not show, if a session hides them."""

    last: Optional[Session] = None
    """An empty session into the directory, when one has ended."""

    def at_least(self) -> int:
        """Return how many records have been written; before that -1, to write an empty page, but 0 in a fork."""
        return self.written if self.written is not None else 0 if self.forked else -1

    def count(self) -> int:
        """Return the number of records so far, also of those that were dropped."""
        return self.ended.count + sum(each.count() - self.skipped.get(id(each), 0) for each in self.open)

    def records(self) -> List[Record]:
        found = self.ended.records()
        for session in self.open:
            found += session.all_records()[self.skipped.get(id(session), 0) :]
        return found


class EndedSessions:
    """The records of the last sessions into a directory that have ended, ``MOST`` at most; of earlier ones a number.

    A process may open sessions all its life. A session without records does not count.
    """

    MOST = 100

    def __init__(self) -> None:
        self._sessions: Deque[Tuple[float, List[Record]]] = deque()
        self.dropped = 0
        """The number of sessions whose records were dropped."""
        self.count = 0
        """The number of the records of all sessions, also of dropped ones."""

    def add(self, records: List[Record], ended: float) -> List[Record]:
        """Keep the records of a session that ended at that time; return the records that are dropped instead."""
        if not records:
            return []
        self.count += len(records)
        self._sessions.append((ended, records))
        if len(self._sessions) <= self.MOST:
            return []
        self.dropped += 1
        self.shown_since, left = self._sessions.popleft()
        return left

    shown_since: Optional[float] = None
    """When the last session ended whose records were dropped, in seconds since the epoch."""

    def records(self) -> List[Record]:
        """Return the records that are kept, in their order."""
        return [record for _, records in self._sessions for record in records]


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
