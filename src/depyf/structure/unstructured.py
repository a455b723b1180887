"""What structuring raises."""

from __future__ import annotations


class Unstructured(Exception):
    """A jump has no structured form; says which."""
