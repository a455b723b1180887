"""A decorated function has its own name, and not that of the wrapper that Dynamo compiles."""

from __future__ import annotations

import functools
import io
from pathlib import Path
from typing import Any, List

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.hooks import private_names  # noqa: E402
from depyf.report.model.manifest import from_json  # noqa: E402


def logged(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    return wrapper


def given_all(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Net(torch.nn.Module):
    @logged
    def forward(self, x: Any) -> Any:
        return x + 1


class OtherNet(torch.nn.Module):
    @logged
    @given_all
    def forward(self, x: Any) -> Any:
        return x + 2


class Stepper:
    factor = 2

    @given_all
    def step(self, x: Any) -> Any:
        return x * self.factor


def everything() -> Any:
    compiled = [torch.compile(each, backend="eager", dynamic=False) for each in (Net(), OtherNet(), Stepper().step)]
    for size in (2, 3):
        for each in compiled:
            each(torch.ones(size))
    return compiled


def test_it_is_called_so_wherever_it_is_named(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path), depyf.watch(stream=io.StringIO()) as watched:
        compiled = everything()
    names = {"Net.forward", "OtherNet.forward", "Stepper.step"}
    run = from_json((tmp_path / "manifest.json").read_text())
    assert {
        run.functions[each.function].qualified_name for each in run.compilations if each.function is not None
    } == names
    assert {run.functions[each.function].qualified_name for each in run.recompiles} == names
    assert {each.function for each in watched.happened} == names
    index = (tmp_path / "index.md").read_text()
    assert all(f"## `{name}`" in index for name in names)
    assert "wrapper`" not in index
    assert depyf.why(compiled[0], torch.ones(2)).function == "Net.forward"
    with depyf.trace() as traced:
        for each in compiled:
            each(torch.ones(2))
    if not hasattr(torch._dynamo.guards.GuardBuilder, "SET_CONTAINS"):
        return  # before 2.8 nothing says what class an entry is for that is there already: its guards have ids only
    assert {name.split(" ")[0] for name in traced.counts if not name.startswith("__compiled")} == names


@pytest.mark.skipif(
    private_names.WRAP_INLINE.find() is None, reason="this PyTorch compiles no frame around modules of its own"
)
def test_a_module_of_pytorch_is_called_by_its_class_and_not_by_the_wrapper(tmp_path: Path) -> None:
    sequential = torch.compile(torch.nn.Sequential(torch.nn.Linear(3, 3)), backend="eager", dynamic=False)
    linear = torch.compile(torch.nn.Linear(3, 3), backend="eager", dynamic=False)
    names = {"Sequential.forward", "Linear.forward"}
    with depyf.prepare_debug(tmp_path), depyf.watch(stream=io.StringIO()) as watched:
        for size in (2, 4):
            sequential(torch.ones(size, 3))
            linear(torch.ones(size, 3))
    run = from_json((tmp_path / "manifest.json").read_text())
    assert {
        run.functions[each.function].qualified_name for each in run.compilations if each.function is not None
    } == names
    assert watched.happened
    assert {each.function for each in watched.happened} == names
    for name in ("index.md", *(path.name for path in tmp_path.glob("*.py"))):
        assert "wrap_inline" not in (tmp_path / name).read_text().replace("wrap_inline(fn", ""), name
    assert depyf.why(sequential, torch.ones(2, 3)).function == "Sequential.forward"
    with depyf.trace() as traced:
        sequential(torch.ones(2, 3))
    if hasattr(torch._dynamo.guards.GuardBuilder, "SET_CONTAINS"):  # else nothing says what class an entry is for
        assert {name.split(" ")[0] for name in traced.counts if not name.startswith("__compiled")} == {
            "Sequential.forward"
        }


def test_a_model_of_transformers_is_called_by_its_class(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        num_hidden_layers=1, hidden_size=16, num_attention_heads=2, intermediate_size=16, vocab_size=50
    )
    model = torch.compile(transformers.BertModel(config).eval(), backend="eager")
    with depyf.prepare_debug(tmp_path):
        model(torch.ones(1, 4, dtype=torch.long))
    run = from_json((tmp_path / "manifest.json").read_text())
    assert "BertModel.forward" in [each.qualified_name for each in run.functions]
    assert "## `BertModel.forward`" in (tmp_path / "index.md").read_text()


def test_a_function_inside_of_another_that_wraps_nothing_keeps_its_name(tmp_path: Path) -> None:
    factor = 3

    def scaled(x: Any) -> Any:
        return x * factor

    with depyf.prepare_debug(tmp_path):
        torch.compile(scaled, backend="eager")(torch.ones(2))
    run = from_json((tmp_path / "manifest.json").read_text())
    assert run.functions[0].qualified_name.endswith(".<locals>.scaled")


class Asked:
    """It does not like to be asked for what it has not, and counts how often it is."""

    def __init__(self) -> None:
        self.questions: List[str] = []

    def __getattr__(self, name: str) -> Any:
        self.questions.append(name)
        raise RuntimeError(name)


class NetWithSettings(torch.nn.Module):
    settings = Asked()

    @logged
    def forward(self, x: Any) -> Any:
        return x + 3


def test_nothing_is_asked_of_the_other_attributes_of_the_class(tmp_path: Path) -> None:
    with depyf.prepare_debug(str(tmp_path)):
        torch.compile(NetWithSettings(), backend="eager")(torch.ones(2))
    assert NetWithSettings.settings.questions == []
    run = from_json((tmp_path / "manifest.json").read_text())
    assert run.failures == ()
    assert [each.qualified_name for each in run.functions] == ["NetWithSettings.forward"]
