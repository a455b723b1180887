"""A graph is printed once while it stays the same, and what is shown is always what PyTorch would print."""

from __future__ import annotations

import inspect
import operator
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import depyf
from depyf.dynamo.hooks import compile_ids, shared_prints
from depyf.dynamo.hooks.shared_prints import readable_text

PRINT = torch.fx.GraphModule.print_readable

Module = torch.fx.GraphModule

SHOWS_ANNOTATIONS = '"custom"' in inspect.getsource(torch.fx.graph)
"""Whether a print shows the dict of ``annotate``."""


pytestmark = pytest.mark.skipif(
    "include_stride" not in inspect.signature(PRINT).parameters,
    reason="this PyTorch prints graphs without strides and devices",
)


@pytest.fixture
def prints(monkeypatch: pytest.MonkeyPatch) -> Iterator[List[Dict[str, Any]]]:
    """Return the options of all prints, while a compilation seems to go on."""
    options_of: List[Dict[str, Any]] = []

    def print_readable(module: Module, *args: Any, **options: Any) -> str:
        options_of.append(options)
        return PRINT(module, *args, **options)

    monkeypatch.setattr(torch.fx.GraphModule, "print_readable", print_readable)
    monkeypatch.setattr(compile_ids, "current_compile_id", lambda: "0/0")
    undo = shared_prints.watch()
    assert undo is not None
    yield options_of
    undo()
    shared_prints.forget()


def _graph(size: int = 3) -> Module:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.cat([x, y * 2], dim=0)

    module = torch.fx.symbolic_trace(Model())
    mode = FakeTensorMode()
    for node in module.graph.nodes:
        if node.op != "output":
            node.meta = {"val": mode.from_tensor(torch.ones(size, 2)), "stack_trace": "", "recompute": None}
    return module


def _node(module: Module, op: str = "call_function") -> torch.fx.Node:
    return next(node for node in module.graph.nodes if node.op == op)


def _fresh(module: Module) -> str:
    """Return what PyTorch prints with the options of ``readable_text``."""
    return PRINT(module, print_output=False, include_stride=True, include_device=True)


def test_a_graph_that_stays_the_same_is_printed_once(prints: List[Dict[str, Any]]) -> None:
    module = _graph()
    shown = [readable_text(module) for _ in range(3)]
    assert len(prints) == 1
    assert set(shown) == {_fresh(module)}


class _Renaming(torch.fx.graph.CodeGen):
    def gen_fn_def(self, *args: Any, **options: Any) -> str:
        return super().gen_fn_def(*args, **options).replace("forward", "backward")


CHANGES: Dict[str, Callable[[Module], object]] = {
    "name": lambda m: _node(m)._rename("other"),
    "target": lambda m: setattr(_node(m), "target", operator.add),
    "argument": lambda m: _node(m).update_arg(1, 7),
    "keyword": lambda m: _node(m, "output").prev.update_kwarg("dim", 1),
    "type": lambda m: setattr(_node(m, "output"), "type", int),
    "value": lambda m: _node(m).meta.update(val=torch.ones(5)),
    "resized in place": lambda m: _node(m).meta["val"].t_(),
    "stack": lambda m: _node(m).meta.update(stack_trace='  File "a.py", line 3, in f\n    x * 2\n'),
    "annotation": lambda m: _node(m).meta.update(custom={"stage": 1}),
    "new node": lambda m: m.graph.create_node("call_function", operator.neg, (_node(m),)),
    "erased node": lambda m: m.graph.erase_node(m.graph.create_node("call_function", operator.neg, (_node(m),))),
    "codegen": lambda m: m.graph.set_codegen(_Renaming()),
    "code is transformed": lambda m: m.graph.on_generate_code(lambda _: lambda body: [*body, "pass\n"]),
    "graph in it": lambda m: m.add_module("inner", _graph(4)),
    "graph": lambda m: setattr(m, "graph", _graph(7).graph),
    "name of the class": lambda m: setattr(type(m), "__name__", "Renamed"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_graph_that_changes_is_shown_as_it_is(prints: List[Dict[str, Any]], change: str) -> None:
    module = _graph()
    before = readable_text(module)
    CHANGES[change](module)
    now = _fresh(module)
    assert readable_text(module) == now
    assert now != before or change == "erased node" or (change == "annotation" and not SHOWS_ANNOTATIONS)


@pytest.mark.parametrize("change", ["annotation", "graph in it"])
def test_what_can_change_in_place_is_printed_again(prints: List[Dict[str, Any]], change: str) -> None:
    module = _graph()
    CHANGES[change](module)
    readable_text(module)
    _node(module).meta.get("custom", {}).update(stage=2)
    for inner in module.children():
        assert isinstance(inner, Module)
        _node(inner).meta["val"] = torch.ones(9)
    assert readable_text(module) == _fresh(module)


def test_a_size_that_becomes_known_is_shown(prints: List[Dict[str, Any]]) -> None:
    module = _graph()
    fake = FakeTensorMode(shape_env=ShapeEnv()).from_tensor(torch.ones(6, 2))
    _node(module).meta["val"] = fake
    size = fake.shape[0]
    assert isinstance(size, torch.SymInt)
    before = readable_text(module)
    assert bool(size == 6)  # a guard: the size is 6 from now on
    assert before != _fresh(module)
    assert readable_text(module) == _fresh(module)


def test_other_options_are_not_shared_unless_they_show_more(prints: List[Dict[str, Any]]) -> None:
    module = _graph()
    module.print_readable(print_output=False)
    assert "cpu" in readable_text(module)
    assert len(prints) == 2


def test_the_programs_own_print_is_always_made(
    prints: List[Dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    module = _graph()
    text = readable_text(module)
    options = prints[0]
    assert module.print_readable(**options) == text
    assert len(prints) == 2
    module.print_readable()
    assert "class Model" in capsys.readouterr().out


def test_a_failure_of_the_comparison_is_no_failure_of_the_print(
    prints: List[Dict[str, Any]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(module: Module) -> None:
        raise ValueError("no nodes")

    monkeypatch.setattr(shared_prints, "_sources", fail)
    module = _graph()
    assert readable_text(module) == module.print_readable(print_output=False, include_stride=True, include_device=True)
    assert "keeping the print of a graph" in caplog.text


def test_nothing_is_kept_outside_of_a_compilation(
    prints: List[Dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_ids, "current_compile_id", lambda: None)
    readable_text(_graph())
    assert shared_prints._last == {}


def test_an_attached_compilation_prints_a_graph_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verbose: List[str] = []
    python_code = torch.fx.Graph.python_code

    def count(graph: torch.fx.Graph, *args: Any, **options: Any) -> Any:
        if options.get("verbose"):
            verbose.append(str(graph))
        return python_code(graph, *args, **options)

    monkeypatch.setattr(torch.fx.Graph, "python_code", count)
    with depyf.prepare_debug(str(tmp_path)):
        torch.compile(lambda x: x.sin() + 1, backend="eager")(torch.ones(3))
        assert shared_prints._last == {}
    assert len(verbose) == 1
