"""The exception that users catch."""

from __future__ import annotations


class DecompilationError(Exception):
    """The only exception that a failed decompilation raises. It names the code object, the offset and the stage."""
