"""pdb stops at breakpoints set in the dumped files, with the tensors in sight. (test_editors.py: other debuggers.)"""

from __future__ import annotations

import io
import itertools
import linecache
import pdb
import re
import sys
from pathlib import Path
from typing import Any, List, Tuple

import pytest
import warm_python

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from stops import STOPS  # noqa: E402
from torch_versions import HAS_GUARD_TREES, needs_branches_traced_once  # noqa: E402

import depyf  # noqa: E402

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
BACKENDS = [
    pytest.param("eager", marks=pytest.mark.slow),
    "aot_eager",
    pytest.param("inductor", marks=[pytest.mark.inductor, pytest.mark.slow]),
]


@pytest.mark.parametrize("backend", BACKENDS)
def test_pdb_stops_in_every_file_that_runs(run_program: Any, tmp_path: Path, backend: str) -> None:
    # An undisturbed run first: the files and lines of its dump are those of the next run, where the breakpoints are
    # set before anything has run. They stop when the code is compiled, and again under ``depyf.debug()``.
    undisturbed = run_program("stepped.py", backend, tmp_path, stdin="c\n")
    stops = STOPS[backend]
    places = [stop.place(tmp_path) for stop in stops]
    visit = [command for stop in stops for command in ("c", f"p 'seen', {stop.variable}")]
    commands = [*(f"b {path}:{line}" for path, line in places), *[*visit, "c"] * 2, "q"]
    printed = run_program("stepped.py", backend, tmp_path, stdin="\n".join([*commands, ""]), flags="-m pdb")
    for (path, line), stop in zip(places, stops):
        assert printed.count(f"> {path}({line})") == 2, printed
        assert stop.value in printed.partition(f"> {path}({line})")[2].partition("seen")[2].splitlines()[0], printed
    assert "in depyf.debug()" not in undisturbed
    assert "GRADIENT [0.5, 0.5, 0.5]" in undisturbed
    assert "GRADIENT [0.5, 0.5, 0.5]" in printed


def test_pdb_stops_in_a_thread_of_autograds(run_program: Any, tmp_path: Path) -> None:
    undisturbed = run_program("stepped.py", "aot_eager", tmp_path, "--autograds-thread", stdin="c\n")
    stop = STOPS["aot_eager"][-1]
    path, line = stop.place(tmp_path)
    commands = [f"b {path}:{line}", "c", "import threading", "p threading.current_thread()", "n", "c", ""]
    printed = run_program("stepped.py", "aot_eager", tmp_path, "--autograds-thread", stdin="\n".join(commands))
    assert "_DummyThread" in printed.partition(f"> {path}({line})")[2]
    assert f"> {path}({line + 1})" in printed
    assert printed.splitlines()[-1] == undisturbed.splitlines()[-1] == "(Pdb) GRADIENT [0.5, 0.5, 0.5]"


def tripled(x: Any) -> Any:
    return x * 3


def test_what_a_stopped_debugger_calls_is_not_compiled(tmp_path: Path) -> None:
    """Else the numbers of graphs would depend on what the user looks at."""
    output = io.StringIO()
    debugger, here = pdb.Pdb(stdin=io.StringIO("p tripled(torch.ones(2))\nc\n"), stdout=output), sys._getframe()
    debugger.reset()

    def stops(x: Any) -> Any:
        y = x + 1
        debugger.interaction(here, None)
        return y * 2

    torch._dynamo.reset()
    with depyf.prepare_debug(tmp_path):
        torch.compile(stops, backend="eager")(torch.ones(2))
    assert "tensor([3., 3.])" in output.getvalue()
    dumped = sorted(path.name for path in tmp_path.iterdir())
    assert not [name for name in dumped if "tripled" in name], dumped
    assert [name for name in dumped if "stops" in name], dumped
    wrapped = getattr(pdb.Pdb.interaction, "__wrapped__", None)
    assert wrapped is None, "the hook is gone"


@needs_branches_traced_once
def test_graphs_inside_graphs_run_from_their_lines(tmp_path: Path) -> None:
    def choose(x: Any, w: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda a, b: a.sin() * b, lambda a, b: a.cos() + b, (x, w))

    torch._dynamo.reset()
    compiled = torch.compile(choose, backend="aot_eager")

    def step() -> bool:
        result = compiled(torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)).sum()
        if result.requires_grad:  # not in PyTorch 2.4, which has no gradients of torch.cond
            result.backward()
        return bool(result.requires_grad)

    with depyf.prepare_debug(tmp_path):
        has_backward = step()
    lines: List[str] = []
    elsewhere: List[str] = []

    def trace(frame: Any, event: str, arg: Any) -> Any:
        path = frame.f_code.co_filename
        if "eval_with_key" in path:
            elsewhere.append(path)
        if event == "line":
            lines.append(linecache.getline(path, frame.f_lineno).strip())
        return trace if path.startswith(str(tmp_path)) else None

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        step()
    finally:
        sys.settrace(previous)
    assert elsewhere == []
    assert "" not in lines
    # The taken branch, forward and backward: no other graph has these operations.
    assert any("aten.sin.default" in line for line in lines)
    assert any("aten.cos.default" in line for line in lines) == has_backward


def test_pdb_does_not_outlive_the_program(program_environment: Any, tmp_path: Path) -> None:
    """Python's own pdb traces while the interpreter is shut down, and fails there for want of its modules."""
    commands = [f"b {tmp_path}/__transformed_code_0_for_twice.py:2", "c", "c", "c", ""]
    command = [sys.executable, str(PROGRAMS / "pdb_to_the_end.py"), str(tmp_path)]
    done = warm_python.run(command, input="\n".join(commands), env=program_environment)
    assert done.returncode == 0, done.stderr
    assert "traced to the end: True" in done.stdout
    assert "Exception ignored" not in done.stderr


def stops_in(printed: str) -> List[Tuple[str, str]]:
    """Return the (file name, function) of each place at which pdb stopped, and of each frame it was asked for."""
    return [(Path(path).name, f"{function}:{line}") for path, line, function in re.findall(_PLACE, printed, re.M)]


_PLACE = r"^(?:\(Pdb\) )*> (\S+\.py)\((\d+)\)(<?\w+>?)\(\)"


CAPTURED = f"__compiled_fn_{1 if HAS_GUARD_TREES else 0}.Captured_Graph.0.py"
"""The first graph: PyTorch before 2.4 counts from 0."""


def test_next_and_up_stay_in_the_users_frames(run_program: Any, tmp_path: Path) -> None:
    printed = run_program("paused.py", tmp_path, stdin="\n".join(["n", "n", "up", "c", "c", ""]))
    assert stops_in(printed) == [
        *(("paused.py", f"main:{line}") for line in (18, 19, 20)),
        ("paused.py", "<module>:25"),
        # Its body is on the line of the with statement. Before 3.10 a frame that was traced has the line of its last
        # line event.
        ("paused.py", "main:21" if sys.version_info >= (3, 10) else "main:20"),
    ]
    assert "RESULT [8.0, 8.0, 8.0]" in printed


def test_step_goes_from_the_users_line_to_the_files_of_the_dump(run_program: Any, tmp_path: Path) -> None:
    printed = run_program("paused.py", tmp_path, stdin="\n".join([*["s"] * 20, "c", "c", ""]))
    files = [file for file, _ in itertools.groupby(file for file, _ in stops_in(printed))]
    assert files == [
        "paused.py",
        *["__transformed_code_0_for_scaled.py", CAPTURED],
        *["__transformed_code_0_for_scaled.py", "paused.py"],
        *files[5:],
    ]
    assert set(files[5:]) <= set(files[:5])
    assert "RESULT [8.0, 8.0, 8.0]" in printed


def test_step_goes_from_one_context_to_the_next_and_into_no_frame_of_ours(run_program: Any, tmp_path: Path) -> None:
    printed = run_program("paused.py", tmp_path, stdin="\n".join([*["s"] * 150, "c", ""]))
    before_exit, result, _ = printed.partition("RESULT [8.0, 8.0, 8.0]")
    assert result
    files = {file for file, _ in stops_in(before_exit)} - {"<string>"}  # guards of PyTorch 2.2 are in Python
    assert files == {"paused.py", "__transformed_code_0_for_scaled.py", CAPTURED}


def test_a_breakpoint_in_a_compiled_function_is_set_where_it_runs(run_program: Any, tmp_path: Path) -> None:
    graph = tmp_path / CAPTURED
    printed = run_program("paused.py", tmp_path, stdin="\n".join(["b 11", "b scaled", "b 16", *["c"] * 12, ""]))
    told = rf"paused.py:11 is compiled, in scaled. It runs at {re.escape(str(graph))}:(\d+);"
    (line,) = {*re.findall(told, printed)}  # on some Pythons ``b scaled`` is at line 11, too, and not at its ``def``
    assert printed.count("is compiled") == 2  # line 16 runs as it is
    stopped = stops_in(printed)
    assert (graph.name, f"forward:{line}") in stopped
    at_def = re.search(r"Breakpoint \d+ at .*paused\.py:10$", printed, re.MULTILINE) is not None
    assert at_def or sys.version_info >= (3, 13)
    assert (("__transformed_code_0_for_scaled.py", "scaled:2") in stopped) == at_def
    assert "RESULT [8.0, 8.0, 8.0]" in printed
