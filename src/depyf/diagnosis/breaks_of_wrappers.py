"""Graph breaks of PyTorch's own Python code, which are not in the program: those of ``DistributedDataParallel``,
``FullyShardedDataParallel`` and ``fully_shard``, which wrap modules, and of the steps of optimizers."""

from __future__ import annotations

import os
from typing import Optional, Pattern, Sequence

from depyf.base.late_regex import regex
from depyf.torch_trace.file_names import is_dumped_code
from depyf.torch_trace.tracebacks import Frame

_DDP = regex(r"(?:^|[/\\])torch[/\\]nn[/\\]parallel[/\\]distributed\.py\Z")
_FSDP1 = regex(r"(?:^|[/\\])torch[/\\]distributed[/\\]fsdp[/\\]\w+\.py\Z")
_FULLY_SHARD = regex(r"(?:^|[/\\])torch[/\\]distributed[/\\]fsdp[/\\]_fully_shard[/\\]\w+\.py\Z")
_OPTIMIZER = regex(r"(?:^|[/\\])torch[/\\]optim[/\\]optimizer\.py\Z")
_BETWEEN = regex(r"(?:^|[/\\])(?:contextlib\.py|torch[/\\]_dynamo[/\\].*\.py)\Z")
"""Both enter context managers of their own, and what Dynamo generates calls them."""

_FOR_DDP = (
    "The break is DistributedDataParallel's own, around the module that it wraps: the program needs no change. "
    "The module is compiled in graphs of its own, which torch._dynamo.config.optimize_ddp = True (the "
    "default) splits where gradients are reduced, so that this overlaps with the backward. With optimize_ddp = "
    "'python_reducer' and compiled autograd (experimental) PyTorch traces the communication, too."
)
_FOR_FSDP1 = (
    "The break is FullyShardedDataParallel's own: what gathers the parameters before a module and frees them after it "
    "runs as plain Python. Compile each module that it wraps by itself, before it is wrapped (block.compile()), and "
    "not the whole model: then FullyShardedDataParallel is outside of what is compiled. PyTorch recommends fully_shard "
    "instead of it."
)
_FOR_FULLY_SHARD = (
    "The break is fully_shard's own: its hooks, which gather the parameters before a module and free them after it, "
    "run as plain Python. Compile each module that is sharded by itself, before fully_shard is called on it "
    "(block.compile()), and not the whole model: then the hooks are outside of what is compiled."
)

_FOR_OPTIMIZER = (
    "The break is torch.optim's own, before the update of the parameters, which is compiled as a graph of its own: the "
    "program needs no change."
)

_ADVICE = (
    (_OPTIMIZER, _FOR_OPTIMIZER),
    (_DDP, _FOR_DDP),
    (_FSDP1, _FOR_FSDP1),
    (_FULLY_SHARD, _FOR_FULLY_SHARD),
)


def advice_for_wrapper(stack: Sequence[Frame]) -> Optional[str]:
    """Return how to avoid a break with this stack, the outermost frame first, if it is in code of a wrapper, and not in
    the module that the wrapper calls."""
    return next((advice for wrapper, advice in _ADVICE if _is_of(wrapper, stack)), None)


def is_of_ddp(stack: Sequence[Frame]) -> bool:
    """Return whether such a break is DDP's: nothing is lost by it."""
    return _is_of(_DDP, stack)


def _is_of(wrapper: Pattern[str], stack: Sequence[Frame]) -> bool:
    inside = [number for number, (path, _, _) in enumerate(stack) if wrapper.search(path)]
    after = (path for path, _, _ in stack[inside[-1] + 1 :]) if inside else ()
    return bool(inside) and all(_BETWEEN.search(path) or is_dumped_code(os.path.basename(path)) for path in after)
