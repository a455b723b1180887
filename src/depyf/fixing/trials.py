"""Run a program in a copy of its folder, in a process of its own, with edited files; read what it did.

Each run has a fresh copy at the same path, so that no run sees what another one has written, and paths in the printed
text are the same. Large files are copied, too: a program that writes its checkpoint again would write through a link.
``.git`` and caches are not copied; virtual environments, and folders elsewhere that links name, are links.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import signal
import subprocess
import time
import zlib
from typing import Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from depyf.answers.recorded import Recording, RecordingError, read_recording, recordings_in
from depyf.base.asynchronous import suppressed, synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.report.model.manifest import ManifestError
from depyf.report.model.run import Run
from depyf.report.read.reading import NothingToRead, runs_in_directory
from depyf.running.outer_calls import CALLS, DUMP, NOTHING_RAN
from depyf.running.program import UserProgram, own_command
from depyf.running.shadowing import command_of

_LARGE = 8 * 2**20
_MOST_FILES = 20_000
_MOST_BYTES = 2 * 2**30
_LEFT_OUT = frozenset((".git", ".hg", "__pycache__", ".mypy_cache", ".pytest_cache", "node_modules"))
_TIMES = "times.json"
_ASSERTED = re.compile(r"Runtime assertion failed for expression (.+?) on node")
_ALWAYS = re.compile(r"u\d+ (?:>= 0|<= \d+)")


class CannotTryError(Exception):
    """Raised where the program can't be tried; says why."""


@dataclass(frozen=True)
class Trial:
    """What a run of the program did. ``run`` is None where nothing was compiled, ``recording`` where torch was not
    imported; ``times`` has the seconds of each outermost call."""

    status: int
    out: str
    err: str
    recording: Optional[Recording]
    run: Optional[Run]
    times: Tuple[Tuple[str, float], ...]
    unseen: Tuple[str, ...]
    """Why some calls could not be recorded."""
    seconds: float
    written: Mapping[str, Tuple[int, int]]
    """The files that the run has made or changed: the size, and a checksum of text (0 for other files)."""
    timed_out: bool = False
    asserted: FrozenSet[str] = frozenset()
    """What graphs assert of sizes and numbers that depend on data, beyond what is always so."""


class Trials:
    """Runs one program, whose folder is ``root``; the copies are below ``scratch``."""

    def __init__(self, root: str, program: UserProgram, scratch: str) -> None:
        self._program = program
        self._scratch = os.path.realpath(scratch)
        self.original = os.path.join(self._scratch, "original")
        """A copy that nothing runs in: the user may go on editing the program meanwhile."""
        self.copy = os.path.join(self._scratch, "program")
        self._number = 0
        _copy(os.path.realpath(root), self.original, self._scratch)

    def prepare(self, edited: Mapping[str, bytes]) -> None:
        """Make a fresh copy with the edited files."""
        shutil.rmtree(self.copy, ignore_errors=True)
        _copy(self.original, self.copy, self._scratch)
        for file, source in edited.items():
            path = os.path.join(self.copy, file)
            os.unlink(path)  # it may be a link
            with open(path, "wb") as opened:
                opened.write(source)

    def run(self, edited: Mapping[str, bytes], *, eager: bool = False, limit: Optional[float] = None) -> Trial:
        """Run the program with edited files, in eager mode or compiled; end it after ``limit`` seconds."""
        self.prepare(edited)
        self._number += 1
        folder = os.path.join(self._scratch, f"trial_{self._number}")
        os.makedirs(folder)
        command = [*own_command("depyf.running.outer_calls"), folder, *(["--eager"] if eager else [])]
        streams = [os.path.join(folder, name) for name in ("stdout", "stderr")]
        # Without depyf's own variables, and with one order of sets in all runs.
        kept = {name: value for name, value in os.environ.items() if not name.startswith("DEPYF_")}
        environment = {"PYTHONHASHSEED": "0", **kept}
        began, timed_out = time.perf_counter(), False
        # A session of its own: what the program starts ends with it, also after Ctrl-C.
        with open(streams[0], "wb") as out, open(streams[1], "wb") as err, subprocess.Popen(
            [*command, *command_of(self._program)],
            cwd=self.copy,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        ) as process:
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                status, timed_out = -1, True
            finally:
                _end_group(process)
        seconds = time.perf_counter() - began
        texts = []
        for stream in streams:
            with open(stream, encoding="utf-8", errors="backslashreplace") as file:
                texts.append(self._with_old_lines(file.read(), edited))
        if status == NOTHING_RAN:
            raise CannotTryError(texts[1].strip().rpartition("\n")[2].replace("depyf: ", ""))
        times, unseen = _times(os.path.join(folder, CALLS, _TIMES))
        return Trial(
            status,
            texts[0],
            texts[1],
            _recording(os.path.join(folder, CALLS)),
            _run(os.path.join(folder, DUMP)),
            times,
            unseen,
            seconds,
            self._written(edited),
            timed_out,
            _asserted(os.path.join(folder, DUMP)),
        )

    def _with_old_lines(self, text: str, edited: Mapping[str, bytes]) -> str:
        """Return a text in which lines of edited files have the numbers that they have in the unchanged program."""
        path = re.escape(os.path.join(self.copy, ""))
        for file, source in edited.items():
            # train.py:12: UserWarning: ...        File "/.../train.py", line 12, in step
            named = re.compile(rf"((?:{path}|(?<![\w./\\-])){re.escape(file)}(?::|\", line ))(\d+)\b")
            parts = named.split(text)  # text, name, number, text, name, number, ..., text
            if len(parts) > 1:
                with open(os.path.join(self.original, file), "rb") as opened:
                    numbers = moved_lines(opened.read(), source)
                parts[2::3] = [str(numbers.get(int(number), number)) for number in parts[2::3]]
                text = "".join(parts)
        return text

    def _written(self, edited: Mapping[str, bytes]) -> Dict[str, Tuple[int, int]]:
        found: Dict[str, Tuple[int, int]] = {}
        for folder, folders, files in os.walk(self.copy):
            folders[:] = [each for each in folders if each not in _LEFT_OUT]
            for name in files:
                path = os.path.join(folder, name)
                file = os.path.relpath(path, self.copy)
                if os.path.islink(path) or not os.path.isfile(path) or file in edited:
                    continue
                content = _content(path)
                if content != _content(os.path.join(self.original, file)):
                    found[file] = content
        return found


def moved_lines(old: bytes, new: bytes) -> Dict[int, int]:
    """Return the number in the old text of each line of the new text that the old one has; both count from 1."""
    matcher = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    found = {}
    for before, after, size in matcher.get_matching_blocks():
        found.update({after + number: before + number for number in range(1, size + 1)})
    return found


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process, and all that it has started."""
    with suppressed(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _content(path: str) -> Tuple[int, int]:
    """Return the size of a file, and a checksum if it is a text that is not large; (-1, 0) without such a file."""
    try:
        size = os.path.getsize(path)
        if size > _LARGE:
            return size, 0
        with open(path, "rb") as file:
            read = file.read()
    except synchronous(OSError):
        return -1, 0
    return size, 0 if b"\0" in read else zlib.crc32(read)


def _copy(root: str, copy: str, scratch: str) -> None:
    count = size = 0
    for folder, folders, files in os.walk(root):
        here = os.path.join(copy, os.path.relpath(folder, root))
        os.makedirs(here, exist_ok=True)
        for name in list(folders):
            path = os.path.join(folder, name)
            is_environment = os.path.exists(os.path.join(path, "pyvenv.cfg"))
            if name in _LEFT_OUT or os.path.realpath(path) in (scratch, os.path.realpath(copy)):
                folders.remove(name)
            elif is_environment or os.path.islink(path):
                folders.remove(name)
                os.symlink(os.path.realpath(path) if is_environment else _linked(path, root), os.path.join(here, name))
        count += len(files)
        if count > _MOST_FILES:
            raise CannotTryError(f"{root} has over {_MOST_FILES:,} files: run depyf fix in the program's own folder")
        for name in files:
            path = os.path.join(folder, name)
            if not os.path.isfile(path):
                continue
            if os.path.islink(path) and not os.path.isabs(target := _linked(path, root)):
                os.symlink(target, os.path.join(here, name))
                continue
            size += os.path.getsize(path)
            if size > _MOST_BYTES:
                raise CannotTryError(
                    f"{root} has over {_MOST_BYTES // 2**30} GiB of files, which each run has to copy, as it may write "
                    "them: run depyf fix in a folder that has the program alone, with links to folders of data"
                )
            shutil.copy2(path, os.path.join(here, name))


def _linked(path: str, root: str) -> str:
    """Return what a link of a copy names: the same file of that copy, if the original is inside of the folder."""
    target, base = os.path.realpath(path), os.path.realpath(root)
    is_inside = target.startswith(base + os.sep)
    return os.path.relpath(target, os.path.realpath(os.path.dirname(path))) if is_inside else target


def _times(path: str) -> Tuple[Tuple[Tuple[str, float], ...], Tuple[str, ...]]:
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except synchronous(OSError, ValueError):
        return (), ("the run did not end as programs do",)
    return tuple((str(where), float(seconds)) for where, seconds in data["times"]), tuple(data["skipped"])


def _recording(folder: str) -> Optional[Recording]:
    try:
        found: Sequence[str] = recordings_in(folder) if os.path.isdir(folder) else ()
        return read_recording(found[0]) if len(found) == 1 else None
    except synchronous(RecordingError, OSError):
        return None


def _run(folder: str) -> Optional[Run]:
    try:
        found: List[Run] = [each.run for each in runs_in_directory(folder) if not each.is_child]
    except synchronous(NothingToRead, ManifestError, OSError):
        return None
    return found[0] if found and found[0].compilations else None


def _asserted(folder: str) -> FrozenSet[str]:
    found = set()
    for here, _, files in os.walk(folder):
        for name in files:
            if name.endswith(".py"):
                with open(os.path.join(here, name), encoding="utf-8", errors="replace") as file:
                    found |= set(_ASSERTED.findall(file.read()))
    return frozenset(each for each in found if not _ALWAYS.fullmatch(each))
