"""Run recursive functions on trees that are nested deeper than the recursion limit.

``a + b + c + ...`` with a thousand operands is a thousand levels deep, and printing, parsing and compiling a tree are
recursive. The limit is raised only when it was hit, in a separate thread with a large stack.
"""

from __future__ import annotations

import sys
import threading
from typing import Callable, List, TypeVar

from depyf.decompiler.errors import DecompilationError

Result = TypeVar("Result")

FRAMES = 6
"""The most frames that a level of nesting takes, in any function that recurses on trees."""

_LIMIT = 200_000
_STACK_BYTES = 1 << 29
_TOO_DEEP = "the code is nested too deeply to be printed or compiled"
_lock = threading.Lock()


class _DeepThread(threading.Thread):
    """A thread that has the stack and the limit already."""


def with_deep_stack(function: Callable[[], Result]) -> Result:
    """Return ``function()``; if it hits the recursion limit, retry with a far higher one.

    ``function`` must be safe to start again. Raises ``DecompilationError`` when even the higher limit is too low.
    """
    try:
        return function()
    except RecursionError as error:
        if isinstance(threading.current_thread(), _DeepThread):
            raise DecompilationError(_TOO_DEEP) from error
    return _in_deep_thread(function)


def needs_stack(levels: int) -> bool:
    """Return whether a tree of so many levels takes more than half of the recursion limit, and of the stack."""
    limit = sys.getrecursionlimit()
    return FRAMES * levels >= limit - limit // 2 and not isinstance(threading.current_thread(), _DeepThread)


def has_stack(levels: int) -> bool:
    """Return whether a tree of so many levels will not reach the recursion limit. This costs next to nothing."""
    room = sys.getrecursionlimit() - FRAMES * levels
    if not needs_stack(levels):
        return True
    frame = sys._getframe()
    while room > 0 and frame.f_back is not None:
        frame = frame.f_back
        room -= 1
    return room > 0


def _in_deep_thread(function: Callable[[], Result]) -> Result:
    results: List[Result] = []
    errors: List[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:  # passed on to the waiting thread
            errors.append(error)

    with _lock:
        old_limit, old_size = sys.getrecursionlimit(), threading.stack_size(_STACK_BYTES)
        try:
            thread = _DeepThread(target=run, name="depyf-deep-stack")
            sys.setrecursionlimit(max(_LIMIT, old_limit))
            thread.start()
            thread.join()
        finally:
            sys.setrecursionlimit(old_limit)
            threading.stack_size(old_size)
    if errors:
        if isinstance(errors[0], (RecursionError, MemoryError)):
            raise DecompilationError(_TOO_DEEP) from errors[0]
        raise errors[0]
    return results[0]
