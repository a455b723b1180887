"""Why a finding has no mechanical edit, by its cause: what an edit would have to know, and the source does not show."""

from __future__ import annotations

from typing import Mapping

from depyf.diagnosis.break_advice import BreakCause
from depyf.diagnosis.guard_advice import GuardCause

_ORDER = "moved before or after the call, it may see other values, or run where the function raises"
_ALL_CALLS = "only who knows all calls can say that one would do"
_DESIGN = "the number of compilations follows from what the program passes"
_DECIDED = "the program has decided it"

_OF_BREAKS: Mapping[BreakCause, str] = {
    BreakCause.RAISING: "as an assert in the graph it would raise a RuntimeError, and not the program's exception",
    BreakCause.WHILE: "how often the loop runs is known when it runs only",
    BreakCause.ASSERT: "in the graph it would raise a RuntimeError, and not an AssertionError",
    BreakCause.GUARDED_DATA: "what the program does next depends on the number, which is known when the graph runs",
    BreakCause.LOGGING: "Dynamo can leave methods of loggers out (ignore_logger_methods), and not move them, so that "
    "no setting keeps the text. Log outside of the compiled function",
    BreakCause.WARNING: "no setting keeps the text: a warning that Dynamo moves names the line of the function, and "
    "one of a function that is traced into another is lost. Warn outside of the compiled function",
    BreakCause.DISABLED: f"{_DECIDED}: torch.compiler.disable may keep results right",
    BreakCause.ASKED_FOR: f"{_DECIDED}: a graph break may keep results right",
    BreakCause.CONTEXT_MANAGER: f"entered around the call, it would hold for the whole function; {_ORDER}",
    BreakCause.LOOP: "the loop's body as a function of its own would need all that the body assigns",
    BreakCause.OPAQUE_FUNCTION: f"{_ORDER}; as a custom operator it needs a fake implementation, and the run shows "
    "shapes and dtypes of its own calls only, and not whether the function changes its arguments",
    BreakCause.OPAQUE_METHOD: f"Dynamo does not trace the method; {_ORDER}",
    BreakCause.BUILTIN: f"Dynamo does not trace the builtin; {_ORDER}",
    BreakCause.NUMPY: "PyTorch has no such function, and one that is like it may round otherwise",
    BreakCause.BACKWARD: "in a graph (trace_autograd_ops), what backward() has used up may not be returned, and "
    "gradients may be accumulated in another order",
    BreakCause.RAISES: "whether the exception is wanted is not known",
    BreakCause.RANDOM: "drawn before the call, it would also be drawn in calls that do not need it",
    BreakCause.RANDOM_VALUE: "drawn before the call, it would also be drawn in calls that do not need it",
    BreakCause.SEED: f"the function draws from the generators; {_ORDER}",
    BreakCause.CLOCK: "read outside of the call, it would be another time",
    BreakCause.SCHEDULED_STEP: "expect this break: the step inside is compiled on its own",
    BreakCause.COMPARED: "the function needs the comparison as a bool of Python",
    BreakCause.CLASS_BODY: f"made once, the class would be the same in all calls; {_ALL_CALLS}",
    BreakCause.TEXT: "the text needs the number, which is known when the graph runs only",
    BreakCause.FORMATTED: "the text needs the number, which is known when the graph runs only",
}

_OF_GUARDS: Mapping[GuardCause, str] = {
    GuardCause.MARKED_SIZE: _DECIDED,
    GuardCause.MARKS: f"{_DECIDED}: it marks tensors in different ways",
    GuardCause.METADATA: f"{_DESIGN}; {_ALL_CALLS}",
    GuardCause.MOVED: f"{_DESIGN}; {_ALL_CALLS}",
    GuardCause.CONSTANT_SIZE: "the code makes a constant of the size, also if the size is dynamic",
    GuardCause.STATIC_SIZE: f"{_DECIDED}: dynamic shapes are off",
    GuardCause.STATIC_NUMBER: f"{_DECIDED}: dynamic shapes are off",
    GuardCause.CONSTANT_NUMBER: "the code makes a constant of the number; as a tensor it would have another type "
    "wherever the function passes it on",
    GuardCause.TESTED: "each side of the test is a graph of its own",
    GuardCause.BRANCH: "each side of the branch is a graph of its own",
    GuardCause.LENGTH: "stacked, the items of the list would need the same shape and dtype for all data, and code that "
    "takes them one by one would have to be another one",
    GuardCause.RANK: f"{_DESIGN}; {_ALL_CALLS}",
    GuardCause.DTYPE: f"{_DESIGN}: converted, results would have another precision",
    GuardCause.REQUIRES_GRAD: f"{_DESIGN}: detached, gradients would be lost",
    GuardCause.TENSOR_KIND: f"{_DESIGN}; {_ALL_CALLS}",
    GuardCause.SAME_TENSOR: f"{_DESIGN}: a copy of the tensor would not see what is changed in place",
    GuardCause.SAME_OBJECT: f"{_DESIGN}: a copy of the object would not see its changes",
    GuardCause.OVERLAP: f"{_DESIGN}: a copy of the tensor would not see what is changed in place",
    GuardCause.STATE: f"{_DESIGN}: set earlier, the state would hold for other code, too",
    GuardCause.MODES: f"{_DESIGN}: set earlier, the mode would hold for other code, too",
    GuardCause.HOOKS: f"{_DESIGN}: set earlier, the hooks would hold for other code, too",
    GuardCause.MODULE_HOOKS: f"{_DESIGN}: set earlier, the hook would run in other calls, too",
    GuardCause.COMPLEX: "Dynamo has no dynamic complex numbers; as a tensor it would have another type",
    GuardCause.NONE: _DESIGN,
    GuardCause.CHOICE: _DESIGN,
    GuardCause.MEMBER: _DESIGN,
    GuardCause.NAMED: _DESIGN,
    GuardCause.CLASS: _DESIGN,
    GuardCause.TRAINING: "train() and eval() need a compilation each",
    GuardCause.KEYS: f"{_DESIGN}; {_ALL_CALLS}",
    GuardCause.MEMBERS: f"{_DESIGN}; {_ALL_CALLS}",
    GuardCause.ATTRIBUTES: f"{_DESIGN}; {_ALL_CALLS}",
    GuardCause.ITEMS: f"{_DESIGN}; {_ALL_CALLS}",
    GuardCause.IDENTITY: "made once, the object would be the same one in all calls, and whoever changes it, keeps it "
    "or compares it could tell",
    GuardCause.GONE: "made once, the object would live on, and whoever changes it or compares it could tell",
    GuardCause.FUNCTION: "made once, the function would keep the variables of its first call",
    GuardCause.BACKEND: "made once, the backend would be called for all functions, and may keep what it sees",
}

REASONS: Mapping[str, str] = {each.value: text for table in (_OF_BREAKS, _OF_GUARDS) for each, text in table.items()}
"""Why there is no edit, by the value of a ``BreakCause`` or ``GuardCause``."""
