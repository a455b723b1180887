"""The dump directory: whole files, stable numbers, several processes."""

from __future__ import annotations

import logging
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from depyf.dynamo.dump import DumpDirectory
from depyf.dynamo.writers import Place


def visible(path: Path) -> set[str]:
    return {each.name for each in path.iterdir() if not each.name.startswith(".")}


def test_one_place_is_one_directory_object_that_goes_on_counting(tmp_path: Path) -> None:
    assert DumpDirectory.at(tmp_path).take_number("a") == 0
    assert DumpDirectory.at(str(tmp_path)).take_number("a") == 1
    assert DumpDirectory.at(tmp_path).take_number("b") == 0


def test_files_are_replaced_whole_and_nothing_temporary_stays(tmp_path: Path) -> None:
    directory = DumpDirectory.at(tmp_path)
    for text in ("first", "second ö \udcff"):
        assert directory.write("a.py", text) == str(tmp_path / "a.py")
    assert (tmp_path / "a.py").read_bytes() == "second ö ".encode() + b"\\udcff"
    assert visible(tmp_path) == {"a.py"}
    assert not list(tmp_path.glob(".depyf_writing*"))


def test_files_get_the_permissions_that_the_user_asked_for(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        DumpDirectory.at(tmp_path).write("a.py", "")
    finally:
        os.umask(old)
    assert (tmp_path / "a.py").stat().st_mode & 0o777 == 0o640


def test_failing_to_write_is_said_once_and_answered_with_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING, "depyf"):
        directory = DumpDirectory.at(tmp_path / "file" / "sub")
        assert directory.write("a.py", "text") is None
        assert directory.write("b.py", "text") is None
    assert len(caplog.records) == 1


def test_writing_works_again_when_the_directory_was_deleted_and_made_again(tmp_path: Path) -> None:
    directory = DumpDirectory.at(tmp_path / "d")
    directory.write("a.py", "1")
    for path in (tmp_path / "d").iterdir():
        path.unlink()
    (tmp_path / "d").rmdir()
    assert DumpDirectory.at(tmp_path / "d").write("a.py", "2") is not None


OTHER = """
import sys, time
from depyf.dynamo.dump import DumpDirectory
directory = DumpDirectory.at(sys.argv[1])
print(directory.write("same.py", "same"), directory.write("f.py", sys.argv[2]), flush=True)
sys.stdin.read()
"""


def test_a_file_of_another_living_process_is_not_replaced_by_a_different_one(tmp_path: Path) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", OTHER, str(tmp_path), "theirs"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src")},
    )
    assert other.stdout is not None
    assert other.stdout.readline().split() == [str(tmp_path / "same.py"), str(tmp_path / "f.py")]
    directory = DumpDirectory.at(tmp_path)
    assert directory.write("same.py", "same") == str(tmp_path / "same.py")
    ours = directory.write("f.py", "ours")
    other.communicate("")
    assert ours == str(tmp_path / "f.process_1.py")
    assert ((tmp_path / "f.py").read_text(), Path(ours).read_text()) == ("theirs", "ours")
    assert directory.write("f.py", "ours now") == str(tmp_path / "f.py")


def _write_in_fork(path: str) -> None:
    DumpDirectory.at(path).write("f.py", "child")
    time.sleep(0.1)


def test_a_forked_child_does_not_replace_what_its_parent_runs_from(tmp_path: Path) -> None:
    DumpDirectory.at(tmp_path).write("f.py", "parent")
    child = multiprocessing.get_context("fork").Process(target=_write_in_fork, args=(str(tmp_path),))
    child.start()
    child.join()
    assert (tmp_path / "f.py").read_text() == "parent"
    assert "child" in {path.read_text() for path in tmp_path.glob("f.*.py")}


def test_the_place_of_a_dead_process_is_free(tmp_path: Path) -> None:
    finished = subprocess.Popen([sys.executable, "-c", ""])
    finished.wait()
    (tmp_path / ".depyf_writer_0.pid").write_text(str(finished.pid))
    place = Place(str(tmp_path))
    assert place.number == 0
    assert place.alone()
