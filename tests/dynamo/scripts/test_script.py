"""A graph written as a script runs without depyf, computes the same, and reports it when it does not."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, List, Sequence, Tuple

import pytest
import warm_python

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from scripts import namespace, ran  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch_versions import needs_stances  # noqa: E402

import depyf  # noqa: E402
from depyf.dynamo.scripts import operators  # noqa: E402
from depyf.dynamo.scripts.whole import HowItRuns, RecordedCall, write_script  # noqa: E402


def captured(function: Callable[..., Any], *arguments: Any, **options: Any) -> Tuple[Any, List[Any]]:
    """The graph that Dynamo hands to a backend, and the inputs that it is called with."""
    found: List[Any] = []

    def backend(module: Any, _: Sequence[Any]) -> Any:
        def call(*inputs: Any) -> Any:
            found[:] = [module, list(inputs)]
            return module(*inputs)

        return call

    torch._dynamo.reset()
    torch.compile(function, backend=backend, fullgraph=True, **options)(*arguments)
    return found[0], found[1]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        y = self.linear(x)
        return torch.relu(y)


@pytest.mark.slow
def test_a_script_runs_in_a_process_without_depyf(tmp_path: Path) -> None:
    module, inputs = captured(Net(), torch.randn(2, 4))
    script = write_script(str(tmp_path / "graph.py"), module, inputs, title="Net", how=HowItRuns("aot_eager"))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-P" if sys.version_info >= (3, 11) else "-s", script.path],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "same    output 0: float32[2, 3]" in done.stdout
    # Up to PyTorch 2.4 the graph holds the module: its parameters are no inputs, and their names are others.
    assert re.search(r"same    gradient of \S*weight", done.stdout), done.stdout
    assert "import depyf" not in Path(script.path).read_text()


def test_the_users_lines_stand_above_the_operations(tmp_path: Path) -> None:
    module, inputs = captured(Net(), torch.randn(2, 4))
    text = Path(write_script(str(tmp_path / "graph.py"), module, inputs, title="Net").path).read_text()
    assert "code: y = self.linear(x)\n" in text
    assert "code: return torch.relu(y)\n" in text
    assert "modules/linear.py" not in text  # where F.linear is called: no line of the user's
    assert " = None" not in text.split("class Graph")[1].split("def inputs")[0]


def test_saved_values_give_what_was_computed(tmp_path: Path) -> None:
    module, inputs = captured(Net(), torch.randn(2, 4))
    expected = module(*inputs)
    script = write_script(str(tmp_path / "g.py"), module, inputs, title="Net", recorded=RecordedCall(expected))
    status, printed = ran(script)
    assert status == 0
    assert "eagerly, and when it was captured:\n    same    output 0" in printed
    for made, given in zip(namespace(script)["inputs"](), inputs):
        assert torch.equal(made, given)
        assert made.requires_grad == given.requires_grad


def test_a_graph_that_computes_something_else_is_told(tmp_path: Path) -> None:
    module, inputs = captured(Net(), torch.randn(2, 4))
    expected = [module(*inputs)[0] + 0.01]
    script = write_script(str(tmp_path / "g.py"), module, inputs, title="Net", recorded=RecordedCall(expected))
    status, printed = ran(script)
    assert status == 1
    assert "DIFFER  output 0: float32[2, 3]: largest error 0.01" in printed
    assert ran(script, "--tolerance", "1")[0] == 0


def test_a_wrong_backend_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, inputs = captured(lambda x: x.sin() + 1, torch.randn(3, requires_grad=True))
    script = write_script(str(tmp_path / "g.py"), module, inputs, title="sin")
    (tmp_path / "wrong_backend.py").write_text(
        "def cosine(module, inputs):\n"
        "    for node in module.graph.nodes:\n"
        "        if node.target == 'sin':\n"
        "            node.target = 'cos'\n"
        "    module.recompile()\n"
        "    return module\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    status, printed = ran(script, backend="wrong_backend:cosine")
    assert status == 1
    assert "DIFFER  output 0" in printed
    assert "DIFFER  gradient of L_x_" in printed


def test_strides_and_shared_memory_are_kept(tmp_path: Path) -> None:
    base = torch.randn(6, 8)
    given = [base.t(), torch.randn(1, 5).expand(3, 5), base[1:3, ::2], torch.randn(4, 6)[:, 2:4]]

    def function(a: Any, b: Any, c: Any, d: Any) -> Any:
        return a.sum() + b.sum() + c.sum() + d.sum()

    module, inputs = captured(function, *given)
    for values in (False, True):
        script = write_script(
            str(tmp_path / f"g{values}.py"), module, inputs, title="views", recorded=RecordedCall() if values else None
        )
        made = namespace(script)["inputs"]()
        assert [each.stride() for each in made] == [each.stride() for each in inputs]
        assert [each.shape for each in made] == [each.shape for each in inputs]
        assert made[0].data_ptr() + 8 * 4 == made[2].data_ptr()
        if values:
            assert all(torch.equal(ours, theirs) for ours, theirs in zip(made, inputs))


def test_made_up_values_stay_in_the_range_of_those_that_are_known(tmp_path: Path) -> None:
    def function(table: Any, index: Any, variance: Any, flag: Any) -> Any:
        return torch.where(flag, table[index].sum(), variance.sqrt().sum())

    given = [torch.randn(5, 2), torch.tensor([[4, 0, 2]]), torch.rand(7) + 1, torch.tensor([True, False])]
    module, inputs = captured(function, *given)
    script = write_script(str(tmp_path / "g.py"), module, inputs, title="ranges")
    assert ran(script)[0] == 0
    _, index, variance, flag = namespace(script)["inputs"]()
    assert index.min() >= 0
    assert index.max() <= 4
    assert variance.min() >= 1
    assert flag.dtype == torch.bool


def test_dynamic_sizes_are_those_it_was_compiled_for(tmp_path: Path) -> None:
    found: List[Any] = []

    def backend(module: Any, inputs: Sequence[Any]) -> Any:
        found[:] = [write_script(str(tmp_path / "g.py"), module, inputs, title="dynamic")]
        return module

    torch._dynamo.reset()
    torch.compile(lambda x: x.view(-1) * x.shape[0], backend=backend, dynamic=True)(torch.randn(5, 3))
    made = namespace(found[0])["inputs"]()
    assert [each if isinstance(each, int) else tuple(each.shape) for each in made] in ([5, 3, (5, 3)], [5, (5, 3), 3])
    assert "dynamic=True" in Path(found[0].path).read_text()
    assert ran(found[0])[0] == 0


def test_branches_and_constants_come_along(tmp_path: Path) -> None:
    if not hasattr(torch, "cond"):
        pytest.skip("this PyTorch has no cond")
    table = torch.arange(20.0)

    def function(x: Any) -> Any:
        y = torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (x,))
        return y + table[:3]

    module, inputs = captured(function, torch.ones(3))
    script = write_script(str(tmp_path / "g.py"), module, inputs, title="cond", recorded=RecordedCall(module(*inputs)))
    status, printed = ran(script)
    assert status == 0, printed


def test_a_constant_of_the_graph_keeps_its_values(tmp_path: Path) -> None:
    class Root(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weights", torch.tensor([1.0, 2.0, float("inf")]))

        def forward(self, x: Any) -> Any:
            return x * self.weights

    module = torch.fx.symbolic_trace(Root())
    script = write_script(str(tmp_path / "g.py"), module, [torch.ones(3)], title="constant")
    names = namespace(script)
    assert names["Graph"]()(torch.ones(3)).tolist() == [1.0, 2.0, float("inf")]
    assert script.notes == ()


def test_randomness_is_that_of_the_captured_call(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        return torch.nn.functional.dropout(x, 0.5)

    module, inputs = captured(function, torch.ones(64))
    state = torch.get_rng_state()
    expected = module(*inputs)
    torch.randn(3)
    script = write_script(
        str(tmp_path / "g.py"), module, inputs, title="dropout", recorded=RecordedCall(expected, state)
    )
    status, printed = ran(script)
    assert status == 0, printed


def test_an_operator_of_the_users_own_comes_along(tmp_path: Path) -> None:
    if not hasattr(torch.library, "custom_op"):
        pytest.skip("this PyTorch has no custom_op")
    (tmp_path / "my_operators.py").write_text(
        "import torch\n\n@torch.library.custom_op('depyf_script::twice', mutates_args=())\n"
        "def twice(x: torch.Tensor) -> torch.Tensor:\n    return x * 2\n\n"
        "@twice.register_fake\ndef _(x):\n    return torch.empty_like(x)\n"
    )
    sys.path.insert(0, str(tmp_path))
    try:
        import my_operators

        module, inputs = captured(lambda x: my_operators.twice(x) + 1, torch.ones(3))
        script = write_script(str(tmp_path / "graph.py"), module, inputs, title="custom operator")
    finally:
        sys.path.remove(str(tmp_path))
    text = Path(script.path).read_text()
    assert "import my_operators" in text
    assert str(tmp_path) in text
    assert ran(script)[0] == 0


FACTOR = 2.0


def doubled(x: Any) -> Any:
    return x * FACTOR


def operators_of_the_program() -> Any:
    """Operators that no import registers: one that needs other things of the program, and one made in the old way."""
    custom_op, shift = torch.library.custom_op, {"by": 2.0}

    @custom_op("depyf_script::shifted_log", mutates_args=())
    def shifted_log(x: Tensor, tensor: float = 0.0) -> Tensor:
        return torch.log(doubled(x) - shift["by"] + tensor)

    @shifted_log.register_fake
    def _(x: Tensor, tensor: float = 0.0) -> Tensor:
        return torch.empty_like(x)

    shifted_log.register_autograd(lambda context, gradient: (gradient * FACTOR, None))
    return shifted_log


@pytest.mark.skipif(not hasattr(torch.library, "register_autocast"), reason="this PyTorch has no such rules")
def test_what_autocast_does_to_an_operator_is_part_of_its_definition() -> None:
    @torch.library.custom_op("depyf_script::under_autocast", mutates_args=())
    def under_autocast(x: Tensor) -> Tensor:
        return x.clone()

    under_autocast.register_autocast("cpu", torch.bfloat16)
    statements = [statement for _, statement in operators.definition(under_autocast)]
    assert statements[-1] == "depyf_script_under_autocast.register_autocast('cpu', torch.bfloat16)"


@pytest.mark.slow
@needs_stances
def test_an_operator_of_the_program_itself_is_defined_in_the_script(tmp_path: Path) -> None:
    shifted_log = operators_of_the_program()

    def function(x: Any) -> Any:
        return shifted_log(x).sum()

    x = torch.full((3,), 0.5, requires_grad=True)
    with depyf.find_nonfinite(str(tmp_path), stream=io.StringIO()) as found:
        torch.compile(function, backend="aot_eager")(x)
    assert found.first is not None
    assert found.first.notes == ()
    module, inputs = captured(function, x)
    script = write_script(
        str(tmp_path / "graph.py"),
        module,
        inputs,
        title="operator",
        how=HowItRuns("aot_eager"),
        recorded=RecordedCall(),
    )
    assert script.notes == ()
    for each, printed in ((found.first.replay, "3 values are not finite"), (script.path, "same    gradient of L_x_")):
        done = warm_python.run([sys.executable, str(each)])
        assert done.returncode == 0, done.stdout + done.stderr
        assert printed in done.stdout


@needs_stances
def test_an_operator_that_a_script_can_not_define_is_said_with_its_place(tmp_path: Path) -> None:
    library = torch.library.Library("depyf_old", "DEF")
    library.define("log(Tensor x) -> Tensor")
    library.impl("log", lambda x: x.log(), "CompositeExplicitAutograd")
    library.impl("log", torch.empty_like, "Meta")
    lines = Path(__file__).read_text().splitlines()
    where = f"{__file__}:{next(n for n, line in enumerate(lines, 1) if 'Library(' in line)}"
    with depyf.find_nonfinite(str(tmp_path), stream=io.StringIO()) as found:
        torch.compile(lambda x: torch.ops.depyf_old.log(x - 1) + 1, backend="aot_eager")(torch.zeros(2))
    assert found.first is not None
    told = f", as {where} does" if where in torch._C._dispatch_dump("depyf_old::log") else ": import what does that"
    assert any(f"the operator depyf_old::log has to be registered first{told}" in n for n in found.first.notes)
    assert "# the operator depyf_old::log" in Path(str(found.first.replay)).read_text()


def test_inputs_that_are_no_ordinary_tensors_are_said(tmp_path: Path) -> None:
    graph = torch.fx.Graph()
    graph.output(graph.call_function(torch.sin, (graph.placeholder("x"),)))
    module = torch.fx.GraphModule(nn.Module(), graph)
    script = write_script(str(tmp_path / "g.py"), module, [torch.eye(2).to_sparse()], title="sparse")
    assert script.notes == ("the input x is a tensor of the kind sparse_coo; here it is an ordinary one",)


def test_what_a_script_can_not_make_is_said(tmp_path: Path) -> None:
    class Odd:
        pass

    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.placeholder("odd")
    graph.output(graph.call_function(torch.sin, (x,)))
    module = torch.fx.GraphModule(nn.Module(), graph)
    script = write_script(str(tmp_path / "g.py"), module, [torch.ones(2), Odd()], title="odd")
    assert "the input odd is a Odd" in script.notes[0]
    assert "Not as it was: the input odd is a Odd" in Path(script.path).read_text()
