"""What Inductor compiles outside of a compilation: ``standalone_compile``, ``aot_compile``, pieces of graphs."""

from __future__ import annotations

import copy
import gc
import inspect
import json
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

from torch.fx.passes.split_module import split_module  # noqa: E402

import depyf  # noqa: E402
from depyf.dynamo.hooks import attribution, torch_names  # noqa: E402
from depyf.dynamo.hooks.attribution import Attribution, GraphOwners, current_compile_id, origin_of  # noqa: E402
from depyf.explain.utils import get_current_compiled_fn_name  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "programs"))

needs_standalone_compile = pytest.mark.skipif(
    not hasattr(torch._inductor, "standalone_compile"), reason="this PyTorch has no standalone_compile"
)


class Model(torch.nn.Module):
    def forward(self, x: Any, y: Any) -> Any:
        return (x.relu().sigmoid() + y,)


def split_at_sigmoid(graph: Any) -> Any:
    part = {}
    for node in graph.graph.nodes:
        part[node] = int(any("sigmoid" in each.name for each in part) or "sigmoid" in node.name)
    return split_module(graph, None, lambda node: part[node])


def manifest(directory: Path) -> Dict[str, Any]:
    found: Dict[str, Any] = json.loads((directory / "manifest.json").read_text())
    return found


def kernels(directory: Path) -> List[str]:
    return sorted(path.name for path in directory.glob("*.kernel_*.py"))


@needs_standalone_compile
@pytest.mark.inductor
def test_each_piece_of_a_split_graph_belongs_to_its_parent_also_when_it_is_compiled_later(tmp_path: Path) -> None:
    import like_vllm

    like_vllm.main(str(tmp_path), ahead=False)
    run = manifest(tmp_path)
    (compilation,) = run["compilations"]
    graphs = [each for each in run["artifacts"] if each["kind"] == "graph"]
    assert {each["compile_id"] for each in graphs} == {compilation["compile_id"]}
    assert {each.get("piece", "") for each in graphs} == {"", "submod_0", "submod_2"}
    found = {each["piece"]: each["path"] for each in run["artifacts"] if each["kind"] == "kernels"}
    assert list(found) == ["submod_0", "submod_2"]
    assert sorted(found.values()) == kernels(tmp_path)
    in_order = [each.get("piece", "") for each in sorted(graphs, key=lambda each: each.get("order", 0))]
    assert in_order == sorted(in_order), "one piece after the other, after what is of the whole"
    index = (tmp_path / "index.md").read_text()
    assert f"| submod_2 | {compilation['compile_id']} |" in index
    assert "before_split.0.py" in index
    lines = inspect.getsource(like_vllm.Model.forward).splitlines()
    first = like_vllm.Model.forward.__code__.co_firstlineno
    computed = {
        each["artifact"]: {lines[line - first].strip() for _, line in each["places"]} for each in run["kernels"]
    }
    assert computed[found["submod_0"]] == {"queries = x.relu() + y"}
    assert computed[found["submod_2"]] == {"return attention * y, attention"}
    names = {path.name.partition(".")[2] for path in tmp_path.glob("__compiled_fn_*")}
    expected = ["before_split.0", "after_split.0", "vllm_piecewise_split_graph.0", "graph_pre_pass.1"]
    expected += [f"post_grad.0.NoOpElimination.{when}.{number}" for when in ("before", "after") for number in (0, 1)]
    assert {f"{name}.py" for name in expected} <= names
    (text,) = (path.read_text() for path in tmp_path.glob("*.post_grad.0.NoOpElimination.before.1.py"))
    assert text.splitlines()[1].endswith(found["submod_2"]), "what runs is the kernel of this piece alone"


@needs_standalone_compile
@pytest.mark.inductor
@pytest.mark.slow
def test_a_piece_that_is_compiled_for_several_sizes_has_a_name_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vLLM compiles each piece for each range of sizes, and reports the range before. What it stops is no piece."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    sizes = ((2, 2), (1, 64), (65, 512))

    def backend(graph: Any, inputs: Any) -> Any:
        split = split_at_sigmoid(graph)
        for first, last in sizes:
            data = {"submod_name": "submod_0", "compile_range_start": first, "compile_range_end": last}
            torch._logging._internal.trace_structured(
                "artifact",
                metadata_fn=lambda: {"name": "vllm_piecewise_compile_start", "encoding": "json"},
                payload_fn=lambda data=data: json.dumps(data),
            )
            options = {"config_patches": {"post_grad_custom_post_pass": Doubles(first)}}
            torch._inductor.standalone_compile(
                split.submod_0, inputs[:1], dynamic_shapes="from_example_inputs", options=options
            )
        for _ in range(2):  # sizes that nobody reports
            torch._inductor.standalone_compile(
                split.submod_1, [torch.ones(4)] * 2, dynamic_shapes="from_example_inputs"
            )
        return graph

    expected = {"submod_0[2]", "submod_0[1-64]", "submod_0[65-512]", "submod_1", "submod_1#2"}
    for directory in (tmp_path / "cold", tmp_path / "warm"):  # a pass out of a cache belongs to the piece that asks
        torch._dynamo.reset()
        with depyf.prepare_debug(directory):
            torch.compile(Model(), backend=backend)(torch.linspace(-1, 1, 4), torch.ones(4))
        run = manifest(directory)
        assert any(each["state"] == "miss" for each in run["cache_lookups"]) == (directory.name == "cold")
        graphs = [each for each in run["artifacts"] if each["kind"] == "graph" and each.get("piece")]
        assert {each["piece"] for each in graphs} == expected
        assert {each["piece"] for each in run["artifacts"] if each["kind"] == "kernels"} == expected
        for piece in expected:
            stages = [each["stage"] for each in graphs if each["piece"] == piece]
            assert len(stages) == len(set(stages)), piece
        by_piece = [each.get("piece") for each in run["passes"] if each.get("function", "").endswith("Doubles")]
        assert by_piece == ["submod_0[2]", "submod_0[1-64]", "submod_0[65-512]"]
        (text,) = (path.read_text() for path in directory.glob("stages/*.passes_*.md"))
        assert "after, of submod_0[65-512]\n" in text
        index = (directory / "index.md").read_text()
        assert "forward of submod_0[1-64]:" in index
        assert "| submod_0[1-64] | 0/0 |" in index


class Doubles(torch_names.find("torch._inductor.custom_graph_pass", "CustomGraphPass") or object):  # type: ignore[misc]
    """A pass with another result for each number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, graph: Any) -> None:
        (relu,) = (node for node in graph.nodes if "relu" in str(node.target))
        with graph.inserting_after(relu):
            added = graph.call_function(torch.ops.aten.mul.Tensor, (relu, float(self.number)))
        added.meta.update(relu.meta)
        relu.replace_all_uses_with(added, delete_user_cb=lambda user: user is not added)

    def uuid(self) -> str:
        return f"doubles of tests/dropin/test_without_dynamo.py {self.number}"


LOADS_WHAT_IT_COMPILED = hasattr(
    torch_names.find("torch._dynamo.aot_compile", "BundledAOTAutogradSerializableCallable"), "from_backend_id"
)
"""Whether ``aot_compile`` with Inductor (in PyTorch 2.9) keeps a second copy of the kernels, loaded from its cache."""


@pytest.mark.skipif(not hasattr(torch._dynamo.config, "enable_aot_compile"), reason="this PyTorch has no aot_compile")
@pytest.mark.inductor
def test_what_is_compiled_ahead_of_time_belongs_to_the_function(tmp_path: Path) -> None:
    import like_vllm

    like_vllm.main(str(tmp_path), ahead=True)
    run = manifest(tmp_path)
    (compilation,) = run["compilations"]
    assert compilation["graph"].startswith("__compiled_fn_")
    first, *loaded = kernels(tmp_path)
    assert first == f"{compilation['graph']}.kernel_0.py"
    assert loaded == ([f"{compilation['graph']}.kernel_1.py"] if LOADS_WHAT_IT_COMPILED else [])
    assert {(tmp_path / each).read_text() for each in loaded} <= {(tmp_path / first).read_text()}
    function = run["functions"][compilation["function"]]
    assert (function["qualified_name"], function["first_line"]) == (
        "Model.forward",
        like_vllm.Model.forward.__code__.co_firstlineno,
    )
    notes = [each for each in run["artifacts"] if each["kind"] == "note"]
    assert len(notes) == len(loaded), "there are no graphs of what is loaded"
    assert {each["compile_id"] for each in run["artifacts"] if each not in notes} == {compilation["compile_id"]}


@pytest.mark.inductor
def test_copies_of_pieces_that_are_compiled_when_they_are_called_belong_to_the_function(tmp_path: Path) -> None:
    import like_sglang

    try:
        like_sglang.main(str(tmp_path))
    except AttributeError as error:
        if "produce_guards_expression" not in str(error):
            raise
        pytest.skip("this PyTorch's cache of graphs itself fails outside of a compilation of Dynamo's")
    run = manifest(tmp_path)
    (compilation,) = run["compilations"]
    found = [each for each in run["artifacts"] if each["kind"] == "kernels"]
    assert [each["piece"] for each in found] == ["submod_0", "submod_1"]
    assert {each["compile_id"] for each in found} == {compilation["compile_id"]}


@needs_standalone_compile
@pytest.mark.inductor
def test_a_graph_that_dynamo_has_not_seen_has_an_id_and_a_place_of_its_own(tmp_path: Path) -> None:
    x, y = torch.linspace(-1, 1, 3), torch.ones(3)
    graph = torch.fx.symbolic_trace(Model())
    split = split_at_sigmoid(torch.fx.symbolic_trace(Model()))
    with depyf.prepare_debug(tmp_path):
        compiled = torch._inductor.standalone_compile(graph, [x, y], dynamic_shapes="from_example_inputs")
        line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
        assert torch.allclose(compiled(x, y)[0], Model()(x, y)[0])
        first = split.submod_0
        torch._inductor.standalone_compile(copy.deepcopy(first), [x], dynamic_shapes="from_example_inputs")
    run = manifest(tmp_path)
    one, other = run["compilations"]
    assert one["compile_id"].startswith("standalone/")
    assert one["compile_id"] != other["compile_id"]
    function = run["functions"][one["function"]]
    assert (run["sources"][function["source"]]["path"], function["first_line"]) == (__file__, line)
    assert one["seconds"] > 0
    names = [f"__compiled_fn_{-1 - int(each['compile_id'].partition('/')[2])}" for each in (one, other)]
    assert kernels(tmp_path) == sorted(f"{name}.kernel_0.py" for name in names)
    assert (tmp_path / f"{names[0]}.Forward_graph.0.py").exists()
    assert "What runs: " + f"{names[0]}.kernel_0.py" in (tmp_path / f"{names[0]}.Forward_graph.0.py").read_text()
    assert "a graph, without Dynamo" in (tmp_path / "index.md").read_text()
    assert not list(tmp_path.glob("missing_stages_*")), "what only Dynamo makes is not missing"


@needs_standalone_compile
def test_what_fails_is_told_and_raised_as_it_is(tmp_path: Path) -> None:
    graph = torch.fx.symbolic_trace(Model())
    names: List[str] = []

    def fails(graph: Any) -> None:
        names.append(get_current_compiled_fn_name())
        raise ZeroDivisionError("in a pass")

    options = {"config_patches": {"pre_grad_custom_pass": fails, "fx_graph_cache": False}}
    with depyf.prepare_debug(tmp_path), pytest.raises(ZeroDivisionError, match="in a pass"):
        torch._inductor.standalone_compile(
            graph, [torch.ones(3)] * 2, dynamic_shapes="from_example_inputs", options=options
        )
    (compilation,) = manifest(tmp_path)["compilations"]
    assert compilation["status"] == "failed"
    assert "ZeroDivisionError" in compilation["failure"]
    assert names == [f"__compiled_fn_{-1 - int(compilation['compile_id'].partition('/')[2])}"]
    assert get_current_compiled_fn_name() == "__compiled_fn_-1"


class Recorded:
    """Notes graph modules as they are made, with what they are copies of."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.owners = GraphOwners()
        self.compile_id: Any = None
        original = torch.fx.GraphModule.__init__

        def __init__(module: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it replaces one
            original(module, *args, **kwargs)
            self.owners.note(module, self.compile_id, origin_of(sys._getframe(1), args[0]))

        monkeypatch.setattr(torch.fx.GraphModule, "__init__", __init__)


def test_owners_of_graphs_are_followed_through_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded(monkeypatch)
    of = recorded.owners.of
    recorded.compile_id = "0/0"
    graph = torch.fx.symbolic_trace(Model())
    split = split_at_sigmoid(graph)
    recorded.compile_id = None
    assert of(graph, None) == ("0/0", "")
    assert of(split, None) == ("0/0", "")
    piece = split.submod_1
    split.submod_1 = torch.nn.Identity()
    assert of(piece, None) == of(copy.deepcopy(piece), None) == of(copy.copy(piece), None) == ("0/0", "submod_1")
    again = copy.deepcopy(copy.deepcopy(split))
    assert of(again.submod_0, None) == ("0/0", "submod_0")
    assert of(torch.fx.GraphModule(piece, piece.graph), None) == ("0/0", "submod_1")
    recorded.compile_id = "0/1"  # the function is compiled again: its graph has the same names
    other = split_at_sigmoid(torch.fx.symbolic_trace(Model()))
    assert of(copy.deepcopy(other.submod_0), None) == ("0/1", "submod_0")
    assert of(again.submod_0, None) == ("0/0", "submod_0")


def test_pieces_of_a_graph_of_nobodys_belong_together(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded(monkeypatch)
    of = recorded.owners.of
    split, other = (split_at_sigmoid(torch.fx.symbolic_trace(Model())) for _ in range(2))
    (first, name), (second, _) = of(split.submod_0, None), of(copy.deepcopy(split.submod_1), None)
    assert name == "submod_0"
    assert first is not None
    assert first.startswith("standalone/")
    assert first == second
    assert of(other.submod_0, None)[0] not in (None, first)
    assert of(torch.fx.symbolic_trace(Model()), None) == (None, "")
    before = len(recorded.owners._known)
    del split
    gc.collect()
    assert len(recorded.owners._known) < before, "nothing is kept of graphs that are gone"


@pytest.mark.parametrize("failing", ["begins", "receive", "ends"])
def test_a_failure_of_ours_leaves_no_compile_id_behind(failing: str) -> None:
    """What this thread compiles later would be taken for a part of that compilation."""

    failed = []

    def fails(*_: Any, **__: Any) -> None:
        failed.append(failing)
        raise RuntimeError("a failure of ours")

    calls: Dict[str, Any] = {name: (fails if name == failing else lambda *_, **__: None) for name in PASSED_ON}
    (undo, *others) = Attribution(GraphOwners(), **calls).watch_inductor()
    try:
        sys.modules["torch._inductor.compile_fx"].compile_fx(torch.fx.symbolic_trace(torch.nn.ReLU()), [torch.ones(2)])
        assert set(failed) == {failing}
        assert current_compile_id() is None
        assert not vars(attribution._here).get("compiling")
    finally:
        for each in (undo, *others):
            each()


PASSED_ON = ("begins", "ends", "receive")
