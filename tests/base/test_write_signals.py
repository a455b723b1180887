"""A write of depyf's calls no signal handler of the program's, and does not end the program."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Iterator, List

import pytest

from depyf.base import messages
from depyf.base.write_signals import without_write_signals
from depyf.dynamo.store.directory import write_atomically

pytestmark = pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Windows has no signals of writes")


@pytest.fixture
def handled() -> Iterator[List[int]]:
    """Install handlers that note their signals, and compare the mask before and after."""
    noted: List[int] = []
    numbers = (signal.SIGPIPE, signal.SIGXFSZ)
    before = [signal.signal(number, lambda got, frame: noted.append(got)) for number in numbers]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        yield noted
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask
        assert not signal.sigpending()
    finally:
        for number, handler in zip(numbers, before):
            signal.signal(number, handler)


@contextlib.contextmanager
def unread_pipe() -> Iterator[int]:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        yield writer
    finally:
        os.close(writer)


def test_a_message_that_nobody_reads(handled: List[int]) -> None:
    with unread_pipe() as pipe:
        stream = SimpleNamespace(write=lambda text: os.write(pipe, text.encode()), flush=lambda: None)
        assert not messages.write(stream, "lost")
        assert not handled
        with pytest.raises(BrokenPipeError):
            os.write(pipe, b"the program's own")
    assert handled == [signal.SIGPIPE]


def test_a_file_beyond_the_limit(handled: List[int], tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            write_atomically(str(tmp_path / "f.py"), b"x" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not handled
    assert not list(tmp_path.iterdir())


def test_a_signal_that_waited_before_stays(handled: List[int]) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
    try:
        signal.pthread_kill(threading.get_ident(), signal.SIGPIPE)
        with without_write_signals(), unread_pipe() as pipe, contextlib.suppress(OSError):
            os.write(pipe, b"x")
        assert signal.sigpending() == {signal.SIGPIPE}
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPIPE})
    assert handled == [signal.SIGPIPE]
