"""``extract``: a graph of a compiled function, or of a dump, becomes a script that runs by itself."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any, List

import pytest
from torch_versions import REPORTS_COMPILE_IDS

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from scripts import namespace, ran  # noqa: E402

import depyf  # noqa: E402
from depyf.answers.bisected import Bisected  # noqa: E402
from depyf.cli import main  # noqa: E402
from depyf.dynamo.entries.call_target import resolve  # noqa: E402
from depyf.dynamo.hooks import bisector, cache_entries  # noqa: E402
from depyf.dynamo.questions.extract import question  # noqa: E402
from depyf.dynamo.questions.extract.question import checked, extract_file, write  # noqa: E402
from depyf.dynamo.questions.extract.sources import GraphSource, held, run_of  # noqa: E402
from depyf.dynamo.scripts.from_text import script_from_text  # noqa: E402
from depyf.torch_trace.stages import Stage  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "programs"))
import kernel_models  # noqa: E402


@pytest.fixture(autouse=True)
def fresh_torch() -> Any:
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def broken(x: Any, w: Any) -> Any:
    y = x @ w
    torch._dynamo.graph_break()
    return y.relu() * 2


def compiled_and_called(backend: str = "aot_eager", **options: Any) -> Any:
    compiled = torch.compile(broken, backend=backend, **options)
    compiled(torch.randn(4, 6), torch.randn(6, 3, requires_grad=True)).sum().backward()
    return compiled


@pytest.mark.parametrize("model", ["attention"])
def test_every_graph_of_a_model_runs_and_gives_the_same(model: str, tmp_path: Path) -> None:
    function, arguments = getattr(kernel_models, model)()
    sources = run_of(resolve(torch.compile(function, backend="aot_eager"), "extract"), arguments, {})
    assert [source.stage.value for source in sources] == ["Captured_Graph", "Forward_graph", "Backward_graph"]
    for source in sources:
        script = write(source, str(tmp_path / f"{source.name}.py"), "aot_eager", values=True)
        assert script.notes == ()
        status, output = ran(script, backend="aot_eager")
        assert status == 0, output
        assert "eagerly, and when it was captured:\n    same" in output


def test_a_graph_after_a_break_is_found_by_its_number(tmp_path: Path) -> None:
    compiled = compiled_and_called()
    numbers = sorted({source.function for source in held(resolve(compiled, "extract"))})
    assert len(numbers) == 2
    answer = depyf.extract(compiled, f"{numbers[1]}.Backward_graph", path=str(tmp_path / "b.py"))
    assert answer.runs, answer.output
    assert answer.graph == f"{numbers[1]}.Backward_graph"
    text = Path(answer.path).read_text()
    assert "aten.threshold_backward" in text
    assert "code: return y.relu() * 2" in text
    assert "it runs, and gives the same compiled as eagerly" in str(answer)


def test_the_values_of_a_call_are_saved(tmp_path: Path) -> None:
    compiled = compiled_and_called()
    before = len(cache_entries.cache_entries(broken.__code__))
    name = sorted({source.function for source in held(resolve(compiled, "extract"))})[0]
    x, w = torch.randn(4, 6), torch.randn(6, 3, requires_grad=True)
    answer = depyf.extract(compiled, name, x, w, path=str(tmp_path / "c.py"), check=False)
    assert answer.graph == f"{name}.Captured_Graph"
    assert answer.runs is None
    made = namespace(answer.path)["inputs"]()
    assert torch.equal(made[0], x)
    assert torch.equal(made[1], w)
    assert made[1].requires_grad
    assert len(cache_entries.cache_entries(broken.__code__)) == before
    assert w.grad is None


def test_what_does_not_name_one_graph_is_refused_with_a_list() -> None:
    compiled = compiled_and_called()
    told = r" \[0/0\]" if REPORTS_COMPILE_IDS else r"\s"
    with pytest.raises(
        LookupError, match=rf"no graph is called 999999; there are:\s+__compiled_fn_\d+.Captured_Graph{told}"
    ):
        depyf.extract(compiled, 999999)
    with pytest.raises(LookupError, match=r"(?s)there are: .*Backward_graph"):
        depyf.extract(compiled)
    with pytest.raises(LookupError, match="nothing is compiled here"):
        depyf.extract(torch.compile(lambda x: x), None)


def test_by_compile_id_and_with_sizes_that_vary(tmp_path: Path) -> None:
    compiled = torch.compile(lambda x: (x * x.shape[0]).sin(), backend="aot_eager", dynamic=True)
    compiled(torch.randn(7, 3))
    if not REPORTS_COMPILE_IDS:
        with pytest.raises(
            LookupError, match="This PyTorch does not report the compile ids of what is compiled already"
        ):
            depyf.extract(compiled, "0/0")
    graph_id = "0/0" if REPORTS_COMPILE_IDS else "Captured_Graph"
    answer = depyf.extract(compiled, graph_id, path=str(tmp_path / "d.py"))
    assert answer.runs, answer.output
    assert "float32[7, 3]" in answer.output


def with_break(x: Any, n: int) -> Any:
    y = x * n
    torch._dynamo.graph_break()
    return y.sin()


@pytest.mark.skipif(not REPORTS_COMPILE_IDS, reason="this PyTorch does not report the compile ids of cache entries")
def test_ids_are_the_same_in_each_attempt_and_those_that_are_shown(tmp_path: Path) -> None:
    compiled = torch.compile(with_break, backend="eager")
    small, large = torch.randn(3), torch.randn(5)
    with depyf.prepare_debug(tmp_path / "dump"), depyf.watch(stream=io.StringIO()) as watched:
        compiled(small, 2)
        compiled(large, 2)  # Dynamo compiles both graphs once more, for any size
    shown = {entry.compile_id for entry in depyf.why(compiled, small, 2).entries}
    recompiled = {happening.compile_id for happening in watched.happened if happening.kind == "recompile"}
    assert shown == {"0/0", "0/1"}
    assert recompiled == {"0/1", "1/1"}
    path = str(tmp_path / "script.py")
    names = {}
    for _ in range(2):
        for compile_id in ("0/0", "1/0", "0/1", "1/1"):
            answer = depyf.extract(compiled, compile_id, small, 2, path=path, check=False)
            assert names.setdefault(compile_id, answer.graph) == answer.graph
            sizes = [value.shape for value in namespace(path)["inputs"]() if isinstance(value, torch.Tensor)]
            assert sizes == [small.shape]
    assert len(set(names.values())) == 4
    for compile_id, name in names.items():
        assert depyf.extract(compiled, compile_id, path=path, check=False).graph == name
        for graph_id in (name, f"with_break [{compile_id}]", f"{name}.0.py", "{1} of {0}".format(*name.split("."))):
            assert depyf.extract(compiled, graph_id, small, 2, path=path, check=False).graph == name
            assert depyf.extract(str(tmp_path / "dump"), graph_id, path=path, check=False).graph == name
    with pytest.raises(LookupError, match=r"(?s)a call with these arguments does not run '0/0'; it runs: .*0/1"):
        depyf.extract(compiled, "0/0", large, 2)
    with pytest.raises(
        LookupError, match=r"(?s)no graph is called '7/7'; there are: .*\[0/1\].*; and without .*\[0/0\]"
    ):
        depyf.extract(compiled, "7/7", small, 2)
    with pytest.raises(LookupError, match=r"(?s)give the id of one graph as the second argument; there are: .*\[0/0\]"):
        depyf.extract(compiled)


@pytest.mark.skipif(not REPORTS_COMPILE_IDS, reason="this PyTorch does not report the compile ids of cache entries")
def test_any_file_of_a_dump_names_its_graph(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path / "dump"):
        torch.compile(lambda x: x.sin(), backend="eager")(torch.ones(3))
    (transformed,) = (tmp_path / "dump").glob("__transformed_code_*")
    answer = depyf.extract(str(tmp_path / "dump"), transformed.name, path=str(tmp_path / "script.py"), check=False)
    assert answer.graph.endswith(".Captured_Graph")


def test_a_stage_that_a_pass_has_named_is_extracted_like_the_others(tmp_path: Path) -> None:
    def backend(graph: Any, inputs: Any) -> Any:
        for title in ("before_split", "post_grad.0.Pass.before", "repeated", "repeated"):
            torch._dynamo.utils.lazy_format_graph_code(title, graph)
        return graph

    dump, path = str(tmp_path / "dump"), str(tmp_path / "script.py")
    with depyf.prepare_debug(dump):
        torch.compile(lambda x: x.sin(), backend=backend)(torch.ones(3))
    (file,) = (tmp_path / "dump").glob("*.before_split.0.py")
    function = file.name.partition(".")[0]
    for stage in ("before_split", "post_grad.0.Pass.before"):
        full_name = f"{function}.{stage}"
        for graph_id in (stage, full_name, f"{full_name}.0.py", f"{dump}/{full_name}.0.py", f"{stage} of {function}"):
            assert depyf.extract(dump, graph_id, path=path, check=False).graph == full_name
    assert "sin" in Path(path).read_text()
    listed = (
        rf"several graphs are called 'repeated'; there are: {function}.repeated.0[^,]*, {function}.repeated.1[^,]*\Z"
    )
    with pytest.raises(LookupError, match=listed):
        depyf.extract(dump, "repeated")
    assert depyf.extract(dump, f"{function}.repeated.1", path=path, check=False).graph == f"{function}.repeated.1"
    with pytest.raises(LookupError, match=rf"(?s)there are: .*{function}\.before_split"):
        depyf.extract(dump, "after_split")


def test_what_was_never_called_has_names_that_stay_the_same(tmp_path: Path) -> None:
    compiled = torch.compile(with_break, backend="eager")
    for _ in range(2):
        with pytest.raises(LookupError, match=r"there are: graph_0.Captured_Graph, graph_1.Captured_Graph\Z"):
            depyf.extract(compiled, "0/0", torch.ones(3), 2)
    answer = depyf.extract(compiled, "graph_1", torch.ones(3), 2, path=str(tmp_path / "script.py"), check=False)
    assert answer.graph == "graph_1.Captured_Graph"


@pytest.mark.inductor
def test_the_forward_graph_of_inductor_is_made_again(tmp_path: Path) -> None:
    compiled = compiled_and_called("inductor")
    name = sorted({source.function for source in held(resolve(compiled, "extract"))})[1]
    answer = depyf.extract(compiled, f"{name}.Forward_graph", path=str(tmp_path / "f.py"), check=False)
    assert "made again from the captured graph" in answer.notes[0]
    status, output = ran(answer, backend="aot_eager")
    assert status == 0, output


def test_a_graph_file_of_a_dump_is_enough(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path / "dump"):
        compiled_and_called(dynamic=True)
    files = sorted(path.name for path in (tmp_path / "dump").glob("__compiled_fn_*graph*"))
    for name in files:
        answer = extract_file(str(tmp_path / "dump"), name, path=str(tmp_path / f"{name[:-5]}.py"), check=False)
        status, output = ran(answer)
        assert status == 0, f"{name}: {output}"
        assert "Sym(" not in Path(answer.path).read_text() or "sizes that vary are made up" in answer.notes[0]


TEXT = """
class <lambda>(torch.nn.Module):
    def forward(self, args_list):
        args_iter = iter(args_list)
        x: "f32[s0, 4][4, 1]cpu" = next(args_iter)
        s0: "Sym(s0)" = next(args_iter)
        index: "i64[3]" = next(args_iter)
        args_list.clear()

        # File: model.py:3 in f, code: y = x[index]
        y: "f32[3, 4]" = torch.ops.aten.index.Tensor(x, [index]);  x = index = None
        true_graph_0 = self.true_graph_0
        out = true_graph_0(y, s0);  y = None
        return (out,)

    class true_graph_0(torch.nn.Module):
        def forward(self, a, b):
            return a * b
"""


def test_boxed_inputs_inner_graphs_and_symbols_are_read_from_text(tmp_path: Path) -> None:
    script = script_from_text(TEXT, str(tmp_path / "t.py"), title="text", backend="eager")
    status, output = ran(script)
    assert status == 0, output
    names = namespace(script.path)
    x, size, index = names["inputs"]()
    assert x.shape == (size, 4)
    assert index.max() < size
    assert torch.equal(names["Graph"]()(x, size, index)[0], x[index] * size)
    text = Path(script.path).read_text()
    assert "# File: model.py:3 in f, code: y = x[index]" in text
    assert "= None" not in text.split("class Graph")[1].split("def inputs")[0]


def test_text_that_is_no_graph_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="no graph in this text"):
        script_from_text("x = 1\n", str(tmp_path / "t.py"), title="text", backend="eager")


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with depyf.prepare_debug(tmp_path / "dump") as prepared:
        torch.compile(lambda x: x.sin(), backend="eager")(torch.ones(3))
    monkeypatch.chdir(tmp_path)
    assert main(["extract", "dump", "--no-check", "-o", "mine.py"]) == 0
    printed = capsys.readouterr().out
    assert ": mine.py\n  not run yet\n" in printed
    if "the text does not contain what the input" not in printed:  # PyTorch 2.2 prints no types of inputs
        assert ran(tmp_path / "mine.py")[0] == 0
    assert prepared.session is not None
    (compile_id,) = prepared.session.compile_ids()
    assert main(["extract", "dump", compile_id, "--no-check", "-o", "by_id.py"]) == 0
    assert (tmp_path / "by_id.py").read_text() == (tmp_path / "mine.py").read_text()
    capsys.readouterr()
    assert main(["extract", "dump", "7000"]) == 2
    assert "no graph is called '7000'; there are:" in capsys.readouterr().err
    assert main(["extract", str(tmp_path)]) == 2
    assert "there are no graph files in" in capsys.readouterr().err
    answer = depyf.extract(prepared, path=str(tmp_path / "session.py"), check=False)
    assert answer.graph.endswith(".Captured_Graph")


@pytest.mark.parametrize("graph", [[], ["0/0"]])
def test_of_a_log_the_way_to_a_dump_is_said(
    graph: List[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = Path(__file__).resolve().parents[2] / "report" / "logs"
    for path in (logs / "torch_2_13.log.gz", logs / "ranks"):
        assert main(["extract", str(path), *graph]) == 2
        assert "is a log of PyTorch's trace" in capsys.readouterr().err
    other = tmp_path / "a.py"
    other.write_text("")
    assert main(["extract", str(other), *graph]) == 2
    assert "a.py is a file, and graphs are extracted from dump directories" in capsys.readouterr().err


def test_a_script_that_does_not_run_is_told(tmp_path: Path) -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = object()  # of which no expression can be written
    graph.output((graph.call_function(torch.sin, (x,)),))
    source = GraphSource("odd", Stage.CAPTURED, None, torch.fx.GraphModule(torch.nn.Module(), graph))
    script = write(source, str(tmp_path / "odd.py"), "eager", values=False)
    answer = checked(source.name, script, (), check=True)
    assert answer.runs is False
    assert "does NOT run correctly by itself" in str(answer)
    assert "the input x is a object, which this script can't make" in str(answer)


def test_where_a_script_fails_the_answer_hands_over_to_the_tools_of_pytorch() -> None:
    from depyf.answers.extracted import Extracted

    assert "compiler_bisector" not in str(Extracted("g", "a b.py", runs=True))
    failed = str(Extracted("g", "a b.py", runs=False, output="differs"))
    bisector = "python -m torch._inductor.compiler_bisector run python 'a b.py'"
    assert f"TORCHINDUCTOR_CACHE_DIR=$(mktemp -d) {bisector}" in failed  # it deletes the directory
    assert "TORCHDYNAMO_REPRO_AFTER=aot TORCHDYNAMO_REPRO_LEVEL=2 python 'a b.py'" in failed


def test_of_a_graph_that_dynamo_can_not_trace_again_the_answer_says_so_and_names_no_tool() -> None:
    from depyf.answers.extracted import Extracted

    # What PyTorch 2.13 prints for flex_attention, whose operator in a graph has two more arguments than Dynamo takes.
    output = (
        "in _call_function\n    (\ntorch._dynamo.exc.InternalTorchDynamoError: ValueError: too many values to unpack\n"
    )
    failed = str(Extracted("g", "a b.py", runs=False, output=output))
    assert "can't trace its own graph again" in failed
    assert "python 'a b.py' --backend none" in failed
    assert "compiler_bisector" not in failed
    assert "TORCHDYNAMO_REPRO" not in failed


def test_bisect_is_handed_a_script_that_fails_and_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with depyf.prepare_debug(tmp_path / "dump"):
        torch.compile(lambda x: x.exp().sin(), backend="eager")(torch.ones(3))
    monkeypatch.chdir(tmp_path)
    outcome = [True]
    monkeypatch.setattr(question, "run_script", lambda path: (outcome[0], "differs"))
    monkeypatch.setattr(bisector, "bisect_script", lambda path, *_: Bisected("inductor", "lowerings", 1, f"in {path}"))
    assert main(["extract", "dump", "-o", "mine.py", "--bisect"]) == 0
    assert "bisector" not in capsys.readouterr().out
    outcome[0] = False
    assert main(["extract", "dump", "-o", "mine.py", "--bisect"]) == 1
    assert "\n  PyTorch's bisector: inductor, lowerings, number 1: in mine.py\n" in capsys.readouterr().out
    monkeypatch.setattr(question, "run_script", lambda path: (False, question.STOPPED))
    assert main(["extract", "dump", "-o", "mine.py", "--bisect"]) == 1
    assert "PyTorch's bisector: not run: the script does not end" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["extract", "dump", "--bisect", "--no-check"])


def test_variables_and_paths_of_the_program_are_no_sizes(tmp_path: Path) -> None:
    text = """class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[3][1]cpu"):
        l_x_ = L_x_
        # File: /home/u1/s7/prog.py:4 in f, code: s0 = x + 1
        s0: "f32[3][1]cpu" = l_x_ + 1;  l_x_ = None
        return (s0,)
"""
    script = script_from_text(text, str(tmp_path / "t.py"), title="text", backend="eager")
    assert script.notes == ()
    assert "dynamic" not in (tmp_path / "t.py").read_text()
