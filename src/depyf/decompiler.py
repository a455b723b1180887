"""The pipeline: a code object in, verified source out."""

from __future__ import annotations

from types import CodeType
from typing import Optional

from depyf.result import Decompilation, DecompilationError

__all__ = ["DecompilationError", "decompile_code"]


def decompile_code(code: CodeType, *, name: Optional[str] = None) -> Decompilation:
    """Decompile and verify one code object; ``name`` is what the function is called in the source.

    Raises ``DecompilationError`` when no source could be made, or only source that is known to differ.
    """
    raise DecompilationError(f"{code.co_name}: the decompiler is not written yet")
