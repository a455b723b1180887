"""Work of depyf's own without a trace in Python's warnings.

``warnings.catch_warnings`` is not for this: it changes the filters for all threads, and makes Python forget which
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
    """In the place of a pattern for the text of a warning: matches each one of the thread that has made it."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._process = os.getpid()
        self.active = True
        """False at the end: ``warnings.catch_warnings`` of another thread may have copied the filters meanwhile."""

    def match(self, text: str) -> bool:
        """Whether the warning is to be ignored. ``warnings`` calls it as it would call a regular expression's."""
        return self.active and threading.get_ident() == self._thread and os.getpid() == self._process


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Ignore the warnings of this thread inside; those of other threads, and what was shown, stay as they are.

    Use it around work of depyf's only: a warning of the user's code that runs inside is lost.

    Another thread that walks the filters at the moment of the removal may pass over one of them, this once. To replace
    the list instead was tried, and is worse: a filter that another thread adds meanwhile is lost for good.
    """
    filters: object = warnings.filters
    pattern = _OnThisThread()
    mine = ("ignore", pattern, Warning, None, 0)
    # In place: functions of ``warnings`` that add a filter also make all that was shown forgotten.
    try:
        try:
            if isinstance(filters, list):  # else the program has put something else there
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
