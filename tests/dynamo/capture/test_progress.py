"""The progress of a compilation: one temporary line on a terminal, few lines in a log."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import queue
import re
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, Optional, TextIO

import pytest
from torch_versions import REPORTS_COMPILE_IDS

from depyf.base.quick_dataclass import replace
from depyf.dynamo.capture import progress as module
from depyf.dynamo.capture import silence
from depyf.dynamo.capture.progress import CompilationProgress
from depyf.dynamo.capture.steps import step_of
from depyf.dynamo.questions.watch import watch
from depyf.report.model.manifest import to_json
from depyf.report.model.run import Compilation, Function, Run, SourceFile
from depyf.sweep.pool import FileDone
from depyf.sweep.summary import SweepProgress
from depyf.torch_trace.events import Event


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> List[float]:
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def event(name: str, compile_id: str = "0/0", **meta: object) -> Event:
    return Event(name, compile_id, 0, meta, None, 0.0)


START = event("dynamo_start", stack=[{"name": "f", "filename": "/a/prog.py", "line": 3}])
END = event("compilation_metrics")


def test_a_terminal_shows_frame_stage_and_time_and_takes_the_line_away(clock: List[float]) -> None:
    stream = Terminal()
    show = CompilationProgress(stream)
    show(START)
    clock[0] += 2.5
    show(event("inductor_output_code"))
    show(END)
    assert stream.getvalue() == (
        "\rcompiling 0/0 f (prog.py:3): Dynamo traces, 0.0 s\x1b[K"
        "\rcompiling 0/0 f (prog.py:3): kernels are built, 2.5 s\x1b[K"
        "\r\x1b[K"
    )
    show(END)
    show.close()
    assert stream.getvalue().endswith("2.5 s\x1b[K\r\x1b[K")  # nothing is there, so nothing is taken away


def test_files_may_be_called_by_numbers(clock: List[float]) -> None:
    stream = Terminal()
    show = CompilationProgress(stream)
    show.numbers = lambda: {"/a/prog.py": 7}
    show(event("dynamo_start", stack=[{"name": "f", "filename": 7, "line": 3}]))
    assert stream.getvalue() == "\rcompiling 0/0 f (prog.py:3): Dynamo traces, 0.0 s\x1b[K"


def test_a_log_gets_a_line_only_when_it_takes_long(clock: List[float]) -> None:
    stream = io.StringIO()
    show = CompilationProgress(stream)
    show(START)
    clock[0] += 9
    show(event("dynamo_output_graph"))
    assert stream.getvalue() == ""
    clock[0] += 2
    show(event("inductor_output_code"))
    clock[0] += 5
    show(event("dynamo_cpp_guards_str"))
    clock[0] += 1
    show(END)
    assert stream.getvalue() == (
        "depyf: compiling 0/0 f (prog.py:3): kernels are built, 11.0 s\ndepyf: compiled 0/0 f (prog.py:3) in 17.0 s\n"
    )
    clock[0] += 100
    show(event("dynamo_start", "1/0", **START.meta))
    show(event("compilation_metrics", "1/0"))
    assert stream.getvalue().count("\n") == 2


def test_it_says_how_many_came_before_and_how_long_the_last_of_the_function_took(clock: List[float]) -> None:
    stream = Terminal()
    show = CompilationProgress(stream)
    show(START)
    clock[0] += 12
    show(END)
    show(event("dynamo_start", "0/1", **START.meta))
    assert "Dynamo traces, 0.0 s (last time 12.0 s), 1 before" in stream.getvalue()


def test_the_environment_names_a_logger_or_turns_it_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, clock: List[float]
) -> None:
    for chosen, expected in (("train.compile", 2), ("0", 0)):
        caplog.clear()
        monkeypatch.setenv("DEPYF_PROGRESS", chosen)
        stream = Terminal()
        show = CompilationProgress(stream)
        with caplog.at_level("INFO", logger="train.compile"):
            show(START)
            clock[0] += 11
            show(event("inductor_output_code"))
            show(END)
        assert stream.getvalue() == ""
        assert [record.name for record in caplog.records] == ["train.compile"] * expected


def test_a_stack_that_ends_in_dynamo_names_no_function(clock: List[float]) -> None:
    stream = Terminal()
    show = CompilationProgress(stream)
    path = "/lib/torch/_dynamo/convert_frame.py"  # PyTorch 2.4
    show(event("dynamo_start", stack=[{"name": "__call__", "filename": path, "line": 948}]))
    assert stream.getvalue() == "\rcompiling 0/0: Dynamo traces, 0.0 s\x1b[K"


def test_of_two_the_first_shows_and_of_several_ranks_the_first_rewrites(
    monkeypatch: pytest.MonkeyPatch, clock: List[float]
) -> None:
    streams = Terminal(), Terminal()
    shows = [CompilationProgress(stream) for stream in streams]
    for show in shows:
        show.begin()
    try:
        for show in shows:
            show(START)
        module.remove_line()
        shows[0].end()
        monkeypatch.setattr(module.torch_names, "distributed_rank", lambda: 1)
        for show in shows:
            show(event("dynamo_output_graph"))
    finally:
        for show in shows:
            show.end()
    assert streams[0].getvalue().endswith("\r\x1b[K")
    assert streams[1].getvalue() == ""


@pytest.mark.torch
def test_watch_shows_what_is_compiled_and_takes_the_line_away_before_it_reports() -> None:
    torch = pytest.importorskip("torch")
    stream = Terminal()
    with watch(stream=stream):
        compiled = torch.compile(lambda x, n: x * n, backend="eager")
        compiled(torch.ones(2), 2)
        compiled(torch.ones(2), 3)
    named = r" <lambda> \(test_progress.py:\d+\): Dynamo traces" if REPORTS_COMPILE_IDS else ": Dynamo traces"
    if '"dynamo_start"' not in inspect.getsource(torch._dynamo.convert_frame):  # PyTorch 2.2
        named = ": graph captured"
    assert re.search(rf"\rcompiling \S+{named}", stream.getvalue())
    assert re.search(r"(\A|\n|\r\x1b\[K)depyf: recompile", stream.getvalue())


def test_a_backward_that_is_compiled_later_has_a_time_of_its_own(clock: List[float]) -> None:
    stream = Terminal()
    show = CompilationProgress(stream)
    show(START)
    show(END)
    clock[0] += 50
    show(event("before_post_grad_graph"))
    assert stream.getvalue().endswith("\rcompiling 0/0 f (prog.py:3): last passes, 0.0 s, 1 before\x1b[K")


def test_what_says_nothing_about_the_stage_and_other_processes_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    show = CompilationProgress(stream)
    show(event("create_symbol"))
    monkeypatch.setattr(os, "getpid", lambda: -1)
    show(START)
    assert stream.getvalue() == ""


def test_a_stream_that_is_closed_hurts_nobody() -> None:
    stream = Terminal()
    show = CompilationProgress(stream)
    stream.close()
    show(START)
    show(END)
    show.close()


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_plain_text_has_no_line_that_is_rewritten(
    monkeypatch: pytest.MonkeyPatch, clock: List[float], name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    compiling, sweeping = Terminal(), Terminal()
    shows = CompilationProgress(compiling), SweepProgress(sweeping, 3)
    shows[0](START)
    clock[0] += 40.0
    shows[0](event("dynamo_output_graph"))
    shows[1](FileDone("a.py"))
    for show in shows:
        show.close()
    for stream in (compiling, sweeping):
        assert stream.getvalue().endswith("\n")
        assert not {"\r", "\x1b"} & set(stream.getvalue())


LINKS = re.compile(r"\x1b\]8;;(file://[^\x1b]+)\x1b\\([^\x1b]*)\x1b\]8;;\x1b\\")


@pytest.mark.parametrize("plain", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_the_summary_of_a_run_links_to_the_page(tmp_path: Path, plain: Dict[str, str]) -> None:
    pty = pytest.importorskip("pty")
    pytest.importorskip("torch")
    (tmp_path / "program.py").write_text(
        "import torch\n\n\n@torch.compile(backend='eager')\ndef f(x):\n    print()\n    return x\n\nf(torch.ones(2))\n"
    )
    ours, theirs = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    command = [sys.executable, "-m", "depyf", "run", "-o", "dump", "program.py"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=theirs, env={**environment, "TERM": "xterm", **plain}
    )
    os.close(theirs)
    text = b""
    with contextlib.suppress(OSError):  # the end, on Linux
        while True:
            part = os.read(ours, 4096)
            if not part:
                break
            text += part
    os.close(ours)
    assert process.wait(60) == 0
    links = LINKS.findall(text.decode())
    page = (tmp_path / "dump" / "index.html").resolve()
    if plain:
        assert not links
        assert b"\x1b" not in text
    else:
        assert (f"{page.as_uri()}#source/f0/6", "program.py:6") in links
        assert [shown for address, shown in links if address == page.as_uri()] == [str(page)]


def test_a_child_shows_its_own_line_and_not_that_of_its_parent(
    clock: List[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forked child has the parent's list of those that show, whose first one would show nothing here."""
    monkeypatch.setattr(module, "_open", [])
    CompilationProgress(Terminal()).begin()
    child = os.getpid() + 1
    monkeypatch.setattr(module.os, "getpid", lambda: child)
    stream = Terminal()
    show = CompilationProgress(stream)
    show.begin()
    show(START)
    assert "compiling 0/0 f (prog.py:3)" in stream.getvalue()


def test_between_two_reports_a_line_says_what_the_stack_shows(clock: List[float]) -> None:
    stream = io.StringIO()
    show = CompilationProgress(stream)
    show(START)
    clock[0] += 4
    show._silent("kernels are built")
    assert stream.getvalue() == ""
    clock[0] += 7
    show(event("chromium_event"))  # which says nothing about the step
    show._silent("kernels are built")
    clock[0] += 9
    show._silent("kernels are built")
    clock[0] += 1
    show._silent("kernels are built")
    show._silent(None)  # nothing is compiled any more, whatever was not reported
    clock[0] += 1
    show(END)
    show._silent("kernels are built")
    assert stream.getvalue().splitlines() == [
        "depyf: compiling 0/0 f (prog.py:3): kernels are built, 11.0 s",
        "depyf: compiling 0/0 f (prog.py:3): kernels are built, 21.0 s, no news of PyTorch for 10 s",
        "depyf: compiled 0/0 f (prog.py:3) in 22.0 s",
    ]


def test_a_thread_tells_while_something_is_compiled_and_is_gone_before_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    told: queue.Queue[Optional[str]] = queue.Queue()
    monkeypatch.setattr(silence, "step_of", lambda stack: stack[0].f_code.co_name)
    silent = silence.Silence(told.put, 0.01)
    silent.begin()
    assert told.get(timeout=60)  # the function in which this thread waits
    thread = silent._thread
    assert thread is not None
    silent.begin()
    assert silent._thread is thread  # one is enough
    silence.end_all()
    assert not thread.is_alive()
    silent.begin()
    assert silent._thread is not thread
    silent.end(wait=60)


def test_how_long_a_function_took_in_an_earlier_run(tmp_path: Path, clock: List[float]) -> None:
    compilation = Compilation("0/0", 0, seconds=41.25)
    run = Run(sources=(SourceFile("/a/prog.py", ""),), functions=(Function("f", "f", 0, 3, 4),))
    (tmp_path / "manifest.json").write_text(to_json(replace(run, compilations=(compilation,))))
    stream = Terminal()
    show = CompilationProgress(stream)
    show._earlier = silence.EarlierTimes(str(tmp_path))
    show(START)
    assert "earlier" not in stream.getvalue()  # one that is over at once is worth no reading
    clock[0] += 2
    show(event("dynamo_output_graph"))
    assert "graph captured, 2.0 s (in an earlier run 41.2 s)" in stream.getvalue()
    for broken in ("{", '{"schema": 99}'):
        (tmp_path / "manifest.json").write_text(broken)
        assert silence.EarlierTimes(str(tmp_path)).seconds("f (prog.py:3)") == 0


@pytest.mark.torch
def test_the_stack_of_a_compilation_shows_its_step() -> None:
    torch = pytest.importorskip("torch")
    found: List[Optional[str]] = []

    def backend(graph: object, inputs: object) -> object:
        found.append(step_of(silence._stack(sys._getframe())))
        return graph

    torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
    assert [str(step)[:6] for step in found] == ["Dynamo"]  # of which step Dynamo calls a backend differs
    assert step_of(silence._stack(sys._getframe())) is None


def test_a_debugger_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    told: queue.Queue[Optional[str]] = queue.Queue()
    monkeypatch.setattr(silence, "step_of", lambda stack: "Dynamo traces")
    silent = silence.Silence(told.put, 0.01)
    silent.begin()
    assert told.get(timeout=60) == "Dynamo traces"
    # A frame of the module that asks the user waits until the thread sees that.
    exec("while told.get(timeout=60) is not None: pass", {"__name__": "cmd", "told": told})
    silent.end(wait=60)


def test_globals_of_the_program_may_hold_anything() -> None:
    class Hostile(Dict[str, object]):
        def get(self, *_: object) -> object:
            raise RuntimeError

        __str__ = get  # type: ignore[assignment]

    for name in (Hostile(), "prog"):
        found = Hostile({"__name__": name, "sys": sys})
        exec("def f():\n    return sys._getframe()", found)
        assert step_of([found["f"]()]) is None  # type: ignore[operator]


def test_the_thread_takes_no_lock_that_the_program_may_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: List[str] = []
    monkeypatch.setattr(silence.Silence, "begin", lambda _: begun.append("thread"))

    def begins(stream: TextIO) -> bool:
        show = CompilationProgress(stream)
        show.begin()
        show(START)
        show.end()
        return bool(begun) and begun.pop() == "thread"

    with (tmp_path / "log").open("w") as file:
        assert begins(file)
        monkeypatch.setenv("DEPYF_PROGRESS", "a.logger")
        assert not begins(file), "handlers have locks"
    monkeypatch.delenv("DEPYF_PROGRESS")
    assert not begins(Terminal()), "so may the streams of notebooks and progress bars"
