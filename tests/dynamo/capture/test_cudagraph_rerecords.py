"""Why CUDA graphs are recorded again, as PyTorch's own tree of recordings reports. There is no GPU: a stub records."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, List

import pytest

torch = pytest.importorskip("torch")
trees = pytest.importorskip("torch._inductor.cudagraph_trees")

import depyf  # noqa: E402
from depyf.dynamo.dump.manifest import run_of  # noqa: E402
from depyf.report.model.run import Run  # noqa: E402

STACK = '  File "train.py", line 7, in step\n    return x @ self.weight\n'


def recorded_for(function: Any, inputs: List[Any], managed: List[int]) -> Any:
    """A recording of a function, with what PyTorch remembers of its inputs."""
    placeholders = [SimpleNamespace(name=f"primals_{at}", stack_trace=STACK, users=[]) for at in range(len(inputs))]
    return SimpleNamespace(
        wrapped_function=SimpleNamespace(id=function, placeholders=placeholders),
        static_input_data_ptrs=[each.data_ptr() for each in inputs],
        cudagraph_managed_idxs=managed,
        children={},
    )


def tree_of(**functions: str) -> Any:
    """PyTorch's manager of these functions, by name, with their compile ids; nothing is recorded."""
    tree: Any = object.__new__(trees.CUDAGraphTreeManager)
    ids = list(functions)
    model: Callable[[str], Any] = lambda name: SimpleNamespace(model=SimpleNamespace(__name__=name))  # noqa: E731
    tree.ids_to_funcs = {name: model(name) for name in ids}
    tree.id_to_compile_id: Dict[str, str] = dict(functions)
    tree.id_to_mode = dict.fromkeys(ids, trees.CompilationMode.FORWARD)
    tree.roots = {}
    tree.current_node = None
    return tree


@pytest.fixture(autouse=True)
def nothing_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees.CUDAGraphTreeManager, "record_function", lambda tree, inputs, function: inputs)


def run_with(path: Path, *calls: Callable[[], Any]) -> Run:
    with depyf.prepare_debug(path) as session:
        for call in calls:
            assert call() is not None
        return run_of(session.session)


def test_an_input_at_another_address_is_named(tmp_path: Path) -> None:
    tree = tree_of(call="0/0")
    old, new = torch.ones(3), torch.ones(3)
    tree.roots = {"call": [recorded_for("call", [old, old], [])]}
    again = lambda: tree.record_function([old, new], "call")  # noqa: E731
    run = run_with(tmp_path, again, again)
    (each,) = run.cudagraph_rerecords
    assert (each.compile_id, each.function, each.mode, each.times) == ("0/0", "call", "FORWARD", 2)
    assert each.reason == "parameters, buffers or static inputs are at another address: primals_1"
    assert "copy_" in each.advice
    title = f"The CUDA graph of call was recorded again 2 times: {each.reason}"
    assert [each.title for each in run.findings] == [title]
    assert "recorded again 2 times" in (tmp_path / "index.md").read_text(encoding="utf-8")
    assert "recorded again 2 times" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_the_first_recording_is_none_of_these(tmp_path: Path) -> None:
    tree = tree_of(call="0/0")
    assert run_with(tmp_path, lambda: tree.record_function([torch.ones(2)], "call")).cudagraph_rerecords == ()


def test_a_result_of_another_graph_is_told_from_a_static_input(tmp_path: Path) -> None:
    tree = tree_of(call="0/0")
    old = torch.ones(3)
    tree.roots = {"call": [recorded_for("call", [old, old], [1])]}
    run = run_with(tmp_path, lambda: tree.record_function([torch.ones(3), torch.ones(3)], "call"))
    assert run.cudagraph_rerecords[0].reason == "results of other CUDA graphs are at another address: primals_1"


def test_another_order_of_graphs_is_told(tmp_path: Path) -> None:
    tree = tree_of(first="0/0", second="1/0")
    x = torch.ones(3)
    first, second = recorded_for("first", [x], []), recorded_for("second", [x], [])
    first.children = {"second": [second]}
    tree.roots = {"first": [first]}
    run = run_with(tmp_path, lambda: tree.record_function([x], "second"))
    assert [each.reason for each in run.cudagraph_rerecords] == [
        "it runs after nothing now, and was recorded after 0/0"
    ]


def test_results_that_are_still_alive_are_told(tmp_path: Path) -> None:
    tree = tree_of(call="0/0")
    x = torch.ones(3)
    tree.roots = {"call": [recorded_for("call", [x], [])]}
    run = run_with(tmp_path, lambda: tree.record_function([x], "call"))
    assert "still alive" in run.cudagraph_rerecords[0].reason


def test_another_value_of_a_dynamic_size_is_told(tmp_path: Path) -> None:
    tree = tree_of(of_2="0/0", of_3="0/0", other="1/0")
    tree.ids_to_funcs["of_3"] = SimpleNamespace(model=tree.ids_to_funcs["of_2"].model)
    x = torch.ones(3)
    tree.roots = {"of_2": [recorded_for("of_2", [x], [])]}
    record = lambda name: lambda: tree.record_function([x], name)  # noqa: E731
    (each,) = run_with(tmp_path, record("of_3"), record("other")).cudagraph_rerecords
    assert each.reason == "a dynamic size has a new value, and each is recorded on its own"
    assert "cudagraph_skip_dynamic_graphs" in each.advice


def test_pieces_of_one_compilation_are_not_taken_for_sizes(tmp_path: Path) -> None:
    tree = tree_of(piece_0="0/0", piece_1="0/0")
    for each in tree.ids_to_funcs.values():
        each.model.__name__ = "partition_0"
    x = torch.ones(3)
    tree.roots = {"piece_0": [recorded_for("piece_0", [x], [])]}
    assert run_with(tmp_path, lambda: tree.record_function([x], "piece_1")).cudagraph_rerecords == ()


def test_a_tree_that_looks_otherwise_costs_the_reason_alone(tmp_path: Path) -> None:
    tree = tree_of(call="0/0")
    del tree.roots
    assert run_with(tmp_path, lambda: tree.record_function([torch.ones(1)], "call")).cudagraph_rerecords == ()


def test_pytorchs_recordings_have_what_is_read_of_them() -> None:
    text = Path(trees.__file__).read_text(encoding="utf-8")
    names = ("self.roots", "self.current_node", "self.ids_to_funcs", "self.id_to_mode", "def record_function")
    names += ("self.static_input_data_ptrs", "self.cudagraph_managed_idxs", "self.wrapped_function", "self.children")
    assert [name for name in names if name not in text] == []


def test_too_many_recordings_are_a_skip_with_pytorchs_reason(tmp_path: Path) -> None:
    log = getattr(pytest.importorskip("torch._inductor.cudagraph_utils"), "log_cudagraph_skip_and_bump_counter", None)
    if log is None:
        pytest.skip("this PyTorch has no limit of recordings")
    message = "skipping cudagraph due to function 0 exceeding max re-recording limit (=128) on cudagraph node None"
    with depyf.prepare_debug(tmp_path) as session:
        log(message)
        (skip,) = run_of(session.session).cudagraph_skips
    assert skip.reason == "function 0 exceeding max re-recording limit (=128) on cudagraph node None"
    assert "too often" in skip.advice
