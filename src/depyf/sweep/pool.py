"""Worker processes for a sweep: one that hangs or crashes costs one row, which reports it, and is replaced."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import multiprocessing.context
import os
import re
import sys
import time
import zlib
from collections import deque
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Deque, Dict, FrozenSet, Iterator, List, Mapping, Optional, Union

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.syntax import nested_codes
from depyf.sweep.judge import Keep, Outcome, Result, judge, result_for
from depyf.sweep.limits import Limits, TimeLimit, memory_limited, time_limited
from depyf.sweep.targets import Target, read_module, targets_of
from depyf.sweep.unreadable import UnreadableError

_GRACE = 15.0
"""Seconds that a worker may be silent beyond the time limit of an object (the machine may be busy)."""


@dataclass(frozen=True)
class Selection:
    """The code objects to take from the files: those that pass every condition that is set."""

    kinds: FrozenSet[str]
    name: Optional[str] = None
    share: float = 1.0
    only: Optional[Mapping[str, FrozenSet[int]]] = None
    whole: bool = False
    """Whether nested code of a module or class that is proved is treated as proved with it."""
    python: Optional[str] = None
    """The Python that wrote the ``.pyc`` files: a version or an interpreter, see ``decompile_code``."""

    def takes(self, target: Target) -> bool:
        if target.kind not in self.kinds:
            return False
        if self.only is not None and target.ordinal not in self.only.get(target.path, frozenset()):
            return False
        if self.name is not None and not re.search(self.name, target.qualname):
            return False
        # A hash of the location, not a random number: the same objects are taken every time.
        identity = f"{Path(target.path).name}:{target.ordinal}".encode("utf-8", "surrogateescape")
        return self.share >= 1.0 or zlib.crc32(identity) % 10_000 < self.share * 10_000


@dataclass(frozen=True)
class Skipped:
    """A file that has no code objects to sweep, because it does not compile or can't be read (``unreadable``)."""

    path: str
    reason: str
    unreadable: bool = False


@dataclass(frozen=True)
class FileDone:
    """All selected code objects of a file have a verdict."""

    path: str


@dataclass(frozen=True)
class _Begun:
    """A worker starts a code object: ``row`` is its result if the worker reports nothing more."""

    row: Result


Message = Union[Result, Skipped, FileDone]


@dataclass(frozen=True)
class _Task:
    path: str
    start: int


class _Worker:
    """A process with its pipe and its current task."""

    def __init__(
        self,
        context: multiprocessing.context.BaseContext,
        selection: Selection,
        limits: Limits,
        keep: Optional[Keep],
    ) -> None:
        self.pipe, far_end = multiprocessing.Pipe()
        make_process: Any = context.Process  # type: ignore[attr-defined]
        self.process: BaseProcess = make_process(target=_work, args=(far_end, selection, limits, keep), daemon=True)
        self.process.start()
        far_end.close()
        self.task: Optional[_Task] = None
        self.begun: Optional[Result] = None
        self.heard = time.monotonic()

    def give(self, task: Optional[_Task]) -> None:
        self.task, self.begun, self.heard = task, None, time.monotonic()
        self.pipe.send(task)

    def stop(self) -> Optional[int]:
        self.process.kill()
        self.process.join()
        self.pipe.close()
        return self.process.exitcode


def sweep_files(
    files: List[str], selection: Selection, limits: Limits, jobs: int, keep: Optional[Keep] = None
) -> Iterator[Message]:
    """Judge the selected code objects of ``files`` in ``jobs`` processes, in no particular order. ``keep`` is called in
    the worker with each one that has source."""
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    # The largest first, so that none of them is left alone at the end.
    waiting: Deque[_Task] = deque(_Task(path, 0) for path in sorted(files, key=_file_size, reverse=True))
    workers: List[_Worker] = []
    try:
        while waiting or any(worker.task for worker in workers):
            while waiting and len(workers) < jobs:
                workers.append(_Worker(context, selection, limits, keep))
                workers[-1].give(waiting.popleft())
            yield from _round(workers, waiting, limits)
    finally:
        for worker in workers:
            worker.stop()


def _round(workers: List[_Worker], waiting: Deque[_Task], limits: Limits) -> Iterator[Message]:
    """Wait a moment, yield the messages of the workers, give the idle ones work, replace the dead ones."""
    by_pipe = {worker.pipe: worker for worker in workers}
    for pipe in multiprocessing.connection.wait(list(by_pipe), timeout=1.0):
        worker = by_pipe[pipe]  # type: ignore[index]
        try:
            message: Union[Message, _Begun] = worker.pipe.recv()
        except (EOFError, OSError):
            workers.remove(worker)
            yield from _bury(worker, waiting, "")
            continue
        worker.heard = time.monotonic()
        if isinstance(message, _Begun):
            worker.begun = message.row
            continue
        if isinstance(message, Result):
            # If the worker dies now, it was between two objects: the rest of the file starts after this one.
            worker.task, worker.begun = _Task(message.path, message.ordinal + 1), None
        else:
            worker.task = None
            if waiting:
                worker.give(waiting.popleft())
        yield message
    # A time limit is an exception, which code in a C function can't raise: kill the worker instead.
    for worker in [w for w in workers if w.task and time.monotonic() - w.heard > 2 * limits.seconds + _GRACE]:
        workers.remove(worker)
        yield from _bury(worker, waiting, "hung beyond the time limit and was killed")


def _bury(worker: _Worker, waiting: Deque[_Task], cause: str) -> Iterator[Message]:
    """Report the object that a lost worker was working on, and queue the rest of its task. The file is not read here:
    what killed the worker could kill this process."""
    status = worker.stop()
    if worker.task is None:
        return
    reason = cause or f"the worker process died (exit status {status})"
    if worker.begun is None:  # between two objects, if it has reported one of them: the next one is not known
        yield Skipped(worker.task.path, f"{reason} while it read the file", unreadable=True)
        return
    # The object that was begun is judged CRASHED; another worker continues with the next one.
    yield replace(worker.begun, reason=reason, seconds=round(time.monotonic() - worker.heard, 5))
    waiting.appendleft(replace(worker.task, start=worker.begun.ordinal + 1))


def _file_size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):  # the worker that reads it reports why
        return 0


def _work(pipe: Connection, selection: Selection, limits: Limits, keep: Optional[Keep]) -> None:
    """Run a worker process: a file at a time, a message when an object starts and one when it is judged."""
    with memory_limited(limits.memory):
        while True:
            try:
                task: Optional[_Task] = pipe.recv()
            except (EOFError, KeyboardInterrupt):
                return
            if task is None:
                return
            try:
                with time_limited(limits.seconds):
                    targets = list(targets_of(read_module(task.path, selection.python), task.path))
            except UnreadableError as error:
                pipe.send(Skipped(task.path, str(error)))
            except (OSError, MemoryError, RecursionError, TimeLimit) as error:
                pipe.send(Skipped(task.path, _why_unread(error), unreadable=True))
            else:
                for result in _judge_targets(pipe, task, targets, selection, limits, keep):
                    pipe.send(result)
                pipe.send(FileDone(task.path))


def _why_unread(error: BaseException) -> str:
    if isinstance(error, TimeLimit):
        return "time limit while the file was read"
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def _judge_targets(
    pipe: Connection,
    task: _Task,
    targets: List[Target],
    selection: Selection,
    limits: Limits,
    keep: Optional[Keep],
) -> Iterator[Result]:
    proved: Dict[int, Outcome] = {}
    for target in targets:
        if target.ordinal < task.start or not selection.takes(target):
            continue
        # With ``whole``, the proof of a module covers the code nested in it.
        if id(target.code) in proved:
            yield result_for(target, proved[id(target.code)], "", 0.0)
            continue
        pipe.send(_Begun(result_for(target, Outcome.CRASHED, "", 0.0)))
        result = _judge_within(target, limits.seconds, keep, selection.python)
        if selection.whole and result.outcome.proved:
            proved.update((id(code), result.outcome) for code in nested_codes(target.code))
        yield result


def _judge_within(target: Target, seconds: float, keep: Optional[Keep], python: Optional[str]) -> Result:
    try:
        with time_limited(seconds):
            return judge(target, keep, python)
    except TimeLimit:  # raised outside of the decompiler's own call
        return result_for(target, Outcome.CRASHED, "time limit", seconds)
