"""A debugger stops at breakpoints set in the dumped files, with the tensors in sight."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, List

import pytest

pytestmark = pytest.mark.torch
pytest.importorskip("torch")


def line_of(path: Path, pattern: str) -> int:
    """The number of the first line that matches."""
    return next(n for n, line in enumerate(path.read_text().splitlines(), 1) if re.search(pattern, line))


def stepped(run_program: Any, backend: str, directory: Path, commands: List[str]) -> str:
    printed: str = run_program("stepped.py", backend, directory, stdin="\n".join(commands) + "\n")
    return printed


def dump(run_program: Any, backend: str, directory: Path) -> None:
    """The dump of a first, undisturbed run; the names and lines in it are those of the next."""
    assert "GRADIENT" in stepped(run_program, backend, directory, ["c"])


def stops_at(printed: str, path: Path, line: int) -> bool:
    return f"> {path}({line})" in printed


@pytest.mark.parametrize(
    ("backend", "file", "pattern", "variable", "value"),
    [
        ("eager", "__compiled_fn_1.Captured_Graph.0.py", r"return", "x.shape", "torch.Size([3])"),
        ("aot_eager", "__compiled_fn_1.Forward_graph.0.py", r"return", "primals_1.shape", "torch.Size([3])"),
        ("aot_eager", "__compiled_fn_1.Backward_graph.0.py", r"return", "tangents_1", "None"),
        pytest.param(
            *("inductor", "__compiled_fn_1.kernel_0.py", r"^ +buf0 = ", "primals_1.shape", "torch.Size([3])"),
            marks=[pytest.mark.inductor, pytest.mark.slow],
        ),
    ],
)
def test_debugger_stops_in_graph_and_kernel_files(
    run_program: Any, tmp_path: Path, backend: str, file: str, pattern: str, variable: str, value: str
) -> None:
    dump(run_program, backend, tmp_path)
    path = tmp_path / file
    line = line_of(path, pattern)
    printed = stepped(run_program, backend, tmp_path, [f"b {path}:{line}", "c", f"p 'seen', {variable}", "c"])
    assert stops_at(printed, path, line)
    assert f"('seen', {value})" in printed
    assert "GRADIENT" in printed


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_debugger_stops_in_transformed_code_with_the_users_variables(
    run_program: Any, tmp_path: Path, backend: str
) -> None:
    dump(run_program, backend, tmp_path)
    path = tmp_path / "__transformed_code_0_for_toy.py"
    line = line_of(path, "^[^#]*__compiled_fn_1")
    printed = stepped(run_program, backend, tmp_path, [f"b {path}:{line}", "c", "p 'seen', a.shape, b.shape", "n", "c"])
    assert stops_at(printed, path, line)
    assert "('seen', torch.Size([3]), torch.Size([3]))" in printed
    assert "GRADIENT" in printed
