"""The exception of structuring."""

from __future__ import annotations


class Unstructured(Exception):
    """Raised for a jump without structured form; names it."""
