"""Add finders to ``sys.meta_path``, and remove them. The list is changed in place, so that a program's reference to
``sys.meta_path`` stays valid.

Python goes through the list by index. Where a finder is removed, each search that is under way on another thread would
leave out one of the other finders, and fail to find a module that exists. So a finder is removed only while no search
is under way. Until then the finder stays in the list, and must answer each search with None.
"""

from __future__ import annotations

import _imp
import contextlib
import sys
import threading
import time
from types import FrameType
from typing import Iterator, List, Optional, Tuple

from depyf.base.asynchronous import suppressed
from depyf.base.own_builtins import keep_builtins
from depyf.base.restoring import restoring

keep_builtins(globals())

_TRIES, _PAUSE = 20, 0.005
"""How often a removal is tried, and the seconds in between: searches take less than that, unless they block."""

_present: List[Tuple[object, List[object]]] = []
"""The finders that were added, each with the list: the program may exchange ``sys.meta_path``."""

_ended: List[object] = []
"""The finders that could not be removed yet."""


def insert_first(finder: object) -> None:
    """Add ``finder`` as the first in ``sys.meta_path``, if it is not there."""
    _ended[:] = [each for each in _ended if each is not finder]
    path: List[object] = sys.meta_path  # type: ignore[assignment]
    if _index(path, finder) is None:
        _present.append((finder, path))
        path.insert(0, finder)  # a search that is under way asks a finder twice
    remove()


def remove(*finders: object) -> None:
    """Remove the finders, and those that could not be removed before. May be called again."""
    _ended.extend(finder for finder in finders if not any(each is finder for each in _ended))
    for finder in list(_ended):
        lists = [sys.meta_path, *(path for each, path in _present if each is finder)]
        removed = [_remove_from(path, finder) for path in lists]  # type: ignore[arg-type]
        if all(removed):
            _present[:] = [each for each in _present if each[0] is not finder]
            _ended[:] = [each for each in _ended if each is not finder]


def _remove_from(path: List[object], finder: object) -> bool:
    """Remove the finder from one list; return False if searches were under way all the time."""
    for tried in range(_TRIES):
        if _index(path, finder) is None:
            return True
        searching = _threads_that_search()
        if threading.get_ident() in searching:  # it will not end before this function returns
            return False
        if not searching and not _imp.lock_held():
            with _no_finder_called():
                if _removed_unseen(path, finder):
                    return True
        if tried < _TRIES - 1:
            time.sleep(_PAUSE)
    return False


def _removed_unseen(path: List[object], finder: object) -> bool:
    """Remove the finder while no finder can be called; return False, with the finder in its place, if a search has
    begun meanwhile."""
    index = _index(path, finder)
    if index is None:
        return True
    if _threads_that_search():
        return False
    del path[index]
    # A search that begins now has asked the first finder of the list, and waits for the import lock. With the finder
    # put back, a search that began before the removal sees the same list; one that began after the removal asks its
    # first finder twice.
    if _threads_that_search():
        path.insert(index, finder)
        return False
    return True


@contextlib.contextmanager
def _no_finder_called() -> Iterator[None]:
    """Hold the import lock, under which Python calls each finder."""

    def release() -> None:
        with suppressed(RuntimeError):  # not acquired, where that was interrupted
            _imp.release_lock()

    with restoring(release) as again, again:
        _imp.acquire_lock()
        yield


def _threads_that_search() -> List[int]:
    """Return the threads that go through ``sys.meta_path``."""
    return [thread for thread, frame in sys._current_frames().items() if _searches(frame)]


def _searches(frame: Optional[FrameType]) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "_find_spec" and frame.f_globals.get("__name__") == "importlib._bootstrap":
            return True
        frame = frame.f_back
    return False


def _index(path: List[object], finder: object) -> Optional[int]:
    """Return where the finder is, by identity: other finders' comparisons are not called."""
    return next((index for index, each in enumerate(path) if each is finder), None)
