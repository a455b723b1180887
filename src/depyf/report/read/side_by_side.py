"""Read several logs at once, in processes of their own; their results come in the order of the logs."""

from __future__ import annotations

import atexit
import contextlib
import functools
import multiprocessing
import multiprocessing.connection
import os
import signal
import tempfile
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Callable, Dict, Generic, Iterator, List, Optional, Sequence, Tuple, TypeVar, Union, cast

from depyf.base.asynchronous import suppressed, synchronous
from depyf.base.stored_text import Copies
from depyf.report.model.manifest import ManifestError
from depyf.report.read.reading import NothingToRead

What = TypeVar("What")
Result = TypeVar("Result")

_WORTH_A_PROCESS = 1 << 22
"""In bytes of log, unpacked: less is read before a process has started."""

_PACKED = 10
"""How many times larger a packed log is when it is unpacked, usually."""

_READING = (ManifestError, NothingToRead, OSError)
"""What can be wrong with a log."""


class DiedError(NothingToRead):
    """A process ended while it read; the message has what it read, and what to do."""


def jobs_for(logs: Sequence[str]) -> int:
    """Return in how many processes it pays to read these: one for each that is large, up to the number of CPUs."""
    large = sum(_size(path) >= _WORTH_A_PROCESS for path in logs)
    affinity = getattr(os, "sched_getaffinity", None)
    return max(1, min(large, len(affinity(0)) if affinity is not None else os.cpu_count() or 1))


def _size(path: str) -> int:
    with suppressed(OSError):
        return os.path.getsize(path) * (_PACKED if path.endswith(".gz") else 1)
    return 0


def side_by_side(
    make: Callable[[What], Result],
    things: Sequence[Tuple[str, What]],
    jobs: int,
    progress: Callable[[int], object] = str,
) -> Iterator[Union[Result, Exception]]:
    """Yield ``make(thing)`` of each, in their order, made in ``jobs`` processes; the exception where it raises one that
    reading raises. ``things`` come with their names; ``progress`` is called with the number of each that is begun.

    With one job there is no other process. Raises ``DiedError``.
    """
    if min(jobs, len(things)) <= 1:
        for number, (_, thing) in enumerate(things):
            progress(number)
            yield _made(make, thing)
        return
    with _Workers(make, things, min(jobs, len(things)), progress) as workers:
        for number in range(len(things)):
            yield workers.result(number)


def _made(make: Callable[[What], Result], thing: What) -> Union[Result, Exception]:
    try:
        return make(thing)
    except synchronous(*_READING) as error:
        return error


class _Workers(Generic[What, Result]):
    """Processes that read the things, each process one after the other. On exit the processes are killed."""

    def __init__(
        self,
        make: Callable[[What], Result],
        things: Sequence[Tuple[str, What]],
        jobs: int,
        progress: Callable[[int], object],
    ) -> None:
        self._things = things
        self._progress = progress
        self._begun = 0
        self._results: Dict[int, Union[Result, Exception]] = {}
        self._reading: Dict[Connection, Tuple[SpawnProcess, int]] = {}
        self._processes: List[SpawnProcess] = []
        try:
            for _ in range(jobs):
                self._start(make)
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> _Workers[What, Result]:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()
        for pipe in self._reading:
            pipe.close()

    def result(self, number: int) -> Union[Result, Exception]:
        """Return the result of a thing, when it is there."""
        while number not in self._results:
            for pipe in multiprocessing.connection.wait(list(self._reading)):
                self._receive(cast(Connection, pipe))
        return self._results.pop(number)

    def _start(self, make: Callable[[What], Result]) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = multiprocessing.Pipe()
        process = context.Process(target=_work, args=(theirs, make, _copies()), daemon=True)
        with _without_interrupts():
            process.start()
        self._processes.append(process)
        theirs.close()
        self._give(ours, process)

    def _give(self, pipe: Connection, process: SpawnProcess) -> None:
        """Let a process read the next thing; without one it ends."""
        # Nothing is left to read: a closed pipe ends the process.
        if self._begun == len(self._things):
            self._reading.pop(pipe, None)
            pipe.close()
            return
        number = self._begun
        self._begun += 1
        self._reading[pipe] = process, number
        self._progress(number)
        with contextlib.suppress(BrokenPipeError):  # it has died, and is at the end of its pipe
            pipe.send(self._things[number][1])

    def _receive(self, pipe: Connection) -> None:
        process, number = self._reading[pipe]
        try:
            self._results[number] = pipe.recv()
        except synchronous(EOFError, OSError):
            process.join()
            raise DiedError(
                f"{self._things[number][0]}: the process that read it ended {_in_words(process.exitcode)}; with -j 1 "
                "the logs are read one after the other, which takes less memory"
            ) from None
        self._give(pipe, process)


@functools.lru_cache(maxsize=None)
def _copies() -> str:
    """Return a directory for the copies of packed texts, which is deleted when this process ends."""
    directory = tempfile.TemporaryDirectory(prefix="depyf-report-")
    atexit.register(directory.cleanup)
    return directory.name


def _in_words(status: Optional[int]) -> str:
    """Return how a process ended, by the exit status of ``multiprocessing``."""
    if status is None or status >= 0:
        return f"with exit status {status}"
    with suppressed(ValueError):
        return f"by {signal.Signals(-status).name}"
    return f"by signal {-status}"


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Hold back Ctrl-C, where the system can: a process that is started meanwhile never gets it, and is ended by this
    one."""
    change = getattr(signal, "pthread_sigmask", None)
    if change is None:
        yield
        return
    resource_tracker.ensure_running()  # the first process starts it, which lets Ctrl-C through
    before = change(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        change(signal.SIG_SETMASK, before)


def _work(pipe: Connection, make: Callable[[What], Result], directory: str) -> None:
    """Read what the pipe brings, in a process of its own, until it is closed."""
    Copies.directory = directory
    with suppressed(EOFError, ConnectionError):  # the other end is closed
        while True:
            pipe.send(_made(make, pipe.recv()))
