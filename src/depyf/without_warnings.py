"""Run work of depyf without effect on Python's warnings.

``warnings.catch_warnings`` is not suitable: it changes the filters for all threads, and makes Python forget which
warnings it has shown, so that those of the program that are shown once are shown again. With ``-W error`` a warning
about a text that depyf compiles would be an exception.
"""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from typing import Any, Iterator

from depyf.asynchronous import suppressed


class _OnThisThread:
    """Replaces the pattern of a warning filter: matches all warnings of the thread that made it."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._process = os.getpid()
        self.active = True
        """False at the end: ``warnings.catch_warnings`` of another thread may have copied the filters meanwhile."""

    def match(self, text: str) -> bool:
        """Return whether to ignore the warning. ``warnings`` calls it like the method of a regular expression."""
        return self.active and threading.get_ident() == self._thread and os.getpid() == self._process


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Ignore the warnings of this thread inside; those of other threads, and the record of shown ones, do not change.

    Use it only around work of depyf: a warning of the user's code that runs inside is lost. Another thread that
    iterates over the filters during the removal may skip one of them once. Replacing the list instead is worse: a
    filter that another thread adds meanwhile is lost for good.
    """
    filters: object = warnings.filters
    pattern = _OnThisThread()
    mine = ("ignore", pattern, Warning, None, 0)
    # In place: functions of ``warnings`` that add a filter also reset the record of shown warnings.
    try:
        try:
            if isinstance(filters, list):  # else the program has replaced it
                filters.insert(0, mine)
            yield
        finally:
            pattern.active = False
            _remove(filters, mine)
    except BaseException:
        pattern.active = False  # the lines above may have been interrupted
        _remove(filters, mine)
        raise


def _remove(filters: Any, mine: object) -> None:
    with suppressed(ValueError, AttributeError):  # the program has removed it: ``warnings.resetwarnings``
        filters.remove(mine)
