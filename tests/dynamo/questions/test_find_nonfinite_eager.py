"""``find_nonfinite(eager=True)`` names operations outside of compiled graphs, and the program computes the same."""

from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.answers.nonfinite import EAGER, OPERATION  # noqa: E402
from depyf.dynamo.hooks import private_names, torch_names  # noqa: E402

_BASE = torch_names.find("torch.utils._python_dispatch", "TorchDispatchMode")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.usefixtures("fresh_dynamo"),
    pytest.mark.skipif(not hasattr(_BASE, "supports_higher_order_operators"), reason="needs PyTorch 2.9"),
]


def find(directory: Path, **options: Any) -> Any:
    return depyf.find_nonfinite(str(directory), eager=True, stream=io.StringIO(), **options)


def twice() -> Any:
    return torch.compile(lambda x: x * 2, backend="aot_eager")


def test_what_comes_into_a_graph_is_told_with_its_operation(tmp_path: Path) -> None:
    compiled = twice()
    with find(tmp_path) as found:
        y = compiled(torch.tensor([0.0, 2.0]))
        y.div_(y)  # HERE
        moved = y[None] + 1
        compiled(moved)
    first = found.first
    assert (first.source, first.operation, first.kind) == (EAGER, "aten.div_.Tensor", "NaN")
    assert first.line.code == "y.div_(y)  # HERE"
    assert not first.backward
    assert "in code that is not compiled" in first.title


def test_an_inf_that_eager_code_computes_is_told_as_one(tmp_path: Path) -> None:
    compiled = twice()
    with find(tmp_path) as found:
        y = compiled(torch.tensor([0.0, 2.0]))
        scale = 1 / y  # HERE
        compiled(scale)
    first = found.first
    assert (first.source, first.operation, first.kind) == (EAGER, "aten.reciprocal.default", "Inf")
    assert first.line.code == "scale = 1 / y  # HERE"
    assert first.steps == ()


def test_where_it_becomes_nan_in_a_graph_is_told_with_it(tmp_path: Path) -> None:
    difference = torch.compile(lambda x: x - x, backend="eager")  # a backend whose graphs may write to what they get
    with find(tmp_path) as found:
        difference(1 / torch.zeros(2))  # HERE
    assert (found.first.source, found.first.kind) == (EAGER, "Inf")
    assert found.first.line.code.endswith("# HERE")
    assert found.first.steps[0].words == "it becomes NaN"


def test_an_inf_that_no_graph_sees_is_told_at_the_end(tmp_path: Path) -> None:
    with find(tmp_path) as found:
        loss = 1 / twice()(torch.zeros(1)).sum()  # HERE
    assert torch.isinf(loss)
    assert found.first.line.code.endswith("# HERE")


def test_a_backward_has_the_line_of_its_forward(tmp_path: Path) -> None:
    x = torch.tensor([0.0, 2.0], requires_grad=True)
    compiled = twice()
    with find(tmp_path) as found:
        root = torch.sqrt(compiled(x))  # HERE
        (root - 1).mul(0).sum().backward()
    first = found.first
    assert (first.source, first.called, first.backward) == (EAGER, "SqrtBackward0", True)
    assert first.line.code == "root = torch.sqrt(compiled(x))  # HERE"
    assert first.called_from.code == "(root - 1).mul(0).sum().backward()"


def test_what_no_graph_sees_is_told_at_the_end_if_it_is_still_there(tmp_path: Path) -> None:
    with find(tmp_path) as found:
        loss = torch.log(twice()(torch.tensor([-1.0]))).sum()  # HERE
    assert torch.isnan(loss)
    assert found.first.operation == "aten.log.default"
    assert found.first.line.code.endswith("# HERE")


def test_clean_code_gives_no_report(tmp_path: Path) -> None:
    compiled = twice()
    with find(tmp_path) as found:
        mask = torch.full((3, 3), float("-inf")).triu(1)
        weights = torch.softmax(compiled(torch.randn(3, 3)) + mask, -1)
        entropy = torch.where(weights > 0, torch.log(weights), torch.zeros(3, 3)).sum()
        compiled(entropy)
        scores = compiled(mask)
        compiled(torch.ones(3).mul(float("-inf")))
    assert not found, str(found)
    assert "2 calls passed on Inf that came in as x" in str(found)
    assert "operations outside of compiled graphs" in str(found)
    assert torch.isinf(scores).any()


def test_compiled_code_is_still_told_and_results_are_the_same(tmp_path: Path) -> None:
    def train(compiled: Any) -> Any:
        torch.manual_seed(0)
        x = torch.randn(6, requires_grad=True)
        loss = torch.nn.functional.dropout(compiled(x), 0.5).sum()
        loss.backward()
        return [loss.detach(), x.grad, torch.rand(1)]

    compiled = torch.compile(lambda x: torch.nn.functional.dropout(torch.sin(x), 0.2), backend="aot_eager")
    expected = train(compiled)
    with find(tmp_path) as found:
        inside = train(compiled)
        assert not found
        torch.compile(lambda x: torch.log(x), backend="aot_eager")(-torch.ones(2))
    assert all(torch.equal(a, b) for a, b in zip(expected, inside))
    assert found.first.source == OPERATION


def test_what_another_thread_does_is_told_as_not_seen(tmp_path: Path) -> None:
    compiled = twice()
    with find(tmp_path) as found:
        thread = threading.Thread(target=compiled, args=(torch.ones(2),))
        thread.start()
        thread.join()
    assert "1 call of a graph came from another thread" in str(found)


def test_a_torch_without_such_modes_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lookup = torch._dynamo.eval_frame._callback_from_stance
    monkeypatch.setattr(private_names, "DISPATCH_MODE", torch_names.PrivateName("builtins", "object", ""))
    with pytest.raises(RuntimeError, match=r"2\.9 and later"):
        find(tmp_path).__enter__()
    assert torch._dynamo.eval_frame._callback_from_stance is lookup
