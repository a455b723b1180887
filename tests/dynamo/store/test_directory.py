"""The dump directory: whole files, stable numbers, several processes."""

from __future__ import annotations

import errno
import fcntl
import logging
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, List, Optional, Tuple

import pytest

from depyf.dynamo.store import directory as dump
from depyf.dynamo.store import (
    file_locks,
    shared_directory,
    writers,
)
from depyf.dynamo.store.directory import DumpDirectory
from depyf.dynamo.store.writers import FOLDER


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
    assert sorted(os.listdir(tmp_path / FOLDER)) == ["0", "0.files"]


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
    shutil.rmtree(tmp_path / "d")
    assert DumpDirectory.at(tmp_path / "d").write("a.py", "2") is not None


OTHER = """
import sys
from depyf.dynamo.store.directory import DumpDirectory
directory = DumpDirectory.at(sys.argv[1])
for line in sys.stdin:
    print(directory.write(*line.split()), flush=True)
"""


class Other:
    """Another process that writes the files it is told to."""

    def __init__(self, path: Path, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", OTHER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3] / "src"), **environment},
        )

    def write(self, name: str, text: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{name} {text}\n")
        self.process.stdin.flush()
        return os.path.basename(self.process.stdout.readline().strip())

    def end(self) -> None:
        self.process.communicate("")

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def contents(path: Path) -> dict[str, str]:
    return {name: (path / name).read_text() for name in visible(path)}


def test_a_file_of_another_living_process_is_not_replaced_by_a_different_one(tmp_path: Path) -> None:
    other = Other(tmp_path)
    assert [other.write("same.py", "same"), other.write("f.py", "theirs")] == ["same.py", "f.py"]
    directory = DumpDirectory.at(tmp_path)
    assert directory.write("same.py", "same") == str(tmp_path / "same.py")
    assert directory.write("f.py", "ours") == str(tmp_path / "f.process_1.py")
    assert directory.write("f.py.bytecode", "ours") == str(tmp_path / "f.py.bytecode")
    assert contents(tmp_path) == {
        "same.py": "same",
        "f.py": "theirs",
        "f.process_1.py": "ours",
        "f.py.bytecode": "ours",
    }
    other.end()
    assert directory.write("f.py", "ours now") == str(tmp_path / "f.py")


def test_a_file_of_an_earlier_run_is_replaced_also_when_others_write_here(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("of yesterday")
    other = Other(tmp_path)
    other.write("g.py", "theirs")
    assert DumpDirectory.at(tmp_path).write("f.py", "ours") == str(tmp_path / "f.py")
    other.end()


def test_every_rank_has_its_names_whoever_comes_first(tmp_path: Path) -> None:
    ranks = [Other(tmp_path, RANK=str(rank), WORLD_SIZE="3") for rank in range(3)]
    for rank in (2, 1, 0):
        ranks[rank].write("started.py", "here")  # all are here from now on
    for rank in (1, 0, 2):
        assert ranks[rank].write("f.py", f"text{rank % 2}") == ("f.py" if rank == 0 else f"f.rank_{rank}.py")
    for rank in ranks:
        rank.end()
    assert {name: text for name, text in contents(tmp_path).items() if name.startswith("f")} == {
        "f.py": "text0",
        "f.rank_1.py": "text1",
        "f.rank_2.py": "text0",
    }
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_rank_that_is_alone_has_the_plain_names(tmp_path: Path) -> None:
    rank = Other(tmp_path, RANK="1", WORLD_SIZE="2")
    assert rank.write("f.py", "text") == "f.py"
    rank.end()


def test_what_a_killed_process_was_writing_is_cleared_away_and_its_names_are_free(tmp_path: Path) -> None:
    killed = Other(tmp_path)
    killed.write("f.py", "old")
    (tmp_path / FOLDER / "0.writing").write_text("ha")  # as if it had been killed in the middle of a file
    killed.kill()
    directory = DumpDirectory.at(tmp_path)
    assert directory.write("f.py", "new") == str(tmp_path / "f.py")
    assert contents(tmp_path) == {"f.py": "new"}
    assert sorted(os.listdir(tmp_path / FOLDER)) == ["0", "0.files"]


def test_where_files_can_not_be_locked_nothing_of_others_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*arguments: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    other = Other(tmp_path)
    other.write("f.py", "theirs")
    assert DumpDirectory.at(tmp_path).write("f.py", "ours") == str(tmp_path / "f.process_1.py")
    other.end()


def test_a_file_that_is_written_again_needs_no_lock_unless_others_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked: List[str] = []
    lock = file_locks.exclusive
    monkeypatch.setattr(dump, "exclusive", lambda path: locked.append(path) or lock(path))
    directory = DumpDirectory.at(tmp_path)
    for text in ("first", "second", "third"):
        directory.write("f.py", text)
    assert len(locked) == 1
    other = Other(tmp_path)
    assert other.write("f.py", "theirs") == "f.process_1.py"
    directory.write("g.py", "finds the other")
    directory.write("f.py", "fourth")
    assert len(locked) == 3
    assert contents(tmp_path) == {"f.py": "fourth", "f.process_1.py": "theirs", "g.py": "finds the other"}
    other.end()


def _in_child(path: str) -> None:
    DumpDirectory.at(path).write("f.py", "child")
    os._exit(0)


def test_a_forked_child_does_not_replace_what_its_parent_runs_from(tmp_path: Path) -> None:
    directory = DumpDirectory.at(tmp_path)
    directory.write("f.py", "parent")
    holding, release = threading.Event(), threading.Event()

    def hold() -> None:
        with directory._lock:  # a thread that writes while another one forks: the child must not wait for it
            holding.set()
            release.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait(20)
    child = multiprocessing.get_context("fork").Process(target=_in_child, args=(str(tmp_path),))
    child.start()
    child.join(20)
    release.set()
    thread.join()
    assert child.exitcode == 0
    assert contents(tmp_path) == {"f.py": "parent", "f.process_1.py": "child"}


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_is_said_once_and_leaves_no_half_file(
    error: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    directory = DumpDirectory.at(tmp_path)
    directory.write("f.py", "before")

    def full(handle: int, data: bytes) -> int:
        raise OSError(error, os.strerror(error))

    with caplog.at_level(logging.WARNING, "depyf"):
        monkeypatch.setattr(os, "write", full)
        assert [directory.write(name, "x") for name in ("f.py", "g.py")] == [None, None]
        monkeypatch.undo()
    (message,) = [record.getMessage() for record in caplog.records]
    assert str(tmp_path) in message
    assert os.strerror(error) in message
    assert "make room" in message
    assert contents(tmp_path) == {"f.py": "before"}
    assert sorted(os.listdir(tmp_path / FOLDER)) == ["0", "0.files"]


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the system does not say what is open")
def test_no_descriptor_is_kept_for_each_directory(tmp_path: Path) -> None:
    DumpDirectory.at(tmp_path / "first").write("f.py", "text")
    before = open_files()
    for number in range(40):
        directory = DumpDirectory.at(tmp_path / str(number))
        assert directory.write("f.py", "text") == str(tmp_path / str(number) / "f.py")
        assert directory.process_number() == 0
    shutil.rmtree(tmp_path / "39")  # the last one that was locked, and the first
    shutil.rmtree(tmp_path / "first")
    DumpDirectory.at(tmp_path / "again").write("f.py", "text")
    assert open_files() <= before


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the system does not say what is open")
def test_a_descriptor_is_not_kept_when_its_directories_are_gone(tmp_path: Path) -> None:
    DumpDirectory.at(tmp_path / "first").write("f.py", "text")
    before = open_files()
    for number in range(10):
        DumpDirectory.at(tmp_path / str(number)).write("f.py", "text")
        shutil.rmtree(tmp_path / str(number))
    assert open_files() <= before


def test_files_of_all_directories_are_kept_from_others_as_long_as_the_process_lives(tmp_path: Path) -> None:
    for name in "abc":
        DumpDirectory.at(tmp_path / name).write("f.py", "ours")
    others = [Other(tmp_path / name) for name in "abc"]
    assert [other.write("f.py", "theirs") for other in others] == ["f.process_1.py"] * 3
    assert [other.write("only_here.py", "x") for other in others] == ["only_here.py"] * 3
    assert [DumpDirectory.at(tmp_path / name).write("only_here.py", "y") for name in "abc"] == [
        str(tmp_path / name / "only_here.process_0.py") for name in "abc"
    ]
    for other in others:
        other.end()
    assert DumpDirectory.at(tmp_path / "a").write("f.process_1.py", "free") == str(tmp_path / "a" / "f.process_1.py")


def test_where_files_can_not_be_linked_each_directory_has_a_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*arguments: object, **options: object) -> None:
        raise OSError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", no_links)
    for name in "ab":
        DumpDirectory.at(tmp_path / name).write("f.py", "ours")
    others = [Other(tmp_path / name) for name in "ab"]
    assert [other.write("f.py", "theirs") for other in others] == ["f.process_1.py"] * 2
    for other in others:
        other.end()


def test_what_others_add_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory, other = DumpDirectory.at(tmp_path), Other(tmp_path)
    read: List[int] = []
    original = writers._Claims.read

    def counted(self: Any, path: str) -> None:
        before = self._end
        original(self, path)
        read.append(self._end - before)

    monkeypatch.setattr(writers._Claims, "read", counted)
    for number in range(10):
        assert other.write(f"theirs_{number}.py", "x") == f"theirs_{number}.py"
        assert directory.write(f"ours_{number}.py", "x") == str(tmp_path / f"ours_{number}.py")
    other.end()
    assert len(read) == 10
    assert max(read[1:]) == len("theirs_0.py\n")


def test_a_directory_under_two_names_is_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    first, second = DumpDirectory.at(tmp_path / "real"), DumpDirectory.at(tmp_path / "link")
    assert first is second


# --- what somebody else has put into the directory -----------------------------------------------------------------


def test_a_directory_of_ours_is_for_its_owner_alone(tmp_path: Path) -> None:
    DumpDirectory.at(tmp_path / "new")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_links_in_the_folder_of_writers_are_not_followed(tmp_path: Path) -> None:
    folder, victim = tmp_path / "dump" / FOLDER, tmp_path / "victim"
    folder.mkdir(parents=True)
    victim.write_text("precious")
    for name in ("0", "1.writing"):
        (folder / name).symlink_to(victim)
    directory = DumpDirectory.at(tmp_path / "dump")
    assert directory.write("a.py", "text") == str(tmp_path / "dump" / "a.py")
    assert victim.read_text() == "precious"
    assert directory.process_number() == 1


def test_a_linked_folder_of_writers_is_refused_in_words(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / FOLDER).symlink_to(tmp_path / "elsewhere")
    with caplog.at_level(logging.WARNING, "depyf"):
        assert DumpDirectory.at(tmp_path / "dump").write("a.py", "text") is None
    assert "a symbolic link is in the place of a folder of depyf's" in caplog.text
    assert not os.listdir(tmp_path / "elsewhere")


@pytest.mark.parametrize("name", ["²", "٣", "007", "-1", "1.py", "99999999999999999999", "pipe", "folder"])
def test_what_is_no_place_of_a_writer_is_left_alone(name: str, tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    if name == "pipe":
        os.mkfifo(folder / "0")
    elif name == "folder":
        (folder / "0").mkdir()
    else:
        (folder / name).write_text("")
    assert DumpDirectory.at(tmp_path).write("a.py", "text") == str(tmp_path / "a.py")
    assert (folder / {"pipe": "0", "folder": "0"}.get(name, name)).exists()


# --- who else may write --------------------------------------------------------------------------------------------


def dumped_into(path: Path, caplog: pytest.LogCaptureFixture, **options: bool) -> Tuple[bool, str]:
    """Whether a file can be dumped there, and what is said."""
    caplog.clear()
    with caplog.at_level(logging.WARNING, "depyf"):
        written = DumpDirectory.at(path, **options).write("a.py", "text")
    return written is not None, caplog.text


@pytest.mark.parametrize(("mode", "refused"), [(0o777, True), (0o1777, False), (0o755, False), (0o702, True)])
def test_a_directory_that_all_may_write_is_refused(
    mode: int, refused: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "dump"
    path.mkdir()
    path.chmod(mode)
    written, said = dumped_into(path, caplog)
    assert (written, os.listdir(path) == []) == (not refused, refused)
    if refused:
        assert f"nothing is dumped into {path}: every user may write there" in said
        assert "allow_shared=True" in said
        assert dumped_into(path, caplog, allow_shared=True) == (True, "")
        monkeypatch.setenv("DEPYF_ALLOW_SHARED", "1")
        monkeypatch.setattr(dump, "_registry", {})
        assert dumped_into(path, caplog) == (True, "")
    else:
        assert said == ""


def test_a_folder_of_writers_that_all_may_write_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER).chmod(0o777)
    assert dumped_into(tmp_path, caplog)[0] is False
    assert "every user may write there" in caplog.text


class Someone:
    """Makes ``os.geteuid`` and the owners of files look like those of somebody who is not root."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, user: int, owner: int, group: int = 4321) -> None:
        real_stat, real_lstat = os.stat, os.lstat

        def changed(real: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
            def stat(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
                status = real(path, *args, **kwargs)
                probe = ".depyf_" in str(path) and FOLDER not in str(path)
                ids = (user if probe else owner, group)
                return os.stat_result((*status[:4], *ids, *status[6:]))

            return stat

        monkeypatch.setattr(shared_directory.os, "geteuid", lambda: user)
        monkeypatch.setattr(shared_directory.os, "stat", changed(real_stat))
        monkeypatch.setattr(shared_directory.os, "lstat", changed(real_lstat))


@pytest.mark.parametrize(
    ("user", "owner", "said"),
    [
        (1000, 1001, "it belongs to another user (1001)"),
        (1000, 1000, None),
        (1000, 0, None),
        (1000, 65534, None),
        (0, 1001, None),
    ],
)
def test_a_directory_of_another_user_is_refused(
    user: int, owner: int, said: Optional[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Someone(monkeypatch, user, owner)
    if said is None:
        shared_directory.check_not_shared(str(tmp_path), str(tmp_path / FOLDER), allowed=False)
        return
    with pytest.raises(shared_directory.SharedDirectoryError) as raised:
        shared_directory.check_not_shared(str(tmp_path), str(tmp_path / FOLDER), allowed=False)
    assert said in raised.value.in_words()


@pytest.mark.parametrize(
    ("group", "members", "primary", "warned"),
    [
        ("alice", [], 4321, False),
        ("team", ["alice", "bob"], 4321, True),
        ("team", ["bob"], 5, True),
        ("me", [], 4321, False),
    ],
)
def test_a_group_is_warned_about_where_others_are_in_it(
    group: str,
    members: List[str],
    primary: int,
    warned: bool,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tmp_path.chmod(0o775)
    Someone(monkeypatch, 1000, 1000)
    user = SimpleNamespace(pw_name="alice", pw_gid=primary)
    monkeypatch.setattr(shared_directory.pwd, "getpwuid", lambda number: user)
    monkeypatch.setattr(shared_directory.grp, "getgrgid", lambda number: SimpleNamespace(gr_name=group, gr_mem=members))
    with caplog.at_level(logging.WARNING, "depyf"):
        for _ in range(2):
            shared_directory.check_not_shared(str(tmp_path), str(tmp_path / FOLDER), allowed=False)
    assert caplog.text.count("members of the group") == warned


def test_a_file_system_that_makes_up_modes_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mounted disks and folders of Windows show mode 0777 for everything, whatever was asked for."""
    real = os.lstat

    def made_up(path: Any) -> os.stat_result:
        status = real(path)
        return os.stat_result((status[0] | 0o777, *status[1:]))

    tmp_path.chmod(0o777)
    with pytest.raises(shared_directory.SharedDirectoryError):
        shared_directory.check_not_shared(str(tmp_path), str(tmp_path / FOLDER), allowed=False)
    monkeypatch.setattr(shared_directory.os, "lstat", made_up)
    shared_directory.check_not_shared(str(tmp_path), str(tmp_path / FOLDER), allowed=False)
    assert os.listdir(tmp_path) == []


def test_the_lock_of_a_directory_is_entered_again_and_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(file_locks, "_PATIENCE", 0.05)
    with file_locks.exclusive(str(tmp_path)), file_locks.exclusive(str(tmp_path)):  # as a signal handler does
        pass
    (tmp_path / "link").symlink_to(".")
    with file_locks.exclusive(str(tmp_path / "link")) as outer, file_locks.exclusive(str(tmp_path)) as inner:
        assert (outer, inner) == (True, True)  # depyf run by a link, which writes the page at the end
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)  # flock DIR python program.py
        entered = []
        with file_locks.exclusive(str(tmp_path)):
            entered.append(1)
        assert entered
    finally:
        os.close(handle)
    assert file_locks._held == {}


OWN_FILES = (
    "full_code_for_f_0.py",
    "__compiled_fn_0.Captured_Graph.0.py",
    "__compiled_fn_0.kernel_0.py",
    "__transformed_code_0_for_f.py",
    "eager_fallbacks_0.txt",
    "__compiled_fn_0.passes_0.md",
)


@pytest.mark.parametrize("name", OWN_FILES)
def test_a_file_that_depyf_did_not_write_stays(tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / name).write_text("def f():\n    return 'mine'\n")
    directory = DumpDirectory.at(tmp_path)
    written = directory.write(name, "ours, compile id 0/0")
    assert (tmp_path / name).read_text() == "def f():\n    return 'mine'\n"
    assert written is not None
    assert os.path.basename(written) != name
    assert Path(written).read_text() == "ours, compile id 0/0"
    assert f"depyf did not write {name}" in caplog.text
    assert directory.write(name, "ours again, compile id 0/0") == written
    assert Path(written).read_text() == "ours again, compile id 0/0"


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_a_link_or_folder_of_the_program_stays(tmp_path: Path, kind: str) -> None:
    path = tmp_path / OWN_FILES[0]
    if kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "elsewhere")
    written = DumpDirectory.at(tmp_path).write(OWN_FILES[0], "ours")
    assert written is not None
    assert path.is_symlink() if kind == "link" else path.is_dir()


def test_files_that_are_taken_both_are_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    directory = DumpDirectory.at(tmp_path)
    marked = f"full_code_for_f_0.process_{directory.process_number()}.py"
    for name in (OWN_FILES[0], marked):
        (tmp_path / name).write_text("mine")
    assert directory.write(OWN_FILES[0], "ours") is None
    assert {(tmp_path / name).read_text() for name in (OWN_FILES[0], marked)} == {"mine"}
    assert "not replaced" in caplog.text
