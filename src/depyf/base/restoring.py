"""Restore state at the end of a ``with`` block, also if an exception from outside interrupts the restoring itself.

A signal handler, or another thread, may raise between any two lines, so also in a ``finally`` clause or on the first
line of ``__exit__``. Then the rest of that clause does not run. The context is therefore entered twice:

    with restoring(gc.enable) as again, again:
        gc.disable()
        ...

If the inner ``__exit__`` is interrupted, the outer one gets that exception and restores once more. One interruption
leaves nothing changed; a second one within the same few instructions is not handled.

Where something is undone only after a failure, ``except BaseException`` with ``raise`` is enough: leaving a ``try``
block without an exception executes no line of Python at which another exception could be raised.
"""

from __future__ import annotations

from typing import Callable

from depyf.base.own_builtins import keep_builtins

keep_builtins(globals())


class restoring:  # noqa: N801 - used as a function
    """Call ``restore`` when the block ends, until one call has returned: it may be called again after it was
    interrupted at any line, and then has to complete the work."""

    def __init__(self, restore: Callable[[], object]) -> None:
        self._restore = restore
        self._is_restored = False

    def __enter__(self) -> restoring:
        _need_stack(frames=5)
        return self

    def __exit__(self, *_error: object) -> None:
        if not self._is_restored:
            self._restore()
            self._is_restored = True


def _need_stack(frames: int) -> None:
    """Raise ``RecursionError`` now, before anything has changed, if the stack is too full to call ``restore`` later."""
    if frames:
        _need_stack(frames - 1)
