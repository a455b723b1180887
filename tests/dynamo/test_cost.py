"""Sessions and compiled functions have a constant cost, however many there have been."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Callable, List

import pytest
from cost import grows_like

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

from depyf.dynamo.capture.fallbacks import fallbacks  # noqa: E402
from depyf.dynamo.capture.records import Cause, FrameSkipped, GraphFile, KernelFile  # noqa: E402
from depyf.dynamo.capture.session import Session  # noqa: E402
from depyf.dynamo.dump import chronicle  # noqa: E402
from depyf.dynamo.dump.chronicle import Budget  # noqa: E402
from depyf.dynamo.store.directory import DumpDirectory  # noqa: E402
from depyf.torch_trace.stages import Stage  # noqa: E402


def session_of(directory: Path, functions: int) -> Session:
    """A session of so many functions, each with three graphs and a kernel, and one that was skipped."""
    session = Session(DumpDirectory.at(str(directory)), clean_wild_fx_code=True, log_bytecode=False)
    for number in range(functions):
        name, compile_id = f"__compiled_fn_{number}", f"{number}/0"
        for stage in (Stage.CAPTURED, Stage.JOINT, Stage.FORWARD):
            session.add(GraphFile(compile_id, name, stage, 0, f"{name}.{stage.value}.0.py", ""))
        session.add(KernelFile(compile_id, name, 0, f"{name}.kernel_0.py", "", ""))
        session.add(
            FrameSkipped(compile_id, Cause.SKIPPED, "", f"f{number}", f"f{number}", "net.py", number, None, None, None)
        )
    return session


def asking_for_files(session: Session, functions: int) -> object:
    return [session.files_of(f"__compiled_fn_{number}") for number in range(functions)]


@pytest.mark.parametrize("ask", ["files of each function", "fallbacks"])
def test_what_is_asked_of_a_session_grows_like_its_size(ask: str, tmp_path: Path) -> None:
    def make(functions: int) -> Callable[[], object]:
        session = session_of(tmp_path, functions)
        if ask == "fallbacks":
            return functools.partial(fallbacks, session)
        return functools.partial(asking_for_files, session, functions)

    assert grows_like(make, 50, 6) < 1.2


class Clock:
    """Stands for the module ``time``: CPU time goes on with the work, and nothing else takes any."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    thread_time = monotonic


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(chronicle, "time", clock)
    return clock


def spent_on_pages(clock: Clock, sessions: int) -> List[float]:
    """What each session spends on the page, which takes longer the more sessions it tells of."""
    budget, spent = Budget(), []
    for number in range(sessions):
        clock.now += 0.1  # the session itself
        before = clock.now
        if budget.allows():
            with budget.spending():
                clock.now += 0.003 * (number + 1)
        spent.append(clock.now - before)
    return spent


def test_a_page_is_written_for_each_session_until_that_costs_more_than_they_do(clock: Clock) -> None:
    spent = spent_on_pages(clock, 1000)
    assert all(spent[:30])
    tenths = [sum(spent[start : start + 100]) for start in range(0, 1000, 100)]
    assert max(tenths[1:]) < tenths[0] * 1.3
    assert sum(spent[500:]) / (500 * 0.1) < 0.2


def test_sessions_far_apart_all_write_the_page(clock: Clock) -> None:
    budget = Budget()
    for _ in range(100):
        clock.now += 60.0
        assert budget.allows()
        with budget.spending():
            clock.now += 5.0


MANY_SESSIONS = """
import sys, pathlib
import torch, depyf
from depyf.dynamo.dump import chronicle
chronicle._AT_ONCE = chronicle._SHARE = 0.0
directory = pathlib.Path(sys.argv[1])
def function_0(x): return x + 3
def function_1(x): return x + 1
def function_2(x): return x + 2
for function in (function_0, function_1, function_2):
    with depyf.prepare_debug(directory):
        torch.compile(function, backend="eager")(torch.ones(2))
    told = [n for n in range(3) if f"function_{n}`" in (directory / "index.md").read_text()]
    print(told, (directory / "index_is_not_up_to_date.txt").exists())
"""


@pytest.mark.slow
def test_a_page_that_was_put_off_is_written_when_the_process_ends(
    tmp_path: Path, run_program: Callable[..., str]
) -> None:
    (tmp_path / "program.py").write_text(MANY_SESSIONS)
    printed = run_program(str(tmp_path / "program.py"), tmp_path / "dump")
    assert printed.splitlines() == ["[0] False", "[0] True", "[0] True"]
    told = (tmp_path / "dump" / "index.md").read_text()
    assert all(f"function_{number}`" in told for number in range(3))
    assert "function_2" in (tmp_path / "dump" / "manifest.json").read_text()
    assert not (tmp_path / "dump" / "index_is_not_up_to_date.txt").exists()


@pytest.mark.slow
def test_nothing_is_said_of_a_directory_that_was_deleted(tmp_path: Path, run_program: Callable[..., str]) -> None:
    shown = "import logging, shutil\nlogging.basicConfig(stream=sys.stdout)\nshutil.rmtree(directory)\n"
    (tmp_path / "program.py").write_text(MANY_SESSIONS + shown)
    assert run_program(str(tmp_path / "program.py"), tmp_path / "dump").splitlines()[3:] == []
