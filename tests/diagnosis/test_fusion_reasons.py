"""Each reason of Inductor's scheduler has words. Texts are PyTorch 2.13's."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from typing import Iterator

import pytest

from depyf.diagnosis.fusion_reasons import in_words


def words(reason: str, device: str = "cuda") -> str:
    found = in_words(reason, "sin", "mean", device=device)
    assert found is not None
    return found[0]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (
            "numel/rnumel mismatch (reduce) (4096, 64), (64, 64)",
            "Triton's kernels have one size for all that they compute: the two reductions have different sizes "
            "(4096, 64), (64, 64)",
        ),
        (
            "tiling mismatch ([64, 32], [32, 64], [2048])",
            "Triton's kernels have one order of their dimensions for all that they compute: these have different ones "
            "([64, 32], [32, 64], [2048])",
        ),
        ("register spilling of the fused kernel", "it was tried: registers spilled into memory in both together"),
        (
            "candidate producer is a reduction, foreach ops cannot be fused with reductions currently",
            "the operations on a list of tensors (torch._foreach) are one kernel, which takes no reduction (sin)",
        ),
        ("device mismatch (cuda:0 vs cpu)", "they run on different devices"),
        ("will create cycle", "something between them needs the result of sin and is needed by mean"),
        ("no shared data due to indexing mismatch", "both read the same tensor, in another order"),
        (
            "C++ backend: 64 x 128 | 32;  | 512",
            "the C++ backend has refused: the first is a reduction of 32 in a loop over 64 x 128, "
            "the second a reduction of 512",
        ),
        (
            "C++ backend: 6; 8",
            "the C++ backend has refused: the first is a loop over 6, the second a loop over 8",
        ),
        ("the moon is full", "PyTorch says: the moon is full"),
    ],
)
def test_a_reason_in_words(reason: str, expected: str) -> None:
    assert words(reason) == expected


def test_nothing_is_said_where_nothing_is_lost() -> None:
    assert in_words("no shared data", "sin", "mean", device="cpu") is None


def test_advice_is_for_the_device() -> None:
    for device, helps in (("cuda", True), ("cpu", False)):
        found = in_words("not fusable: the first", "extern_kernels.mm", "relu", device=device)
        assert found is not None
        assert ("max-autotune" in found[1]) is helps


@pytest.mark.parametrize("name", ["torch.ops.aten.sort.stable", "torch.ops.mine.scale.default"])
def test_what_is_called_is_not_always_of_a_library_or_a_matrix_product(name: str) -> None:
    assert in_words("not fusable: the first", name, "relu", device="cuda") == (
        f"{name} is called as it is: Inductor does not look into it",
        "",
    )


def test_an_input_may_be_overwritten() -> None:
    """A dependency that does not match may be of a write: nothing is read then."""
    assert words("memory deps did not match").endswith("or is ordered after sin, as where it writes what sin reads")


def reasons_of_torch() -> Iterator[str]:
    """The texts that Inductor's source gives to ``why(...)`` and ``WhyNoFuse(...)(...)``."""
    spec = importlib.util.find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "_inductor"
    for path in [folder / "scheduler.py", folder / "choices.py", folder / "codegen" / "simd.py"]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith(("why", "WhyNoFuse(")) and node.args:
                if isinstance(node.args[0], ast.Constant):
                    yield str(node.args[0].value)


@pytest.mark.torch
def test_each_reason_of_the_installed_pytorch_has_a_row() -> None:
    torch = pytest.importorskip("torch")
    if not torch.__version__.startswith("2.13."):
        pytest.skip("the table has the texts of PyTorch 2.13")
    found = set(reasons_of_torch())
    assert len(found) > 40
    for reason in found:
        told = in_words(reason, "sin", "mean", device="cuda")
        assert told is None or not told[0].startswith("PyTorch says"), reason
