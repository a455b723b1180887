"""Code runs as before and reports the lines that it was given."""

from __future__ import annotations

import dis
import sys
from types import CodeType, FunctionType
from typing import Any, Dict, List

import pytest

from depyf.dynamo.capture.listing import listing_of, running_from, with_lines
from depyf.dynamo.store.names import StableNames


def example(values: Any) -> int:
    total = 0
    for value in values:
        try:
            total += 10 // value
        except ZeroDivisionError:
            total -= 1
    return total


def lines_reported(code: CodeType) -> Dict[int, int]:
    """The line of every code unit, as CPython reads the table."""
    starts, line, lines = dict(dis.findlinestarts(code)), 0, {}
    for offset in range(0, len(code.co_code), 2):
        line = starts.get(offset, line)
        lines[offset] = line
    return lines


@pytest.mark.parametrize("step", [1, 7, 200, -3])
def test_each_instruction_has_the_line_that_was_asked_for(step: int) -> None:
    def line_of(offset: int) -> int:
        return 100_000 + step * (offset // 2)

    moved = with_lines(example.__code__, "elsewhere.py", line_of)
    assert moved.co_filename == "elsewhere.py"
    assert lines_reported(moved) == {offset: line_of(offset) for offset in range(0, len(moved.co_code), 2)}
    assert moved.co_code == example.__code__.co_code
    assert FunctionType(moved, globals())([1, 0, 5]) == example([1, 0, 5]) == 11


def test_a_listing_parses_and_its_lines_name_the_instructions() -> None:
    listing = listing_of(example.__code__, ["why it is here", ""], StableNames())
    compile(listing.text, "listing.py", "exec")
    rows = listing.text.splitlines()
    assert rows[0] == "# why it is here"
    for instruction in dis.get_instructions(example.__code__):
        assert instruction.opname in rows[listing.lines[instruction.offset] - 1]


def test_code_runs_line_by_line_through_its_listing() -> None:
    listing = listing_of(example.__code__, [], StableNames())
    code = running_from(example.__code__, listing, "listing.py")
    visited: List[int] = []

    def trace(frame: Any, event: str, argument: Any) -> Any:
        if frame.f_code is code and event == "line":
            visited.append(frame.f_lineno)
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        result = FunctionType(code, globals())([2, 0])
    finally:
        sys.settrace(previous)
    assert result == 4
    assert len(set(visited)) > 15
    assert any("RETURN_VALUE" in listing.text.splitlines()[line - 1] for line in visited)


def test_constants_whose_repr_raises_are_described() -> None:
    class Hostile:
        def __repr__(self) -> str:
            raise ValueError("no")

    code = example.__code__.replace(co_consts=(*example.__code__.co_consts[:-1], (Hostile(),)))
    listing_of(code, [], StableNames())
