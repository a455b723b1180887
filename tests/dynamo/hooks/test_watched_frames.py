"""Calls of watched functions are reported with their frames, on one thread, and others are not."""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Any, List, Tuple

import pytest

from depyf.dynamo.hooks.hooked_context import install, uninstall
from depyf.dynamo.hooks.patching import Undo
from depyf.dynamo.hooks.watched_frames import WatchedFrames, depth_of, inner_code

pytestmark = pytest.mark.skipif(sys.getprofile() is not None, reason="a profiler runs")


def doubled(value: int) -> int:
    if value < 0:
        raise ValueError(value)
    return plain(value) * 2


def plain(value: int) -> int:
    return value


def outer() -> Any:
    def inner(value: int) -> int:
        return doubled(value)

    return inner


class Seen:
    """Watches ``doubled`` and ``inner`` while it is open."""

    def __init__(self) -> None:
        self.starts: List[Tuple[str, int, int]] = []
        self.ends: List[Tuple[str, int, object]] = []
        self.frames = WatchedFrames(self._started, self._returned)
        self._undo: List[Undo] = []

    def _started(self, kind: str, frame: FrameType, depth: int) -> None:
        self.starts.append((kind, frame.f_locals["value"], depth))

    def _returned(self, kind: str, _: FrameType, depth: int, value: object) -> None:
        self.ends.append((kind, depth, value))

    def __enter__(self) -> Seen:
        install(self._undo, "testing", self.frames.begin)
        self.frames.watch(doubled.__code__, "doubled")
        code = inner_code(outer, "inner")
        assert code is not None
        self.frames.watch(code, "inner")
        return self

    def __exit__(self, *_: object) -> None:
        uninstall(self._undo, "testing")


def test_starts_and_ends_of_watched_functions_are_reported() -> None:
    depth = depth_of(sys._getframe())
    with Seen() as seen:
        assert outer()(3) == 6
        assert plain(1) == 1
        assert not seen.frames.was_ended
    doubled(4)
    assert seen.starts == [("inner", 3, depth + 1), ("doubled", 3, depth + 2)]
    assert seen.ends == [("doubled", depth + 2, 6), ("inner", depth + 1, 6)]


def test_exceptions_stay_what_they_are() -> None:
    with Seen() as seen:
        with pytest.raises(ValueError, match="-1"):
            doubled(-1)
        doubled(1)
    assert [each[1] for each in seen.starts] == [-1, 1]
    assert [each[2] for each in seen.ends if each[2] is not None] == [2]


def test_other_threads_are_not_reported() -> None:
    with Seen() as seen:
        thread = threading.Thread(target=doubled, args=(1,))
        thread.start()
        thread.join()
    assert seen.starts == []


@pytest.mark.skipif(hasattr(sys, "monitoring"), reason="needs no profile function")
def test_a_profiler_of_the_program_is_left_alone() -> None:
    def profiler(*_: object) -> None: ...

    sys.setprofile(profiler)
    try:
        with Seen():
            doubled(1)
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(None)
    with Seen() as seen:
        sys.setprofile(profiler)
        assert seen.frames.was_ended
    assert sys.getprofile() is profiler
    sys.setprofile(None)


def test_no_inner_function_has_no_code() -> None:
    assert inner_code(outer, "other") is None
    assert inner_code(len, "inner") is None
