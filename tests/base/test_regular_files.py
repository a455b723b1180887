"""Files that other users may have written are opened only if they are regular, and no descriptor stays open."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any, List

import pytest

from depyf.base.regular_files import open_regular

FDS = Path("/proc/self/fd")
needs_fds = pytest.mark.skipif(not FDS.is_dir(), reason="open descriptors are counted under /proc")


def open_descriptors() -> int:
    return len(os.listdir(FDS))


@needs_fds
def test_what_is_no_regular_file_is_refused_and_closed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "missing")
    before = open_descriptors()
    for name in ("pipe", "link", "missing", "."):
        with pytest.raises(OSError, match=r"regular|No such file"):
            open_regular(str(tmp_path / name))
    assert open_descriptors() == before


@needs_fds
@pytest.mark.skipif(sys.gettrace() is not None, reason="something else traces")
def test_an_interruption_at_any_line_leaves_no_descriptor(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("text")
    code = open_regular.__code__
    lines = sorted({line for _, _, line in code.co_lines() if line}) if sys.version_info >= (3, 10) else []
    lines = lines or list(range(code.co_firstlineno, code.co_firstlineno + 20))
    raised: List[int] = []
    for wanted in lines:

        def at_line(frame: FrameType, event: str, argument: object, wanted: int = wanted) -> Any:
            if event == "line" and frame.f_lineno == wanted and wanted not in raised:
                raised.append(wanted)
                raise KeyboardInterrupt
            return at_line

        def enter(frame: FrameType, event: str, argument: object, at_line: Any = at_line) -> Any:
            return at_line if frame.f_code is code else None

        before = open_descriptors()
        sys.settrace(enter)
        try:
            open_regular(str(path)).close()
        except (KeyboardInterrupt, OSError):
            pass
        finally:
            sys.settrace(None)
        assert open_descriptors() == before, f"line {wanted}"
    assert len(raised) >= 4


@needs_fds
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that send signals")
def test_signals_at_any_time_leave_no_descriptor(tmp_path: Path) -> None:
    class Limit(Exception):
        pass

    inside = [False]

    def late(number: int, frame: object) -> None:
        if inside[0]:
            raise Limit

    path = tmp_path / "file"
    path.write_text("text")
    before, interrupted = open_descriptors(), 0
    handler = signal.signal(signal.SIGALRM, late)
    try:
        for attempt in range(2000):
            try:
                inside[0] = True
                signal.setitimer(signal.ITIMER_REAL, 2e-6 * (1 + attempt % 40))
                open_regular(str(path)).close()
                inside[0] = False
            except Limit:
                inside[0] = False
                interrupted += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    if interrupted < 20:
        pytest.skip("timers are too coarse here")
    assert open_descriptors() - before <= 2  # a function in Python that hands a descriptor over can't be perfect
