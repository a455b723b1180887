"""Every pass that changes a graph is listed in order, with its name and the difference; the others are counted."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, List

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.capture.passes import event_of_pass  # noqa: E402
from depyf.dynamo.hooks import graph_passes, private_names, safely  # noqa: E402
from depyf.dynamo.hooks.graph_passes import BETWEEN, GraphPasses, ObservedPass  # noqa: E402
from depyf.dynamo.hooks.patching import undo_all  # noqa: E402
from depyf.report.model.manifest import from_json  # noqa: E402
from depyf.report.model.run import Run  # noqa: E402

if private_names.GRAPH_TRANSFORM_OBSERVER.find() is None:
    pytest.skip("this PyTorch has no observer of passes", allow_module_level=True)


def sigmoid_to_tanh(graph: Any) -> None:
    for node in list(graph.nodes):
        if node.target is torch.ops.aten.sigmoid.default:
            with graph.inserting_after(node):
                new = graph.call_function(torch.ops.aten.tanh.default, node.args)
            new.meta.update(node.meta)
            node.replace_all_uses_with(new)
            graph.erase_node(node)


@pytest.mark.parametrize(
    ("lower", "upper", "words"),
    [("-int_oo", "int_oo", "any value"), ("-oo", "oo", "any value"), (2, "int_oo", "2 to ∞"), (2, 9, "2 to 9")],
)
def test_a_range_without_bounds_names_none(lower: object, upper: object, words: str) -> None:
    assert graph_passes.range_in_words(lower, upper) == words


def nothing(graph: Any) -> None:
    graph.lint()


def dumped(function: Any, directory: Path, *arguments: Any, **settings: Any) -> Run:
    from torch._inductor import config

    with config.patch(force_disable_caches=True, **settings), depyf.prepare_debug(str(directory)):
        torch.compile(function, dynamic=True)(*arguments)
    return from_json((directory / "manifest.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_passes_of_inductor_and_custom_ones_are_listed_in_order(tmp_path: Path) -> None:
    if not hasattr(private_names.GRAPH_TRANSFORM_OBSERVER.find(), "apply_graph_pass"):
        pytest.skip("this PyTorch does not run its passes in observers")

    def f(x: Any) -> Any:
        return torch.ops.aten.alias(x.sin()).sigmoid()

    x = torch.randn(6, 8)
    run = dumped(f, tmp_path, x, post_grad_custom_pre_pass=nothing, post_grad_custom_post_pass=sigmoid_to_tanh)
    assert [(each.group, each.name) for each in run.passes] == [
        ("joint_graph_passes", "remove_noop_ops"),
        ("post_grad_passes", "post_grad_custom_post_pass"),
    ]
    custom = run.passes[-1]
    assert custom.function == f"{__name__}.sigmoid_to_tanh"
    assert custom.nodes_before == custom.nodes_after
    assert any("∞" in size for size in custom.sizes), custom.sizes
    (artifact,) = (each for each in run.artifacts if each.kind == "passes")
    assert artifact.id == custom.artifact
    assert re.fullmatch(r"__compiled_fn_\d+\.passes_0\.md", artifact.id)
    text = (tmp_path / "stages" / artifact.id).read_text(encoding="utf-8")
    lines = text.splitlines()[custom.first - 1 : custom.last]
    assert lines[:2] == ["--- before", "+++ after"]
    assert [line.split(" = ")[1] for line in lines if re.match(r"[-+](?![-+])\w", line) and " = " in line] == [
        "torch.ops.aten.sigmoid.default(sin)",
        "torch.ops.aten.tanh.default(sin)",
    ]
    assert (run.compilations[0].passes_ran or 0) > 10
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "sigmoid_to_tanh" in page


@pytest.mark.slow
def test_where_no_pass_changes_anything_nothing_is_written(tmp_path: Path) -> None:
    run = dumped(lambda x: x.sin(), tmp_path, torch.randn(6, 8), post_grad_custom_post_pass=nothing)
    assert run.passes == ()
    assert not list(tmp_path.rglob("*.passes_*"))


# Without Inductor: the observer alone


class Observed:
    def __init__(self) -> None:
        self.changes: List[ObservedPass] = []
        self.passes = GraphPasses(self.changes.append)


@pytest.fixture
def observed(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(graph_passes, "current_compile_id", lambda: "0/0")
    found = Observed()
    undo = found.passes.watch()
    yield found
    undo_all(undo)


def observer(module: Any, name: str) -> Any:
    made = private_names.GRAPH_TRANSFORM_OBSERVER.find()(module, name)
    if not hasattr(made, "gm"):
        pytest.skip("the observers of this PyTorch have no graph")
    return made


def traced() -> Any:
    return torch.fx.symbolic_trace(lambda x: torch.sigmoid(x) + 1)


def found(observed: Observed) -> List[ObservedPass]:
    """What was reported since the last time; nothing is remembered any more."""
    observed.passes.take_count("0/0")
    changes, observed.changes[:] = list(observed.changes), []
    return changes


def to_tanh(module: Any) -> None:
    next(node for node in module.graph.nodes if node.op == "call_function").target = torch.tanh


def test_a_change_in_place_is_seen(observed: Observed) -> None:
    module = traced()
    with observer(module, "a"):
        to_tanh(module)
    (change,) = found(observed)
    assert change.name == "a"
    assert [line for line in change.before if line not in change.after] == ["sigmoid = torch.sigmoid(x)"]
    assert [line for line in change.after if line not in change.before] == ["sigmoid = torch.tanh(x)"]


def test_arguments_that_are_replaced_by_equal_ones_are_no_change(observed: Observed) -> None:
    module = traced()
    with observer(module, "a"):
        for node in module.graph.nodes:
            node.args = (*node.args,)
    assert observed.passes.take_count("0/0") == 1
    assert found(observed) == []


def test_of_nested_passes_the_one_that_changed_something_is_listed(observed: Observed) -> None:
    module = traced()
    with observer(module, "outer"):
        with observer(module, "idle"):
            pass
        with observer(module, "inner"):
            to_tanh(module)
    ran, changes = observed.passes.take_count("0/0"), found(observed)
    assert [(each.within, each.name) for each in changes] == [(("outer",), "inner")]
    assert ran == 3


def test_what_the_outer_pass_changes_itself_is_its_own(observed: Observed) -> None:
    module = traced()
    with observer(module, "outer"):
        with observer(module, "inner"):
            to_tanh(module)
        next(node for node in module.graph.nodes if node.op == "call_function").target = torch.sin
    assert [each.name for each in found(observed)] == ["inner", "outer"]


def only_changed(change: ObservedPass) -> List[str]:
    return [line for line in change.after if line not in change.before]


def test_an_outer_pass_has_what_it_changed_before_and_after_an_inner_one(observed: Observed) -> None:
    module = traced()
    node = next(node for node in module.graph.nodes if node.op == "call_function")
    with observer(module, "outer"):
        node.target = torch.sin
        with observer(module, "inner"):
            node.target = torch.cos
        node.target = torch.tanh
    assert [(each.within, each.name, only_changed(each)) for each in found(observed)] == [
        ((), "outer", ["sigmoid = torch.sin(x)"]),
        (("outer",), "inner", ["sigmoid = torch.cos(x)"]),
        ((), "outer", ["sigmoid = torch.tanh(x)"]),
    ]


def test_passes_of_a_pass_manager_have_the_names_under_which_it_prints_graphs(observed: Observed) -> None:
    module = traced()
    node = next(node for node in module.graph.nodes if node.op == "call_function")
    observed.passes.printed("post_grad.9.Outside.before", module)
    with observer(module, "manager"):
        observed.passes.printed("graph_pre_pass", module)
        for name, target in (("post_grad.0.Idle", torch.sigmoid), ("post_grad.1.ToSin", torch.sin)):
            observed.passes.printed(f"{name}.before", module)
            node.target = target
            observed.passes.printed(f"{name}.after", module)
        observed.passes.printed("never.begun.after", module)
        observed.passes.printed("post_grad.2.Fails.before", module)
    ran, changes = observed.passes.take_count("0/0"), found(observed)
    assert [(each.within, each.name) for each in changes] == [(("manager",), "post_grad.1.ToSin")]
    assert ran == 3


def test_a_pass_over_another_graph_is_no_part_of_what_the_outer_one_changed(observed: Observed) -> None:
    module, inner = traced(), traced()
    with observer(module, "outer"), observer(inner, "inner"):
        to_tanh(module)
    assert [each.name for each in found(observed)] == ["outer"]


def test_what_no_pass_with_a_name_changed_is_listed(observed: Observed) -> None:
    module = traced()
    with observer(module, "first"):
        pass
    to_tanh(module)
    with observer(module, "second"):
        pass
    assert [each.name for each in found(observed)] == [BETWEEN]


def test_the_exception_of_a_pass_arrives_and_what_it_changed_is_listed(observed: Observed) -> None:
    module = traced()

    def fail() -> None:
        with observer(module, "outer"), observer(module, "failing"):
            to_tanh(module)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    changes = found(observed)
    assert [(each.name, each.failed) for each in changes] == [("failing", True)]
    with observer(module, "next"):
        pass
    assert found(observed) == []


def test_nothing_is_kept_of_a_compilation_that_has_ended(observed: Observed) -> None:
    import gc
    import weakref

    module = traced()
    with observer(module, "a"):
        to_tanh(module)
    found(observed)
    gone = weakref.ref(module)
    del module
    gc.collect()
    assert gone() is None


def test_a_graph_that_cannot_be_printed_harms_no_pass(observed: Observed, capsys: pytest.CaptureFixture[str]) -> None:
    class Hostile:
        def __repr__(self) -> str:
            raise ValueError("no text")

    module = traced()
    with observer(module, "a"):
        next(iter(reversed(module.graph.nodes))).prev.target = Hostile()
    assert found(observed) == []


def test_an_observer_without_a_graph_is_no_failure(observed: Observed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of PyTorch 2.2 to 2.5 have none where nothing is logged."""
    failures: List[BaseException] = []
    monkeypatch.setattr(safely, "report_failure", lambda doing, error: failures.append(error))
    cls = private_names.GRAPH_TRANSFORM_OBSERVER.find()
    without = cls.__new__(cls)
    without.active = without.log_url = None
    with without:
        pass
    assert found(observed) == []
    assert not failures


def test_the_difference_of_long_graphs_takes_linear_time() -> None:
    class Line(str):
        """A line that counts how often it is compared."""

        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            Line.compared += 1
            return str.__eq__(self, other)

    count = 4_000
    before = tuple(Line(f"n{at} = f()") for at in range(count))
    after = tuple(Line(f"n{at} = {'g' if at % 2 else 'f'}()") for at in range(count))
    observed = ObservedPass("0/0", "group", "name", "", (), before, after)
    difference = json.loads(event_of_pass(observed).payload or "")["difference"]
    assert Line.compared < 10 * count
    assert difference[3] == "-n1 = f()"
    assert difference[-1] == f"+n{count - 1} = g()"
    assert len(difference) == 3 + count
