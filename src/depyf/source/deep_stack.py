"""Run recursive functions on trees that are nested deeper than the recursion limit.

``a + b + c + ...`` with a thousand operands is a thousand levels deep, and printing, parsing and compiling a tree all
recurse. The limit is raised only when it was hit, in a thread of its own that has the stack for it.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
from typing import Callable, Iterator, List, TypeVar

from depyf.result import DecompilationError

Result = TypeVar("Result")

FRAMES = 6
"""How many frames a level of nesting takes at most, of all that recurse on trees."""

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


def reserve_stack(levels: int) -> None:
    """Raise ``RecursionError`` now if a tree of so many levels will run into the recursion limit.

    Before the work has begun, that costs next to nothing.
    """
    room = sys.getrecursionlimit() - FRAMES * levels
    if isinstance(threading.current_thread(), _DeepThread) or room > sys.getrecursionlimit() // 2:
        return
    frame = sys._getframe()
    while room > 0 and frame.f_back is not None:
        frame = frame.f_back
        room -= 1
    if room <= 0:
        raise RecursionError("the tree is nested deeper than the recursion limit allows")


def _in_deep_thread(function: Callable[[], Result]) -> Result:
    results: List[Result] = []
    errors: List[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:  # handed to the thread that waits for us
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


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Pause the cyclic garbage collector: hundreds of thousands of small objects that are all alive make its passes
    cost more than the work, and more with every instruction."""
    enabled = gc.isenabled()
    try:
        try:
            gc.disable()
            yield
        finally:
            if enabled:
                gc.enable()
    except BaseException:
        if enabled:  # the lines above may have been interrupted
            gc.enable()
        raise
