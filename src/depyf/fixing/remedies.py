"""The table of remedies: for which findings an edit is made, and by what. A new remedy is one entry.

The remedies of a finding are tried in this order, until one is kept.
"""

from __future__ import annotations

import enum
from typing import Callable, FrozenSet, Iterator, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.diagnosis.break_advice import BreakCause
from depyf.diagnosis.guard_advice import GuardCause
from depyf.fixing.branches import where_for_branch
from depyf.fixing.dynamic import dynamic_compile
from depyf.fixing.edits import Edit, NoEdit, Project
from depyf.fixing.prints import move_print
from depyf.fixing.problems import Problem
from depyf.fixing.settings import setting
from depyf.report.model.run import LIMIT, RECOMPILATION


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


def no_edit_for_logging(problem: Problem, project: Project) -> Edit:
    """Raise ``NoEdit``: each setting for methods of loggers loses what is logged."""
    raise NoEdit(
        "no mechanical edit keeps the text: Dynamo can leave methods of loggers out (ignore_logger_methods), and not "
        "move them. Log outside of the compiled function"
    )


def no_edit_for_warning(problem: Problem, project: Project) -> Edit:
    """Raise ``NoEdit``: a warning that Dynamo moves has another line, or is lost."""
    raise NoEdit(
        "no mechanical edit keeps the text: a warning that Dynamo moves names the line of the function, and one of a "
        "function that is traced into another is lost. Warn outside of the compiled function"
    )


REMEDIES: Tuple[Remedy, ...] = (
    Remedy(_for(BreakCause.BRANCH), where_for_branch),
    Remedy(
        _for(BreakCause.ITEM, BreakCause.ITEM_IN_CALL, BreakCause.TOLIST),
        setting("torch._dynamo.config.capture_scalar_outputs = True", captures=True),
    ),
    Remedy(
        _for(BreakCause.DYNAMIC_SHAPE),
        setting("torch._dynamo.config.capture_dynamic_output_shape_ops = True", captures=True),
    ),
    Remedy(_for(BreakCause.PRINT), move_print),
    Remedy(_for(BreakCause.WARNING), no_edit_for_warning),
    Remedy(_for(BreakCause.LOGGING), no_edit_for_logging),
    Remedy(
        _for(BreakCause.RNN),
        setting(
            "torch._dynamo.config.allow_rnn = True",
            never="LSTM",
            why="with allow_rnn, PyTorch 2.13 raises where a backend with AOTAutograd compiles an LSTM for gradients, "
            "which other calls than those of the run may want",
        ),
    ),
    Remedy(_for(BreakCause.PARAMETER), setting("torch._dynamo.config.graph_break_on_nn_param_ctor = False")),
    Remedy(_for(GuardCause.PARAMETER_SIZE), setting("torch._dynamo.config.force_parameter_static_shapes = False")),
    Remedy(_for(GuardCause.MODULE_NUMBER), setting("torch._dynamo.config.allow_unspec_int_on_nn_module = True")),
    # Without dynamic=True the second value still needs a compilation.
    Remedy(
        _for(GuardCause.MODULE_NUMBER),
        both(setting("torch._dynamo.config.allow_unspec_int_on_nn_module = True"), dynamic_compile),
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
)


def edits_for(problem: Problem, project: Project) -> Iterator[Callable[[], Edit]]:
    """Yield the edits of a problem, to be made: each raises ``NoEdit`` where it is none."""
    if problem.kind == LIMIT:
        return
    # Of guards, the origin of the value follows in parentheses.
    cause = problem.cause.partition(" (")[0] if problem.kind == RECOMPILATION else problem.cause
    for remedy in REMEDIES:
        if cause in remedy.causes:
            yield lambda remedy=remedy: remedy.make(problem, project)  # type: ignore[misc]
