"""Run work of depyf without effect on Python's warnings.

``warnings.catch_warnings`` is not suitable: it changes the filters for all threads, and makes Python forget which
warnings it has shown, so that the program's warnings that are shown once are shown again. With ``-W error`` a warning
about a text that depyf compiles would be an exception.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from os import getpid  # not by its name in os: a test may have replaced that by a function that raises
from typing import Any, Iterator

from depyf.base.asynchronous import suppressed
from depyf.base.own_builtins import keep_builtins
from depyf.base.restoring import restoring

keep_builtins(globals())


class _OnThisThread:
    """Replaces the pattern of a warning filter: matches all warnings of the thread that made it."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._process = getpid()
        self.active = True
        """False at the end: ``warnings.catch_warnings`` of another thread may have copied the filters meanwhile."""

    def match(self, text: str) -> bool:
        """Return whether to ignore the warning. ``warnings`` calls it like the method of a regular expression."""
        return self.active and threading.get_ident() == self._thread and getpid() == self._process


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Ignore the warnings of this thread inside; those of other threads, and the record of shown ones, do not change.

    Use it only around work of depyf: a warning of the user's code that runs inside is lost. Another thread that
    iterates over the filters during the removal may skip one filter once. Replacing the list instead is worse: a
    filter that another thread adds meanwhile is lost for good.
    """
    filters: Any = warnings.filters
    pattern = _OnThisThread()
    mine = ("ignore", pattern, Warning, None, 0)

    def remove() -> None:
        pattern.active = False
        with suppressed(ValueError, AttributeError):  # the program has removed it: ``warnings.resetwarnings``
            filters.remove(mine)

    # In place: functions of ``warnings`` that add a filter also reset the record of shown warnings.
    with restoring(remove) as again, again:
        if isinstance(filters, list):  # else the program has replaced it
            filters.insert(0, mine)
        yield
