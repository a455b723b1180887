"""The steps of a compilation in words, by the last report of PyTorch and by the stack of a thread that compiles."""

from __future__ import annotations

from types import FrameType
from typing import List, Mapping, Optional, Sequence, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.hooks import private_names
from depyf.torch_trace.events import GRAPH_BREAK, KERNELS, START
from depyf.torch_trace.stages import Stage


@dataclass(frozen=True)
class _Step:
    """``reports`` are the names of the events that PyTorch reports before the step, ``modules`` its modules that are
    on the stack in it."""

    words: str
    reports: Tuple[str, ...] = ()
    modules: Tuple[str, ...] = ()


_STEPS = (
    _Step("guards are built", ("dynamo_cpp_guards_str",), (private_names.DELETED_GUARDS.module,)),
    _Step("kernels are built or loaded", (), (private_names.PY_CODE_CACHE.module,)),
    _Step("kernels are built", (KERNELS,), (private_names.ASYNC_COMPILE.module,)),
    *(_Step(words, (name,)) for stage in Stage for name, words in stage.facts.records.items() if words),
    _Step("Inductor lowers the graph", (), (private_names.INDUCTOR.whole,)),
    _Step(Stage.AFTER_PRE_GRAD.facts.records[Stage.AFTER_PRE_GRAD.record], (), (private_names.FUNCTORCH.whole,)),
    _Step("graph break, Dynamo traces again", (GRAPH_BREAK,)),
    _Step("Dynamo traces", (START,), (private_names.TRANSLATOR.module,)),
    _Step("Dynamo compiles", (), (private_names.DYNAMO.whole,)),
)
"""The first step counts that has the module of a frame, from the innermost frame on."""

AFTER: Mapping[str, str] = {name: step.words for step in _STEPS for name in step.reports}
"""The step of PyTorch that follows each of its reports."""

_COMPILERS = (private_names.COMPILE_FX.module, private_names.CODE.module)
"""The modules whose frames are on the stack of a compilation."""


def modules_of(stack: Sequence[FrameType]) -> List[str]:
    """Return the names of the modules of frames. Globals may be of a subclass of dict, and hold anything: no code of
    the program runs here."""
    named = [dict.get(frame.f_globals, "__name__") for frame in stack]
    return [str.__str__(name) if isinstance(name, str) else "" for name in named]


def step_of(stack: Sequence[FrameType]) -> Optional[str]:
    """Return the step that a thread with this stack, the innermost frame first, is in; None if it compiles nothing."""
    modules = modules_of(stack)
    # ``run`` of Inductor's compiler is what runs CUDA graphs later on.
    if not any(module in _COMPILERS and frame.f_code.co_name != "run" for module, frame in zip(modules, stack)):
        return None
    matches = (
        step.words
        for module in modules
        for step in _STEPS
        if any(f"{module}.".startswith(f"{prefix}.") for prefix in step.modules)
    )
    return next(matches, "PyTorch compiles")
