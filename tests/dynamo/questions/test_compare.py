"""``compare``: planted numerical bugs are found at their operation, healthy code gives no report, nothing changes."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import os
import random
import sys
import threading
from pathlib import Path
from typing import Any, ClassVar, Dict, List

import pytest
import warm_python
from torch_versions import needs_stances

pytestmark = [pytest.mark.torch, needs_stances]
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.answers.compared import Compared  # noqa: E402
from depyf.dynamo.hooks import cache_entries, torch_names, torch_settings  # noqa: E402
from depyf.dynamo.questions.compare.judging import Judge  # noqa: E402
from depyf.dynamo.scripts.backend import BackendInScript, backend_in_script  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "programs"))
import planted_numerics  # noqa: E402
from planted_numerics import HEALTHY, PLANTED  # noqa: E402

LINES = Path(planted_numerics.__file__).read_text().splitlines()


@pytest.fixture(autouse=True)
def fresh_torch() -> Any:
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def entries(function: Any) -> int:
    return len(cache_entries.cache_entries(function.__code__))


# Planted bugs: tools/check/check_compare.py has all of them


@pytest.mark.parametrize("name", [name for name, planted in PLANTED.items() if not planted.inductor])
def test_a_planted_bug_is_found_at_its_operation(name: str, tmp_path: Path) -> None:
    check_found(name, tmp_path)


@pytest.mark.inductor
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("only where it is fused", marks=pytest.mark.slow),
        "decomposition",
        pytest.param("post_grad_custom_post_pass, backward", marks=pytest.mark.slow),
    ],
)
def test_a_planted_bug_of_inductor_is_found(name: str, tmp_path: Path) -> None:
    answer = check_found(name, tmp_path)
    assert answer.culprit is not None
    if name != "decomposition":
        if torch_names.find(
            "torch._inductor.debug", "set_kernel_post_grad_provenance_tracing"
        ):  # else it does not tell
            assert any(kernel.startswith("cpp_fused") for kernel in answer.culprit.kernels)
        assert [(stage.stage, stage.right) for stage in answer.stages] == [
            ("the backend", False),
            ("Dynamo", True),
            ("AOTAutograd", True),
            ("decompositions", True),
        ]


@pytest.mark.slow
@pytest.mark.inductor
def test_bisect_names_the_pass(capsys: pytest.CaptureFixture[str]) -> None:
    planted = PLANTED["post_grad_custom_pre_pass"]
    with planted.install() as backend:
        answer = depyf.compare(planted.function, *planted.arguments(), backend=backend, bisect=True)
    found = answer.bisected
    assert found is not None
    assert (found.backend, found.subsystem, found.detail) == (
        "inductor",
        "post_grad_passes",
        "post_grad_custom_pre_pass",
    )
    assert f"PyTorch's bisector: inductor, post_grad_passes, number {found.number}: post_grad_c" in str(answer)
    assert "post_grad_custom_pre_pass" in answer._repr_html_()
    assert capsys.readouterr().out == ""
    assert entries(type(planted.function).forward) == 0


@pytest.mark.slow
def test_bisect_says_where_it_can_not() -> None:
    planted = PLANTED["compiler of the forward"]
    with planted.install() as backend:
        arguments = planted.arguments()
        answer = depyf.compare(planted.function, *arguments, backend=backend, bisect=True)
        assert "PyTorch's bisector: not run: it knows no parts of the backend wrong_forward" in str(answer)
        assert depyf.compare(planted.function, *arguments, backend=backend).bisected is None
    assert depyf.compare(planted.function, *arguments, backend="aot_eager", bisect=True).bisected is None


def check_found(name: str, directory: Path) -> Compared:
    planted = PLANTED[name]
    with planted.install() as backend:
        answer = depyf.compare(planted.function, *planted.arguments(), backend=backend, directory=str(directory))
    assert not answer.same
    assert answer.stage == planted.stage
    culprit = answer.culprit
    assert culprit is not None
    assert planted.operation in culprit.operation
    assert culprit.backward == planted.backward
    assert culprit.place is not None
    assert culprit.place[0] == planted_numerics.__file__
    assert "# wrong" in LINES[culprit.place[1] - 1]
    assert culprit.measured is not None
    assert culprit.measured.compiled is not None
    assert culprit.measured.eager is not None
    assert culprit.measured.compiled.largest > 100 * culprit.measured.eager.largest
    return answer


def test_the_script_reproduces_it(tmp_path: Path) -> None:
    planted = PLANTED["backend that changes a node"]
    answer = depyf.compare(
        planted.function, *planted.arguments(), backend=planted_numerics.cosine_backend, directory=str(tmp_path)
    )
    assert answer.culprit is not None
    assert answer.culprit.script is not None
    done = warm_python.run([sys.executable, answer.culprit.script])
    assert done.returncode == 1, done.stderr
    assert "same    output 0" in done.stdout.split("compiled with planted_numerics:cosine_backend")[0]
    assert "DIFFER  output 0" in done.stdout


def known_only_here(module: Any, inputs: Any) -> Any:
    return planted_numerics.cosine_backend(module, inputs)


without_source = object()


@pytest.mark.slow
def test_what_a_script_cannot_name_is_said_and_the_script_runs(tmp_path: Path) -> None:
    planted = PLANTED["backend that changes a node"]
    answer = depyf.compare(
        planted.function,
        *planted.arguments(),
        backend=lambda module, inputs: planted_numerics.cosine_backend(module, inputs) if without_source else module,
        directory=str(tmp_path),
    )
    assert answer.culprit is not None
    assert answer.culprit.script is not None
    assert "to reproduce it" not in str(answer)
    assert "note: not in the script: the backend <lambda>: no module has it under a name" in str(answer)
    command = [sys.executable, answer.culprit.script]
    alone = warm_python.run(command)
    assert alone.returncode == 0, alone.stderr
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(str(planted_numerics.__file__))}
    command += ["--backend", "planted_numerics:cosine_backend"]
    given = warm_python.run(command, env=environment)
    assert (given.returncode, "DIFFER  output 0" in given.stdout) == (1, True), given.stderr


def test_a_script_names_only_backends_that_another_process_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._dynamo.backends.common import aot_autograd

    made = aot_autograd(fw_compiler=known_only_here)
    for backend, name in ((known_only_here, "registered_here"), (made, "made_here")):
        torch._dynamo.register_backend(backend, name=name)
    assert backend_in_script(None, "inductor") == BackendInScript("inductor")
    assert backend_in_script(None, "aot_eager").name == "aot_eager"
    assert backend_in_script(torch._dynamo.lookup_backend("eager"), "eager").name == "eager"
    cosine = planted_numerics.cosine_backend
    assert backend_in_script(cosine, "cosine_backend").name == "planted_numerics:cosine_backend"
    assert backend_in_script(None, "registered_here").name == f"{__name__}:known_only_here"
    assert backend_in_script(None, "made_here").name == "none"
    assert "does not know it" in backend_in_script(None, "never_registered").gap
    monkeypatch.setattr(known_only_here, "__module__", "__main__")
    monkeypatch.delitem(sys.modules, __name__)
    assert "(__main__)" in backend_in_script(known_only_here, "known_only_here").gap


class Halves(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        left, right = x.chunk(2, -1)
        return torch.sin(left) + right


class Stack(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4), Halves()])

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


def test_the_culprit_has_the_path_of_its_module_and_parts_are_called_by_what_they_are_of(tmp_path: Path) -> None:
    from torch._dynamo.backends.common import aot_autograd

    def cosine(module: Any, _: Any) -> Any:
        for node in module.graph.nodes:
            if node.target is torch.ops.aten.sin.default:
                node.target = torch.ops.aten.cos.default
        module.recompile()
        return module.forward

    backend = aot_autograd(fw_compiler=cosine)
    answer = depyf.compare(Stack(), torch.randn(3, 4), backend=backend, backward=False, directory=str(tmp_path))
    assert answer.culprit is not None
    assert answer.culprit.module == "layers.1 (Halves)"
    assert "chunk[0]" in answer.culprit.operation
    assert "getitem" not in str(answer)


def test_a_pass_is_a_setting_of_the_program() -> None:
    import torch._inductor.config as config

    assert torch_settings.settings_of_the_program() == []
    # pytest's monkeypatch deletes the setting instead of putting it back: its values are not in the module's __dict__
    with config.patch(post_grad_custom_pre_pass=known_only_here):
        found = torch_settings.settings_of_the_program()
    assert found == [("torch._inductor.config.post_grad_custom_pre_pass", known_only_here)]


# Healthy code


@pytest.mark.parametrize("name", ["graph_breaks_and_branches", "updates_in_place", "dropout_while_training"])
def test_healthy_code_gives_no_alarm(name: str) -> None:
    function, arguments = HEALTHY[name]()
    answer = depyf.compare(function, *arguments, backend="aot_eager_decomp_partition")
    assert answer.same, str(answer)
    assert answer.stage is None
    assert len(answer.stages) == 1
    assert any(value.name.startswith("gradient of") for value in answer.stages[0].values)


@pytest.mark.inductor
@pytest.mark.parametrize("name", ["long_sums", "half_precision_overflow"])
def test_healthy_code_gives_no_alarm_with_inductor(name: str) -> None:
    function, arguments = HEALTHY[name]()
    answer = depyf.compare(function, *arguments)
    if any("CppCompileError" in stage.error for stage in answer.stages):  # 2.7 declares a variable of long_sums twice
        pytest.skip("the C++ that this PyTorch generates does not compile, which compare reported")
    assert answer.same, str(answer)
    assert answer.backend == "inductor"


def test_other_rounding_is_no_error_and_a_small_error_is_one() -> None:
    exact = torch.randn(1000, dtype=torch.float64) * 100
    eager = exact.float() * (1 + 1e-6 * torch.randn(1000))
    rounded = exact.float() * (1 + 1e-6 * torch.randn(1000))
    assert Judge().measure("x", rounded, eager, exact).right
    assert not Judge().measure("x", exact.float() * (1 + 1e-4), eager, exact).right
    one_wrong = rounded.clone()
    one_wrong[3] += 0.1
    assert not Judge().measure("x", one_wrong, eager, exact).right
    assert Judge(rtol=1e-2).measure("x", exact.float() * (1 + 1e-4), eager, exact).right
    assert not Judge(atol=1e-6).measure("x", rounded, eager, exact).right


def test_infinities_count_where_eager_is_right() -> None:
    wide = torch.tensor([1.0, 1e6], dtype=torch.float64)
    eager = torch.tensor([1.0, float("inf")]).half()
    assert Judge().measure("x", eager, eager, wide).right
    assert not Judge().measure("x", torch.tensor([float("nan"), float("inf")]).half(), eager, wide).right


# Nothing of the user's changes


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.seen: List[int] = []

    def forward(self, x: Any) -> Any:
        self.seen.append(len(x))
        y = helper(self.norm(self.linear(x)))
        return torch.nn.functional.dropout(y, 0.5)


def helper(x: Any) -> Any:
    torch._dynamo.graph_break()
    return x.sin()


def state(model: Any) -> Dict[str, Any]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def test_nothing_changes() -> None:
    model, x = Model(), torch.randn(5, 4, requires_grad=True)
    compiled = torch.compile(model, backend="aot_eager")
    compiled(x).sum().backward()
    gradient, counted = x.grad.clone(), (entries(Model.forward), entries(helper))
    before, numbers, python = state(model), torch.get_rng_state(), random.getstate()
    settings = torch._inductor.config.fallback_random
    counters = copy.deepcopy(torch._dynamo.utils.counters)
    answer = depyf.compare(compiled, x)
    assert counters == torch._dynamo.utils.counters
    assert answer.same, str(answer)
    assert answer.backend == "aot_eager"
    assert "norm.running_mean afterwards" in [value.name for value in answer.stages[0].values]
    assert all(torch.equal(value, before[name]) for name, value in state(model).items())
    assert torch.equal(x.grad, gradient)
    assert model.seen == [5]
    assert torch.equal(torch.get_rng_state(), numbers)
    assert random.getstate() == python
    assert torch._inductor.config.fallback_random == settings
    if cache_entries.has_regions():  # else the helper, which is called after a graph break, keeps one of ours
        assert (entries(Model.forward), entries(helper)) == counted


def test_code_without_cache_entries_has_none_afterwards() -> None:
    depyf.compare(Model(), torch.randn(5, 4), backend="eager")
    assert (entries(Model.forward), entries(helper)) == (0, 0)


scale = torch.nn.Parameter(torch.tensor([2.0]))


def test_what_a_function_reaches_by_its_own_names_is_copied_and_has_gradients() -> None:
    inside = torch.nn.Linear(3, 3)

    def function(x: Any, *, power: int) -> Any:
        inside.weight.data.mul_(1.5)
        return (inside(x) * scale) ** power

    before = inside.weight.clone()
    answer = depyf.compare(function, torch.randn(2, 3), backend="aot_eager", power=2)
    assert answer.same, str(answer)
    assert torch.equal(inside.weight, before)
    names = [value.name for value in answer.stages[0].values]
    assert {"gradient of inside.weight", "gradient of scale", "inside.weight afterwards"} <= set(names)


seen: List[Any] = []
table: Dict[str, int] = {"calls": 0}
calls = 0
weights = [torch.ones(3)]
inner = torch.nn.Linear(3, 3)


class Settings:
    log: ClassVar[List[int]] = []
    count = 0


settings = Settings()


def noting(x: Any, more: List[int] = []) -> Any:  # noqa: B006 - as users write
    global calls
    calls += 1
    seen.append(x)
    table["calls"] += 1
    settings.count += 1
    Settings.log.append(1)
    more.append(1)
    with torch.no_grad():
        weights[0].add_(1)
        inner.weight.add_(1)
    return inner(x) + calls + len(seen) + len(more)


def test_globals_that_are_reached_through_other_functions_are_put_back() -> None:
    def function(x: Any) -> Any:
        seen.append(len(seen))
        return noting(x) * 2

    weight = inner.weight.clone()
    answer = depyf.compare(function, torch.ones(2, 3), backend="aot_eager")
    assert answer.same, str(answer)
    assert answer.notes == ()  # each run begins with the same state: eager mode gives the same each time
    assert (seen, table, calls, settings.count, Settings.log) == ([], {"calls": 0}, 0, 0, [])
    assert noting.__defaults__ == ([],)
    assert weights[0].tolist() == [1, 1, 1]
    assert torch.equal(inner.weight, weight)
    assert inner.weight.grad is None


# Answers


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: (each for each in (x,)), "it returns a generator, whose code runs when something goes through it"),
        (lambda x: None, "it returns nothing, and writes to no tensor"),
    ],
)
def test_where_nothing_was_compared_that_is_said(function: Any, why: str) -> None:
    answer = depyf.compare(function, torch.ones(2), backend="eager")
    assert "nothing was compared" in str(answer)
    assert why in str(answer)
    assert not answer
    assert answer.stage is None


def test_tensors_without_plain_values_are_taken_apart() -> None:
    answer = depyf.compare(lambda x: (x.to_sparse(), x.to("meta")), torch.eye(2), backend="eager")
    assert [(value.name, value.right) for value in answer.stages[0].values] == [("output[0]", True)]


def test_locks_and_python_modules_are_no_reason_not_to_compare() -> None:
    class Locked(torch.nn.Linear):
        def __init__(self) -> None:
            super().__init__(3, 3)
            self.things = [threading.Lock(), sys]

        def forward(self, x: Any) -> Any:
            return super().forward(x) * 2

    answer = depyf.compare(Locked(), torch.ones(2, 3), backend="eager")
    assert answer.same
    assert len(answer.stages[0].values) == 3


def test_numbers_arrays_and_texts_that_are_returned_are_compared() -> None:
    @dataclasses.dataclass
    class Result:
        loss: float
        name: str

    def function(x: Any) -> Any:
        told = "compiled" if torch.compiler.is_compiling() else "eager"
        return {"array": (x * 2).numpy(), "result": Result(x.sum().item(), told), "rest": (1, None, x.shape)}

    answer = depyf.compare(function, torch.full((3,), 0.1), backend="eager")
    values = {value.name: value.right for value in answer.stages[0].values}
    wrong = "output['result'].name"
    assert values == {
        "output['array']": True,
        "output['result'].loss": True,
        wrong: False,
        "output['rest'][0]": True,
        "output['rest'][2][0]": True,
    }
    assert "'compiled' where eager has 'eager'" in str(answer)
    assert Judge().measure("x", 0.30000001192, 0.3, 0.3).right
    assert not Judge().measure("x", 0.3001, 0.3, 0.3).right


def optimized(step_returns: bool) -> Any:
    parameter = torch.nn.Parameter(torch.zeros(4, 4))
    optimizer = torch.optim.Adam([parameter])
    x = torch.randn(3, 4)

    def step() -> Any:
        loss = (x @ parameter - 1).square().mean()
        loss.backward()
        optimizer.step()
        return loss if step_returns else None

    return step


@pytest.mark.parametrize("step_returns", [False, True])
def test_a_first_step_of_adam_gives_no_alarm(step_returns: bool) -> None:
    answer = depyf.compare(optimized(step_returns), backend="aot_eager")
    assert answer.same, str(answer)
    assert any("computes the same in float64, and rounds otherwise" in note for note in answer.notes)
    assert any("gradients of what it returns are not compared" in note for note in answer.notes) == step_returns


@pytest.mark.parametrize("wrong", ["narrower", "other"])
def test_what_is_another_computation_when_compiled_is_no_rounding(wrong: str) -> None:
    def function(x: Any) -> Any:
        if not torch.compiler.is_compiling():
            return x.exp()
        return x.bfloat16().exp().float() if wrong == "narrower" else x.exp() * 1.00001

    answer = depyf.compare(function, torch.randn(100), backend="aot_eager")
    assert answer.stage == "Dynamo", str(answer)


def test_a_backend_that_fails_is_an_answer() -> None:
    def broken(module: Any, inputs: Any) -> Any:
        raise ValueError("no such thing")

    answer = depyf.compare(lambda x: x + 1, torch.ones(2), backend=broken)
    assert not answer.same
    assert "no such thing" in str(answer)


def test_what_eager_mode_raises_is_raised() -> None:
    def function(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        depyf.compare(function, torch.ones(2), backend="eager")


def test_the_answer_is_a_table_in_a_notebook(tmp_path: Path) -> None:
    planted = PLANTED["compiler of the forward"]
    with planted.install() as backend:
        answer = depyf.compare(planted.function, *planted.arguments(), backend=backend, directory=str(tmp_path))
    html = answer._repr_html_()
    assert "<td>the backend (wrong_forward)</td>" in html
    assert "sigmoid" in html
    assert not answer


def test_flex_attention_is_measured_in_float64() -> None:
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    modes = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode
    if not hasattr(modes, "supports_higher_order_operators"):
        pytest.skip("modes of this PyTorch do not see higher-order operators")
    shifted = lambda score, b, h, i, j: score + (i - j)  # noqa: E731

    def attention(x: Any) -> Any:
        return flex.flex_attention(x, x, x, score_mod=shifted)

    answer = depyf.compare(torch.compile(attention, backend="aot_eager"), torch.randn(1, 2, 128, 16))
    assert answer.same
    assert answer.notes == ()


def test_values_without_float64_are_compared_with_eager() -> None:
    class Stubborn(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            if x.dtype == torch.float64:
                raise TypeError("only floats")
            return x.exp()

    answer = depyf.compare(Stubborn(), torch.randn(4), backend="aot_eager")
    assert answer.same
    assert "does not run in float64 (TypeError: only floats)" in answer.notes[0]
    value = answer.stages[0].values[0]
    assert value.eager is None
    assert not value.reference


def test_randomness_of_another_kind_is_said() -> None:
    def drawing(module: Any, inputs: Any) -> Any:
        def call(*arguments: Any) -> Any:
            torch.rand(3)
            return module(*arguments)

        return call

    answer = depyf.compare(lambda x: x * torch.rand(8), torch.ones(8), backend=drawing)
    assert not answer.same
    assert any("draws random numbers" in note for note in answer.notes)


def test_a_graph_that_the_backend_compiles_only_once_is_said_not_to_run_by_itself(tmp_path: Path) -> None:
    compiled: List[Any] = []

    def once(module: Any, _: Any) -> Any:
        if compiled:
            raise ValueError("one is enough")
        compiled.append(module)
        return lambda *arguments: [value + 1 for value in module.forward(*arguments)]

    answer = depyf.compare(lambda x: x.sin(), torch.ones(3), backend=once, directory=str(tmp_path))
    assert not answer.same
    assert "compiled by itself does not run: ValueError: one is enough" in str(answer)
