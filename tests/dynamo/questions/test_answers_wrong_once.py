"""Regressions that reviews found: wrong results, and programs that a question changed."""

from __future__ import annotations

import functools
import io
from pathlib import Path
from typing import Any, Dict, Tuple

import pytest
from torch_versions import needs_stances

torch = pytest.importorskip("torch")

import depyf  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo"), needs_stances]


def line_found(function: Any, *arguments: Any, directory: Path) -> Tuple[str, str]:
    """The line that is told for a call of the compiled function, and all that is told."""
    compiled = torch.compile(function, backend="aot_eager")
    with depyf.find_nonfinite(str(directory)) as found:
        compiled(*arguments)
    text = str(found)
    return next(line for line in text.splitlines() if "line:" in line), text


def test_what_stands_for_an_inf_may_overflow_too(tmp_path: Path) -> None:
    def overflows_twice(x: Any) -> Any:
        first = x * 1e37
        return first * 1e10

    line, _ = line_found(overflows_twice, torch.tensor([1.0, 2.0, 300.0]), directory=tmp_path)
    assert "first = x * 1e37" in line


def test_what_stands_for_a_nan_may_be_out_of_the_domain_too(tmp_path: Path) -> None:
    def roots(x: Any) -> Any:
        first = (x - 0.5).sqrt()
        return (first - 3).sqrt()

    line, _ = line_found(roots, torch.tensor([1.0, 2.0, 0.0]), directory=tmp_path)
    assert "first = (x - 0.5).sqrt()" in line


def test_an_inf_does_not_become_the_nan_of_another_value(tmp_path: Path) -> None:
    def two(x: Any, y: Any) -> Any:
        return x.exp(), (y - 5000).sqrt()

    _, text = line_found(two, torch.tensor([1000.0]), torch.tensor([1.0]), directory=tmp_path)
    assert "becomes NaN" not in text


def test_a_parameter_that_a_graph_writes_to_is_written_to_once() -> None:
    parameter = torch.nn.Parameter(torch.ones(2))

    def step() -> Any:
        with torch.no_grad():
            parameter.add_(1)
        doubled = parameter * 2
        return doubled

    compiled = torch.compile(step, backend="aot_eager")
    with depyf.probe("doubled") as values:
        result = compiled()
    assert parameter.tolist() == [2, 2]
    assert result.tolist() == values["doubled"][0].value.tolist() == [4, 4]


def test_optimizers_step_once() -> None:
    def steps(probed: bool) -> Any:
        torch._dynamo.reset()
        parameters = [torch.nn.Parameter(torch.ones(2)) for _ in range(2)]
        optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9, foreach=True)
        for each in parameters:
            each.grad = torch.ones(2)
        step = torch.compile(lambda: optimizer.step(), backend="aot_eager")
        if not probed:
            step()
        else:
            with depyf.probe("param", "params"):
                step()
        return [each.tolist() for each in parameters]

    assert steps(probed=True) == steps(probed=False)


def test_what_is_checkpointed_draws_what_it_draws() -> None:
    from torch.utils.checkpoint import checkpoint

    def dropped(x: Any) -> Any:
        return checkpoint(torch.nn.functional.dropout, x, use_reentrant=False).sum()

    compiled = torch.compile(dropped, backend="aot_eager")
    x = torch.ones(6, requires_grad=True)

    def numbers() -> Any:
        torch.manual_seed(1)
        result = compiled(x)
        return result.item(), torch.rand(1).item()

    expected = numbers()
    with depyf.probe("dropped.return"):
        assert numbers() == expected


def test_the_call_is_the_users_where_files_of_a_dump_run(tmp_path: Path) -> None:
    compiled = torch.compile(lambda x: x.log().sum(), backend="aot_eager")
    with depyf.prepare_debug(tmp_path / "dump"):
        compiled(torch.ones(2))
    with depyf.find_nonfinite(str(tmp_path)) as found:
        compiled(torch.zeros(2))
    called = next(line for line in str(found).splitlines() if "called from" in line)
    assert "compiled(torch.zeros(2))" in called


def test_compare_keeps_dynamo_out_of_its_own_code(recwarn: pytest.WarningsRecorder) -> None:
    weights = torch.ones(3, requires_grad=True)

    def step(x: Any) -> Any:
        loss = (weights * x).sum()
        loss.backward()
        return loss.detach()

    assert depyf.compare(step, torch.ones(3), backend="aot_eager").same
    assert [str(each.message) for each in recwarn if "Dynamo" in str(each.message)] == []


def test_compare_leaves_what_a_wrapper_keeps(tmp_path: Path) -> None:
    kept: Dict[Any, Any] = {}

    def memoised(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(x: Any) -> Any:
            key = tuple(x.shape)
            if key not in kept:
                kept[key] = function(x)
            return kept[key]

        return wrapper

    wrapped = memoised(torch.compile(lambda x: x.sin(), backend="aot_eager"))
    answer = depyf.compare(wrapped, torch.rand(3), directory=str(tmp_path))
    assert kept == {}
    assert not any("nothing of it was compiled" in note for note in answer.notes)


def test_an_infinity_that_was_meant_does_not_hide_one_that_was_not(tmp_path: Path) -> None:
    mask = torch.tensor([True, False, False])
    function = torch.compile(lambda x: x.exp().masked_fill(mask, float("-inf")), backend="aot_eager")
    with depyf.find_nonfinite(str(tmp_path), stream=io.StringIO()) as found:
        function(torch.zeros(3))
        assert not found
        function(torch.full((3,), 1000.0))
    assert "exp" in found.first.operation


@pytest.mark.parametrize(
    ("stance", "told"),
    [
        ("force_eager", "runs as plain Python"),
        ("eager_on_recompile", "runs as plain Python"),
        ("fail_on_recompile", "raises an error"),
    ],
)
def test_stances_count_for_why_and_compare_says_what_runs(stance: str, told: str) -> None:
    function = torch.compile(lambda x: x.sin(), backend="aot_eager", dynamic=False)
    function(torch.ones(2))
    with torch.compiler.set_stance(stance):
        answer = depyf.why(function, torch.ones(3))
        assert told in str(answer)
        assert stance in str(answer)
        assert not answer.would_compile
        compared = depyf.compare(function, torch.ones(2))
        assert compared
        assert (compared.entry is None) == (stance == "force_eager")


def test_arguments_of_methods_whose_code_takes_any() -> None:
    class Model(torch.nn.Module):
        pass

    def forward(*args: Any) -> Any:
        return args[1].sin()

    Model.forward = forward
    model = Model()
    compiled = torch.compile(model, backend="eager")
    compiled(torch.ones(2))
    assert depyf.why(compiled, torch.ones(2)).hit is not None
