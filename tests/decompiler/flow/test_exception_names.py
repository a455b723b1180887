"""``name = None; del name`` after an ``except`` clause is removed as the compiler's; elsewhere it is the user's."""

from __future__ import annotations

from typing import List

import pytest
from small_graphs import flow, shown

from depyf.decompiler.flow.exception_names import forget_exception_names

FORGET = "CONST None; STORE e; DELETE e"
CLAUSE = f"""
    body in h:          a(); POP; -> out
    h:                  PUSH_EXC; LOAD global.E; CHECK_EXC; false -> no, match
    match:              STORE e; -> clause
    clause in clean/1:  b(); POP; -> done
    done:               POP_EXC; {FORGET}; -> out
    no:                 RERAISE
    clean:              {FORGET}; RERAISE
    out:                CONST None; RETURN
"""
PLAIN = """
    body in h:          a(); POP; -> out
    h:                  PUSH_EXC; LOAD global.E; CHECK_EXC; false -> no, match
    match:              STORE e; -> clause
    clause:             b(); POP; -> done
    done:               POP_EXC; -> out
    no:                 RERAISE
    out:                CONST None; RETURN
"""


def forgotten(text: str) -> List[str]:
    graph = flow(text)
    forget_exception_names(graph)
    return shown(graph)


def test_a_clause_forgets_the_name_of_its_exception() -> None:
    assert forgotten(CLAUSE) == shown(flow(PLAIN))


def test_a_region_around_the_clause_stays() -> None:
    outer = "outer: PUSH_EXC; POP; POP_EXC; -> out"
    expected = PLAIN.replace("clause:         ", "clause in outer:")
    assert forgotten(CLAUSE.replace("clean:  ", "clean in outer:") + outer) == shown(flow(expected + outer))


def test_38_forgets_before_the_handler_is_left() -> None:
    old = CLAUSE.replace(
        f"done:               POP_EXC; {FORGET}; -> out", f"done: {FORGET}; -> pop\npop: POP_EXC; -> out"
    )
    new = PLAIN.replace("done:               POP_EXC; -> out", "done: -> pop\npop: POP_EXC; -> out")
    graph = flow(old)
    forget_exception_names(graph)
    assert shown(graph) == shown(flow(new))
    pop = next(block for block in graph.blocks.values() if [instr.op.name for instr in block.ops] == ["POP_EXC"])
    assert graph.clause_ends == {pop.ops[0].offset}


def test_38_forgets_in_one_block_where_the_clause_does_nothing() -> None:
    nothing = f"""
        body in h:  a(); POP; -> out
        h:          PUSH_EXC; LOAD global.E; CHECK_EXC; false -> no, match
        match:      STORE e; {FORGET}; POP_EXC; -> out
        no:         RERAISE
        out:        CONST None; RETURN
    """
    assert forgotten(nothing) == shown(flow(nothing.replace(f"{FORGET}; ", "")))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(PLAIN.replace("b(); POP;", f"{FORGET}; b(); POP;"), id="written in the clause"),
        pytest.param(PLAIN.replace("out:                ", f"out: {FORGET};"), id="written behind the statement"),
        pytest.param(PLAIN.replace("POP_EXC;", "POP_EXC; CONST None; STORE x; DELETE x;"), id="another variable"),
        pytest.param(PLAIN.replace("POP_EXC;", "POP_EXC; CONST 0; STORE e; DELETE e;"), id="another value"),
        pytest.param(PLAIN.replace("POP_EXC;", "POP_EXC; CONST None; STORE e;"), id="not deleted"),
        pytest.param(PLAIN.replace("POP_EXC;", f"POP_EXC; {FORGET};").replace("STORE e; ->", "POP; ->"), id="no name"),
    ],
)
def test_what_only_looks_like_forgetting_stays(other: str) -> None:
    assert forgotten(other) == shown(flow(other))


@pytest.mark.parametrize(
    "handler",
    [
        pytest.param("CONST None; STORE e; DELETE x; RERAISE", id="two variables"),
        pytest.param("CONST 0; STORE e; DELETE e; RERAISE", id="another value"),
        pytest.param("PUSH_EXC; CONST None; STORE e; DELETE e; RERAISE", id="a finally body"),
    ],
)
def test_a_handler_that_does_something_else_keeps_its_region(handler: str) -> None:
    text = f"a in h: f(); RETURN\nh: {handler}"
    assert forgotten(text) == shown(flow(text))
