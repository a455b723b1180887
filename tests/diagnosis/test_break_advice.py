"""Advice for graph breaks depends on what broke, and not on what an explanation mentions."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Dict, List, Optional

import pytest

from depyf.diagnosis.break_advice import (
    BreakCause,
    advice_for_break,
    advice_for_fallback,
    advice_for_phase,
    called,
    cause_of_break,
    described_break,
    described_error,
    is_limit,
)

TABLE = [
    # torch's title, its explanation, the cause, what must be said, what must not
    ("Data-dependent branching", "Detected data-dependent branching", BreakCause.BRANCH, "torch.where", "item"),
    ("Data-dependent assertion failed (cannot compile partial graph)", "", BreakCause.ASSERT, "_assert", "where"),
    ("Failed to trace builtin operator", "builtin operator `print` with", BreakCause.PRINT, "print", "look into"),
    ("Failed to trace builtin operator", "builtin operator `hash` with", BreakCause.BUILTIN, "builtin", "print"),
    (
        "Unsupported Tensor.item() call with capture_scalar_outputs=False",
        "",
        BreakCause.ITEM,
        "scalar_outputs",
        "torch.where",
    ),
    ("Tensor.tolist() with non-integer tensor", "", BreakCause.TOLIST, "tolist()", "capture_scalar_outputs"),
    (
        "Attempted to call function marked as skipped",
        "builtin `<unknown module>.Random.random.`",
        BreakCause.RANDOM,
        "Draw it",
        "op",
    ),
    (
        "Attempted to call function marked as skipped",
        "function `my.random.f` in",
        BreakCause.OPAQUE_FUNCTION,
        "custom",
        "Draw",
    ),
    ("Attempted to call function marked as skipped", "builtin `time.time.`", BreakCause.CLOCK, "time", "custom_op"),
    (
        "Attempted to call function marked as skipped",
        "function `Adam.step` in file `/t/adam.py`",
        BreakCause.OPAQUE_FUNCTION,
        "",
        "sched",
    ),
    (
        "Attempted to call function marked as skipped",
        "function `Adam.step` in file `/t/optim/lr_scheduler.py`",
        BreakCause.SCHEDULED_STEP,
        "scheduler",
        "custom_op",
    ),
    (
        "Data-dependent branching",
        "computed as follows: random_value_0: graph input",
        BreakCause.RANDOM,
        "Draw it",
        "torch.cond",
    ),
    (
        "Data-dependent branching",
        "in f, code: assert x.sum() > 0, E() gt = gt(sum_1, 0)",
        BreakCause.ASSERT,
        "_assert_async",
        "where",
    ),
    (
        "Data dependent operator",
        "Operator `aten._local_scalar_dense.default` has",
        BreakCause.ITEM_IN_CALL,
        "Keep it",
        "allclose",
    ),
    ("Data dependent operator", "Operator `aten.equal.default` has", BreakCause.COMPARED, "torch.where", "capture"),
    ("Dynamic shape operator", "nonzero", BreakCause.DYNAMIC_SHAPE, "capture_dynamic_output_shape_ops", "item"),
    ("Dynamic shape operator (no meta kernel)", "", None, "a hint", "capture_dynamic"),
    ("Call to `torch._dynamo.graph_break()`", "", BreakCause.ASKED_FOR, "asks for this break", "custom_op"),
    (
        "Skip calling `torch.compiler.disable()`d function",
        "",
        BreakCause.DISABLED,
        "torch.compiler.disable",
        "custom_op",
    ),
    ("logging.Logger method not supported for non-export cases", "", BreakCause.LOGGING, "Log outside", "print"),
    (
        "Attempted to call function marked as skipped",
        "a C/C++ function",
        BreakCause.OPAQUE_FUNCTION,
        "custom_op",
        "where",
    ),
    ("graph break in loop", "", BreakCause.LOOP, "loop's body", "custom_op"),
    ("torch.while_loop: improper args/kwargs", "", None, "a hint", "loop's body"),
    ("autograd.grad with external grad_fn", "an external C extension", None, "a hint", "look into"),
    ("Invalid call to __build_class__", "it is skipped", BreakCause.CLASS_BODY, "Define the class", "look into"),
    ("HOP: Non-nullified side effect", "a context manager", None, "a hint", "context manager"),
    ("Unsupported context manager", "", BreakCause.CONTEXT_MANAGER, "around the call", "custom_op"),
    ("Unsupported Tensor.backward() call", "", BreakCause.BACKWARD, "outside of the compiled function", "item"),
    # PyTorch 2.5 and older
    ("generic_jump TensorVariable()", "", BreakCause.BRANCH, "torch.where", "item"),
    ("builtin: print [<class 'torch._dynamo.variables.tensor'>] False", "", BreakCause.PRINT, "print", "custom_op"),
    ("builtin: printed [<class 'x'>] False", "", None, "a hint", "print"),
    ("call_function BuiltinVariable(print) [ConstantVariable(str)] {}", "", BreakCause.PRINT, "print", "custom_op"),
    ("Tensor.item", "", BreakCause.ITEM, "capture_scalar_outputs", "torch.where"),
    ("dynamic shape operator: aten.nonzero.default", "", BreakCause.DYNAMIC_SHAPE, "mask", "item"),
]


OF_PRINT = """Unsupported: Failed to trace builtin operator
  Explanation: Dynamo does not know how to trace builtin operator `print` with argument types ['str']
  Hint: Avoid calling builtin `print`.
  Hint: Please report an issue to PyTorch.

  Developer debug context: builtin print [...] False
"""
OF_SIZES = """TorchRuntimeError: RuntimeError when making fake tensor call
  Explanation: Dynamo failed to run FX node with fake tensors: call_function <built-in function linear>(*(\
FakeTensor(..., size=(3, 5), grad_fn=<A>), Parameter(FakeTensor(..., size=(2, 6)))), **{}): got \
RuntimeError('a [3, 5] X [6, 2].')
  Hint: Your code may be wrong.
"""
OF_SIZES_IN_2_5 = """TorchRuntimeError: Failed running call_method view(*(FakeTensor(..., size=(3, 4)), 7), **{}):
shape '[7]' is invalid for input of size 12
"""
OF_RAISE = """Observed exception
  Explanation: Dynamo found no exception handler at the top-level compiled function.
  Hint: Your code may be wrong.

  Developer debug context: raised exception ValueError('mine')
"""


@pytest.mark.parametrize(
    ("error", "what", "told", "advice"),
    [
        (OF_PRINT, "Unsupported: print (Failed to trace builtin operator)", "", "Take the print out"),
        (
            OF_SIZES,
            "TorchRuntimeError: `linear` failed: RuntimeError: a [3, 5] X [6, 2]",
            "Tensors of sizes (3, 5), (2, 6)",
            "This call of `linear` failed for tensors without data",
        ),
        (
            OF_SIZES_IN_2_5,
            "TorchRuntimeError: `view` failed: shape '[7]' is invalid for input of size 12",
            "A tensor of size (3, 4)",
            "This call of `view` failed for tensors without data",
        ),
        (OF_RAISE, "Observed exception", "raised exception ValueError('mine')", "Dynamo met an exception here"),
        (
            "BackendCompilerFailed: backend='b' raised:\nKeyError: 1",
            "BackendCompilerFailed: KeyError: 1",
            "",
            "The backend `b` raised it",
        ),
        (
            "BackendCompilerFailed: backend='inductor' raised:\nKeyError: 1",
            "BackendCompilerFailed: KeyError: 1",
            "",
            "Inductor raised it",
        ),
        ("", "", "", ""),
    ],
)
def test_errors_of_compilations_are_explained_as_breaks_are(error: str, what: str, told: str, advice: str) -> None:
    assert described_error(error) == (what, told)
    for cause in ("graph break that Dynamo can't go on from", "error while compiling, raised into the program"):
        assert advice_for_fallback(cause, error).startswith(advice)
    suppressed = advice_for_fallback("error while compiling, suppressed", error)
    assert suppressed.startswith(advice or "Unset torch._dynamo.config.suppress_errors")


@pytest.mark.parametrize(("title", "explanation", "cause", "must", "must_not"), TABLE)
def test_advice_is_for_what_broke(
    title: str, explanation: str, cause: Optional[BreakCause], must: str, must_not: str
) -> None:
    assert cause_of_break(title, explanation) is cause
    advice = advice_for_break(title, explanation, ["Please report an issue to PyTorch.", "a hint"])
    assert must in advice
    assert must_not not in advice


DDP = "/env/lib/python3.11/site-packages/torch/nn/parallel/distributed.py"
STEP, OF_DDP = ("/home/me/train.py", 3, "step"), (DDP, 1757, "_pre_forward")


def test_breaks_of_ddp_are_said_to_be_its_own() -> None:
    contextlib = ("/usr/lib/python3.11/contextlib.py", 105, "__init__")
    reason = ("Attempted to call function marked as skipped", "function `_inside_ddp_forward`", ["Avoid calling it."])
    dumped = ("/tmp/dump/__transformed_code_0_for_helper.py", 2, "helper")
    polyfill = ("/env/lib/python3.11/site-packages/torch/_dynamo/external_utils.py", 105, "inner")
    for stack in ([STEP, OF_DDP], [STEP, OF_DDP, contextlib], [STEP, OF_DDP, dumped, contextlib, polyfill, contextlib]):
        advice = advice_for_break(*reason, stack)
        assert "DistributedDataParallel's own" in advice
        assert "optimize_ddp" in advice
    for stack in ([], [STEP], [STEP, contextlib], [OF_DDP, STEP], [STEP, (DDP.replace("nn/parallel/", ""), 1, "f")]):
        assert "optimize_ddp" not in advice_for_break(*reason, stack)


def test_breaks_of_fully_shard_are_said_to_be_its_own() -> None:
    hook = ("/env/lib/python3.11/site-packages/torch/distributed/fsdp/_fully_shard/_fsdp_common.py", 30, "wrapper")
    reason = ("Attempted to call function marked as skipped", "qualname: disable", [])
    assert "fully_shard's own" in advice_for_break(*reason, [STEP, hook])
    assert "fully_shard" not in advice_for_break(*reason, [STEP, hook, STEP])
    text = "Unsupported: Attempted to call function marked as skipped\n  Explanation: disable"
    assert "fully_shard's own" in advice_for_fallback("graph break that Dynamo can't go on from", text, [STEP, hook])


TITLES_OF_PYTORCH_2_13: Dict[BreakCause, List[str]] = {
    BreakCause.BRANCH: ["Data-dependent branching", "Data-dependent branching with non-constant __bool__"],
    BreakCause.ASSERT: ["Data-dependent assertion failed (cannot compile partial graph)"],
    BreakCause.ITEM: ["Unsupported Tensor.item() call with capture_scalar_outputs=False"],
    BreakCause.DYNAMIC_SHAPE: ["Dynamic shape operator"],
    BreakCause.DISABLED: [
        "Skip calling `torch.compiler.disable()`d function",
        "Skip inlining `torch.compiler.disable()`d function",
    ],
    BreakCause.ASKED_FOR: ["Call to `torch._dynamo.graph_break()`"],
    BreakCause.LOGGING: ["logging.Logger method not supported for non-export cases"],
    BreakCause.CONTEXT_MANAGER: ["Unsupported context manager"],
    BreakCause.LOOP: ["graph break in loop"],
    BreakCause.RAISES: ["Observed exception", "Observed exception (EXCEPT_HANDLER)"],
    BreakCause.OPAQUE_FUNCTION: [
        "Attempted to call function marked as skipped",
        "Attempted to inline function marked as skipped",
        "Attempted to inline function marked as skipped (SkipFunctionVariable)",
    ],
    BreakCause.BACKWARD: [
        "Unsupported Tensor.backward() call",
        "using `torch.autograd.grad` with `torch._dynamo.config.trace_autograd_ops=False`",
    ],
    BreakCause.TOLIST: ["Tensor.tolist() with non-integer tensor"],
    BreakCause.BUILTIN: [
        "Failed to trace builtin operator",
        "Builtin `operator.*` comparison with constant `self` failed",
    ],
    BreakCause.COMPARED: ["Data dependent operator"],
    BreakCause.PARAMETER: ["Attempted to use `torch.nn.Parameter()` constructor with Dynamo"],
    BreakCause.RNN: ["Attempted to wrap RNN, GRU, or LSTM"],
    BreakCause.TEXT: ["BUILD_STRING type error"],
    BreakCause.CLASS_BODY: ["Invalid call to __build_class__"],
    BreakCause.OPAQUE_METHOD: ["Unsupported method call"],
    BreakCause.NUMPY: ["attempted to trace numpy function unsupported by PyTorch"],
}


def test_of_all_kinds_that_pytorch_knows_only_those_are_advised_that_are_meant() -> None:
    torch = importlib.util.find_spec("torch")
    registry = Path(str(torch and torch.origin)).parent / "_dynamo" / "graph_break_registry.json"
    if not registry.exists():
        pytest.skip("this PyTorch has no registry of graph breaks")
    found: Dict[BreakCause, List[str]] = {}
    for versions in json.loads(registry.read_text()).values():
        for each in versions:
            cause = cause_of_break(each["Gb_type"], each["Explanation"] or "")
            if cause is not None and each["Gb_type"] not in found.setdefault(cause, []):
                found[cause].append(each["Gb_type"])
    for cause, titles in found.items():
        assert set(titles) <= set(TITLES_OF_PYTORCH_2_13.get(cause, [])), cause


@pytest.mark.parametrize(
    ("title", "explanation", "function"),
    [
        (
            "Attempted to call function marked as skipped",
            "Dynamo does not know how to trace the builtin `time.perf_counter.` This function is either a builtin",
            "time.perf_counter",
        ),
        (
            "Attempted to call function marked as skipped",
            "Dynamo developers have intentionally marked that the function `pack` in file `/x/rnn.py` should not be "
            "traced.",
            "pack",
        ),
        (
            "attempted to trace numpy function unsupported by PyTorch",
            "Can't find numpy numpy function <cyfunction default_rng at 0x7f1aff597580> in torch._numpy.",
            "default_rng",
        ),
        ("Unsupported method call", "Dynamo does not know how to trace method `random` of class `Gen`", "Gen.random"),
        (
            "Skip calling `torch.compiler.disable()`d function",
            "Skip calling function `<function Net.log at 0x7f>` since it was wrapped with `torch.compiler.disable`",
            "Net.log",
        ),
        (
            "Skip calling `torch.compiler.disable()`d function",
            "Skip calling function `<function f.<locals>.g at 0x7f>` since it was wrapped",
            "f.<locals>.g",
        ),
        (
            "Skip calling `torch.compiler.disable()`d function",
            "Skip calling function `<function note at 0x7ff08a794680>` since it was wrapped",
            "note",
        ),
        (
            "Skip calling `torch.compiler.disable()`d function",
            "call torch._dynamo.disable() wrapped function <function note at 0x7ff08a794680>",
            "note",
        ),
        (
            "Skip inlining `torch.compiler.disable()`d function",
            "Skip inlining function <function get_nonrecursive_disable_wrapper.<locals>.nonrecursive_disable_wrapper "
            "at 0x7f42cf3f8ae0> since it was wrapped with `torch.compiler.disable` (reason: None)",
            "",
        ),
        ("Failed to trace builtin operator", "does not know how to trace builtin operator `hash` with", "hash"),
        ("Data-dependent branching", "Detected branching (e.g. `if my_tensor.sum() > 0:`) in function `f`", ""),
        ("Attempted to call function marked as skipped", "", ""),
    ],
)
def test_the_function_is_named_that_a_break_is_about(title: str, explanation: str, function: str) -> None:
    assert described_break(title, explanation) == (f"{function} ({title})" if function else title)


def test_breaks_of_one_kind_name_a_few_functions_once() -> None:
    explanations = [f"the function `f{number % 5}` in file" for number in range(9)]
    described = described_break("Attempted to call function marked as skipped", *explanations)
    assert described.startswith("f0, f1, f2 and 2 more (")


NO_PHASES = {"_foo", "my_event", "metric"}
"""Names in examples of PyTorch's documentation."""


def test_every_phase_that_pytorch_times_has_words() -> None:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        pytest.skip("PyTorch is not installed")
    folder, found = Path(spec.origin).parent, set()
    for part in ("_dynamo", "_functorch", "_higher_order_ops", "_inductor", "fx"):
        for path in (folder / part).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            names = re.findall(r"""dynamo_timed\(\s*f?(["'])(.+?)\1""", text)
            found |= {re.sub(r"\{.*?\}", "0", name) for _, name in names}
    assert len(found) > 20
    assert sorted(name for name in found - NO_PHASES if called(name) == name) == []


@pytest.mark.parametrize(
    "phase",
    ["mm_template_autotuning", "mm_template_precompiling", "CachingAutotuner.coordinate_descent_tuning"],
)
def test_measuring_candidates_is_called_so_and_has_advice(phase: str) -> None:
    assert called(phase) == "measuring candidates for kernels (autotuning)"
    assert "mode='default'" in advice_for_phase(phase)


def test_the_recompile_limit_is_known_by_the_type_and_the_title_of_its_error() -> None:
    for error in (
        "Unsupported: cache_size_limit reached",  # PyTorch 2.4
        "RecompileLimitExceeded: accumulated_recompile_limit reached",  # 2.9
        "Unsupported: Dynamo cache limit exceeded\n  Explanation: ...",
        "Unsupported: Dynamo recompile limit exceeded\n  Explanation: ...",  # 2.13
    ):
        assert is_limit(error), error
    for error in (
        "ValueError: rate limit exceeded",  # of a backend
        "BackendCompilerFailed: backend='mine' raised:\nRuntimeError: recompile_limit reached",
        "FailOnRecompileLimitHit: recompile_limit reached with fullgraph=True",
    ):
        assert not is_limit(error), error


@pytest.mark.parametrize(
    ("phase", "compiles"),
    [("compile_file", True), ("async_compile.wait", True), ("StaticAutotunerFuture.warm_precompile", True),
     ("precompile_build_guards", False), ("CacheBase.get_system.triton_key", False), ("dynamo", False)],
)  # fmt: skip
def test_the_advice_about_compilers_is_for_phases_that_are_called_so(phase: str, compiles: bool) -> None:
    assert ("compiler" in called(phase)) is compiles
    assert ("TORCHINDUCTOR_CACHE_DIR" in advice_for_phase(phase)) is compiles
