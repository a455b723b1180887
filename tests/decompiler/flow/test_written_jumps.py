"""Jumps in the source have a span of their own; those that the compiler added have that of another statement."""

from __future__ import annotations

from typing import List, Optional, Tuple

import pytest
from small_graphs import FUNCTION, instrs

from depyf.decompiler.bytecode.lines import Span
from depyf.decompiler.flow.written_jumps import Written, WrittenJumps
from depyf.decompiler.normal.ops import NormalCode


def written(ops: str, *idle: Span) -> WrittenJumps:
    return WrittenJumps(NormalCode(FUNCTION, tuple(instrs(ops)), idle=idle))


def place(line: int, column: int, end: int) -> Span:
    return Span(line, column, line, end)


# --- continue and pass


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        pytest.param("LOAD x @2:4-5; POP @2:4-5; JUMP ->0 @3:8-16", [(3, Written.CONTINUE)], id="columns"),
        pytest.param("LOAD x @2:4-5; RAISE 1 @2:4-5; JUMP ->0 @3:8-16", [(3, Written.CONTINUE_ALONE)], id="alone"),
        pytest.param("LOAD x @2; POP @2; JUMP ->0 @3", [(3, Written.CONTINUE)], id="a line of its own"),
        pytest.param("LOAD x @2; POP @2; JUMP ->0 @2", [], id="the line of the statement before"),
        pytest.param("LOAD x @2; JUMP ->2 @3; RETURN", [], id="a line of its own, and not back"),
        pytest.param("LOAD x @2:4-5; POP @2:4-5; JUMP ->0 @2:4-5", [], id="the place of the statement before"),
        pytest.param("LOAD x @3:8-16; POP @3:8-16; JUMP ->0 @3:8-16", [], id="a name as long as continue"),
        pytest.param("LOAD x; POP; JUMP ->0", [], id="no place"),
    ],
)
def test_continue(ops: str, expected: List[Tuple[int, Written]]) -> None:
    assert [(span.line, kind) for span, kind in written(ops).jumps] == expected


def test_what_does_nothing_is_pass_or_continue_by_its_length() -> None:
    idle = [place(3, 8, 12), place(2, 4, 12), place(4, 8, 13), Span(5, None, 5, None)]
    jumps = written("LOAD x @1:0-1; RETURN @1:0-1", *idle).jumps
    assert jumps == [(place(2, 4, 12), Written.CONTINUE), (place(3, 8, 12), Written.PASS)]


def test_the_name_of_an_exception_is_deleted_at_the_place_of_the_jump() -> None:
    forget = "CONST None @3:8-16; STORE e @3:8-16; DELETE e @3:8-16"
    jump = "LOAD x @2:4-5; POP_EXC @3:8-16; {}; JUMP ->0 @3:8-16"
    assert [kind for _, kind in written(jump.format(forget)).jumps] == [Written.CONTINUE]
    assert written(jump.format("LOAD e @3:8-16; STORE e @3:8-16")).jumps == []


# --- return

BEFORE = "LOAD x @1:4-5; POP @1:4-5; "


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        pytest.param("CONST None @2:4-10; RETURN @2:4-10", Written.RETURN, id="return"),
        pytest.param("CONST None @2:11-15; RETURN @2:4-15", Written.RETURN_NONE, id="return None"),
        pytest.param("CONST None @2:8-12; RETURN @2:8-12", Written.PASS, id="pass, by its even column"),
        pytest.param("CONST None @1:4-5; RETURN @1:4-5", None, id="the place of the statement before"),
        pytest.param("CONST None @2; RETURN @2", Written.RETURN_NOTHING, id="a line of its own"),
        pytest.param("CONST None @1; RETURN @1", None, id="the line of the statement before"),
        pytest.param("CONST None; RETURN", None, id="no line"),
    ],
)
def test_return(ops: str, expected: Optional[Written]) -> None:
    jumps = written(BEFORE + ops)
    assert jumps.of_return(instrs(BEFORE + ops)[-2].span) is expected


# --- statements around


def test_the_innermost_statement_around_a_place() -> None:
    outer, inner, later = Span(1, 0, 9, 4), Span(3, 4, 6, 8), Span(7, 4, 9, 4)
    jumps = written("CONST None; RETURN", outer, inner, later, Span(2, None, 8, None))
    assert jumps.around(place(5, 8, 12), place(5, 8, 12)) == inner
    assert jumps.around(place(2, 4, 8), place(2, 4, 8)) == outer
    assert jumps.around(place(5, 8, 12), place(8, 8, 12)) == outer
    assert jumps.around(place(10, 0, 4), place(10, 0, 4)) is None
    assert jumps.around(place(1, 0, 4), place(1, 0, 4)) is None
