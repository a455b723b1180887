"""Graph breaks of ``DistributedDataParallel`` itself, which no program can avoid."""

from __future__ import annotations

import os
from typing import Sequence

from depyf.lazy_pattern import re_compile
from depyf.torch_trace.tracebacks import Frame

_DDP = re_compile(r"(?:^|[/\\])torch[/\\]nn[/\\]parallel[/\\]distributed\.py\Z")
_CONTEXTLIB = "contextlib.py"
"""DDP enters context managers of its own."""

ADVICE = (
    "The break is DistributedDataParallel's own, around the module that it wraps: nothing in the program is to be "
    "changed. The module is compiled in graphs of its own, which torch._dynamo.config.optimize_ddp = True (the "
    "default) splits where gradients are reduced, so that this overlaps with the backward. With optimize_ddp = "
    "'python_reducer' and compiled autograd (experimental) PyTorch traces the communication, too."
)


def is_of_ddp(stack: Sequence[Frame]) -> bool:
    """Return whether a break with this stack, whose outermost frame comes first, is in DDP's code, and not in the
    module that DDP calls."""
    inside = [number for number, (path, _, _) in enumerate(stack) if _DDP.search(path)]
    return bool(inside) and all(os.path.basename(path) == _CONTEXTLIB for path, _, _ in stack[inside[-1] + 1 :])
