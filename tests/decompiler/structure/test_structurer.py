"""Loops, protected regions and straight sequences, from lifted graphs written by hand."""

from __future__ import annotations

from typing import Sequence

import pytest
from small_nodes import dedented, lifted, source

from depyf.decompiler.structure.sequences import structure
from depyf.decompiler.structure.unstructured import Unstructured


def structured(text: str, finally_: Sequence[str] = ()) -> str:
    return source(structure(*lifted(text, finally_)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "a: -> l\nl: for i in x -> b, o\nb: f(); -> l\no: return z",
            """
            for i in x:
                f()
            return z
            """,
            id="for",
        ),
        pytest.param(
            "l: if x -> b, o\nb: f(); -> l\no: return z",
            """
            while x:
                f()
            return z
            """,
            id="while",
        ),
        pytest.param(
            "l: if x -> o, b\nb: f(); -> l\no: return z",
            """
            while not x:
                f()
            return z
            """,
            id="while, left where the test holds",
        ),
        pytest.param(
            "l: f(); if x -> b, o\nb: g(); -> l\no: return z",
            """
            while True:
                f()
                if x:
                    g()
                else:
                    return z
            """,
            id="what is done before the test makes it endless",
        ),
        pytest.param(
            "a: -> l\nl: for i in x -> b, e\nb: if i -> o, c\nc: f(); -> l\ne: g(); -> o\no: h(); return z",
            """
            for i in x:
                if i:
                    break
                f()
            else:
                g()
            h()
            return z
            """,
            id="else of a loop",
        ),
        pytest.param(
            "l: if x -> b, o\nb: if y -> c, l\nc: f(); if z -> l, o\no: h(); return z",
            """
            while x:
                if y:
                    f()
                    if z:
                        continue
                    break
            h()
            return z
            """,
            id="break",
        ),
        pytest.param(
            "l: if x -> m, o\nm: if y -> b, c\nb: f(); -> m\nc: g(); -> l\no: return z",
            """
            while x:
                while y:
                    f()
                g()
            return z
            """,
            id="a loop in a loop",
        ),
    ],
)
def test_loops(text: str, expected: str) -> None:
    assert structured(text) == dedented(expected)


def test_whether_a_test_was_copied_tells_a_while_from_an_endless_loop() -> None:
    """A compiler that writes the test of a ``while`` twice wrote this one once: it stands in the body."""
    text = "l: if x -> b, o\nb: f(); -> l\no: return z"
    graph, flow = lifted(text, copies_loop_tests=True)
    assert source(structure(graph, flow)).startswith("while True:")
    graph, flow = lifted(text, copies_loop_tests=True)
    flow.copied_tests.add(graph.entry)
    assert source(structure(graph, flow)).startswith("while x:")


TRY = """
    a in h:         f(); -> out
    h under h:      except E -> match, no
    match under h:  BIND h e; g(); POP h; -> out
    no under h:     reraise h
    out:            k(); return z
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            TRY,
            """
            try:
                f()
            except E as e:
                g()
            k()
            return z
            """,
            id="except",
        ),
        pytest.param(
            TRY.replace("a in h:         f(); -> out", "a in h: f(); -> else\nelse: i(); -> out"),
            """
            try:
                f()
            except E as e:
                g()
            else:
                i()
            k()
            return z
            """,
            id="what can raise outside of the region is else",
        ),
        pytest.param(
            """
            a in h:     f(); -> out
            h under h:  except E -> m, h2
            m under h:  BIND h; POP h; -> out
            h2 under h: except F -> n, no
            n under h:  BIND h; raise x
            no under h: BIND h; g(); POP h; -> out
            out:        k(); return z
            """,
            """
            try:
                f()
            except E:
                pass
            except F:
                raise x
            except:
                g()
            k()
            return z
            """,
            id="three clauses",
        ),
        pytest.param(
            """
            l: for i in x -> a, o
            a in h:         f(); -> l
            h under h:      except E -> m, no
            m under h:      BIND h; POP h; -> b
            b:              -> o
            no under h:     reraise h
            o:              k(); return z
            """,
            """
            for i in x:
                try:
                    f()
                except E:
                    break
            k()
            return z
            """,
            id="in a loop that a clause leaves",
        ),
        pytest.param(
            """
            a:          ENTER m as x; -> b
            b in h/1:   f(); -> l
            l:          EXIT a; -> e
            h under h:  swallowed -> y, n
            y under h:  BIND h; POP h; -> e
            n under h:  reraise h
            e:          k(); return z
            """,
            """
            with m as x:
                f()
            k()
            return z
            """,
            id="with",
        ),
    ],
)
def test_protected_regions(text: str, expected: str) -> None:
    assert structured(text) == dedented(expected)


FINALLY = """
    a in h:     f(); -> l
    l leaves h: -> out
    h under h:  g(); reraise h
    out:        k(); return z
"""


def test_a_finally_body_is_written_once() -> None:
    assert structured(FINALLY, ["h"]) == "try:\n    f()\nfinally:\n    g()\nk()\nreturn z"


def test_a_finally_body_that_returns_decides_where_control_goes() -> None:
    text = "a in h: f(); -> l\nl leaves h: overridden\nh under h: g(); POP h; -> r\nr: return z"
    assert structured(text, ["h"]) == "try:\n    f()\nfinally:\n    g()\n    return z"


def test_except_in_finally_is_one_statement() -> None:
    text = """
        a in i:             f(); -> l
        i in h under i:     except E -> m, no
        m in h under i:     BIND i; g(); POP i; -> l
        no in h under i:    reraise i
        l leaves h:         -> out
        h under h:          u(); reraise h
        out:                k(); return z
    """
    assert structured(text, ["h"]) == dedented(
        """
        try:
            f()
        except E:
            g()
        finally:
            u()
        k()
        return z
        """
    )


@pytest.mark.parametrize(
    ("text", "finally_"),
    [
        pytest.param(
            """
            top:            for i in x -> start, out
            start:          -> body
            body in h:      f(); -> out
            h under h:      except E -> match, other
            match under h:  BIND h; if p -> one, two
            one under h:    POP h; -> again
            two under h:    POP h; -> behind
            other under h:  reraise h
            again:          g(); -> top
            behind:         k(); -> out
            out:            return z
            """,
            [],
            id="except",
        ),
        pytest.param(
            """
            top:            for i in x -> start, out
            start:          ENTER m as y; -> body
            body in h:      if p -> one, two
            one:            EXIT start; -> again
            two:            EXIT start; -> behind
            h under h:      swallowed -> yes, no
            yes under h:    BIND h; POP h; -> behind
            no under h:     reraise h
            again:          g(); -> top
            behind:         k(); -> out
            out:            return z
            """,
            [],
            id="with",
        ),
        pytest.param(
            """
            top:            for i in x -> start, out
            start:          -> body
            body in h:      if p -> one, two
            one leaves h:   -> again
            two leaves h:   -> behind
            h under h:      f(); reraise h
            again:          g(); -> top
            behind:         k(); -> out
            out:            return z
            """,
            ["h"],
            id="finally",
        ),
    ],
)
def test_code_behind_the_end_of_a_region_is_never_written_inside_of_it(text: str, finally_: Sequence[str]) -> None:
    """``if p: g(); continue`` would be: ``g()`` with the exception still handled, the manager open, or guarded."""
    with pytest.raises(Unstructured, match="follows the end of the enclosing region"):
        structured(text, finally_)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "a: if p -> c, b\nb: f(); -> c\nc: g(); if q -> d, b\nd: return 5",
            "a second time",
            id="two entries of a loop",
        ),
        pytest.param(
            "a: swallowed -> b, c\nb: return x\nc: return y", "outside of its handler", id="with without a handler"
        ),
    ],
)
def test_what_has_no_form_is_refused(text: str, message: str) -> None:
    with pytest.raises(Unstructured, match=message):
        structured(text)


def test_an_exception_goes_on_by_raise_where_no_statement_does_it() -> None:
    text = TRY.replace("no under h:     reraise h", "no under h: BIND h; g(); reraise h")
    assert "except:\n    g()\n    raise" in structured(text)
