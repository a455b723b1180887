"""The table of remedies: for which findings an edit is made, and by what. A new remedy is one entry.

The remedies of a finding are tried in this order, until one is kept.
"""

from __future__ import annotations

import enum
from typing import Callable, FrozenSet, Iterator, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.diagnosis.break_advice import BreakCause
from depyf.diagnosis.guard_advice import GuardCause
from depyf.fixing.branches import where_for_branch, where_for_item
from depyf.fixing.dynamic import dynamic_compile, dynamic_source, dynamic_sources
from depyf.fixing.edits import Edit, Project
from depyf.fixing.items import detach_number
from depyf.fixing.prints import move_print
from depyf.fixing.problems import Problem
from depyf.fixing.reasons import REASONS
from depyf.fixing.settings import allow_rnn, setting
from depyf.report.model.run import LIMIT, RECOMPILATION

NO_EDIT = "no mechanical edit for this finding"


@dataclass(frozen=True)
class Remedy:
    """``make`` returns the edit for a finding with one of these causes, or raises ``NoEdit``."""

    causes: FrozenSet[str]
    make: Callable[[Problem, Project], Edit]


def _for(*causes: enum.Enum) -> FrozenSet[str]:
    return frozenset(str(each.value) for each in causes)


def both(
    one: Callable[[Problem, Project], Edit], other: Callable[[Problem, Project], Edit]
) -> Callable[[Problem, Project], Edit]:
    """Return a remedy that makes two edits as one."""

    def make(problem: Problem, project: Project) -> Edit:
        first, second = one(problem, project), other(problem, project)
        return Edit(
            (*first.key, *second.key),
            f"{first.words}; {second.words}",
            (*first.changes, *second.changes),
            (*first.probe, *second.probe),
            first.touches_text or second.touches_text,
        )

    return make


_INTS_OF_MODULES = setting("torch._dynamo.config.allow_unspec_int_on_nn_module = True", is_dynamic=True)

REMEDIES: Tuple[Remedy, ...] = (
    Remedy(_for(BreakCause.BRANCH), where_for_branch),
    # Without the number there is no synchronization with the device, either.
    Remedy(_for(BreakCause.ITEM), where_for_item),
    Remedy(_for(BreakCause.ITEM), detach_number),
    Remedy(
        _for(BreakCause.ITEM, BreakCause.ITEM_IN_CALL, BreakCause.TOLIST),
        setting("torch._dynamo.config.capture_scalar_outputs = True", captures=True),
    ),
    Remedy(
        _for(BreakCause.DYNAMIC_SHAPE),
        setting("torch._dynamo.config.capture_dynamic_output_shape_ops = True", captures=True),
    ),
    Remedy(_for(BreakCause.PRINT), move_print),
    Remedy(_for(BreakCause.RNN), allow_rnn),
    Remedy(_for(BreakCause.PARAMETER), setting("torch._dynamo.config.graph_break_on_nn_param_ctor = False")),
    Remedy(
        _for(GuardCause.PARAMETER_SIZE),
        setting("torch._dynamo.config.force_parameter_static_shapes = False", is_dynamic=True),
    ),
    Remedy(
        _for(GuardCause.MODULE_NUMBER),
        _INTS_OF_MODULES,
    ),
    # Without dynamic=True the second value still needs a compilation.
    Remedy(
        _for(GuardCause.MODULE_NUMBER),
        both(_INTS_OF_MODULES, dynamic_compile),
    ),
    Remedy(
        _for(
            GuardCause.SIZE,
            GuardCause.SIZES,
            GuardCause.EQUAL_SIZES,
            GuardCause.STRIDE,
            GuardCause.NUMBER,
            GuardCause.FLOAT,
        ),
        dynamic_compile,
    ),
    Remedy(_for(GuardCause.SIZE, GuardCause.NUMBER), dynamic_source),
    Remedy(_for(GuardCause.SIZE), dynamic_sources),
    Remedy(
        _for(GuardCause.SIZE, GuardCause.EQUAL_SIZES),
        both(setting("torch.fx.experimental._config.use_duck_shape = False"), dynamic_compile),
    ),
)


def edits_for(problem: Problem, project: Project) -> Iterator[Callable[[], Edit]]:
    """Yield the edits of a problem, to be made: each raises ``NoEdit`` where it is none."""
    if problem.kind == LIMIT:
        return
    cause = _cause_of(problem)
    for remedy in REMEDIES:
        if cause in remedy.causes:
            yield lambda remedy=remedy: remedy.make(problem, project)  # type: ignore[misc]


def why_no_edit(problem: Problem) -> str:
    """Return why there is no edit for a finding in words, in general where its cause is not known."""
    reason = REASONS.get(_cause_of(problem), "")
    return f"{NO_EDIT}: {reason}" if reason else NO_EDIT


def _cause_of(problem: Problem) -> str:
    # Of guards, the origin of the value follows in parentheses.
    return problem.cause.partition(" (")[0] if problem.kind == RECOMPILATION else problem.cause
