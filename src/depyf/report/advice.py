"""What to do about a graph break or a fallback, in our words: the thing that helps most often, first."""

from __future__ import annotations

import re
from typing import Sequence, Tuple

_FOR_BREAKS: Sequence[Tuple[str, str]] = [
    (
        r"data.dependent (branching|jump)|generic_jump TensorVariable|dynamic control flow|Data-dependent",
        "The branch depends on what is in a tensor. Compute both sides and choose with torch.where, use torch.cond, or "
        "move the test out of the compiled function.",
    ),
    (
        r"builtin.*`?print|`?print`?",
        "Take the print out of the compiled function, or print after it; "
        "torch._dynamo.config.reorderable_logging_functions.add(print) lets Dynamo move it behind the graph.",
    ),
    (
        r"Tensor\.item|capture_scalar_outputs|\.item\(\)|tolist",
        "A number is read out of a tensor. Keep it a tensor, or set "
        "torch._dynamo.config.capture_scalar_outputs = True.",
    ),
    (
        r"Dynamic shape operator|capture_dynamic_output_shape_ops|nonzero|dynamic shape",
        "The shape of the result depends on the data. Set "
        "torch._dynamo.config.capture_dynamic_output_shape_ops = True, or compute with a mask of fixed shape.",
    ),
    (
        r"torch\.compiler\.disable|skip calling .*disable|torch\._dynamo\.disable\(\) wrapped",
        "The function is marked with torch.compiler.disable. Remove the mark if it can be compiled, or call it before "
        "or after the compiled function.",
    ),
    (
        r"graph_break\(\)|skip function graph_break",
        "The program asks for this break (torch._dynamo.graph_break()). Remove it when it is not wanted.",
    ),
    (
        r"\blogging\b|logger|warnings\.warn",
        "Log outside of the compiled function, or let Dynamo leave it out: "
        "torch._dynamo.config.ignore_logger_methods (ignore_logging_functions).",
    ),
    (
        r"context manager",
        "Dynamo does not know this context manager. Enter it around the call of the compiled function.",
    ),
    (r"loop", "The break is inside of a loop, which gives up the whole function. Move the loop's body to a function."),
    (
        r"skip(?:ped|file)?|not (?:be )?trace|C/C\+\+|C extension|pybind",
        "Dynamo can't look into this function. Call it outside of what is compiled, or register it as a custom "
        "operator (torch.library.custom_op).",
    ),
]


_FOR_CUDAGRAPHS: Sequence[Tuple[str, str]] = [
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


def advice_for_break(reason: str, explanation: str, hints: Sequence[str]) -> str:
    """What to do about this graph break; torch's own first hint where we know nothing better."""
    for text in (reason, explanation):
        for pattern, advice in _FOR_BREAKS:
            if re.search(pattern, text, re.IGNORECASE):
                return advice
    return next((hint for hint in hints if "report an issue" not in hint), "")


def advice_for_fallback(cause: str, reason: str) -> str:
    """What to do about a frame that runs as plain Python."""
    if "limit" in cause:
        return (
            "Remove the cause of the recompilations (see them), or raise the limit: "
            "torch._dynamo.config.recompile_limit (cache_size_limit before 2.6)."
        )
    if "graph break" in cause:
        return advice_for_break(reason, "", ())
    if "suppressed" in cause:
        return "Unset torch._dynamo.config.suppress_errors to see the error, and report it to PyTorch."
    return ""


def advice_for_cudagraphs(reason: str) -> str:
    """What to do where CUDA graphs are not used, although mode='reduce-overhead' or 'max-autotune' asks for them."""
    for pattern, advice in _FOR_CUDAGRAPHS:
        if re.search(pattern, reason, re.IGNORECASE):
            return advice
    return ""


def advice_for_phase(name: str) -> str:
    """What to do about a phase, named as torch names it, that takes most of the compile time."""
    if re.search(r"compile_file|async_compile|precompile|triton", name):
        return (
            "Compilers of kernels (C++ or Triton) run in it. torch's cache keeps what they make: point "
            "TORCHINDUCTOR_CACHE_DIR to a folder that outlives the machine, or compile a repeated layer instead of "
            "the whole model, so that there are fewer kernels."
        )
    if re.search(r"autotun|benchmark", name):
        return "It measures candidates for kernels. mode='default' does not, and the cache keeps what was found."
    return ""
