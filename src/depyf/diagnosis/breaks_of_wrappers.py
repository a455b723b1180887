"""Graph breaks of what wraps modules, which are not in the program: ``DistributedDataParallel``'s and
``fully_shard``'s."""

from __future__ import annotations

import os
from typing import Optional, Pattern, Sequence

from depyf.file_names import is_dumped_code
from depyf.lazy_pattern import re_compile
from depyf.torch_trace.tracebacks import Frame

_DDP = re_compile(r"(?:^|[/\\])torch[/\\]nn[/\\]parallel[/\\]distributed\.py\Z")
_FSDP = re_compile(r"(?:^|[/\\])torch[/\\]distributed[/\\]fsdp[/\\]_fully_shard[/\\]\w+\.py\Z")
_BETWEEN = re_compile(r"(?:^|[/\\])(?:contextlib\.py|torch[/\\]_dynamo[/\\].*\.py)\Z")
"""Both enter context managers of their own, and what Dynamo generates calls them."""

_FOR_DDP = (
    "The break is DistributedDataParallel's own, around the module that it wraps: nothing in the program is to be "
    "changed. The module is compiled in graphs of its own, which torch._dynamo.config.optimize_ddp = True (the "
    "default) splits where gradients are reduced, so that this overlaps with the backward. With optimize_ddp = "
    "'python_reducer' and compiled autograd (experimental) PyTorch traces the communication, too."
)
_FOR_FSDP = (
    "The break is fully_shard's own: its hooks, which gather the parameters before a module and free them after it, "
    "run as plain Python. Compile each module that is sharded by itself, before fully_shard is called on it "
    "(block.compile()), and not the whole model: then the hooks are outside of what is compiled."
)


def advice_for_wrapper(stack: Sequence[Frame]) -> Optional[str]:
    """Return how to avoid a break with this stack, the outermost frame first, if it is in code of a wrapper, and not in
    the module that the wrapper calls."""
    return _FOR_DDP if is_of_ddp(stack) else _FOR_FSDP if _is_of(_FSDP, stack) else None


def is_of_ddp(stack: Sequence[Frame]) -> bool:
    """Return whether such a break is DDP's: nothing is lost by it."""
    return _is_of(_DDP, stack)


def _is_of(wrapper: Pattern[str], stack: Sequence[Frame]) -> bool:
    inside = [number for number, (path, _, _) in enumerate(stack) if wrapper.search(path)]
    after = (path for path, _, _ in stack[inside[-1] + 1 :]) if inside else ()
    return bool(inside) and all(_BETWEEN.search(path) or is_dumped_code(os.path.basename(path)) for path in after)
