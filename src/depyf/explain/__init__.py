"""Re-export the names of depyf 0.20 that other projects import.

New code uses ``depyf.prepare_debug`` and the modules of ``depyf.dynamo``. This package may import everything below the
command line.
Start reading here.
"""

from __future__ import annotations

from types import CodeType
from typing import Any, Callable, Union

__all__ = ["dump_src"]


def dump_src(original_code: Union[CodeType, Callable[..., Any]], module: Any = None) -> str:
    """Return the text of ``full_code_for_<function>.py`` for a compiled function, or its code object. The function may
    be the original or the result of ``torch.compile``, also a method or a module. ``module`` is accepted and ignored.
    Raises ``ImportError`` when PyTorch is not installed and ``TypeError`` for objects without code."""
    from depyf.dynamo.dump.full_code import writing as full_code
    from depyf.dynamo.entries.call_target import resolve
    from depyf.dynamo.hooks import torch_names

    torch_names.require_torch("explain.dump_src")
    code = original_code if isinstance(original_code, CodeType) else resolve(original_code, "explain.dump_src").code
    return full_code.dump_src(code)
