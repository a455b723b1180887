"""A session for the whole life of a process, in its own folder, which is created when something is written. It is
enabled by environment variables, and the program may be killed. So the manifest and the page are written while it runs,
shortly after each burst of compilations, by a thread that ends when they are written.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
import time
from fnmatch import fnmatchcase
from types import CodeType
from typing import Callable, Dict, NoReturn, Optional

from depyf.base.asynchronous import suppressed
from depyf.base.messages import listed, warn
from depyf.dynamo.capture.progress import CompilationProgress
from depyf.dynamo.capture.session import Session
from depyf.dynamo.dump.manifest import is_behind, move_after_fork, write_manifest
from depyf.dynamo.dump.prepare import PrepareDebug
from depyf.dynamo.entries.decorated import shown_name_now
from depyf.dynamo.hooks import private_names, torch_names
from depyf.dynamo.hooks.patching import replace_attribute
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.store.directory import DumpDirectory
from depyf.report.model.manifest import ManifestError
from depyf.report.read.own_files import manifest_name
from depyf.report.read.reading import load_manifest
from depyf.torch_trace import file_names
from depyf.torch_trace.events import METRICS, Event
from depyf.torch_trace.launches import current_launch
from depyf.torch_trace.resume_names import function_name

_DELAY, _SHARE = 0.5, 0.05
"""Seconds after which the manifest is written, at least, and the share of the time that this may take."""

_AT_EXIT = 5.0
"""Seconds that the manifest is waited for where the process ends by ``os._exit``: a lock may be held for ever."""


_MOST_NAMED = 8

ONLY, LIMIT = "DEPYF_ONLY", "DEPYF_DUMP_LIMIT"
"""The variables that say which functions are dumped, and how many megabytes all processes together may write."""


class OnlyMatching:
    """A predicate for the code of functions that match one of some patterns; it remembers which matched none.

    Patterns are separated by commas, and compared with the qualified name, the name and the file (without its folder)
    of the function, and with file and name joined by a colon. A resume function has the names of its function.
    """

    def __init__(self, patterns: str) -> None:
        self._wanted = [each.strip() for each in patterns.split(",") if each.strip()]
        self._matched = False
        self._others: Dict[str, None] = {}

    def __bool__(self) -> bool:
        return bool(self._wanted)

    def __call__(self, code: CodeType) -> bool:
        """Return whether the function is to be dumped."""
        name, qualified = map(function_name, (code.co_name, shown_name_now(code)))
        file = os.path.basename(code.co_filename)
        names = (name, qualified, qualified.rpartition(".")[2], file, f"{file}:{name}", f"{file}:{qualified}")
        matches = any(fnmatchcase(each, pattern) for each in names for pattern in self._wanted)
        self._matched |= matches
        if not self._matched:
            self._others[f"{file}:{qualified}"] = None
        return matches

    def none_matched(self) -> Optional[str]:
        """Return a message if functions were compiled in this process, and none matched; None otherwise."""
        if self._matched or not self._others:
            return None
        others = listed(self._others, _MOST_NAMED)
        return f"{ONLY}={','.join(self._wanted)} matches none of the functions that this process compiled: {others}"


def megabytes(text: str) -> Optional[float]:
    """Return a limit as a number; None without a limit, or if the text is not a positive number."""
    with suppressed(ValueError):
        return float(text) if float(text) > 0 else None
    return None


def _size(root: str) -> float:
    """Return how many megabytes the files below ``root`` have."""
    total = 0
    for directory, _, names in os.walk(root):
        for name in names:
            with suppressed(OSError):
                total += os.lstat(os.path.join(directory, name)).st_size
    return total / 1e6


def _forget_earlier_launch(path: str) -> None:
    """Remove the manifest of an earlier launch from the folder of this process, which is named by rank or number.

    If this process is killed before it writes its own manifest, its files would be taken for files of the earlier one.
    """
    manifest = os.path.join(path, manifest_name(path))
    with suppressed(OSError, ManifestError):
        if load_manifest(manifest).run.launch != current_launch():
            for name in (manifest_name(path), file_names.summary_file()):
                with suppressed(FileNotFoundError):
                    os.unlink(os.path.join(path, name))


class _Followed(PrepareDebug):
    """``prepare_debug`` whose directory is made by the first file."""

    def _entry(self) -> Session:
        return Session(
            DumpDirectory.at(self.dump_src_dir, made_by_first_file=True),
            clean_wild_fx_code=True,
            log_bytecode=False,
            force_recompile=False,
            stepping=self.stepping,
            values=self.values,
            everything=self.everything,
        )


class _Own:
    """The session of this process, and of each child that it forks."""

    def __init__(self, root: str, opened: PrepareDebug) -> None:
        self._root = root
        self._opened = opened
        self._is_full = False
        self._only = OnlyMatching(os.environ.get(ONLY, ""))
        limit = os.environ.get(LIMIT, "")
        if limit and megabytes(limit) is None:
            warn("%s=%s is not a number of megabytes: the dumps have no limit", LIMIT, limit)
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork_in_child)
        replace_attribute(os, "_exit", self._exiting(os._exit))

    def _begin(self) -> None:
        self._timer: Optional[threading.Timer] = None
        self._delay = _DELAY
        session = self._opened.session
        if session is not None:
            session.only = self._only or None
            session.watch(self._event)

    def report_if_none_matched(self) -> None:
        """Warn if no process of the program has dumped anything, because nothing matches."""
        message = None if file_names.process_folders(self._root) else self._only.none_matched()
        if message is not None:
            warn("%s", message)

    @safely("dumping into a folder of its own after a fork")
    def _after_fork_in_child(self) -> None:
        session = self._opened.session
        if session is None or not self._opened._open:  # the program has left it
            return
        rank = torch_names.distributed_rank()
        path = os.path.join(self._root, file_names.process_folder(rank, os.getpid()))
        parents, session.directory = session.directory, DumpDirectory.at(path, made_by_first_file=True)
        self._opened.dump_src_dir = path
        move_after_fork(session, parents)
        self._timer, self._delay = None, _DELAY

    def _exiting(self, original: Callable[[int], NoReturn]) -> Callable[[int], NoReturn]:
        @functools.wraps(original)
        def _exit(status: int) -> NoReturn:
            try:
                self._write_before_exit()
            finally:  # whatever a signal handler raises: the process was to end here
                original(status)

        return _exit

    @safely("writing what was compiled before os._exit")
    def _write_before_exit(self) -> None:
        session = self._opened.session
        if session is not None and self._opened._open and is_behind(session) and not sys.is_finalizing():
            writer = threading.Thread(target=write_manifest, args=(session,), kwargs={"at_once": True}, daemon=True)
            writer.start()
            writer.join(_AT_EXIT)

    def _event(self, event: Event) -> None:
        """Write the manifest a little later. A thread that begins while the interpreter ends can't."""
        if event.name in METRICS and self._timer is None and not sys.is_finalizing():
            self._timer = threading.Timer(self._delay, self._write)
            self._timer.daemon = True
            safely("writing what was compiled so far")(self._timer.start)()

    def _write(self) -> None:
        self._timer = None  # what ends from now on is written later
        session = self._opened.session
        if session is not None and self._opened._open and not sys.is_finalizing():
            begun = time.thread_time()
            write_manifest(session, at_once=True)
            limit = megabytes(os.environ.get(LIMIT, ""))
            if limit is not None and _size(self._root) > limit and not self._is_full:
                self._is_full = True  # another thread may be here, too
                reached = f"the dumps in {self._root} have reached {os.environ[LIMIT]} MB ({LIMIT})"
                message = f"{reached}: what this process compiles from now on is not dumped"
                warn("%s", message)
                session.notes.append(message)
                self._opened.__exit__(None, None, None)
            self._delay = max(_DELAY, (time.thread_time() - begun) / _SHARE)


@safely("dumping into a folder of its own")
def begin(root: str, folder: str, *, stepping: bool = True, is_first: bool = False) -> None:
    """Dump what this process compiles into ``folder`` of ``root`` until the process ends; each forked child has a
    folder of its own. The first process of a program reports at exit if no function matched ``DEPYF_ONLY``."""
    worker = os.path.join(*private_names.INDUCTOR.whole.split("."), "compile_worker")
    if worker in "".join(sys.argv[:1]):  # a worker that compiles kernels for another process, which dumps them
        return
    path = os.path.join(root, folder)
    _forget_earlier_launch(path)
    opened = _Followed(path, stepping=stepping)
    opened.__enter__()
    if opened.session is not None and sys.stderr is not None:
        CompilationProgress(sys.stderr).follow(opened.session)
    own = _Own(root, opened)
    if is_first:
        atexit.register(safely("saying that nothing matched")(own.report_if_none_matched))


def keep_following(root: str, opened: PrepareDebug) -> None:
    """Let the open session ``opened`` write while the process runs, and give each forked child a folder in ``root``."""
    _Own(root, opened)
