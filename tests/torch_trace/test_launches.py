"""Which launch a followed process belongs to, and which launches a later one has replaced."""

from __future__ import annotations

import os
import sys
from typing import Optional

import pytest

from depyf.torch_trace.launches import Followed, current_launch, new_launch, of_replaced_launches


def process(folder: str, began: float, command: str, written: float, rank: Optional[int] = None) -> Followed:
    return Followed(folder, f"{began:.3f} {command}", rank, written)


def test_the_same_command_later_replaces_all_processes_of_the_earlier_launch() -> None:
    found = of_replaced_launches(
        [
            process("pid1", 100, "a", 110),
            process("pid2", 100, "a", 190),
            process("pid3", 200, "a", 210),
        ]
    )
    assert found == {"pid1", "pid2"}


def test_programs_of_a_script_are_all_kept() -> None:
    assert not of_replaced_launches([process("pid1", 100, "a", 110), process("pid2", 200, "b", 210)])


def test_what_still_writes_is_kept() -> None:
    """Two servers of one command, or the launchers of two machines."""
    assert not of_replaced_launches([process("pid1", 100, "a", 230), process("pid2", 200, "a", 210)])


def test_a_rank_is_replaced_by_itself_also_under_another_command() -> None:
    earlier = [process("rank0_pid5", 100, "a", 110, 0), process("rank1_pid6", 100, "a", 110, 1)]
    assert of_replaced_launches([*earlier, process("rank0", 200, "b", 210, 0)]) == {"rank0_pid5", "rank1_pid6"}


def test_ranks_without_a_launcher_are_one_program() -> None:
    for began in (102, 106):  # while the other one runs, or right behind it
        assert not of_replaced_launches([process("rank0", 100, "a", 105, 0), process("rank1", began, "a", 110, 1)])


def test_a_rank_that_compiled_nothing_this_time_is_replaced() -> None:
    assert of_replaced_launches([process("rank0", 100, "a", 101, 0), process("rank1", 200, "a", 210, 1)]) == {"rank0"}


def test_of_a_process_without_a_manifest_the_time_decides() -> None:
    old, new = Followed("pid1", "", None, 110), Followed("pid2", "", None, 205)
    assert of_replaced_launches([old, new, process("pid3", 200, "a", 210)]) == {"pid1"}
    assert not of_replaced_launches([old, new])


@pytest.mark.parametrize("name", ["nan a", "inf a", "a", "", "1e999 a", "\0"])
def test_a_name_that_says_no_time_replaces_nothing(name: str) -> None:
    assert not of_replaced_launches([process("pid1", 100, "a", 110), Followed("pid2", name, None, 300)])


def test_a_launch_is_named_by_its_time_command_and_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: os.PathLike[str]
) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", "a.py"], raising=False)
    first = new_launch()
    monkeypatch.setenv("DEPYF_DUMP_LAUNCH", first)
    assert current_launch() == first
    again = new_launch()
    assert first.split()[1] == again.split()[1]
    assert float(first.split()[0]) <= float(again.split()[0])
    monkeypatch.setattr(sys, "orig_argv", ["python", "b.py"])
    assert new_launch().split()[1] != first.split()[1]
    monkeypatch.setattr(sys, "orig_argv", ["python", "a.py"])
    monkeypatch.chdir(tmp_path)
    assert new_launch().split()[1] != first.split()[1]
