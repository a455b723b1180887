"""A process that opens sessions all its life: what it keeps, and what the page shows, are bounded."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any, Dict

import pytest
import torch

import depyf
from depyf.dynamo.dump import chronicle, manifest
from depyf.dynamo.guards import live_values
from depyf.report.model.run import Run
from depyf.report.read.reading import load

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]

MOST = 3


def function_number(number: int) -> Any:
    scope: Dict[str, Any] = {}
    text = f"def f{number}(x):\n    return x * 2 + {number}\n"
    exec(compile(text, __file__, "exec"), scope)  # older releases do not compile what is in no file
    return scope[f"f{number}"]


def sessions(directory: Path, first: int, last: int) -> None:
    for number in range(first, last):
        torch._dynamo.reset()
        with depyf.prepare_debug(directory):
            torch.compile(function_number(number), backend="eager")(torch.ones(3))


def shown(run: Run) -> Dict[str, int]:
    return {each.name: 1 for each in run.functions}


@pytest.fixture
def few_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chronicle.EndedSessions, "MOST", MOST)
    monkeypatch.setattr(chronicle.Budget, "allows", lambda self: True)


@pytest.mark.usefixtures("few_sessions")
def test_the_page_shows_the_last_sessions_and_says_so(tmp_path: Path) -> None:
    sessions(tmp_path, 0, 7)
    loaded = load([str(tmp_path)])[0]
    assert list(shown(loaded.run)) == ["f3", "f4", "f5", "f6"]  # the last one was open when the page was written
    note = "This process has ended 6 sessions in this directory. Shown are the last 3"
    assert any(each.startswith(note) for each in loaded.run.notes)
    assert (tmp_path / "full_code_for_f0_0.py").exists()  # no file is removed
    assert not any("not in the manifest" in each for each in loaded.run.notes)


@pytest.mark.usefixtures("few_sessions")
def test_records_of_earlier_sessions_are_dropped(tmp_path: Path) -> None:
    known = []
    for last in (4, 8):
        sessions(tmp_path, last - 4, last)
        (chronicles,) = [
            each for each in manifest._chronicles.values() if each.last and each.last.directory.path == str(tmp_path)
        ]
        known.append((len(chronicles.records()), len(chronicles.runs)))
    assert known[0] == known[1]


@pytest.mark.usefixtures("few_sessions")
def test_a_session_without_records_does_not_count(tmp_path: Path) -> None:
    sessions(tmp_path, 0, 2)
    for _ in range(3 * MOST):
        with depyf.prepare_debug(tmp_path):
            pass
    sessions(tmp_path, 2, 3)
    assert list(shown(load([str(tmp_path)])[0].run)) == ["f0", "f1", "f2"]


@pytest.mark.usefixtures("few_sessions")
def test_tables_of_dropped_sessions_are_dropped_though_their_entries_live(tmp_path: Path) -> None:
    alive = [function_number(number) for number in range(6)]
    for function in alive:
        with depyf.prepare_debug(tmp_path):
            torch.compile(function, backend="eager")(torch.ones(3))
    tables = [live_values.live_table(str(tmp_path / f"full_code_for_f{number}_0.py")) for number in range(6)]
    assert [table.is_alive() for table in tables] == [False] * 3 + [True] * 3


def test_tables_of_dead_entries_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    def alive() -> None:
        pass

    monkeypatch.setattr(live_values, "_tables", {})
    monkeypatch.setattr(live_values, "_sweep_at", [8])
    monkeypatch.setattr(live_values, "_KEPT", 4)
    live_values.register("/first", live_values.LiveTable(codes={"f": alive.__code__}))
    for number in range(40):
        live_values.register(f"/dead_{number}", live_values.LiveTable(ids={"a": number}))
    assert len(live_values._tables) <= 12
    assert live_values.live_table("/first").code("f") is alive.__code__
    assert live_values.live_table("/dead_39").ids["a"].number() == 39


@pytest.mark.slow
@pytest.mark.usefixtures("few_sessions")
def test_objects_do_not_grow_with_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_values, "_KEPT", 4)
    monkeypatch.setattr(live_values, "_sweep_at", [8])

    def ours() -> int:
        gc.collect()
        return sum(
            1 for each in gc.get_objects() if str(type.__getattribute__(type(each), "__module__")).startswith("depyf.")
        )

    for _ in range(4):
        sessions(tmp_path, 0, 3)
    before = ours()
    for _ in range(6):
        sessions(tmp_path, 0, 3)
    assert ours() - before < 90  # 18 sessions; each left 40 objects of depyf's
