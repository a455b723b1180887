"""What sees the operations that run on this thread: modes, hooks on saved tensors, the profiler, other processes."""

from __future__ import annotations

import sys
from typing import Any

from depyf.base.own_builtins import keep_builtins
from depyf.dynamo.hooks import private_names

keep_builtins(globals())


def what_sees_operations() -> str:
    """Return, in words, why no operation can run here that the program does not see; empty if it can."""
    import torch

    dispatch = private_names.DISPATCH_MODES.find()
    if dispatch is not None and dispatch():
        return f"{_names(dispatch())} sees each operation"
    functions = private_names.FUNCTION_MODES.find()
    if functions is not None and functions():
        return f"{_names(functions())} sees each operation"
    saved = private_names.SAVED_TENSORS_HOOKS.find()
    if saved is not None and saved():
        return "hooks on saved tensors see what autograd keeps"
    if torch.autograd.profiler._is_profiler_enabled:
        return "PyTorch's profiler records each operation"
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        if distributed.get_world_size() > 1:
            return "the program runs in several processes, and a collective would wait for the others"
    return ""


def _names(modes: Any) -> str:
    return ", ".join(type(each).__name__ for each in modes)
