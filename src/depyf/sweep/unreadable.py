"""The error for what can't be decompiled, apart from what needs the decompiler."""

from __future__ import annotations


class UnreadableError(ValueError):
    """Raised for a file that contains no module: names the file and the reason."""
