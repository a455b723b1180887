"""How far a compilation is: one line in a terminal that is gone afterwards, hardly any in a log."""

from __future__ import annotations

import io
import os
from typing import List

import pytest

from depyf.running import progress as module
from depyf.running.progress import Progress
from depyf.torch_trace.events import Event


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


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
    show = Progress(stream)
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
    show = Progress(stream)
    show.numbers = lambda: {"/a/prog.py": 7}
    show(event("dynamo_start", stack=[{"name": "f", "filename": 7, "line": 3}]))
    assert stream.getvalue() == "\rcompiling 0/0 f (prog.py:3): Dynamo traces, 0.0 s\x1b[K"


def test_a_log_gets_a_line_only_when_it_takes_long(clock: List[float]) -> None:
    stream = io.StringIO()
    show = Progress(stream)
    show(START)
    clock[0] += 29
    show(event("dynamo_output_graph"))
    assert stream.getvalue() == ""
    clock[0] += 2
    show(event("inductor_output_code"))
    show(END)
    assert stream.getvalue() == "depyf: compiling 0/0 f (prog.py:3): kernels are built, 31.0 s\n"


def test_a_backward_that_is_compiled_later_has_a_time_of_its_own(clock: List[float]) -> None:
    stream = Terminal()
    show = Progress(stream)
    show(START)
    show(END)
    clock[0] += 50
    show(event("before_post_grad_graph"))
    assert stream.getvalue().endswith("\rcompiling 0/0 f (prog.py:3): last passes, 0.0 s\x1b[K")


def test_what_says_nothing_about_the_stage_and_other_processes_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    show = Progress(stream)
    show(event("create_symbol"))
    monkeypatch.setattr(os, "getpid", lambda: -1)
    show(START)
    assert stream.getvalue() == ""


def test_a_stream_that_is_closed_hurts_nobody() -> None:
    stream = Terminal()
    show = Progress(stream)
    stream.close()
    show(START)
    show(END)
    show.close()
