"""What to do about graph breaks, fallbacks, CUDA graphs that are not used and slow phases: one advice for one cause."""

from __future__ import annotations

import enum
import functools
import re
from typing import Mapping, Optional, Sequence, Tuple

from depyf.diagnosis.breaks_of_wrappers import advice_for_wrapper
from depyf.diagnosis.compile_errors import NAME_IN_REPR, advice_for_error, failed_operation
from depyf.diagnosis.constraints import violated_constraint
from depyf.lazy_pattern import re_compile
from depyf.messages import listed
from depyf.torch_trace.breaks import reason_in_parts, without_type
from depyf.torch_trace.tracebacks import Frame


class BreakCause(enum.Enum):
    """The kinds of graph breaks with specific advice."""

    BRANCH = "branch on the values of a tensor"
    ASSERT = "assert on the values of a tensor"
    PRINT = "print"
    ITEM = "a number read out of a tensor"
    DYNAMIC_SHAPE = "a shape that depends on data"
    DISABLED = "torch.compiler.disable"
    ASKED_FOR = "torch._dynamo.graph_break"
    LOGGING = "logging"
    CONTEXT_MANAGER = "context manager"
    LOOP = "a break in a loop"
    OPAQUE_FUNCTION = "a function that Dynamo does not trace"
    BACKWARD = "backward() or autograd.grad()"
    RAISES = "an exception of the program"


_TITLES: Sequence[Tuple[BreakCause, str]] = [
    # torch's own titles first; those of 2.5 and older, which are words of its source, after the bar.
    (BreakCause.BRANCH, r"^Data-dependent branching|^generic_jump TensorVariable|^dynamic control flow"),
    (BreakCause.ASSERT, r"^Data-dependent assertion"),
    (BreakCause.ITEM, r"^Unsupported Tensor\.item\(\)|^Tensor\.item\b|capture_scalar_outputs"),
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
    (BreakCause.BACKWARD, r"^Unsupported Tensor\.backward\(\)"),
    (BreakCause.RAISES, r"^Observed exception"),
]
"""The start of the titles of torch's reasons. An explanation mentions many things that are not the cause."""

_BUILTIN = re_compile(r"^(?:Failed to trace builtin operator|Builtin)")
_OF_PRINT = re_compile(r"builtin operator `?print`?|`print`")

_ABOUT_A_FUNCTION = re_compile(
    r"Attempted to (?:call|inline) function|Skip (?:calling|inlining) |Unsupported (?:function|method) call|"
    r"Failed to trace builtin operator|attempted to trace numpy"
)
_METHOD = re_compile(r"method `(\w+)` of class `([\w.]+)`")
_FUNCTION = re_compile(r"(?:function|builtin|operator) `([\w.<>]*[\w>])\.?`")
_OWN_ERROR = re_compile(r"^ *Developer debug context: (raised exception .+)$", re.MULTILINE)
"""The exception of the program's own code that Dynamo met, as torch reports it."""
_OF_TORCHS = "get_nonrecursive_disable_wrapper.<locals>."
"""The wrapper of ``torch.compiler.disable(recursive=False)``: torch does not report what is in it."""

_RAISED_LIMIT = "FailOn"
"""The start of the type of what is raised at the recompile limit with ``fullgraph=True``, or on request."""

_LIMIT = re_compile(
    r"^(?:RecompileLimitExceeded|Unsupported): "
    r"(?:(?:accumulated_)?(?:recompile|cache_size)_limit reached|Dynamo (?:recompile|cache) limit exceeded)"
)

_NAMED = 3

_FOR_BREAKS: Mapping[BreakCause, str] = {
    BreakCause.BRANCH: "The branch depends on what is in a tensor. Compute both sides and choose with torch.where, use "
    "torch.cond, or move the test out of the compiled function.",
    BreakCause.ASSERT: "The assertion depends on what is in a tensor. Take it out of the compiled function, or check "
    "with "
    "torch._assert_async, which stays in the graph.",
    BreakCause.PRINT: "Take the print out of the compiled function, or print after it; "
    "torch._dynamo.config.reorderable_logging_functions.add(print) lets Dynamo move it behind the graph.",
    BreakCause.ITEM: "A number is read out of a tensor. Keep it a tensor, or set "
    "torch._dynamo.config.capture_scalar_outputs = True.",
    BreakCause.DYNAMIC_SHAPE: "The shape of the result depends on the data. Set "
    "torch._dynamo.config.capture_dynamic_output_shape_ops = True, or compute with a mask of fixed shape.",
    BreakCause.DISABLED: "The function is marked with torch.compiler.disable. Remove the mark if it can be compiled, "
    "or call "
    "it before or after the compiled function.",
    BreakCause.ASKED_FOR: "The program asks for this break (torch._dynamo.graph_break()). Remove it when it is not "
    "wanted.",
    BreakCause.LOGGING: "Log outside of the compiled function, or let Dynamo leave it out: "
    "torch._dynamo.config.ignore_logger_methods (ignore_logging_functions).",
    BreakCause.CONTEXT_MANAGER: "Dynamo does not know this context manager. Enter it around the call of the compiled "
    "function.",
    BreakCause.LOOP: "The break is inside of a loop, which gives up the whole function. Move the loop's body to a "
    "function.",
    BreakCause.OPAQUE_FUNCTION: "Dynamo can't look into this function. Call it outside of what is compiled, or "
    "register it as "
    "a custom operator (torch.library.custom_op).",
    BreakCause.RAISES: "The program raises an exception here that the compiled function does not catch, without "
    "torch.compile, too. Calls that raise run as plain Python.",
    BreakCause.BACKWARD: "Call backward() outside of the compiled function: the backward of a compiled graph is "
    "compiled, too.",
}


_FOR_CUDAGRAPHS: Sequence[Tuple[str, str]] = [
    (
        r"re-recording limit",
        "It was recorded again too often: see why, and keep inputs at their addresses or mark steps with "
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
        return BreakCause.PRINT if _OF_PRINT.search(explanation) else None
    return next((cause for cause, title in _TITLES if re.search(title, reason)), None)


def described_break(reason: str, *explanations: str) -> str:
    """Return torch's title of graph breaks with the functions that torch's explanations say they are about, if any."""
    if not _ABOUT_A_FUNCTION.match(reason):
        return reason
    found = list(dict.fromkeys(name for each in explanations for name in [_function_in(each)] if name))
    return f"{reason}: {listed(found, _NAMED)}" if found else reason


def described_error(error: str) -> Tuple[str, str]:
    """Return what an error of a compilation, as ``describe`` writes it, is about, with its type; and torch's
    explanation where that says little."""
    text = without_type(error)
    kind, parts = error[: len(error) - len(text)].strip(), reason_in_parts(text)
    operation = failed_operation(text)
    if operation is not None:
        return f"{kind} `{operation.name}` failed: {operation.error}".strip(), operation.on_sizes
    title = described_break(parts.title, parts.explanation)
    own = _OWN_ERROR.search(error)
    explanation = parts.explanation if own is None else own.group(1)
    if title != parts.title:
        explanation = ""
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


def advice_for_break(reason: str, explanation: str, hints: Sequence[str], stack: Sequence[Frame] = ()) -> str:
    """Return how to avoid this graph break; torch's own first hint if there is no specific advice. ``stack`` is the
    user's, and says whether the break is in code that nobody can change."""
    of_wrapper = advice_for_wrapper(stack)
    if of_wrapper is not None:
        return of_wrapper
    cause = cause_of_break(reason, explanation)
    if cause is not None:
        return _FOR_BREAKS[cause]
    return next((hint for hint in hints if "report an issue" not in hint and "fundamental" not in hint), "")


def is_raised_limit(error: str) -> bool:
    """Return whether an error, by its type, is the recompile limit's: it raises one with ``fullgraph=True``."""
    return error.startswith(_RAISED_LIMIT)


def is_limit(error: str) -> bool:
    """Return whether an error, by its type and its title, is that of a recompile limit at which Dynamo goes on."""
    return _LIMIT.search(error) is not None


def advice_for_fallback(cause: str, reason: str, stack: Sequence[Frame] = ()) -> str:
    """Return how to avoid a fallback; ``stack`` is the user's, of the error or the graph break that it is due to."""
    violated = violated_constraint(reason)
    if violated is not None:
        return violated.advice
    if "limit" in cause or is_raised_limit(reason):
        return (
            "Remove the cause of the recompilations (see them), or raise the limit: "
            "torch._dynamo.config.recompile_limit (cache_size_limit before 2.6)."
        )
    if "error" in cause or "graph break" in cause:
        parts = reason_in_parts(without_type(reason))
        advice = advice_for_error(reason) or advice_for_break(parts.title, parts.explanation, parts.hints, stack)
        if "suppressed" in cause and not advice:
            return "Unset torch._dynamo.config.suppress_errors to see the error, and report it to PyTorch."
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
