"""``find_nonfinite`` names the operation and the line that make the first NaN or Inf, and is silent elsewhere."""

from __future__ import annotations

import importlib
import io
import re
import runpy
import sys
from pathlib import Path
from typing import Any, Callable

import pytest
import warm_python
from torch_versions import IS_OLD, needs_stances

torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.answers.nonfinite import COMPILED, INPUT, OPERATION, RESULT  # noqa: E402
from depyf.dynamo.questions.nonfinite import question as nonfinite  # noqa: E402

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
sys.path.insert(0, str(PROGRAMS))
import nonfinite_programs as programs  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo"), needs_stances]

WITH_INDUCTOR = (
    "inside_a_fused_kernel",
    "gradient_of_an_angle",
    "in_a_custom_autograd_function",
    "log_of_a_dropout",
    "in_a_compiled_optimizer_step",
    "only_under_mixed_precision",
)
CLEAN_WITH_INDUCTOR = ("masked_attention", "dropout_and_layer_norm", "training_with_adam")


def both(names: Any, with_inductor: Any) -> Any:
    """Every program with aot_eager, some with Inductor as well."""
    return [
        *(pytest.param(name, "aot_eager", id=f"{name}-aot_eager") for name in names),
        *(pytest.param(name, "inductor", id=f"{name}-inductor", marks=pytest.mark.inductor) for name in with_inductor),
    ]


def compiler(backend: str) -> Callable[..., Any]:
    return lambda function, **options: torch.compile(function, backend=backend, **options)


def find(directory: Path, **options: Any) -> Any:
    return depyf.find_nonfinite(str(directory), stream=io.StringIO(), **options)


def test_there_are_enough_programs() -> None:
    assert len(programs.PLANTED) >= 20
    assert len(programs.CLEAN) >= 20
    assert all(len(programs.lines_of(each.program)) == 1 for each in programs.PLANTED.values())


@pytest.mark.parametrize(("name", "backend"), both(programs.PLANTED, WITH_INDUCTOR))
def test_the_operation_and_the_line_are_found_and_replayed(
    name: str, backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted = programs.PLANTED[name]
    with find(tmp_path) as found:
        planted.program(compiler(backend))
    assert found
    first = found.first
    assert first.source == OPERATION, first
    assert Path(first.line.file).name == "nonfinite_programs.py"
    # Up to 2.9, what a custom function's backward does has the line of the call.
    is_call = IS_OLD and first.line.code == "return Inverse.apply(torch.sin(x)).sum()"
    assert is_call or [first.line.line] == programs.lines_of(planted.program), first
    assert is_call or first.line.code.endswith("# HERE"), first
    assert re.search(planted.operation, f"{first.operation} {first.called}"), first
    assert first.backward == planted.backward
    assert first.kind in planted.kind
    assert first.directory == str(tmp_path / "nonfinite_0")
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(first.replay)
    printed = capsys.readouterr().out
    assert ended.value.code == 0, printed
    assert f"{first.operation}: " in printed


@pytest.mark.parametrize(("name", "backend"), both(programs.CLEAN, CLEAN_WITH_INDUCTOR))
def test_clean_programs_give_no_report(name: str, backend: str, tmp_path: Path) -> None:
    with find(tmp_path) as found:
        programs.CLEAN[name](compiler(backend))
    assert not found, str(found)
    assert list(tmp_path.iterdir()) == []


def logarithm(x: Any) -> Any:
    return torch.log(x) * 2


def test_it_is_told_once_and_the_program_goes_on(tmp_path: Path) -> None:
    compiled = torch.compile(logarithm, backend="aot_eager")
    compiled(torch.ones(2))  # compiled earlier
    stream = io.StringIO()
    with depyf.find_nonfinite(str(tmp_path), stream=stream) as found:
        assert compiled(torch.ones(2)).tolist() == [0, 0]
        assert not found
        for _ in range(3):
            assert torch.isnan(compiled(torch.tensor([-1.0, 1.0]))).tolist() == [True, False]
    assert len(found.found) == 1
    text = stream.getvalue()
    assert text.count("NaN first made by aten.log.default") == 1
    assert "test_find_nonfinite.py" in text
    assert "return torch.log(x) * 2" in text
    assert "x: float32[2]; -1 to 1, mean 0" in text
    assert str(found) in text.replace("depyf: ", "")
    assert "aten.log.default" in found._repr_html_()


def test_stop_raises_at_once(tmp_path: Path) -> None:
    compiled = torch.compile(logarithm, backend="aot_eager")
    with pytest.raises(FloatingPointError, match=r"aten\.log\.default"), find(tmp_path, stop=True) as found:
        compiled(-torch.ones(2))
    assert found.first.kind == "NaN"


def test_all_graphs_are_told_when_asked_for(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        y = torch.log(x)
        torch._dynamo.graph_break()
        return y.nan_to_num() + torch.sqrt(x)

    with find(tmp_path, all_graphs=True) as found:
        for _ in range(2):
            torch.compile(function, backend="aot_eager")(-torch.ones(2))
    assert [each.operation for each in found.found] == ["aten.log.default", "aten.sqrt.default"]


def test_what_comes_in_from_outside_is_named(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 2))
    with torch.no_grad():
        model[2].weight[0, 0] = float("inf")
    with find(tmp_path) as found:
        torch.compile(lambda x: model(x), backend="aot_eager")(torch.ones(1, 2))
    assert found.first.source == INPUT
    assert found.first.name.endswith("[2].weight")
    assert found.first.inputs[0].infs == 1
    with find(tmp_path) as found:
        torch.compile(logarithm, backend="aot_eager")(torch.tensor([float("nan")]))
    assert (found.first.source, found.first.name) == (INPUT, "x")
    assert found.first.line.code == "return torch.log(x) * 2"


def test_eager_code_between_two_graphs_is_told_apart(tmp_path: Path) -> None:
    first, second = (torch.compile(each, backend="aot_eager") for each in (torch.cos, lambda x: x + 1))
    with find(tmp_path) as found:
        middle = first(torch.zeros(2)) - 1
        second(middle / middle)
    assert (found.first.source, found.first.name, found.first.kind) == (INPUT, "x", "NaN")
    assert any("and before this graph" in note for note in found.first.notes)


def test_a_gradient_that_comes_in_bad_is_told(tmp_path: Path) -> None:
    x = torch.zeros(2, requires_grad=True)
    with find(tmp_path) as found:
        torch.compile(lambda x: x * 2, backend="aot_eager")(x).sqrt().sub(1).mul(0).sum().backward()
    assert found.first.source == INPUT
    assert found.first.backward
    assert "gradient" in found.first.name


def test_what_only_the_compiled_code_makes_is_told(tmp_path: Path) -> None:
    from torch._dynamo.backends.common import aot_autograd

    def broken(module: Any, _: Any) -> Any:
        def run(args: Any) -> Any:
            outputs = module(*args)
            args.clear()
            return [output / 0 if isinstance(output, torch.Tensor) else output for output in outputs]

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    torch._dynamo.register_backend(aot_autograd(fw_compiler=broken), name="breaks_kernels")
    with find(tmp_path) as found:
        torch.compile(lambda x: torch.cos(x), backend="breaks_kernels")(torch.zeros(2))
    assert Path(found.first.replay).read_text().startswith('"""Inf made by the compiled code only')
    assert found.first.source == COMPILED
    assert found.first.operation == "aten.cos.default"
    assert "torch.cos(x)" in found.first.line.code
    assert "the same graph without the compiler is finite" in found.first.title
    assert "note: depyf.compare(fn, *args) finds the operation" in str(found.first)
    assert "note: not in the script: the backend breaks_kernels" in str(found.first)
    alone = warm_python.run([sys.executable, found.first.replay])
    assert "DIFFER  output 0: float32[2]: NaN or Inf in other places" in alone.stdout, alone.stderr


class Halves(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        left, right = x.chunk(2, -1)
        return torch.log(left) + right


def test_values_have_the_path_of_their_module_and_parts_the_name_of_what_they_are_of(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Identity(), Halves())
    with find(tmp_path) as found:
        torch.compile(model, backend="aot_eager")(torch.zeros(2, 4))
    assert found.first.module == "1 (Halves)"
    assert [each.name for each in found.first.inputs] == ["chunk[0] in 1 (Halves)"]
    assert found.first.output.name == "log in 1 (Halves)"
    assert "getitem" not in str(found.first)


def in_a_branch(x: Any) -> Any:
    doubled = x * 2
    return torch.log(doubled - 100)  # HERE


def test_a_branch_is_looked_into(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        return torch.cond(x.sum() > 0, in_a_branch, lambda x: x.cos(), (x,))

    with find(tmp_path) as found:
        torch.compile(function, backend="aot_eager")(torch.ones(3))
    assert found.first.operation == "aten.log.default"
    assert found.first.line.code == "return torch.log(doubled - 100)  # HERE"


OPERATOR = """
import torch
from torch import Tensor

@torch.library.custom_op("depyf_tests::logarithm", mutates_args=())
def logarithm(x: Tensor) -> Tensor:
    return x.log()

@logarithm.register_fake
def _(x):
    return torch.empty_like(x)
"""


def test_an_operator_of_the_users_own_is_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "module_with_an_operator.py").write_text(OPERATOR)
    monkeypatch.syspath_prepend(str(tmp_path))
    logarithm = importlib.import_module("module_with_an_operator").logarithm
    with find(tmp_path) as found:
        torch.compile(lambda x: logarithm(x) + 1, backend="aot_eager")(-torch.ones(2))
    assert found.first.operation == "depyf_tests.logarithm.default"
    replayed = warm_python.run([sys.executable, found.first.replay])
    assert replayed.returncode == 0, replayed.stderr


def test_a_graph_that_cannot_be_replayed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nonfinite, "follow", lambda *_: 1 / 0)
    with find(tmp_path) as found:
        torch.compile(logarithm, backend="aot_eager")(-torch.ones(2))
    assert found.first.source == RESULT
    assert found.first.line.code == "return torch.log(x) * 2"
    assert any("ZeroDivisionError" in note for note in found.first.notes)


def test_a_graph_of_dynamos_alone_is_searched(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        y = x.clone()
        y.sub_(1).log_()
        return torch.nn.functional.relu(y)

    with find(tmp_path) as found:
        torch.compile(function, backend="eager")(torch.tensor([0.5, 2.0]))
    assert found.first.operation == "Tensor.log_"
    assert warm_python.run([sys.executable, found.first.replay]).returncode == 0


def test_the_programs_random_numbers_are_left(tmp_path: Path) -> None:
    compiled = torch.compile(lambda x: torch.log(torch.nn.functional.dropout(x, 0.5)), backend="aot_eager")
    torch.manual_seed(0)
    expected = compiled(torch.ones(20)), torch.rand(2)
    torch.manual_seed(0)
    with find(tmp_path) as found:
        inside = compiled(torch.ones(20)), torch.rand(2)
    assert found.first.kind == "Inf"
    assert all(torch.equal(a, b) for a, b in zip(expected, inside))


def test_a_directory_that_cannot_be_written_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with find(tmp_path / "file") as found:
        torch.compile(logarithm, backend="aot_eager")(-torch.ones(2))
    assert found.first.replay is None
    assert "nothing could be saved" in found.first.notes[0]


def test_an_exception_of_the_program_passes(tmp_path: Path) -> None:
    def program() -> None:
        torch.compile(logarithm, backend="aot_eager")(-torch.ones(2))
        raise KeyError

    with pytest.raises(KeyError), find(tmp_path) as found:
        program()
    assert found.first.operation == "aten.log.default"
