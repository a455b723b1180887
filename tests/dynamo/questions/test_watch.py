"""``watch`` reports each event once, in order, at the right line, and has no other effect."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import FunctionType
from typing import Any, List, Tuple

import pytest
import warm_python

torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.answers.watch import WatchEvent  # noqa: E402
from depyf.dynamo.capture.records import FrameSkipped  # noqa: E402
from depyf.running.start_hook import FILES  # noqa: E402

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
sys.path.insert(0, str(PROGRAMS))
import twelve_events  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]


def limit(number: int) -> Any:
    name = "recompile_limit" if hasattr(torch._dynamo.config, "recompile_limit") else "cache_size_limit"
    return torch._dynamo.config.patch({name: number})


def marked() -> List[Tuple[str, int]]:
    """Kind and line of each event, in the order in which they happen, as the comments of the program say."""
    found = {}
    for number, line in enumerate((PROGRAMS / "twelve_events.py").read_text().splitlines(), 1):
        for event, kind in re.findall(r"(\d+): (graph break|recompile|fallback)", line.partition("  # ")[2]):
            found[int(event)] = (kind, number)
    found[12] = ("fallback", twelve_events.takes_words.__code__.co_firstlineno)
    return [found[event] for event in sorted(found)]


def test_twelve_events_are_told_once_in_order_at_their_lines() -> None:
    stream = io.StringIO()
    with depyf.watch(stream=stream) as watched:
        twelve_events.main(limit)
    assert len(marked()) == 12
    told, expected = [(each.kind, each.place and each.place[1]) for each in watched.happened], marked()
    if not hasattr(torch._dynamo.guards.GuardBuilder, "SET_CONTAINS"):  # before PyTorch 2.8 guards have no lines
        told, expected = ([(kind, kind != "recompile" and line) for kind, line in some] for some in (told, expected))
    assert told == expected
    assert {Path(each.place[0]).name for each in watched.happened if each.place} == {"twelve_events.py"}
    lines = stream.getvalue().splitlines()
    assert [line for line in lines if line.startswith("depyf: ")] == [f"depyf: {each}" for each in watched.happened]
    assert "depyf watched: 6 recompiles, 5 graph breaks, 1 fallback" in lines
    assert "x has dtype float64, and was compiled for float32" in str(watched.happened[6])
    assert "recompile limit reached" in watched.happened[11].words
    assert "Data-dependent branching" in watched.happened[2].words
    advice = [
        "A call of torch._dynamo.graph_break()",
        "The branch depends on",
        "A number is read",
        "torch.compiler.disable",
    ]
    for each, begin in zip(watched.happened[1:5], advice):
        assert begin in each.advice


def test_frames_without_anything_to_compile_are_no_fallbacks() -> None:
    def name_of(x: str) -> str:
        return x.upper()

    @torch.compiler.disable(recursive=False)
    def outside(x: Any) -> Any:
        name_of("a")
        return x * 2

    stream = io.StringIO()
    with depyf.watch(stream=stream) as watched:
        torch.compile(lambda x: outside(x) + 1, backend="eager")(torch.ones(2))
    assert "fallback" not in [each.kind for each in watched.happened]
    assert "depyf watched: 0 recompiles, 1 graph break, 0 fallbacks" in stream.getvalue()


def breaks_twice(x: Any, n: int) -> Any:
    x = x + n
    torch._dynamo.graph_break()
    return x * 2


def test_a_graph_break_that_each_compilation_meets_is_counted_once(tmp_path: Path) -> None:
    stream = io.StringIO()
    with depyf.watch(stream=stream) as watched, depyf.prepare_debug(str(tmp_path)):
        for n in (2, 3):
            torch.compile(breaks_twice, backend="eager", dynamic=False)(torch.ones(2), n)
    assert [each.kind for each in watched.happened].count("graph break") == 2
    assert "depyf watched: 1 recompile, 1 graph break (met in 2 compilations), 0 fallbacks" in stream.getvalue()
    totals = json.loads((tmp_path / "manifest.json").read_text())["totals"]
    assert (totals["graph_breaks"], totals["graph_breaks_met"]) == (1, 2)


def test_a_callback_gets_them_instead() -> None:
    told: List[WatchEvent] = []
    stream = io.StringIO()
    with depyf.watch(told.append, stream=stream):
        torch.compile(twelve_events.breaks, backend="eager")(torch.ones(2))
    assert [(each.kind, each.function) for each in told] == [("graph break", "breaks")]
    assert stream.getvalue() == ""


def test_a_callback_that_raises_does_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: WatchEvent) -> None:
        raise ZeroDivisionError("no")

    expected = twelve_events.breaks(torch.ones(2))
    with depyf.watch(broken):
        assert torch.equal(torch.compile(twelve_events.breaks, backend="eager")(torch.ones(2)), expected)
        torch._dynamo.reset()
        torch.compile(twelve_events.breaks, backend="eager")(torch.ones(2))
    [record] = [record for record in caplog.records if record.levelname == "WARNING" and record.name == "depyf"]
    line = broken.__code__.co_firstlineno + 1
    assert f"callback of depyf.watch raised ZeroDivisionError: no at {__file__}:{line}" in record.getMessage()
    assert "bug of depyf" not in caplog.text
    assert 'raise ZeroDivisionError("no")' in caplog.text


def test_a_stream_that_raises_does_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise ZeroDivisionError("no")

    with depyf.watch(stream=Broken()):
        torch.compile(twelve_events.breaks, backend="eager")(torch.ones(2))
    assert "the stream given to depyf raised ZeroDivisionError: no" in caplog.text
    assert "bug of depyf" not in caplog.text


def test_where_nothing_is_compiled_that_is_said() -> None:
    stream = io.StringIO()
    with depyf.watch(stream=stream):
        torch.ones(2).sin()
    assert stream.getvalue() == "depyf watched: nothing was compiled\n"


def test_a_closed_stream_does_no_harm() -> None:
    stream = io.StringIO()
    with depyf.watch(stream=stream) as watched:
        stream.close()
        torch.compile(twelve_events.breaks, backend="eager")(torch.ones(2))
    assert len(watched.happened) == 1


def test_after_it_is_left_nothing_is_told_and_no_hook_is_there() -> None:
    import logging

    from torch._dynamo import convert_frame

    logger = logging.getLogger("torch.__trace")
    torch.compile(lambda x: x, backend="eager")(torch.ones(2))  # starts the trace, which removes a handler
    before = list(logger.handlers), convert_frame.format_error_msg, len(convert_frame._bytecode_hooks)
    with depyf.watch(stream=io.StringIO()) as watched:
        pass
    torch.compile(twelve_events.breaks, backend="eager")(torch.ones(2))
    assert watched.happened == []
    assert (list(logger.handlers), convert_frame.format_error_msg, len(convert_frame._bytecode_hooks)) == before


def test_nothing_is_called_while_compiled_code_runs() -> None:
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    x = torch.ones(2)
    compiled(x)
    called: List[Any] = []
    with depyf.watch(stream=io.StringIO()):
        sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_filename) if event == "call" else None)
        try:
            compiled(x)
        finally:
            sys.setprofile(None)
    assert [name for name in called if "depyf" in name and "tests" not in name] == []


def test_inside_prepare_debug_both_see_everything(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path), depyf.watch(stream=io.StringIO()) as watched:
        torch.compile(twelve_events.breaks, backend="eager")(torch.ones(2))
    assert [each.function for each in watched.happened] == ["breaks"]
    assert list(tmp_path.glob("full_code_for_breaks_*.py"))


def fall_back(number: int) -> None:
    """The ``number``-th function that is compiled once too often."""
    code = twelve_events.takes_words.__code__.replace(co_name=f"fallen_{number}")
    compiled = torch.compile(FunctionType(code, globals()), backend="eager", dynamic=False)
    with limit(1):
        for word in ("a", "bb"):
            compiled(torch.ones(2), word)


def test_fallbacks_are_told_to_all_who_watch_in_whatever_order_they_end(tmp_path: Path) -> None:
    prepared = depyf.prepare_debug(tmp_path)
    first, second = depyf.watch(stream=io.StringIO()), depyf.watch(stream=io.StringIO())
    for each in (first, prepared, second):
        each.__enter__()
    fall_back(1)
    for number, each in enumerate((first, prepared, second), 2):
        each.__exit__(None, None, None)
        fall_back(number)
    fallen = [[each.function for each in watched.happened if each.kind == "fallback"] for watched in (first, second)]
    assert fallen == [["fallen_1"], ["fallen_1", "fallen_2", "fallen_3"]]
    assert prepared.session is not None
    assert [each.function for each in prepared.session.records(FrameSkipped)] == ["fallen_1", "fallen_2"]


def test_as_a_callback_of_a_training_framework() -> None:
    callback = depyf.watch(stream=io.StringIO())
    callback.on_train_begin("arguments", state=1)
    callback.on_step_end("arguments")
    torch.compile(twelve_events.breaks, backend="eager")(torch.ones(2))
    callback.on_train_end()
    torch._dynamo.reset()
    torch.compile(twelve_events.breaks, backend="eager")(torch.ones(2))
    assert len(callback.happened) == 1
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        callback.other  # noqa: B018


PROGRAM = """
import torch

def f(x):
    y = x + 1
    torch._dynamo.graph_break()
    return y

print(torch.compile(f, backend="eager")(torch.ones(1)))
"""


def test_a_program_that_compiles_nothing_hears_nothing(tmp_path: Path) -> None:
    program = f"{FILES['depyf_hook.py']}\nbegin()\n"
    program += "import sys, torch._dynamo\nprint('depyf.dynamo.questions.watch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(Path(depyf.__file__).parents[1]), "DEPYF_WATCH": "1"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.parametrize("value", ["1", "0", ""])
def test_by_the_environment(value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    begin = "import depyf.running.by_environment as e; e.begin(); import runpy; runpy.run_path('program.py')"
    monkeypatch.setenv("DEPYF_WATCH", value)
    monkeypatch.setenv("PYTHONPATH", str(Path(depyf.__file__).parents[1]))
    done = warm_python.run([sys.executable, "-c", begin], cwd=tmp_path, check=True)
    assert done.stdout == "tensor([2.])\n"
    assert ("graph break f" in done.stderr) == (value == "1")
    assert ("depyf watched: 0 recompiles, 1 graph break, 0 fallbacks" in done.stderr) == (value == "1")


def test_in_a_dump_the_line_of_the_program_is_named_where_a_scheduler_has_wrapped_the_step(tmp_path: Path) -> None:
    parameter = torch.nn.Parameter(torch.ones(2))
    parameter.grad = torch.ones(2)
    optimizer = torch.optim.Adam([parameter])
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)

    def train() -> None:
        optimizer.step()  # the line

    compiled = torch.compile(train, backend="eager")
    with depyf.prepare_debug(tmp_path), depyf.watch(stream=io.StringIO()) as watched:
        for _ in range(3):
            compiled()
            scheduler.step()
    of_torch = "_use_grad"  # up to PyTorch 2.4 the optimizer itself breaks the graph
    lines = {each.place[1] for each in watched.happened if each.place is not None and each.function != of_torch}
    assert lines == {train.__code__.co_firstlineno + 1}
    assert {each.kind for each in watched.happened} >= {"graph break", "recompile"}
