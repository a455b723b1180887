"""A decompiled function that does not terminate fails its test, and the next test runs."""

from __future__ import annotations

import signal
from typing import Any, Iterator

import pytest

CPU_SECONDS = 20.0


class TookTooLong(BaseException):
    """No ``Exception``: the functions under test catch those."""


@pytest.fixture(autouse=True)
def time_limit() -> Iterator[None]:
    """CPU time, so that a busy machine makes no difference."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(_number: int, _frame: Any) -> None:
        raise TookTooLong(f"more than {CPU_SECONDS} seconds of CPU time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
