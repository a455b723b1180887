"""Reading source never raises, whatever a loader of the program does when it is asked."""

from __future__ import annotations

import linecache
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator

import pytest

import depyf
from depyf.base.messages import describe
from depyf.base.source_lines import source_line, source_lines

PACKAGE = Path(depyf.__file__).parent
GHOST = os.path.join(os.sep, "nonexistent", "ghost.py")


class Loader:
    """A program's loader; ``get_source`` does what the test wants."""

    def __init__(self, get_source: Callable[[str], Any]) -> None:
        self.get_source = get_source


def interrupts(name: str) -> str:
    raise KeyboardInterrupt


def ends(name: str) -> str:
    sys.exit(4)


def stops(name: str) -> str:
    raise GeneratorExit(name)


def fails(name: str) -> str:
    raise LookupError(name)


def is_interrupted(name: str) -> str:
    signal.raise_signal(signal.SIGINT)
    return "unreachable"


@pytest.fixture(autouse=True)
def no_ghost() -> Iterator[None]:
    yield
    linecache.cache.pop(GHOST, None)


def module_with(get_source: Callable[[str], Any]) -> Dict[str, Any]:
    return {"__name__": "ghost", "__loader__": Loader(get_source)}


def test_a_loader_is_asked_for_what_is_no_file() -> None:
    assert source_lines(GHOST, module_with(lambda name: "a = 1\nb = 2\n")) == ["a = 1\n", "b = 2\n"]
    assert source_line(GHOST, 2) == "b = 2"


@pytest.mark.parametrize("get_source", [interrupts, ends, stops, fails, lambda name: 3])
def test_a_loader_that_raises_has_no_source(get_source: Callable[[str], Any]) -> None:
    assert source_lines(GHOST, module_with(get_source)) == []
    linecache.cache.pop(GHOST, None)
    linecache.lazycache(GHOST, module_with(get_source))  # as ``warnings`` and PyTorch do
    assert source_line(GHOST, 1) == ""


@pytest.mark.parametrize("entry", [(1, None, 5, "x"), (1, None, [3], "x"), 3])
def test_an_odd_entry_of_the_cache_has_no_source(entry: Any) -> None:
    linecache.cache[GHOST] = entry
    assert source_lines(GHOST) == []
    assert source_line(GHOST, 1) in ("", "3")


def handler_that_raises(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("handler", [signal.default_int_handler, handler_that_raises])
def test_ctrl_c_while_a_loader_runs_reaches_the_program(handler: Any) -> None:
    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            source_lines(GHOST, module_with(is_interrupted))
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_exception_whose_message_interrupts_is_described() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise KeyboardInterrupt

    assert describe(Odd()) == "Odd (its message can't be shown)"


def test_nothing_else_reads_through_linecache() -> None:
    reading = re.compile(r"linecache\.(getlines?|updatecache)\b")
    readers = [path.name for path in PACKAGE.rglob("*.py") if reading.search(path.read_text(encoding="utf-8"))]
    assert readers == ["source_lines.py"]
