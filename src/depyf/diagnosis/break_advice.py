"""What to do about graph breaks, fallbacks, CUDA graphs that are not used and slow phases: one advice for one cause."""

from __future__ import annotations

import enum
import functools
import re
from typing import Mapping, Optional, Sequence, Tuple

from depyf.base.late_regex import regex
from depyf.base.messages import listed
from depyf.diagnosis.breaks_of_wrappers import advice_for_wrapper
from depyf.diagnosis.compile_errors import NAME_IN_REPR, advice_for_error, failed_operation
from depyf.diagnosis.constraints import violated_constraint
from depyf.diagnosis.users_statements import BranchKind, ReadText, branch_at, no_text, random_number_at
from depyf.torch_trace.breaks import Unresumed, reason_in_parts, without_type
from depyf.torch_trace.tracebacks import Frame


class BreakCause(enum.Enum):
    """The kinds of graph breaks with specific advice."""

    BRANCH = "branch on the values of a tensor"
    RAISING = "branch on the values of a tensor that only raises"
    WHILE = "while on the values of a tensor"
    ASSERT = "assert on the values of a tensor"
    PRINT = "print"
    ITEM = "a number read out of a tensor"
    ITEM_IN_CALL = "a number read out of a tensor in a function that is called"
    GUARDED_DATA = "a number of the data decides what is traced"
    DYNAMIC_SHAPE = "a shape that depends on data"
    DISABLED = "torch.compiler.disable"
    ASKED_FOR = "torch._dynamo.graph_break"
    LOGGING = "logging"
    CONTEXT_MANAGER = "context manager"
    LOOP = "a break in a loop"
    OPAQUE_FUNCTION = "a function that Dynamo does not trace"
    BACKWARD = "backward() or autograd.grad()"
    RAISES = "an exception of the program"
    RANDOM = "a random number of Python"
    RANDOM_VALUE = "the value of a random number of Python"
    SEED = "a seed is set"
    CLOCK = "the time"
    WARNING = "a warning"
    SCHEDULED_STEP = "a step that a learning-rate scheduler has wrapped"
    COMPARED = "a comparison of the values of tensors"
    TOLIST = "numbers read out of a tensor as a list"
    BUILTIN = "a builtin that Dynamo does not trace"
    PARAMETER = "a parameter is made"
    RNN = "a recurrent network"
    CLASS_BODY = "a class is made"
    OPAQUE_METHOD = "a method that Dynamo does not trace"
    NUMPY = "a function of numpy that PyTorch does not have"
    TEXT = "a text that is made of a dynamic number"
    FORMATTED = "a text that % or format() makes of a dynamic number"


_TITLES: Sequence[Tuple[BreakCause, str]] = [
    # torch's own titles first; those of 2.5 and older, which are words of its source, after the bar.
    (BreakCause.BRANCH, r"^Data-dependent branching|^generic_jump TensorVariable|^dynamic control flow"),
    (BreakCause.ASSERT, r"^Data-dependent assertion"),
    (BreakCause.ITEM, r"^Unsupported Tensor\.item\(\)|^Tensor\.item\b|capture_scalar_outputs"),
    (BreakCause.GUARDED_DATA, r"^Could not (?:guard on|extract specialized integer from) data-dependent expression"),
    (
        BreakCause.DYNAMIC_SHAPE,
        r"^Dynamic shape operator(?! \(no meta)|^dynamic shape operator|capture_dynamic_output_shape",
    ),
    (
        BreakCause.DISABLED,
        r"^Skip (?:calling|inlining) `torch\.compiler\.disable|^call torch\._dynamo\.disable\(\) wrapped",
    ),
    (BreakCause.ASKED_FOR, r"^Call to `torch\._dynamo\.graph_break\(\)`|^'?skip function graph_break in file"),
    (BreakCause.LOGGING, r"^logging\.Logger method|^Logger not supported|^call_\w+ .*\b(?:logging|warnings)\b"),
    (BreakCause.PRINT, r"^call_function BuiltinVariable\(print\)|^builtin: print\b"),
    (BreakCause.CONTEXT_MANAGER, r"^Unsupported context manager|^(?:call_function )?.*ContextWrappingVariable\("),
    (BreakCause.LOOP, r"^graph break in loop"),
    (
        BreakCause.OPAQUE_FUNCTION,
        r"^Attempted to (?:call|inline) function (?:marked as skipped|with SkipFunction)|^'?(?:inline in )?skipfiles|"
        r"^'?skip function (?!graph_break)|^'?call_\w+ \w* ?in skip_files",
    ),
    (BreakCause.BACKWARD, r"^Unsupported Tensor\.backward\(\)|^using `torch\.autograd\.grad` with"),
    (BreakCause.TOLIST, r"^Tensor\.tolist\(\)"),
    (BreakCause.PARAMETER, r"^Attempted to use `torch\.nn\.Parameter\(\)` constructor"),
    (BreakCause.RNN, r"^Attempted to wrap RNN"),
    (BreakCause.CLASS_BODY, r"^Invalid call to __build_class__"),
    (BreakCause.OPAQUE_METHOD, r"^Unsupported method call$"),
    (BreakCause.NUMPY, r"^attempted to trace numpy function unsupported by PyTorch"),
    (BreakCause.RAISES, r"^Observed exception"),
    (BreakCause.TEXT, r"^BUILD_STRING type error"),
]
"""The start of the titles of torch's reasons. An explanation mentions many things that are not the cause."""

_OF_TRACING = regex(r"TypeError\(.(?:unsupported operand type\(s\) for %: 'str' and|object of type 'str' has no len)")
"""Exceptions that Python never raises: Dynamo does, for a text of a number that it has made dynamic."""
_OF_NUMBERS = regex(
    r"^(?:unimplemented builtin op on tensor|Unsupported python_type\(\) call|constant fold exception|"
    r"Data dependent operator)"
)
"""Titles of breaks at a number of Python's random, which is a tensor for Dynamo, where its value is needed."""
_RANDOM_INPUT = regex(r"\brandom_value_\d+\b")
"""How Dynamo names a random number of Python that it makes an input of the graph."""
_ASSERTS = regex(r"\bcode: assert\b")
_SCALAR = regex(r"aten\._local_scalar_dense")
_NAMES: Sequence[Tuple[BreakCause, str]] = [
    (BreakCause.SEED, r"^(?:Random\.|random\.|torch\.)?(?:manual_)?seed(?:_all)?$"),
    (BreakCause.RANDOM, r"^(?:Random|random|SystemRandom)\."),
    (BreakCause.CLOCK, r"^time\.(?!sleep)|^type\.(?:now|utcnow|today)$"),
    (BreakCause.WARNING, r"^_?warnings\.warn$"),
]
"""The functions for which there is a more specific advice than for what Dynamo does not trace in general."""
_SCHEDULED = regex(r"`\w+\.step` in file `[^`]*\blr_scheduler\.py`")

_BUILTIN = regex(r"^(?:Failed to trace builtin operator|Builtin)")
_OF_PRINT = regex(r"builtin operator `?print`?|`print`")

_ABOUT_A_FUNCTION = regex(
    r"Attempted to (?:call|inline) function|Skip (?:calling|inlining) |Unsupported (?:function|method) call|"
    r"Failed to trace builtin operator|attempted to trace numpy"
)
_METHOD = regex(r"method `(\w+)` of class `([\w.]+)`")
_FUNCTION = regex(r"(?:function|builtin|operator) `(?:<unknown module>\.)?([\w.<>]*[\w>])\.?`")
_OF_TORCHS = "get_nonrecursive_disable_wrapper.<locals>."
"""The wrapper of ``torch.compiler.disable(recursive=False)``: torch does not report what is in it."""

_RAISED_LIMIT = "FailOn"
"""The start of the type of what is raised at the recompile limit with ``fullgraph=True``, or on request."""

_LIMIT = regex(
    r"^(?:RecompileLimitExceeded|Unsupported): "
    r"(?:(?:accumulated_)?(?:recompile|cache_size)_limit reached|Dynamo (?:recompile|cache) limit exceeded)"
)

_NAMED = 3

_FOR_BREAKS: Mapping[BreakCause, str] = {
    BreakCause.BRANCH: "The branch depends on what is in a tensor. Compute both sides and choose with torch.where, use "
    "torch.cond, or move the test out of the compiled function.",
    BreakCause.RAISING: "The branch depends on what is in a tensor, and only raises. Write it as an assert of one "
    'tensor (no "not", "and", "or"), as in assert torch.isfinite(y).all(), "text": Dynamo puts that into the graph, '
    "where it raises a RuntimeError. Or move the test out of the compiled function.",
    BreakCause.WHILE: "How often the loop runs depends on what is in a tensor. Run it a fixed number of times and "
    "choose with torch.where in its body, or compile the body alone, as a function that the loop calls.",
    BreakCause.ASSERT: "The assertion depends on what is in a tensor. Take it out of the compiled function, or check "
    "with torch._assert_async, which stays in the graph.",
    BreakCause.PRINT: "Take the print out of the compiled function, or print after it; "
    "torch._dynamo.config.reorderable_logging_functions.add(print) lets Dynamo move it after the graph, if it prints "
    "nothing but tensors, constants and f-strings (for a shape, an f-string).",
    BreakCause.ITEM: "A number is read out of a tensor. Keep it a tensor, or set "
    "torch._dynamo.config.capture_scalar_outputs = True, which helps where no branch and no function of Python needs "
    "its value.",
    BreakCause.ITEM_IN_CALL: "An operation here reads a number out of a tensor: tolist(), an index that is a tensor "
    "without dimensions (x[i]), a function of math, or a random function of numpy, whose numbers are tensors for "
    "Dynamo. Keep it a tensor (torch.index_select, torch.sqrt), or draw random numbers before the call and pass them "
    "as tensors; torch._dynamo.config.capture_scalar_outputs = True helps where neither a branch, an index nor such a "
    "function needs the value.",
    BreakCause.GUARDED_DATA: "What is traced here depends on a number that is known only when the graph runs: it is "
    "read out of a tensor, or a random number of numpy. Draw or read it before the call of the compiled function and "
    "pass it, or compute with a tensor instead (torch.where).",
    BreakCause.DYNAMIC_SHAPE: "The shape of the result depends on the data. Compute with a mask of fixed shape, or set "
    "torch._dynamo.config.capture_dynamic_output_shape_ops = True, which only moves the break to the next branch that "
    "depends on the shape, if there is one.",
    BreakCause.DISABLED: "The function is marked with torch.compiler.disable. Remove the mark if it is yours and the "
    "function can be compiled, or call it before or after the compiled function.",
    BreakCause.ASKED_FOR: "A call of torch._dynamo.graph_break() asks for this break. Remove it if it is yours and not "
    "wanted.",
    BreakCause.LOGGING: "Log outside of the compiled function, or let Dynamo leave it out: "
    "torch._dynamo.config.ignore_logger_methods.add(logging.Logger.info), and so for each method.",
    BreakCause.CONTEXT_MANAGER: "Dynamo does not know this context manager. Enter it around the call of the compiled "
    "function.",
    BreakCause.LOOP: "The break is inside of a loop, so Dynamo compiles nothing of the function. Move the loop's body "
    "to a function.",
    BreakCause.OPAQUE_FUNCTION: "Dynamo does not trace this function. Call it before or after the compiled function, "
    "or, if it computes on tensors, register it as a custom operator (torch.library.custom_op).",
    BreakCause.RAISES: "Dynamo met an exception here, and no handler in what it traced. Python may handle it (an "
    "AttributeError of a property leads to __getattr__), or it may end the call. Both run as plain Python: avoid the "
    "exception where the call is compiled.",
    BreakCause.BACKWARD: "Call it outside of the compiled function, where the backward of a compiled graph is compiled "
    "as well; or set torch._dynamo.config.trace_autograd_ops = True, which helps where all that it differentiates is "
    "computed in the function, and what it used up is returned detached (loss.detach()).",
    BreakCause.RANDOM: "A random number of Python's random is not known while Dynamo traces. Draw it before the call "
    "and pass it: where the code branches on it, pass the result of the test (a bool: two compilations); or pass a "
    "tensor, and choose with torch.where, as a branch on a tensor would break the graph.",
    BreakCause.RANDOM_VALUE: "This line needs the value of a random number ({drawn}), which is a tensor for Dynamo. "
    "Draw it before the call and pass it as a Python number.",
    BreakCause.SEED: "Set the seed before the call of the compiled function.",
    BreakCause.CLOCK: "Read the time outside of the compiled function: in a graph it would say nothing about when the "
    "graph runs.",
    BreakCause.WARNING: "Warn outside of the compiled function; "
    "torch._dynamo.config.reorderable_logging_functions.add(warnings.warn) lets Dynamo warn after the graph.",
    BreakCause.SCHEDULED_STEP: "A learning-rate scheduler has wrapped the optimizer's step in a function that Dynamo "
    "does not trace. The step inside is compiled on its own: expect this break.",
    BreakCause.COMPARED: "The operator returns a value of Python that depends on what is in a tensor. Compute a tensor "
    "instead, as (a == b).all(), and choose with torch.where, or test it outside of the compiled function.",
    BreakCause.TOLIST: "Numbers are read out of a tensor. Keep them a tensor, or call tolist() before the call of the "
    "compiled function.",
    BreakCause.BUILTIN: "Dynamo does not trace this builtin with these arguments. Call it before or after the compiled "
    "function, and pass the result.",
    BreakCause.PARAMETER: "Make the parameter before the call of the compiled function, or set "
    "torch._dynamo.config.graph_break_on_nn_param_ctor = False.",
    BreakCause.TEXT: "A text (an f-string) is made of a number that Dynamo has made dynamic. Make the text before the "
    "call of the compiled function and pass what it selects; or write int() around the number, so that each value "
    "needs a compilation of its own.",
    BreakCause.FORMATTED: "Python does not raise it. Dynamo does, for a text that % or format() makes of a number "
    "that it has made dynamic. Make the text before the call and pass what it selects; or write an "
    "f-string with int() around the number, so that each value needs a compilation of its own.",
    BreakCause.CLASS_BODY: "Define the class outside of the compiled function.",
    BreakCause.OPAQUE_METHOD: "Dynamo does not trace this method (__new__ makes an object). Call it, or the function "
    "that calls it, before or after the compiled function, and pass the result.",
    BreakCause.NUMPY: "Dynamo traces the functions of numpy that PyTorch has, too, and this one it has not. Write it "
    "with operations of torch, or call it before or after the compiled function.",
    BreakCause.RNN: "Dynamo leaves recurrent networks to PyTorch's own kernels. Where they get no "
    "PackedSequence, which breaks more graphs when it is traced, torch._dynamo.config.allow_rnn = True traces them.",
}


_FOR_CUDAGRAPHS: Sequence[Tuple[str, str]] = [
    (
        r"re-recording limit",
        "It was recorded again too often: see the reasons, and keep inputs at their addresses or mark steps with "
        "torch.compiler.cudagraph_mark_step_begin().",
    ),
    (
        r"mutated inputs",
        "A recording can't write into memory that the caller owns. Return the new value instead of changing the "
        "argument, or make the tensor a parameter or buffer, whose address stays.",
    ),
    (
        r"cpu device|multiple devices|cpu tensor",
        "All tensors of the graph have to be on one GPU. Make this one there (device=...), or set "
        "torch._inductor.config.graph_partition = True, which leaves out only the operations on the CPU.",
    ),
    (
        r"dynamic shape|distinct (?:sizes|shapes)|too many",
        "Each size is recorded on its own. Pad to a few sizes, or set "
        "torch._inductor.config.triton.cudagraph_skip_dynamic_graphs = True.",
    ),
    (
        r"incompatible op|non-?determini|data.dependent|unbacked|DeviceCopy",
        "A recording can't hold this operation: call it outside of the compiled function, or set "
        "torch._inductor.config.graph_partition = True.",
    ),
]


def cause_of_break(reason: str, explanation: str = "") -> Optional[BreakCause]:
    """Return the kind of a graph break by torch's title; None if only torch's own hints apply."""
    if _BUILTIN.match(reason):
        return BreakCause.PRINT if _OF_PRINT.search(explanation) else BreakCause.BUILTIN
    if reason.startswith("Data dependent operator"):
        return BreakCause.ITEM_IN_CALL if _SCALAR.search(explanation) else BreakCause.COMPARED
    cause = next((cause for cause, title in _TITLES if re.search(title, reason)), None)
    if cause is BreakCause.RAISES and _OF_TRACING.search(explanation):
        return BreakCause.FORMATTED
    if cause is BreakCause.BRANCH and _RANDOM_INPUT.search(explanation):
        return BreakCause.RANDOM
    if cause is BreakCause.BRANCH and _ASSERTS.search(explanation):
        return BreakCause.ASSERT
    if cause is BreakCause.OPAQUE_FUNCTION and _SCHEDULED.search(explanation):
        return BreakCause.SCHEDULED_STEP
    if cause is BreakCause.OPAQUE_FUNCTION or reason.startswith("Unsupported method call"):
        name = _function_in(explanation)
        return next((named for named, pattern in _NAMES if re.search(pattern, name)), cause)
    return cause


def described_break(reason: str, *explanations: str) -> str:
    """Return the functions that torch's explanations of graph breaks say they are about, if any, and torch's title."""
    if not _ABOUT_A_FUNCTION.match(reason):
        return reason
    found = list(dict.fromkeys(name for each in explanations for name in [_function_in(each)] if name))
    return f"{listed(found, _NAMED)} ({reason})" if found else reason


def described_error(error: str) -> Tuple[str, str]:
    """Return what an error of a compilation, as ``describe`` writes it, is about, with its type; and torch's
    explanation where that says little."""
    text = without_type(error)
    kind, parts = error[: len(error) - len(text)].strip(), reason_in_parts(text)
    # An operation that fails with fake tensors: torch's title is about Dynamo, and the operation's error says more.
    operation = failed_operation(text)
    if operation is not None:
        return f"{kind} `{operation.name}` failed: {operation.error}".strip(), operation.on_sizes
    title = described_break(parts.title, parts.explanation)
    explanation = parts.explanation if title == parts.title else ""
    return f"{kind} {title}".strip(), " ".join(explanation.split()).rstrip(".")


def described_error_in_line(error: str) -> str:
    """Return both in one line."""
    title, explanation = described_error(error)
    return f"{title} ({explanation})" if explanation else title


def _function_in(explanation: str) -> str:
    method = _METHOD.search(explanation)
    if method is not None:
        return f"{method.group(2)}.{method.group(1)}"
    found = NAME_IN_REPR.search(explanation) or _FUNCTION.search(explanation)
    return "" if found is None or found.group(1).startswith(_OF_TORCHS) else found.group(1)


def advice_for_break(
    reason: str,
    explanation: str,
    hints: Sequence[str],
    stack: Sequence[Frame] = (),
    unresumed: Optional[Unresumed] = None,
    read: ReadText = no_text,
) -> str:
    """Return how to avoid this graph break; torch's own first hint if there is no specific advice. ``stack`` is the
    user's, and says whether the break is in code that nobody can change. ``unresumed`` is where Dynamo can't resume.
    ``read`` returns the text of a source file: the advice for a branch depends on what it does."""
    advice = _to_avoid(reason, explanation, hints, stack, read)
    return advice if unresumed is None else f"{advice.rstrip('.')}. {_FOR_UNRESUMED[unresumed]}"


_INTO_A_FUNCTION = "into a function of its own, unless it is one already: what is called from there is compiled"
_FOR_UNRESUMED: Mapping[Unresumed, str] = {
    Unresumed.LOOP: "Dynamo can't resume in a loop, so the whole function that has the loop runs as plain Python. If "
    f"the break has to stay, put the body of the loop {_INTO_A_FUNCTION}.",
    Unresumed.CONTEXT: "Dynamo can't resume in a with block of this context manager, so the whole function that has "
    f"the block runs as plain Python. If the break has to stay, put the body of the block {_INTO_A_FUNCTION}.",
    Unresumed.REST: "Dynamo can't resume at this break (it can't in a try block, for one), so the function runs as "
    "plain Python from the last place before, at which it can. If the break has to stay, put the block that it is in "
    f"{_INTO_A_FUNCTION}.",
    Unresumed.FRAME: "Dynamo can't resume at this break (it can't in a try or except block, for one), so the whole "
    f"function runs as plain Python. If the break has to stay, put the block that it is in {_INTO_A_FUNCTION}.",
}
"""What follows from a break at which Dynamo can't resume, and what helps where the break stays."""
_NEVER_COMPILED = regex(r"generator|[Ss]kip[ _]frame")
"""Titles of reasons to leave a frame to Python that are no break in it."""


def _to_avoid(reason: str, explanation: str, hints: Sequence[str], stack: Sequence[Frame], read: ReadText) -> str:
    # Three sources of advice, from the most specific: the wrapper whose own code breaks, the kind of the break, and
    # torch's hints, without those that ask to report an issue or say that it can't be avoided.
    of_wrapper = advice_for_wrapper(stack)
    if of_wrapper is not None:
        return of_wrapper
    cause = cause_of_break(reason, explanation)
    if cause is BreakCause.BRANCH:
        cause = _BRANCHES.get(branch_at(stack, read), cause)
    if _OF_NUMBERS.search(reason):
        drawn = random_number_at(stack, read)
        if drawn:
            return _FOR_BREAKS[BreakCause.RANDOM_VALUE].format(drawn=drawn)
    if cause is not None:
        return _FOR_BREAKS[cause]
    hint = next((hint for hint in hints if not _SAYS_NOTHING.search(hint)), "")
    return f"{_NO_ADVICE} PyTorch's hint: {hint}" if hint else _NO_ADVICE


_BRANCHES = {BranchKind.RAISE: BreakCause.RAISING, BranchKind.WHILE: BreakCause.WHILE}
_SAYS_NOTHING = regex(r"report an issue|file an issue|fundamental|Dynamo bug|may result in an error when running")
_NO_ADVICE = "depyf has no advice of its own for this break."


def is_raised_limit(error: str) -> bool:
    """Return whether an error, by its type, is the recompile limit's: it raises one with ``fullgraph=True``."""
    return error.startswith(_RAISED_LIMIT)


def is_limit(error: str) -> bool:
    """Return whether an error, by its type and its title, is that of a recompile limit at which Dynamo goes on."""
    return _LIMIT.search(error) is not None


_ACCUMULATED = regex(r"\baccumulated_(?:recompile|cache_size)_limit (?:is|reached|cache size limit)")
_FOR_LIMIT = (
    "Remove the cause of the recompilations, or raise the limit: "
    "torch._dynamo.config.recompile_limit (cache_size_limit before PyTorch 2.6)."
)
_FOR_ACCUMULATED = (
    "The limit is on the entries of one code object, which all instances of a class and all calls of a factory share. "
    "Compile fewer of them, or raise it: torch._dynamo.config.accumulated_recompile_limit "
    "(accumulated_cache_size_limit before PyTorch 2.6)."
)
_FOR_EITHER_LIMIT = (
    "Remove the cause of the recompilations, or raise the limit that was hit, which PyTorch names in its log only: "
    "torch._dynamo.config.recompile_limit (cache_size_limit before PyTorch 2.6) for one function, and "
    "accumulated_recompile_limit where many instances of a class or calls of a factory share the code."
)
_FOR_SUPPRESSED = "Unset torch._dynamo.config.suppress_errors to see the error, and report it to PyTorch."


def advice_for_fallback(cause: str, reason: str, stack: Sequence[Frame] = (), read: ReadText = no_text) -> str:
    """Return how to avoid a fallback; ``stack`` is the user's, of the error or the graph break that it is due to, and
    ``read`` returns the text of a source file."""
    violated = violated_constraint(reason)
    if violated is not None:
        return violated.advice
    if "limit" in cause or is_raised_limit(reason):
        if _ACCUMULATED.search(reason):
            return _FOR_ACCUMULATED
        return _FOR_LIMIT if "limit" in cause else _FOR_EITHER_LIMIT  # the text of what is raised names none
    if "error" in cause or "graph break" in cause:
        parts = reason_in_parts(without_type(reason))
        unresumed = parts.unresumed
        if unresumed is None and "graph break" in cause and not _NEVER_COMPILED.search(parts.title):
            unresumed = Unresumed.FRAME
        of_break = advice_for_break(parts.title, parts.explanation, parts.hints, stack, unresumed, read)
        advice = advice_for_error(reason, stack, read) or of_break
        if advice == _NO_ADVICE and "graph break" not in cause:
            advice = ""
        if "suppressed" in cause and not advice:
            return _FOR_SUPPRESSED
        return advice
    return ""


_FOR_RERECORDS: Sequence[Tuple[str, str]] = [
    (
        r"static inputs",
        "Keep these tensors where they are: change a parameter in place (copy_) instead of replacing it, and don't "
        "move the module between steps. An input that changes should not be marked static.",
    ),
    (
        r"results of other CUDA graphs",
        "The graph got a result of another run: call torch.compiler.cudagraph_mark_step_begin() before each step, or "
        "clone results that you keep.",
    ),
    (
        r"it runs after",
        "Each order of compiled functions has recordings of its own: call them in the same order in each step, and "
        "mark steps with torch.compiler.cudagraph_mark_step_begin().",
    ),
    (
        r"dynamic size",
        "Pad inputs to a few sizes, or leave graphs with dynamic sizes out: "
        "torch._inductor.config.triton.cudagraph_skip_dynamic_graphs = True.",
    ),
    (
        r"still alive",
        "Release results of the last step before the next one begins, or clone those that you keep.",
    ),
]


def advice_for_rerecords(reason: str) -> str:
    """Return what to do if a CUDA graph is recorded again for a reason in depyf's words."""
    return next((advice for pattern, advice in _FOR_RERECORDS if re.search(pattern, reason)), "")


def advice_for_cudagraphs(reason: str) -> str:
    """Return what to do if CUDA graphs, requested by mode='reduce-overhead' or 'max-autotune', are not used."""
    for pattern, advice in _FOR_CUDAGRAPHS:
        if re.search(pattern, reason, re.IGNORECASE):
            return advice
    return ""


_MEASURING = "measuring candidates for kernels (autotuning)"
_CPP, _COMPILERS, _TRITON = "the C++ compiler", "the compilers of kernels", "the Triton compiler"
_CALLED: Sequence[Tuple[str, str]] = [
    (r"^compile_file$|^_compile_.*(?:cpp|cxx)|^aoti_|^AotCodeCompiler", _CPP),
    (r"autotun(?!er)|benchmark|_descent_tuning$|_template_precompiling$|_(?:fused|from)_nodes$|do_bench$|(?i:^cutlass)",
     _MEASURING),
    (r"^async_compile\.(?:wait|precompile)|precompile_config$|warm_precompile$|^reload_kernel", _COMPILERS),
    (r"^(?:async_compile\.)?(?:precompile_)?triton|^triton_", _TRITON),
    (r"^cudagraphify|^CUDAGraph", "recording CUDA graphs"),
    (r"^(?:bytecode_tracing|compile_attempt_\d+|entire_frame_compile|fullgraph_capture|dynamo)$|^invoke_sub|^_compile\.",
     "tracing the program (Dynamo)"),
    (r"^build_guards$|_guards$", "making guards (Dynamo)"),
    (r"^(?:create_)?aot_|^(?:entire_)?backward_compile|^backward\.|^min_cut",
     "tracing forward and backward (AOTAutograd)"),
    (r"_grad_passes|^pass\.|joint_graph_passes|^fx\.bucketing|channels_last$", "passes over graphs (Inductor)"),
    (r"^inductor_(?:compile|import)$|^fx_codegen_and_compile$|GraphLowering|^Scheduler|^code_gen|^compile_fx",
     "making kernels (Inductor)"),
    (r"WrapperCodegen|^CppWrapper|^additional_fake", "making kernels (Inductor)"),
    (r"^PyCodeCache\.load", "loading modules of generated kernels"),
    (r"[cC]ache|Bundler|Autotuner|^after_deserialization$|^GraphPickler|^CompiledArtifact", "looking in caches"),
    (r"^backend_compile$|call_user_compiler$", "the backend"),
    (r"runtime_asserts$|^debug_insert_nops$|^TranslationValidator", "checks of sizes at run time (Dynamo)"),
    (r"^gc$", "collecting garbage"),
    (r"^pgo\.", "profiles of earlier runs (PGO)"),
    (r"_collective$|^collective", "waiting for other ranks"),
    (r"^bytecode_hooks", "hooks on bytecode (of depyf, too)"),
]  # fmt: skip
"""What the phases of a compilation are, by torch's names of them."""


@functools.lru_cache(maxsize=1024)
def called(phase: str) -> str:
    """Return what a phase is in words, for torch's name of it; that name where nothing is known of it."""
    return next((words for pattern, words in _CALLED if re.search(pattern, phase)), phase)


def advice_for_phase(name: str) -> str:
    """Return what to do about a phase, named as torch names it, that takes most of the compile time."""
    words = called(name)
    if words == _MEASURING:
        return "mode='default' measures none, and torch's cache keeps what was found."
    if words in (_CPP, _COMPILERS, _TRITON):
        return (
            "Compilers of kernels (C++ or Triton) run in it. torch's cache keeps what they make: point "
            "TORCHINDUCTOR_CACHE_DIR to a folder that outlives the machine, or compile a repeated layer instead of "
            "the whole model, so that there are fewer kernels."
        )
    return ""
