"""The limits on time and memory for decompiling one code object, in case of unknown bugs."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import Iterator

from depyf.base.quick_dataclass import dataclass


@dataclass(frozen=True)
class Limits:
    """``seconds`` of CPU time for one code object; ``memory`` in MiB of address space beyond what the process has."""

    seconds: float
    memory: int


class TimeLimit(BaseException):
    """Raised by a timer inside the decompiler; not an ``Exception``, so that no handler there catches it."""


@contextlib.contextmanager
def time_limited(seconds: float) -> Iterator[None]:
    """Raise ``TimeLimit`` when the body has used ``seconds`` of CPU time, which does not depend on the load. Does
    nothing without such a timer (Windows) and outside of the main thread, where no handler can be set."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGPROF, _on_time_limit)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _on_time_limit(_number: int, _frame: object) -> None:
    raise TimeLimit


@contextlib.contextmanager
def memory_limited(mebibytes: int) -> Iterator[None]:
    """Make allocations of the body fail with ``MemoryError`` beyond ``mebibytes`` more than the process has now. Does
    nothing where the system has no such limit, or has a lower one already."""
    try:
        import resource
    except ImportError:  # not a POSIX system, where the limit is not available
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = _address_space() + (mebibytes << 20)
    if any(limit != resource.RLIM_INFINITY and limit <= wanted for limit in (soft, hard)):
        yield
        return
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _address_space() -> int:
    """Return the size of this process in bytes; 0 if the system does not report it."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0
