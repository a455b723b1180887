"""A debugger stops at breakpoints set in the dumped files, with the tensors in sight."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, List, NamedTuple, Tuple

import pytest

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

SHAPE = "torch.Size([3])"


class Stop(NamedTuple):
    """A breakpoint at the first line that matches ``pattern``, and what ``expression`` has to show there.

    ``<graph>`` in the first two stands for the name of the first compiled function.
    """

    file: str
    pattern: str
    expression: str
    shown: str


TRANSFORMED = Stop("__transformed_code_0_for_toy.py", "^[^#]*<graph>", "(a.shape, b.shape)", f"({SHAPE}, {SHAPE})")
CAPTURED = Stop("<graph>.Captured_Graph.0.py", "return", "x.shape", SHAPE)
FORWARD = Stop("<graph>.Forward_graph.0.py", "return", "primals_1.shape", SHAPE)
BACKWARD = Stop("<graph>.Backward_graph.0.py", "^ +div.* = ", "tangents_1.shape", SHAPE)
KERNEL = Stop("<graph>.kernel_0.py", "^ +buf0 = ", "primals_1.shape", SHAPE)
BACKWARD_KERNEL = Stop("<graph>.kernel_1.py", "^ +buf0 = ", "tangents_1.shape", SHAPE)


def place_of(stop: Stop, dump: Path) -> Tuple[Path, int]:
    """The path, and the number of the first line that matches."""
    graph = min(path.name.partition(".")[0] for path in dump.glob("__compiled_fn_*"))  # 2.2 counts from 0
    path, pattern = dump / stop.file.replace("<graph>.", f"{graph}."), stop.pattern.replace("<graph>", graph)
    lines = [n for n, line in enumerate(path.read_text().splitlines(), 1) if re.search(pattern, line)]
    return path, lines[0]


@pytest.mark.parametrize(
    ("backend", "stops"),
    [
        ("eager", [TRANSFORMED, CAPTURED]),
        ("aot_eager", [TRANSFORMED, FORWARD, BACKWARD]),
        pytest.param(
            *("inductor", [TRANSFORMED, KERNEL, BACKWARD_KERNEL]), marks=[pytest.mark.inductor, pytest.mark.slow]
        ),
    ],
    ids=["eager", "aot_eager", "inductor"],
)
def test_debugger_stops_in_every_file_that_runs(
    run_program: Any, tmp_path: Path, backend: str, stops: List[Stop]
) -> None:
    # An undisturbed run first: the files and lines of its dump are those of the next run.
    undisturbed = run_program("stepped.py", backend, tmp_path, stdin="c\n")
    places = [place_of(stop, tmp_path) for stop in stops]
    commands = [f"tbreak {path}:{line}" for path, line in places]
    for stop in stops:
        commands += ["c", f"p 'seen', {stop.expression}"]
    printed = run_program("stepped.py", backend, tmp_path, stdin="\n".join([*commands, "c", ""]))
    for (path, line), stop in zip(places, stops):
        assert f"> {path}({line})" in printed
        assert f"('seen', {stop.shown})" in printed
    assert undisturbed.splitlines()[-1].endswith("GRADIENT [0.5, 0.5, 0.5]")
    assert printed.splitlines()[-1].endswith("GRADIENT [0.5, 0.5, 0.5]")
