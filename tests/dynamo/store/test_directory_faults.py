"""The dump directory among other users, on full disks, without locks, and under programs that close descriptors."""

from __future__ import annotations

import contextlib
import errno
import itertools
import logging
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import Any, Callable, Iterator, List, Optional, Tuple
from unittest.mock import MagicMock

import pytest

from depyf.base.regular_files import open_regular
from depyf.dynamo.store import file_locks, kept_locks, writers
from depyf.dynamo.store.access import access_like
from depyf.dynamo.store.directory import DumpDirectory
from depyf.dynamo.store.writers import FOLDER

fcntl = pytest.importorskip("fcntl")

ALICE, BOB = 12001, 12002

as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be other users in turn"
)


class Clock:
    """What ``file_locks`` uses of ``time``; only pauses let it go on."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Messages(logging.Handler):
    """Keeps what depyf says."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: List[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


@contextlib.contextmanager
def listening() -> Iterator[List[str]]:
    handler, logger = Messages(), logging.getLogger("depyf")
    logger.addHandler(handler)
    try:
        yield handler.said
    finally:
        logger.removeHandler(handler)


def in_child(work: Callable[[], Any], user: Optional[int] = None, umask: int = 0o022, end: str = "exit") -> Any:
    """What ``work`` returns in a forked child, which ``user`` runs; ``end`` as "kill" leaves its places behind."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.umask(umask)
            if user is not None:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
            found = work()
        except BaseException:
            found = traceback.format_exc()
        os.write(writing, pickle.dumps(found))
        if end == "exit":
            writers._give_all_back()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        data = file.read()
    os.waitpid(process, 0)
    return pickle.loads(data)


def dump(path: Path, *files: Tuple[str, str], clear: bool = True) -> Tuple[List[Optional[str]], List[str]]:
    """The names under which these files were written, and what was said."""
    with listening() as said:
        directory = DumpDirectory.at(path, allow_shared=True)
        written = [directory.write(name, text) for name, text in files]
    return [None if each is None else os.path.basename(each) for each in written], said


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that every user can reach and write: pytest's own can only be entered by who runs the tests."""
    path = Path(tempfile.mkdtemp(prefix="depyf-test-"))
    path.chmod(0o755)
    (path / "dump").mkdir()
    (path / "dump").chmod(0o777)
    yield path / "dump"
    shutil.rmtree(path)


# --- other users ---------------------------------------------------------------------------------------------------


@as_root
@pytest.mark.parametrize("end", ["exit", "kill"])
@pytest.mark.parametrize("umask", [0o022, 0o077])
@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_two_users_dump_into_a_directory_one_after_the_other(mode: int, umask: int, end: str, shared: Path) -> None:
    shared.chmod(mode)
    work = lambda: dump(shared, ("f.py", "alice"), ("g.py", "same"))  # noqa: E731
    assert in_child(work, ALICE, umask, end) == (["f.py", "g.py"], [])
    for _ in range(2):
        names, said = in_child(lambda: dump(shared, ("f.py", "bob"), ("g.py", "same"), ("h.py", "bob")), BOB, umask)
        assert None not in names, said
        assert [(shared / name).read_text() for name in names] == ["bob", "same", "bob"]
        assert len(said) <= 1
        assert names[2] == "h.py"
        assert (names[0] == "f.py") == (mode == 0o777)  # else it is alice's, and bob may not replace it
    again, said = in_child(work, ALICE, umask)
    assert None not in again, said


@as_root
@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_a_folder_of_this_users_that_somebody_moves_to_the_writers_name_stays_as_it_is(mode: int, shared: Path) -> None:
    shared.chmod(mode)
    os.chown(shared, ALICE, ALICE)
    (shared / "private").mkdir(mode=0o700)
    (shared / "private" / "secret").write_text("root's")
    assert in_child(lambda: os.rename(shared / "private", shared / FOLDER), ALICE) is None
    names, _ = in_child(lambda: dump(shared, ("f.py", "text")))
    assert names == ["f.py"]
    status = (shared / FOLDER).stat()
    assert (status.st_uid, status.st_mode & 0o777) == (0, 0o700)


def test_nothing_is_removed_where_a_link_leads_that_is_put_in_the_place_of_the_writers_folder(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    (tmp_path / "theirs").mkdir()
    for name in ("1", "17", "17.files"):
        (tmp_path / "theirs" / name).write_text("mail")

    def work() -> Any:
        dump(tmp_path / "dump", ("f.py", "text"))
        (tmp_path / "dump" / FOLDER).rename(tmp_path / "dump" / "away")
        (tmp_path / "dump" / FOLDER).symlink_to(tmp_path / "theirs")
        return dump(tmp_path / "dump", ("g.py", "text"))[0]

    assert in_child(work) == [None]
    assert sorted(os.listdir(tmp_path / "theirs")) == ["1", "17", "17.files"]


def test_a_lock_that_somebody_holds_for_ever_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ``flock DIR python train.py`` does."""
    monkeypatch.setattr(file_locks, "_PATIENCE", 0.5)
    monkeypatch.setattr(file_locks, "_PATIENCE_AGAIN", 0.0)
    monkeypatch.setattr(file_locks, "_in_vain", set())  # other tests hold locks, too
    clock = Clock()
    monkeypatch.setattr(file_locks, "time", clock)
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        for _ in range(20):
            with file_locks.exclusive(str(tmp_path)) as alone:
                assert not alone
        assert 0.5 < clock.now < 0.7
    finally:
        os.close(handle)
    with file_locks.exclusive(str(tmp_path)) as alone:
        assert alone
    assert not file_locks._in_vain


@as_root
@pytest.mark.parametrize("umask", [0o022, 0o077])
@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_two_users_dump_into_a_directory_at_the_same_time(mode: int, umask: int, shared: Path) -> None:
    shared.chmod(mode)

    def both() -> Any:
        mine = dump(shared, ("f.py", "alice"), ("g.py", "alice"))
        theirs = in_child(lambda: dump(shared, ("f.py", "bob"), ("h.py", "bob")), BOB, umask)
        return mine, theirs, dump(shared, ("f.py", "alice 2"), ("h.py", "alice"))

    # Alice forks as root, as only root can become bob.
    def as_alice() -> Any:
        os.seteuid(ALICE)
        mine = dump(shared, ("f.py", "alice"), ("g.py", "alice"))
        os.seteuid(0)
        theirs = in_child(lambda: dump(shared, ("f.py", "bob"), ("h.py", "bob")), BOB, umask, end="kill")
        os.seteuid(ALICE)
        return mine, theirs, dump(shared, ("f.py", "alice 2"), ("h.py", "alice"))

    found = in_child(as_alice, None, umask)
    assert isinstance(found, tuple), found
    mine, theirs, later = found
    assert mine == (["f.py", "g.py"], [])
    assert theirs[0] == ["f.process_1.py", "h.py"], theirs[1]
    assert later[0][0] == "f.py"
    assert None not in later[0]
    assert (shared / "f.py").read_text() == "alice 2"
    assert (shared / "f.process_1.py").read_text() == "bob"


@as_root
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_what_a_killed_process_of_root_leaves_is_the_owners(umask: int, shared: Path) -> None:
    shared.chmod(0o700)
    os.chown(shared, ALICE, ALICE)
    assert in_child(lambda: dump(shared, ("f.py", "root")), 0, umask, "kill") == (["f.py"], [])
    assert in_child(lambda: dump(shared, ("f.py", "alice")), ALICE, umask) == (["f.py"], [])
    assert os.listdir(shared) == ["f.py"]


@as_root
@pytest.mark.parametrize("wall", ["folder", "lock", "list"])
def test_the_dump_goes_on_beside_what_can_not_be_read(wall: str, shared: Path) -> None:
    """What an older depyf has left, or a file system where modes and owners can't be changed."""
    assert in_child(lambda: dump(shared, ("f.py", "root")), 0, 0o022, "kill") == (["f.py"], [])
    (shared / FOLDER).chmod(0o700 if wall == "folder" else 0o777)
    (shared / FOLDER / "0").chmod(0o600 if wall == "lock" else 0o644)
    (shared / FOLDER / "0.files").chmod(0o644 if wall == "folder" else 0o600)
    holder = os.open(shared / FOLDER / "0", os.O_RDONLY)
    if wall == "list":
        fcntl.flock(holder, fcntl.LOCK_EX)  # it lives
    for _ in range(2):
        names, said = in_child(lambda: dump(shared, ("f.py", "alice"), ("g.py", "alice")), ALICE)
        assert None not in names, said
        assert len(said) == 1
        assert str(shared) in said[0]
        assert names[0] != "f.py"
        assert [(shared / name).read_text() for name in names] == ["alice", "alice"]
        assert (shared / "f.py").read_text() == "root"
        assert f"{FOLDER}.{ALICE}" not in os.listdir(shared)
    os.close(holder)


@as_root
@pytest.mark.parametrize("mode", [0o733, 0o1733, 0o722])
def test_a_directory_that_others_may_write_and_not_read(mode: int, shared: Path) -> None:
    shared.chmod(mode)
    os.chown(shared, ALICE, ALICE)
    assert in_child(lambda: dump(shared, ("f.py", "alice")), ALICE, 0o077, "kill") == (["f.py"], [])
    (names, said) = in_child(lambda: dump(shared, ("f.py", "bob"), ("g.py", "bob")), BOB, 0o077)
    if mode == 0o722:  # nothing in it can be named either
        assert (names, len(said)) == ([None, None], 1)
        return
    assert (str(names[0])[:10], names[1]) == ("f.process_", "g.py"), said
    assert len(said) == 1
    assert [(shared / name).read_text() for name in ("f.py", *names)] == ["alice", "bob", "bob"]


@as_root
@pytest.mark.parametrize("owner", [0, ALICE])
def test_a_process_that_becomes_another_user_goes_on(owner: int, shared: Path) -> None:
    shared.chmod(0o700)
    os.chown(shared, owner, owner)

    def work() -> Any:
        with listening() as said:
            directory = DumpDirectory.at(shared)
            written = [directory.write("a.py", "1")]
            os.setgid(ALICE)
            os.setuid(ALICE)
            written += [directory.write(name, "2") for name in ("a.py", "b.py")]
        return [each is not None for each in written], len(said)

    assert in_child(work) == (([True, True, True], 0) if owner == ALICE else ([True, False, False], 1))


@as_root
def test_the_members_of_a_group_can_enter_the_folder_of_writers(shared: Path) -> None:
    team = 12100
    os.chown(shared, ALICE, team)
    shared.chmod(0o770)

    def member(user: int, text: str) -> Callable[[], Any]:
        def work() -> Any:
            os.setgroups([team])
            os.setgid(user)
            os.setuid(user)
            return dump(shared, ("f.py", text))

        return work

    assert in_child(member(ALICE, "alice"), None, 0o022, "kill")[0] == ["f.py"]
    assert in_child(member(BOB, "bob"), None, 0o022, "kill")[0] == ["f.py"]


def test_claims_that_can_not_be_read_are_taken_to_be_all(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("theirs")
    assert in_child(lambda: dump(tmp_path, ("f.py", "theirs")), end="kill")[0] == ["f.py"]
    holder = os.open(tmp_path / FOLDER / "0", os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    os.unlink(tmp_path / FOLDER / "0.files")
    os.mkdir(tmp_path / FOLDER / "0.files")
    names, said = in_child(lambda: dump(tmp_path, ("f.py", "ours"), ("g.py", "ours"), ("old.py", "theirs")))
    assert names == ["f.process_1.py", "g.py", "old.py"], said
    assert len(said) == 1
    os.close(holder)


# --- full disks ----------------------------------------------------------------------------------------------------


class FullDisk:
    """``os.write`` on a disk with room for so many bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
        self.room, self._write = room, os.write
        monkeypatch.setattr(os, "write", self.write)

    def write(self, handle: int, data: bytes) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self._write(handle, data[: self.room])
        self.room -= written
        return written


def claimed(path: Path) -> Any:
    """What another process sees that is claimed here."""
    return in_child(lambda: sorted(_claimed_seen(path)))


def _claimed_seen(path: Path) -> Any:
    place = writers.Slot(str(path))
    found = place.claimed_by_others()
    names = getattr(found, "names", found)
    place.give_back()
    return names


@pytest.mark.parametrize("room", [0, 1, 3, 8, 9, 12])
def test_a_claim_on_a_full_disk_is_whole_or_none(room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = DumpDirectory.at(tmp_path)
    assert directory.write("before.py", "1") is not None
    with monkeypatch.context() as patch:
        FullDisk(patch, room)
        written = directory.write("during.py", "2")
    assert (written is not None) == (room >= len("during.py\n"))
    assert (tmp_path / "during.py").exists() == (written is not None)
    assert directory.write("after.py", "3") is not None
    expected = {"before.py", "after.py"} | ({"during.py"} if written else set())
    assert set(claimed(tmp_path)) >= expected
    others = in_child(lambda: dump(tmp_path, ("before.py", "x"), ("after.py", "x")))[0]
    assert others == ["before.process_1.py", "after.process_1.py"]


@pytest.mark.parametrize("room", [0, 4])
def test_a_place_on_a_full_disk_is_whole_or_none(room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        FullDisk(patch, room)
        assert DumpDirectory.at(tmp_path / "dump").write("a.py", "1") is None
    assert DumpDirectory.at(tmp_path / "dump").write("a.py", "2") is not None
    assert set(claimed(tmp_path / "dump")) >= {"a.py"}


def test_a_small_file_system_that_is_full(tmp_path: Path) -> None:
    """Files are written as long as they can be, each with its claim; and again when there is room."""
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("file systems can't be mounted here")
    try:
        names = [f"{'n' * 60}_{number}.py" for number in range(2000)]
        written = in_child(lambda: _fill(small, names), end="kill")
        assert isinstance(written, tuple), written
        good, listed = written
        assert 0 < len(good) < len(names)
        assert set(good) <= listed
    finally:
        subprocess.run(["umount", str(small)], check=False)


def _fill(small: Path, names: List[str]) -> Any:
    directory = DumpDirectory.at(small)
    good = [name for name in names if directory.write(name, "") is not None]
    return good, set((small / FOLDER / "0.files").read_text().split("\n"))


@pytest.mark.parametrize("put", ["nothing", "a file", "a hard link"])
def test_a_list_that_somebody_removed_is_made_again(put: str, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    directory = DumpDirectory.at(tmp_path)
    directory.write("a.py", "1")
    os.unlink(tmp_path / FOLDER / "0.files")
    if put == "a file":
        (tmp_path / FOLDER / "0.files").write_text("")
    elif put == "a hard link":
        os.link(precious, tmp_path / FOLDER / "0.files")
    assert directory.write("b.py", "2") is not None
    assert set(claimed(tmp_path)) >= {"a.py", "b.py"}
    assert precious.read_text() == "precious"


# --- descriptors ---------------------------------------------------------------------------------------------------


CLOSING = """
import os, shutil, sys, tempfile
from depyf.dynamo.store import writers
from depyf.dynamo.store.directory import DumpDirectory

def inodes(handles):
    return [os.fstat(each).st_ino if os.path.exists(f"/proc/self/fd/{each}") else -1 for each in handles]

DumpDirectory.at("first").write("a.py", "1")
if "gone" in sys.argv:
    shutil.rmtree("first")
os.closerange(3, 64)
handles = [os.open(f"file_{number}", os.O_RDWR | os.O_CREAT) for number in range(10)]
if "unlinked" in sys.argv:
    for number in range(10):
        os.unlink(f"file_{number}")  # as a temporary file, which has no name
before = inodes(handles)
if os.fork() == 0:
    os._exit(0 if inodes(handles) == before else 1)
assert os.wait()[1] == 0, "closed in a child"
for name in ("first", "second", "first"):
    assert DumpDirectory.at(name).write("b.py", "2"), f"nothing written into {name}"
shutil.rmtree("second")
assert DumpDirectory.at("third").write("b.py", "2")
writers._give_all_back()
assert inodes(handles) == before, "closed"
assert sorted(os.listdir("first")) == (["b.py"] if "gone" in sys.argv else ["a.py", "b.py"])
"""


def run(program: str, folder: Path, *arguments: str) -> str:
    """What a program says on its error stream; it must end well."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3] / "src")}
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("how", ["named", "unlinked", "gone", "gone unlinked"])
def test_a_descriptor_of_the_programs_is_never_closed(how: str, tmp_path: Path) -> None:
    assert run(CLOSING, tmp_path, *how.split()) == ""


CLOSED = """
import os, subprocess, sys
from depyf.dynamo.store.directory import DumpDirectory

directory = DumpDirectory.at("dump")
if "other" in sys.argv:
    print(*(os.path.basename(directory.write(name, "other")) for name in ("a.py", "b.py")))
else:
    directory.write("a.py", "1")
    os.closerange(3, 64)
    directory.write("b.py", "2")
    others = subprocess.run([sys.executable, "-c", sys.argv[1], "", "other"], stdout=subprocess.PIPE, check=True)
    assert others.stdout == b"a.process_1.py b.process_1.py\\n", others.stdout
    assert os.path.basename(directory.write("a.py", "3")) == "a.py"
"""


def test_claims_come_back_when_the_program_has_closed_our_descriptor(tmp_path: Path) -> None:
    assert run(CLOSED, tmp_path, CLOSED) == ""


def test_a_child_does_not_keep_the_lock_of_the_directory_that_a_thread_held_when_it_forked(tmp_path: Path) -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with file_locks.exclusive(str(tmp_path)):
            inside.set()
            leave.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(20)
    found = in_child(lambda: [os.path.realpath(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd")])
    leave.set()
    thread.join()
    assert str(tmp_path) not in found


def test_a_child_that_a_signal_handler_forks_during_the_wait_for_a_lock_goes_on_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes: List[int] = []
    clock = Clock()

    def sleep(seconds: float) -> None:
        clock.now += seconds
        if not processes:
            processes.append(os.fork())

    monkeypatch.setattr(clock, "sleep", sleep)
    monkeypatch.setattr(file_locks, "time", clock)
    monkeypatch.setattr(file_locks, "_in_vain", set())
    holder, found = os.open(tmp_path, os.O_RDONLY), 1
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with file_locks.exclusive(str(tmp_path)) as alone:
            found = 2 if alone else 0
    finally:
        if processes == [0]:
            os._exit(found)
        os.close(holder)
    assert (found, os.waitpid(processes[0], 0)[1]) == (0, 0)


# --- the end -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["exit", "kill"])
def test_nothing_stays_when_all_processes_have_ended(end: str, tmp_path: Path) -> None:
    def parent() -> None:
        DumpDirectory.at(tmp_path).write("a.py", "1")
        in_child(lambda: dump(tmp_path, ("b.py", "2")), end=end)

    in_child(parent)
    assert sorted(os.listdir(tmp_path)) == ["a.py", "b.py"]


FORKING = """
import multiprocessing, os, sys, time
from depyf.dynamo.store.directory import DumpDirectory

def child(parent, ready):
    directory = DumpDirectory.at(sys.argv[1])
    directory.write("child.py", "of the child")
    ready.set()
    if "later" in sys.argv:
        while os.getppid() == parent:
            time.sleep(0.01)
        time.sleep(0.3)  # and what it does at exit
    path = os.path.join(directory.path, "a.py")
    open(sys.argv[2], "w").write(open(path).read() + " " + ascii(path))

if __name__ == "__main__":
    DumpDirectory.at(sys.argv[1]).write("a.py", "of the parent")
    if "fork" in sys.argv:
        parent, ready = os.getpid(), multiprocessing.get_context("fork").Event()
        process = os.fork()
        if process == 0:
            child(parent, ready)
            sys.exit()
        ready.wait(20)
        if "later" not in sys.argv:
            os.waitpid(process, 0)
    else:
        context = multiprocessing.get_context("fork")
        ready = context.Event()
        process = context.Process(target=child, args=(os.getpid(), ready))
        process.start()
        process.join()
"""


@pytest.mark.parametrize("way", ["fork", "fork later", "multiprocessing"])
@pytest.mark.parametrize("name", [b"plain", b"caf\xe9"], ids=["plain", "not UTF-8"])
def test_a_child_runs_on_from_its_parents_files_and_the_last_one_clears_up(
    name: bytes, way: str, tmp_path: Path
) -> None:
    dumps, links = os.path.join(os.fsencode(tmp_path), name), tmp_path / "links"
    links.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3] / "src"), "TMPDIR": str(links)}
    (tmp_path / "program.py").write_text(FORKING)
    command: List[Any] = [sys.executable, str(tmp_path / "program.py"), dumps, str(tmp_path / "read"), *way.split()]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    end = time.monotonic() + 20
    while (not (tmp_path / "read").exists() or os.listdir(links)) and time.monotonic() < end:
        time.sleep(0.02)
    assert (tmp_path / "read").read_text().startswith("of the parent"), done.stderr
    time.sleep(0.1)
    assert sorted(os.listdir(dumps)) == [b"a.py", b"child.py"]
    assert os.listdir(links) == []


# --- one directory for one session ---------------------------------------------------------------------------------


def test_a_link_that_is_turned_does_not_split_a_dump(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    link = tmp_path / "latest"
    link.symlink_to("first")
    with listening() as said:
        directory = DumpDirectory.at(link)
        assert directory.write("a.py", "1") == str(link / "a.py")
        link.unlink()
        link.symlink_to("second")
        for number in range(2):
            written = directory.write(f"b{number}.py", "2")
            assert written is not None
            assert Path(written).read_text() == "2"
        assert directory.is_in(str(link / "a.py"))
        assert directory.is_in(written)
    assert sorted(each.name for each in (tmp_path / "first").glob("*.py")) == ["a.py", "b0.py", "b1.py"]
    assert os.listdir(tmp_path / "second") == []
    (message,) = said
    assert str(link) in message
    assert str(tmp_path / "first") in message
    with listening() as said:
        assert DumpDirectory.at(link).write("c.py", "3") == str(link / "c.py")  # a session that begins now
        assert DumpDirectory.at(tmp_path / "first").write("d.py", "4") == str(tmp_path / "first" / "d.py")
    assert (tmp_path / "second" / "c.py").exists()
    assert said == []


def test_a_directory_that_another_one_replaces_is_said(tmp_path: Path) -> None:
    path = tmp_path / "dump"
    with listening() as said:
        directory = DumpDirectory.at(path)
        directory.write("a.py", "1")
        path.rename(tmp_path / "moved")
        path.mkdir()
        for name in ("b.py", "c.py"):
            assert directory.write(name, "2") == str(path / name)
    (message,) = said
    assert str(path) in message


# --- locks that do not end, or do not work --------------------------------------------------------------------------


def test_taking_a_place_ends_when_somebody_makes_and_removes_the_file_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = os.open, itertools.count()

    def opened(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if os.path.basename(os.path.dirname(os.fspath(path))) == FOLDER and os.path.basename(path).isdigit():
            assert next(calls) < 200_000, "this does not end"
            number = errno.EEXIST if flags & os.O_EXCL else errno.ENOENT
            raise OSError(number, os.strerror(number), path)
        return real(path, flags, *args, **kwargs)

    def linked(name: str, path: str, **options: Any) -> None:
        assert next(calls) < 200_000, "this does not end"
        raise OSError(errno.EEXIST, os.strerror(errno.EEXIST), path)

    monkeypatch.setattr(os, "link", linked)
    monkeypatch.setattr(os, "open", opened)
    with listening() as said:
        assert DumpDirectory.at(tmp_path).write("a.py", "1") is None
    assert len(said) == 1


def test_taking_a_place_ends_where_every_lock_is_somebody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(handle: int, how: int) -> None:
        assert next(calls) < 100_000, "this does not end"
        raise BlockingIOError(errno.EAGAIN, "locked")

    calls = itertools.count()
    monkeypatch.setattr(kept_locks, "_locks", {})
    monkeypatch.setattr(file_locks, "_PATIENCE", 0.05)
    monkeypatch.setattr(fcntl, "flock", flock)
    with listening() as said:
        assert DumpDirectory.at(tmp_path).write("a.py", "1") is None
    assert len(said) == 1
    assert len(os.listdir(tmp_path / FOLDER)) < 30


def broken_locks(number: int) -> Callable[..., None]:
    def flock(handle: int, how: int) -> None:
        raise OSError(number, os.strerror(number))

    return flock


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EBADF])
def test_without_locks_the_dump_goes_on(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", broken_locks(number))
    with listening() as said:
        clock = Clock()
        monkeypatch.setattr(file_locks, "time", clock)
        directory = DumpDirectory.at(tmp_path)
        assert directory.write("f.py", "ours") == str(tmp_path / "f.py")
        theirs, told = in_child(lambda: dump(tmp_path, ("f.py", "theirs"), ("g.py", "theirs")))
        assert theirs == ["f.process_1.py", "g.py"]
        with file_locks.locked_file(str(tmp_path / "lock")):
            pass
        assert clock.now == 0.0  # nothing was waited for
    assert said == told == []
    assert directory.write("g.py", "ours") == str(tmp_path / "g.py")  # they have ended


def test_without_locks_two_do_not_write_the_same_name_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing keeps another process out between looking and writing, so that one looks again."""
    monkeypatch.setattr(fcntl, "flock", broken_locks(errno.ENOLCK))
    directory = DumpDirectory.at(tmp_path)
    directory.write("a.py", "ours")
    other = in_child(lambda: dump(tmp_path, ("b.py", "theirs")), end="kill")[0]
    assert other == ["b.py"]
    claim = writers.Slot.claim

    def claimed_by_both(place: Any, name: str) -> None:
        if name == "f.py":
            (tmp_path / "f.py").write_text("theirs")
            with open(tmp_path / FOLDER / "1.files", "a") as file:
                file.write("f.py\n")
        claim(place, name)

    monkeypatch.setattr(writers.Slot, "claim", claimed_by_both)
    assert directory.write("f.py", "ours") == str(tmp_path / "f.process_0.py")
    assert (tmp_path / "f.py").read_text() == "theirs"


@as_root
def test_root_gives_away_only_what_lies_in_a_folder_of_that_user(tmp_path: Path) -> None:
    """Who owns a directory may put a link to another one into it before root makes a file there."""
    theirs, roots = tmp_path / "theirs", tmp_path / "roots"
    for folder in (theirs, roots):
        folder.mkdir()
    os.chown(theirs, ALICE, ALICE)
    (theirs / "swapped").symlink_to(roots)
    access = access_like(str(theirs))
    assert access.user == ALICE
    owners = {}
    for path in (theirs / "0", theirs / "swapped" / "1"):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        access.give_file(handle, str(path))
        os.close(handle)
        owners[path.name] = path.stat().st_uid
    for path in (theirs / "2", theirs / "swapped" / "3"):
        path.mkdir()
        access.give_folder(str(path))
        owners[path.name] = path.stat().st_uid
    assert owners == {"0": ALICE, "1": 0, "2": ALICE, "3": 0}


def test_a_relative_name_of_a_deleted_directory_does_not_move_with_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, now = tmp_path / "gone", tmp_path / "now"
    gone.mkdir()
    (now / "dump").mkdir(parents=True)
    monkeypatch.chdir(gone)
    gone.rmdir()
    directory = DumpDirectory.at("dump")
    os.chdir(now)
    assert directory.write("a.py", "1") is None
    assert os.listdir(now / "dump") == []


def test_no_file_is_opened_that_waits_for_the_other_end_of_a_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A named pipe may be in the place of each file and directory."""
    opened, real = [], os.open

    def noting(path: Any, flags: int, mode: int = 0o777) -> int:
        opened.append((path, flags & (os.O_NONBLOCK | os.O_EXCL | os.O_DIRECTORY)))
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", noting)
    directory = DumpDirectory.at(tmp_path)
    for text in ("a = 1", "a = 2"):
        assert directory.write("f.py", text)
    assert opened
    assert [path for path, flags in opened if not flags] == []


def test_a_replaced_open_is_no_descriptor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions of ``os`` take a mock for 1, and would close the output."""
    used: List[int] = []
    monkeypatch.setattr(os, "open", lambda *args, **kwargs: MagicMock())
    monkeypatch.setattr(os, "close", lambda handle: used.append(int(handle)))
    monkeypatch.setattr(os, "write", lambda handle, data: used.append(int(handle)) or len(data))
    with pytest.raises(TypeError, match="MagicMock"):
        DumpDirectory.at(tmp_path).write("f.py", "a = 1")
    with pytest.raises(TypeError, match="MagicMock"):
        open_regular(__file__)
    assert used == []
