"""``compare`` where memory is written to: values are those of their time, and an operation is only named as the first
wrong one where a process of its own shows it. Custom operators whose schema hides something are named."""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path
from typing import Any, Callable, List, Tuple

import pytest
import warm_python
from torch_versions import needs_stances

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo"), needs_stances]
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.questions.compare import confirm  # noqa: E402
from depyf.dynamo.questions.compare.custom_operators import own_random_numbers  # noqa: E402
from depyf.dynamo.questions.compare.judging import Judge  # noqa: E402
from depyf.dynamo.questions.compare.mending import Mending  # noqa: E402
from depyf.dynamo.questions.compare.node_values import interpreted, writes  # noqa: E402
from depyf.dynamo.scripts.imports import Imports  # noqa: E402
from depyf.dynamo.scripts.program_objects import expression  # noqa: E402

if not hasattr(torch.compiler, "set_stance"):
    pytest.skip("compare needs PyTorch 2.6, and the custom operators here what 2.4 lacks", allow_module_level=True)
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "programs"))
import written_values  # noqa: E402
from written_values import HIDING, WRONG  # noqa: E402

LINES = Path(written_values.__file__).read_text().splitlines()


# The first wrong operation


@pytest.mark.parametrize("name", list(WRONG))
def test_an_operation_is_named_where_another_process_shows_it(name: str, tmp_path: Path) -> None:
    function, arguments, backend, operation = WRONG[name]
    answer = depyf.compare(function, *arguments, backend=backend, directory=str(tmp_path))
    culprit = answer.culprit
    assert culprit is not None
    assert culprit.confirmed, str(answer)
    assert operation in culprit.operation
    assert culprit.place is not None
    assert LINES[culprit.place[1] - 1].endswith("# wrong")
    assert f"first wrong operation: {culprit.node} = " in str(answer)
    script = re.search(r"to reproduce it \(it was run, and differs\): python (\S+)", str(answer))
    assert script is not None
    assert culprit.script == script.group(1)


@pytest.mark.slow
def test_the_printed_script_differs_when_the_user_runs_it(tmp_path: Path) -> None:
    function, arguments, backend, _ = WRONG["chain in place"]
    answer = depyf.compare(function, *arguments, backend=backend, directory=str(tmp_path))
    assert answer.culprit is not None
    done = warm_python.run([sys.executable, str(answer.culprit.script)], cwd=tmp_path)
    before, after = done.stdout.split("compiled with")
    assert "DIFFER" not in before
    assert "DIFFER  output 0" in after


def test_what_only_this_process_computes_otherwise_is_not_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(written_values, "factor", 1.01)  # another process has 1
    function, arguments = written_values.scaled_in_place, (torch.ones(4), torch.ones(4))
    answer = depyf.compare(function, *arguments, backend=written_values.by_a_factor, directory=str(tmp_path))
    culprit = answer.culprit
    assert culprit is not None
    assert not culprit.confirmed
    assert "first wrong operation" not in str(answer)
    assert "to reproduce it" not in str(answer)
    assert "differs in this process, not confirmed in another: v = l_x_.view(-1)" in str(answer)
    assert "not confirmed: a process of its own computes what eager mode does" in str(answer)
    assert "not confirmed" in answer._repr_html_()


def test_an_output_that_differs_in_the_program_alone_is_only_called_that(monkeypatch: pytest.MonkeyPatch) -> None:
    started: List[str] = []
    monkeypatch.setattr(confirm, "differs", lambda path: started.append(path))
    compiled: List[object] = []

    def wrong_once(module: Any, _: Any) -> Any:
        compiled.append(module)
        return module if len(compiled) > 1 else lambda *given: [value + 1 for value in module.forward(*given)]

    answer = depyf.compare(lambda x: x.sin(), torch.ones(3), backend=wrong_once)
    assert "an output that differs: sin" in str(answer)
    assert "not confirmed: the graph compiled by itself is right" in str(answer)
    assert started == []


def healthy(p: Any, g: Any) -> Any:
    whole = p.unsqueeze(0)
    bits = p.view(torch.int32)
    y = (whole * g).sum() / 3.7
    p.sub_(g)
    p[1:3] = 1
    p.index_put_((torch.tensor([0]),), torch.tensor([5.0]))
    return y, bits.sum(), whole


def test_views_of_what_is_written_later_give_no_alarm() -> None:
    answer = depyf.compare(healthy, torch.randn(6), torch.randn(6), backend="aot_eager")
    assert answer.same, str(answer)
    assert answer.notes == ()


# Values of their time


def captured(function: Callable[..., Any], *arguments: Any) -> Any:
    graphs: List[Any] = []

    def keep(module: Any, _: Any) -> Any:
        graphs.append(module)
        return module

    torch.compile(function, backend=keep)(*arguments)
    return graphs[0]


def read_and_written(x: Any) -> Any:
    y = x.view(-1) * 2
    x.add_(1)
    return y.view(2, 3)


def test_values_are_kept_as_they_were_made_and_results_as_they_are_at_the_end() -> None:
    x = torch.ones(2, 3)
    module = captured(read_and_written, x.clone())
    values = interpreted(module, [x], None)
    by_name = {node.name: node for node in values.nodes}
    view, y, last = by_name["view"], by_name["y"], by_name["view_1"]
    assert values.nodes[view].tolist() == [1] * 6  # type: ignore[attr-defined]
    assert x.tolist() == torch.ones(2, 3).tolist()
    assert (view in values.rewritten, y in values.rewritten, last in values.rewritten) == (True, False, False)
    assert dict(values.late) == {y: [view]}
    assert set(values.views) == {view, last}
    assert [node.name for node in module.graph.nodes if writes(node)] == ["add_"]
    assert values.inputs[0][1].tolist() == torch.full((2, 3), 2.0).tolist()  # type: ignore[attr-defined]
    assert values.results[0][0].tolist() == torch.full((2, 3), 2.0).tolist()  # type: ignore[attr-defined]
    assert values.left_out == 0


def test_what_does_not_fit_into_memory_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    from depyf.dynamo.questions.compare import node_values

    monkeypatch.setattr(node_values, "MOST_BYTES", 40)
    x = torch.ones(2, 3)
    values = interpreted(captured(read_and_written, x.clone()), [x], None)
    assert values.left_out >= 3
    assert len(values.results) == 1


def writes_first(module: Any, inputs: Any) -> Any:
    """Compile a graph that writes before it reads: what it reads by a view is too late."""

    def run(given: List[Any]) -> List[Any]:
        values = dict(zip([node for node in module.graph.nodes if node.op == "placeholder"], given))
        todo = [node for node in module.graph.nodes if node.op.startswith("call")]
        for node in sorted(todo, key=lambda each: each.name != "add_" and each.op != "placeholder"):
            args = torch.fx.node.map_arg(node.args, values.__getitem__)
            function = getattr(args[0], node.target) if node.op == "call_method" else node.target
            values[node] = function(*(args[1:] if node.op == "call_method" else args))
        output = next(iter(reversed(module.graph.nodes)))
        return [values[each] for each in output.args[0]]

    return run


def test_an_operation_that_reads_memory_too_late_is_found() -> None:
    module = captured(read_and_written, torch.ones(2, 3))
    mending = Mending(module, [torch.ones(2, 3)], None, writes_first, Judge())
    found = mending.late_reader()
    assert found is not None
    assert (found.node.name, found.output.name) == ("y", "view_1")
    nodes = {node.name: node for node in module.graph.nodes}
    assert mending.heals(nodes["y"])
    right = Mending(module, [torch.ones(2, 3)], None, lambda graph, _: lambda given: graph(*given), Judge())
    assert right.late_reader() is None
    assert not right.heals(nodes["y"])


# Passes and backends in scripts


class Halved:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, graph: Any) -> Any:
        return graph * self.factor


def written(value: object) -> Tuple[str, Imports]:
    imports = Imports()
    text = expression(value, "given", imports)
    assert text is not None
    return text, imports


def test_objects_of_the_program_are_written_as_expressions(monkeypatch: pytest.MonkeyPatch) -> None:
    assert written(functools.partial(writes_first, inputs=3))[0] == "functools.partial(writes_first, inputs=3)"
    assert written([torch.ops.aten.sin.default, torch.tanh, 2])[0] == "[torch.ops.aten.sin.default, torch.tanh, 2]"
    text, imports = written(Halved(0.5))
    assert text == "made(Halved, {'factor': 0.5})"
    assert "def made(" in imports.sources()
    assert expression(object(), "given", Imports()) is None
    monkeypatch.setattr(writes_first, "__module__", "__main__")  # its source is needed there
    name, imports = written(writes_first)
    assert name == "writes_first"
    assert "def writes_first(module: Any, inputs: Any)" in imports.sources()


# Custom operators and random numbers


@pytest.mark.parametrize("name", list(HIDING))
def test_a_custom_operator_that_hides_something_is_named(name: str) -> None:
    function, said = HIDING[name]
    answer = depyf.compare(function, torch.randn(2, 3), backend="aot_eager")
    notes = [note for note in answer.notes if "custom operator" in note]
    if said:
        assert len(notes) == 1
        assert said in notes[0]
    else:
        assert answer.same
        assert notes == []


def test_random_numbers_are_said_to_differ() -> None:
    from depyf.dynamo.questions.compare.recorded import StageRecorder

    recorder = StageRecorder(torch._dynamo.lookup_backend("aot_eager"), "aot_eager")
    for undo in [recorder.install()]:
        torch.compile(lambda x: x + torch.rand(4), backend=recorder)(torch.ones(4))
        for each in reversed(undo):
            each()
    note = own_random_numbers(recorder.compilations, "inductor")
    assert note is not None
    assert "draws random numbers (aten.rand.default): with inductor they differ from those of eager mode" in note


@pytest.mark.inductor
@pytest.mark.slow
def test_random_numbers_and_lossy_passes_of_inductor() -> None:
    import torch._inductor.config as config

    answer = depyf.compare(lambda x: torch.where(torch.rand(4) > 0.5, x, 0).sum(), torch.arange(4.0))
    assert answer.same
    assert any("unless torch._inductor.config.fallback_random is set" in note for note in answer.notes)
    with config.patch(post_grad_custom_pre_pass=written_values.lossy_division):
        wrong = depyf.compare(written_values.divided, torch.randn(3), torch.randn(3))
    assert wrong.culprit is not None
    assert wrong.culprit.confirmed, str(wrong)
    assert "aten.div" in wrong.culprit.operation
