"""Distinguish bugs of depyf in an attempt from refusals.

An attempt that fails gives way to the next, and the user gets worse text instead of none. That would hide bugs from
the tests, too: they let such errors through.
"""

from __future__ import annotations

from depyf.result import DecompilationError
from depyf.structure.unstructured import Unstructured

REFUSALS = (DecompilationError, ValueError, NotImplementedError, Unstructured, RecursionError, MemoryError)
"""What stages raise on purpose, for code that is malformed or has no such form, and the limits of a machine."""

_let_through = False


class let_through:  # noqa: N801 - used as a function
    """Let bugs end the whole decompilation while the context is active, in all threads (for tests and tools)."""

    _letting = True

    def __enter__(self) -> None:
        global _let_through
        self._before, _let_through = _let_through, self._letting

    def __exit__(self, *_error: object) -> None:
        global _let_through
        _let_through = self._before


class as_for_users(let_through):  # noqa: N801 - used as a function
    """Let an attempt with a bug give way to the next inside of ``let_through``."""

    _letting = False


def check_is_refusal(error: Exception) -> None:
    """Raise ``error`` again if it is a bug, and bugs are let through. To be called in the clause that handles it."""
    if _let_through and not isinstance(error, REFUSALS):
        raise error
