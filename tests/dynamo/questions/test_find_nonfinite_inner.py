"""``find_nonfinite`` looks into the graphs that higher-order operators call: regions, branches, loops, functions."""

from __future__ import annotations

import importlib
import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from torch_versions import needs_stances

torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.answers.nonfinite import OPERATION  # noqa: E402
from depyf.dynamo.hooks import private_names  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "programs"))
import nonfinite_inner as programs  # noqa: E402
from nonfinite_programs import lines_of  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo"), needs_stances]

OF_DYNAMO = ("checkpointed_part", "second_call_of_a_region")


def find(name: str, directory: Path, backend: str) -> Any:
    program = {**programs.INNER, **programs.CLEAN_INNER}[name]
    with depyf.find_nonfinite(str(directory), stream=io.StringIO()) as found:
        getattr(program, "program", program)(lambda function: torch.compile(function, backend=backend))
    return found


@pytest.mark.parametrize(
    ("name", "backend"),
    [
        *((name, "aot_eager") for name in programs.INNER),
        *((name, "eager") for name in OF_DYNAMO if name in programs.INNER),
    ],
)
def test_the_operation_inside_is_found(name: str, backend: str, tmp_path: Path) -> None:
    if name in ("later_step_of_a_scan", "one_of_a_map") and torch.__version__.startswith("2.7."):
        pytest.skip("the graphs of scan and map have the line of the call only in PyTorch 2.7")
    planted = programs.INNER[name]
    found = find(name, tmp_path, backend)
    first = found.first
    assert first is not None, str(found)
    assert first.source == OPERATION, first
    assert re.search(planted.operation, first.operation), first
    assert first.kind == planted.kind
    assert first.backward == planted.backward
    assert [first.line.line] == lines_of(planted.program), first
    assert first.replay is not None, first


@pytest.mark.parametrize("name", list(programs.CLEAN_INNER))
def test_what_matters_to_nothing_outside_is_not_reported(name: str, tmp_path: Path) -> None:
    assert not find(name, tmp_path, "aot_eager")


@pytest.mark.parametrize("bias", [False, True])
def test_a_score_function_is_looked_into_for_all_scores(bias: bool, tmp_path: Path) -> None:
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    modes = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode
    if private_names.IS_WRAPPED.find() is None or not hasattr(modes, "supports_higher_order_operators"):
        pytest.skip("this PyTorch's flex_attention is not replayed")
    table = torch.ones(2, 16)
    table[1, 3] = -1

    def score(value: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return value + table[h, j].sqrt() if bias else value + (i - j).log()

    compiled = torch.compile(lambda q: flex.flex_attention(q, q, q, score_mod=score), backend="aot_eager")
    with depyf.find_nonfinite(str(tmp_path), stream=io.StringIO()) as found:
        compiled(torch.randn(1, 2, 16, 8))
    assert found.first.operation == ("aten.sqrt.default" if bias else "aten.log.default"), found
