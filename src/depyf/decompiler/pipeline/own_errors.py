"""Distinguish bugs of depyf in an attempt from refusals.

After an attempt that fails, the next one is tried, and the user gets worse text instead of none. That would hide bugs
from the tests, too: they let such errors through (``own_bugs``).
"""

from __future__ import annotations

from depyf.base.own_bugs import are_let_through
from depyf.decompiler.errors import DecompilationError
from depyf.decompiler.structure.unstructured import Unstructured

REFUSALS = (DecompilationError, ValueError, NotImplementedError, Unstructured, RecursionError, MemoryError)
"""The exceptions that stages raise on purpose, for code that is malformed or has no such form, and at limits of a
machine."""


def check_is_refusal(error: Exception) -> None:
    """Raise ``error`` again if it is a bug, and bugs are let through. To be called in the clause that handles it."""
    if are_let_through() and not isinstance(error, REFUSALS):
        raise error
