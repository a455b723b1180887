"""The old home of the capture: names that other projects import from here, over the new code.

New code uses ``depyf.prepare_debug`` and the modules of ``depyf.dynamo``.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

__all__ = ["dump_src"]


def dump_src(original_code: CodeType, module: Any = None) -> str:
    """The text of ``full_code_for_<function>.py`` for the code object of a compiled function.

    ``module`` is accepted and not needed. Raises ``ImportError`` when PyTorch is not installed.
    """
    from depyf.dynamo import compat, full_code

    compat.require_torch("explain.dump_src")
    return full_code.dump_src(original_code)
