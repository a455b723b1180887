"""Functions that were compiled before ``prepare_debug`` was entered are dumped when they are called inside."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.capture.records import TransformedCode  # noqa: E402
from depyf.dynamo.hooks import torch_names  # noqa: E402


@pytest.fixture(autouse=True)
def _needs_the_callback() -> None:
    if torch_names.find("torch._C._dynamo.eval_frame", "set_bytecode_debugger_callback") is None:
        pytest.skip("this PyTorch does not report which code runs")


def branching(x: Any, y: Any) -> Any:
    z = x.sin() + y
    if z.sum() > 100:
        z = z * 2
    return z - y


def inputs() -> Any:
    return torch.ones(3, requires_grad=True), torch.arange(3.0)


def stages(directory: Path) -> set[str]:
    return {path.name.split(".")[1] for path in directory.glob("__compiled_fn*")}


@pytest.mark.parametrize(
    ("backend", "expected"),
    [
        ("eager", {"Captured_Graph"}),
        ("aot_eager", {"Captured_Graph", "Forward_graph", "Backward_graph"}),
        pytest.param(
            "inductor",
            {"Captured_Graph", "AFTER_POST_GRAD", "kernel_0", "kernel_1"},
            marks=[pytest.mark.inductor, pytest.mark.slow],
        ),
    ],
)
def test_what_was_compiled_before_is_dumped_and_marked(tmp_path: Path, backend: str, expected: set[str]) -> None:
    compiled = torch.compile(branching, backend=backend)
    first = compiled(*inputs())
    first.sum().backward()
    with depyf.prepare_debug(tmp_path):
        assert torch.equal(compiled(*inputs()), first)
    # What Inductor takes out of its caches comes without the backward graph.
    assert expected <= stages(tmp_path) <= expected | ({"Backward_graph"} if backend == "inductor" else set())
    for path in tmp_path.glob("__*.py"):
        text = path.read_text()
        ast.parse(text)
        assert "Compiled before prepare_debug was entered. This file does not run" in text, path.name
    (transformed,) = tmp_path.glob("__transformed_code_0_for_branching.py")
    assert "compile id 0/0\n# equivalent" in transformed.read_text() or "# exact" in transformed.read_text()
    story = (tmp_path / "full_code_for_branching_0.py").read_text()
    ast.parse(story)
    assert "# Compiled before prepare_debug was entered, or after it was left." in story
    assert ", which runs" not in story
    assert "def __guard_0_for_branching" in story
    assert "def __resume_at_" in story
    told = "\n".join(path.read_text() for path in tmp_path.glob("missing_stages_0.txt"))
    assert ("call torch._dynamo.reset() inside" in told) == (backend != "eager")
    assert ("Joint_graph" in told) == (backend != "eager")


def test_what_is_not_called_is_not_dumped(tmp_path: Path) -> None:
    compiled = torch.compile(branching, backend="eager")
    compiled(*inputs())
    with depyf.prepare_debug(tmp_path) as prepared:
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    assert prepared.session is not None
    assert [record.function for record in prepared.session.records(TransformedCode)] == ["<lambda>"]


@pytest.mark.parametrize("before", [False, True])
def test_what_this_directory_holds_already_is_not_dumped_again(tmp_path: Path, before: bool) -> None:
    compiled = torch.compile(branching, backend="eager")
    if before:
        compiled(*inputs())
    for _ in range(2):
        with depyf.prepare_debug(tmp_path):
            compiled(*inputs())
    assert [path.name for path in tmp_path.glob("__transformed_code_*_for_branching.py")] == [
        "__transformed_code_0_for_branching.py"
    ]


def test_a_debugger_of_somebody_else_goes_on_hearing_of_runs(tmp_path: Path) -> None:
    module = torch_names.module("torch._C._dynamo.eval_frame")
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    heard = []
    module.set_bytecode_debugger_callback(heard.append)
    try:
        with depyf.prepare_debug(tmp_path):
            compiled(torch.ones(2))
        assert len(heard) == 1
        compiled(torch.ones(2))
        assert len(heard) == 2
    finally:
        module.set_bytecode_debugger_callback(None)


def test_an_outdated_entry_and_a_dead_function_do_no_harm(tmp_path: Path) -> None:
    compiled = torch.compile(branching, backend="eager")
    compiled(*inputs())
    with depyf.prepare_debug(tmp_path):
        compiled(*inputs())
        torch._C._dynamo.eval_frame.reset_code(branching.__code__)
    assert not list(tmp_path.glob("__transformed_code_*_for_branching.py"))
