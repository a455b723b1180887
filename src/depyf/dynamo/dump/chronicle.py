"""What this process has seen of one dump directory, over all sessions into it."""

from __future__ import annotations

from dataclasses import field
from typing import Dict, List, Optional, Set, Tuple

from depyf.dynamo.capture.records import Record
from depyf.dynamo.capture.session import Session
from depyf.dynamo.dump.postponed import Budget
from depyf.quick_dataclass import dataclass


@dataclass
class Chronicle:
    """The records of one directory in this process: those of sessions that have ended, and the open sessions."""

    started: float
    ended: List[Record] = field(default_factory=list)
    open: List[Session] = field(default_factory=list)
    skipped: Dict[int, int] = field(default_factory=dict)
    """How many records of each open session are another process's: those that a parent had before it forked."""
    written: Optional[int] = None
    """How many records there were when they were written."""
    stale: bool = False
    postponed: bool = False
    missed: Tuple[str, ...] = ()
    """The files that could not be written the last time."""
    own_failures: Set[str] = field(default_factory=set)
    """The messages about them, for removal from the files that list what is missing."""
    logged: Set[str] = field(default_factory=set)
    """The failures to describe a part of the run that were logged."""
    behind: Optional[str] = None
    """The file with the note that they are not up to date."""
    budget: Budget = field(default_factory=Budget)
    forked: bool = False
    page: Optional[str] = None
    runs: Dict[Tuple[Optional[str], str, int], int] = field(default_factory=dict)
    """How often each transformed code has run."""
    times: Dict[Tuple[str, bool], Tuple[int, float]] = field(default_factory=dict)
    """How often each graph has run and how long, by name, and whether it is the backward; from traces."""
    notes: Dict[str, None] = field(default_factory=dict)
    """Of ended sessions: what the program ran eagerly, and why nothing was compiled."""

    last: Optional[Session] = None
    """An empty session into the directory, when one has ended."""

    def at_least(self) -> int:
        """Return how many records have been written; before that -1, to write an empty page, but 0 in a fork."""
        return self.written if self.written is not None else 0 if self.forked else -1

    def count(self) -> int:
        """Return the number of ``records()``."""
        return len(self.ended) + sum(each.count() - self.skipped.get(id(each), 0) for each in self.open)

    def records(self) -> List[Record]:
        found = list(self.ended)
        for session in self.open:
            found += session.all_records()[self.skipped.get(id(session), 0) :]
        return found
