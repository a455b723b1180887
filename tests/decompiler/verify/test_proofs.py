"""Differently written functions that do the same are proved equivalent, and near misses are not."""

from __future__ import annotations

import dis
import textwrap
from types import CodeType
from typing import Dict, Optional, Tuple

import pytest

from depyf.decompiler.hints import Hints
from depyf.decompiler.verify import Comparison, Finding, compare

EQUIVALENT: Tuple[Tuple[str, str, str], ...] = (
    (
        "if and else exchanged",
        """
        def f(x):
            if x:
                return g()
            return h()
        """,
        """
        def f(x):
            if not x:
                return h()
            else:
                return g()
        """,
    ),
    (
        "and as nested ifs",
        """
        def f(x, y):
            if x and y():
                g()
            h()
        """,
        """
        def f(x, y):
            if x:
                if y():
                    g()
            h()
        """,
    ),
    (
        "or as a copied body",
        """
        def f(x, y):
            if x or y:
                g()
            h()
        """,
        """
        def f(x, y):
            if x:
                g()
            elif y:
                g()
            h()
        """,
    ),
    (
        "while as while True",
        """
        def f(x, y):
            while x():
                y()
            return y
        """,
        """
        def f(x, y):
            while True:
                if not x():
                    break
                y()
            return y
        """,
    ),
    (
        "a test of identity that one side makes before the paths meet",
        """
        def f(x, y):
            while x():
                y()
            while x():
                y(y is None)
                y = x()
            return y
        """,
        """
        def f(x, y):
            while x():
                y()
            z = y is None
            while x():
                y(z)
                y = x()
                z = y is None
            return y
        """,
    ),
    (
        "a dispatch loop over a state variable",
        """
        def f(x, y):
            while x():
                if y():
                    continue
                if x():
                    break
            else:
                y()
            return y
        """,
        """
        def f(x, y):
            state = 0
            while True:
                if state == 0:
                    state = 1 if x() else 4
                elif state == 1:
                    state = 0 if y() else 2
                elif state == 2:
                    state = 3 if x() else 0
                elif state == 3:
                    return y
                else:
                    y()
                    state = 3
        """,
    ),
    (
        "a flag for the else of a loop",
        """
        def f(x):
            for i in x:
                if i:
                    break
            else:
                g()
            h()
        """,
        """
        def f(x):
            found = False
            for i in x:
                if i:
                    found = True
                    break
            if not found:
                g()
            h()
        """,
    ),
    (
        "finally as copied tails",
        """
        def f(x, y):
            try:
                x()
            finally:
                y()
            return x
        """,
        """
        def f(x, y):
            try:
                x()
            except:
                y()
                raise
            y()
            return x
        """,
    ),
    (
        "return in try with finally",
        """
        def f(x, y):
            try:
                if x:
                    return x()
                g()
            finally:
                y()
            return 1
        """,
        """
        def f(x, y):
            try:
                if x:
                    return x()
                else:
                    g()
            finally:
                y()
            return 1
        """,
    ),
    (
        "a handler that only raises again",
        """
        def f(x):
            g(x)
        """,
        """
        def f(x):
            try:
                g(x)
            except:
                raise
        """,
    ),
    (
        "a temporary that dies at once",
        """
        def f(x, y):
            z = x(y + 1)
            g()
            return z
        """,
        """
        def f(x, y):
            t = y + 1
            z = x(t)
            del t
            g()
            return z
        """,
    ),
    (
        "a conditional expression as a statement",
        """
        def f(x):
            y = 1 if x is None else 2
            return g(y)
        """,
        """
        def f(x):
            if x is not None:
                y = 2
            else:
                y = 1
            return g(y)
        """,
    ),
    (
        "not in as not of in",
        """
        def f(x, y):
            z = x not in y
            return z
        """,
        """
        def f(x, y):
            z = x in y
            z = not z
            return z
        """,
    ),
    (
        "unpacked arguments that are known",
        """
        def f(x, y):
            return g(*[x, y], **{"k": x})
        """,
        """
        def f(x, y):
            return g(x, y, k=x)
        """,
    ),
    (
        "values shuffled through lists",
        """
        def f(x, y):
            return g([y, x][1], [[x, y]][0].pop(), [x, y][0:1])
        """,
        """
        def f(x, y):
            return g(x, y, [x])
        """,
    ),
    (
        "an exchange through a tuple",
        """
        def f(x, y):
            x, y = y, x
            return g(x, y)
        """,
        """
        def f(x, y):
            t = (y, x)
            x = t[0]
            y = t[1]
            del t
            return g(x, y)
        """,
    ),
    (
        "loops that never end",
        """
        def f(x):
            while True:
                pass
        """,
        """
        def f(x):
            while 1:
                y = 1
        """,
    ),
    (
        "nested functions that are written differently",
        """
        def f(x):
            def inner(a):
                if a:
                    return x
                return a
            return inner
        """,
        """
        def f(x):
            def inner(a):
                if not a:
                    return a
                return x
            return inner
        """,
    ),
    (
        "a cell variable that nothing captures",
        """
        def f(x):
            y = x()
            if 0:
                lambda: y
            return y
        """,
        """
        def f(x):
            y = x()
            return y
        """,
    ),
    (
        "with and a copied tail",
        """
        def f(x):
            with x() as y:
                if y:
                    g(y)
            h()
        """,
        """
        def f(x):
            with x() as y:
                if not y:
                    pass
                else:
                    g(y)
            h()
        """,
    ),
    (
        "a truth on one path, another truth on the other, each with its opposite on the other side",
        """
        def f(a, b):
            if not ((not a) is not (b and a and True) or b):
                raise ValueError
        """,
        """
        def f(a, b):
            if (not a) is (b and a and True) and not b:
                raise ValueError
        """,
    ),
)

NEAR_MISSES: Tuple[Tuple[str, str, str], ...] = (
    (
        "a truth on one path, another truth on the other, where the other side has no opposite",
        """
        def f(a, b):
            if not ((not a) is not (b and a and True) or b):
                raise ValueError
        """,
        """
        def f(a, b):
            if (not a) is not (b and a and True) and not b:
                raise ValueError
        """,
    ),
    (
        "a truth on one path whose opposite is that of the other side on the other path alone",
        """
        def f(a, b, c):
            x = (not a) if c else b is None
            return g(c) if x else h()
        """,
        """
        def f(a, b, c):
            x = (not a) if c else b is not None
            return h() if x else g(c)
        """,
    ),
    (
        "many keywords in another order",
        """
        def f(g, x, y):
            return g(a=x(), b=y(), c=x, d=x, e=x, f=x, h=x, i=x, j=x, k=x, l=x, m=x, n=x, o=x, p=x, q=x, r=x, s=x)
        """,
        """
        def f(g, x, y):
            return g(b=y(), a=x(), c=x, d=x, e=x, f=x, h=x, i=x, j=x, k=x, l=x, m=x, n=x, o=x, p=x, q=x, r=x, s=x)
        """,
    ),
    (
        "many keywords with other values",
        """
        def f(g, x, y):
            return g(a=x(), b=y(), c=x, d=x, e=x, f=x, h=x, i=x, j=x, k=x, l=x, m=x, n=x, o=x, p=x, q=x, r=x, s=x)
        """,
        """
        def f(g, x, y):
            return g(a=y(), b=x(), c=x, d=x, e=x, f=x, h=x, i=x, j=x, k=x, l=x, m=x, n=x, o=x, p=x, q=x, r=x, s=x)
        """,
    ),
    (
        "a keyword that is given later than it is evaluated",
        """
        def f(g, x, y):
            return [g, x(), g(a=y(), c=x, d=x, e=x, f=x, h=x, i=x, j=x, k=x, l=x, m=x, n=x, o=x, p=x, q=x, r=x, s=x)]
        """,
        """
        def f(g, x, y):
            return [g, g(a=x(), c=x, d=x, e=x, f=x, h=x, i=x, j=x, k=x, l=x, m=x, n=x, o=x, p=x, q=x, r=x, s=x), y()]
        """,
    ),
    ("the other branch", "def f(x):\n if x: return 1\n return 2", "def f(x):\n if not x: return 1\n return 2"),
    ("order of calls", "def f(x, y):\n x(); y()", "def f(x, y):\n y(); x()"),
    ("order of evaluation", "def f(x, y):\n return x() + y()", "def f(x, y):\n a = y()\n return x() + a"),
    ("order of operands", "def f(x, y):\n return x - y", "def f(x, y):\n return y - x"),
    ("sign of zero", "def f():\n return 0.0", "def f():\n return -0.0"),
    ("type of a constant", "def f():\n return 1", "def f():\n return True"),
    ("type inside a constant", "def f():\n return (1, 2)", "def f():\n return (1, 2.0)"),
    ("in place", "def f(x, y):\n x += y\n return x", "def f(x, y):\n x = x + y\n return x"),
    ("evaluated twice", "def f(x):\n a = x()\n return a, a", "def f(x):\n return x(), x()"),
    ("tested twice", "def f(x):\n if x: return 1\n return 2", "def f(x):\n if x and x: return 1\n return 2"),
    ("one list or two", "def f(x):\n a = []\n return a, a", "def f(x):\n return [], []"),
    ("list or tuple", "def f(x):\n return [x]", "def f(x):\n return (x,)"),
    (
        "exception or BaseException",
        "def f(x):\n try: x()\n except: pass",
        "def f(x):\n try: x()\n except Exception: pass",
    ),
    (
        "what try covers",
        "def f(x, y):\n try:\n  x()\n  y()\n except E: pass",
        "def f(x, y):\n try: x()\n except E: pass\n else: y()",
    ),
    (
        "finally on return",
        "def f(x, y):\n try:\n  return x()\n finally: y()",
        "def f(x, y):\n try: z = x()\n except: y(); raise\n return z",
    ),
    (
        "context of an exception",
        "def f(x):\n try: x()\n except E: e = 1\n raise X",
        "def f(x):\n try: x()\n except E: raise X",
    ),
    ("raise from", "def f(x, y):\n raise x from y", "def f(x, y):\n raise x"),
    ("break or continue", "def f(x):\n for i in x:\n  if g(i): break", "def f(x):\n for i in x:\n  if g(i): continue"),
    ("else of a loop", "def f(x):\n for i in x: g()\n else: h()", "def f(x):\n for i in x:\n  g()\n  h()"),
    (
        "the wrong flag",
        "def f(x):\n for i in x:\n  if i: break\n else: g()\n h()",
        "def f(x):\n d = False\n for i in x:\n  if i:\n   d = True\n   break\n if d: g()\n h()",
    ),
    (
        "one dispatch too many",
        "def f(x):\n while x(): g()",
        "def f(x):\n s = 0\n while s < 3:\n  if x(): g()\n  else: s += 1",
    ),
    ("a local others can see", "def f(x):\n y = x()\n g()\n return y", "def f(x):\n z = x()\n g()\n return z"),
    ("a local at another time", "def f(x):\n y = 1\n g()\n y = 2\n g()", "def f(x):\n y = 1\n g()\n g()\n y = 2"),
    ("a deleted local", "def f(x):\n y = x()\n del y\n g()", "def f(x):\n y = x()\n g()\n del y"),
    ("may be unbound", "def f(x):\n if x: y = 1\n return y", "def f(x):\n y = None\n if x: y = 1\n return y"),
    ("an argument", "def f(x, y=1):\n return g", "def f(x, *, y=1):\n return g"),
    ("a generator", "def f(x):\n return x\n yield", "def f(x):\n return x"),
    ("the docstring", "def f(x):\n 'one'\n return x", "def f(x):\n 'two'\n return x"),
    ("defaults", "def f(x):\n return lambda a=1: a", "def f(x):\n return lambda a=2: a"),
    ("a nested constant", "def f(x):\n return lambda a: 1", "def f(x):\n return lambda a: 2"),
    ("a nested name", "def f(x):\n def g(): pass\n return g", "def f(x):\n def h(): pass\n return h"),
    ("the captured variable", "def f(x, y):\n return lambda: x", "def f(x, y):\n return lambda: y"),
    (
        "the filter of a comprehension",
        "def f(x):\n return [i for i in x if i is None]",
        "def f(x):\n return [i for i in x if i is not None]",
    ),
    ("keyword names", "def f(x):\n return g(a=x)", "def f(x):\n return g(b=x)"),
    ("keyword order", "def f(x, y):\n return g(a=x(), b=y)", "def f(x, y):\n return g(b=y, a=x())"),
    ("yield in between", "def f(x):\n yield x()\n yield 2", "def f(x):\n y = x()\n yield y\n yield 2"),
    ("for ever if None", "def f(x):\n while x is None: pass\n return 1", "def f(x):\n return 1"),
    ("for ever if not None", "def f(x):\n while x is not None: pass\n g()", "def f(x):\n if x is None:\n  g()"),
    ("for ever or not", "def f(x):\n while True: pass", "def f(x):\n pass"),
    (
        "raise again or new",
        "def f(x):\n try: x()\n except E as e: raise",
        "def f(x):\n try: x()\n except E as e: raise e",
    ),
    ("exit of with", "def f(x):\n with x: g()\n h()", "def f(x):\n with x:\n  g()\n  h()"),
    ("global or local", "def f(x):\n global y\n y = x\n return x", "def f(x):\n y = x\n return x"),
    ("index of a list", "def f(x, y):\n return [x, y][0]", "def f(x, y):\n return [x, y][1]"),
    ("an index out of range", "def f(x):\n return [x][1]", "def f(x):\n return x"),
    ("slice of a list", "def f(x, y):\n return [x, y][:1]", "def f(x, y):\n return [x, y][1:]"),
    ("identity of a truth", "def f(x, y):\n return x is y", "def f(x, y):\n return x is not y"),
)


def code(source: str) -> CodeType:
    """The code object of the first function in ``source``."""
    module = compile(textwrap.dedent(source), "<test>", "exec")
    return next(const for const in module.co_consts if isinstance(const, CodeType))


def compared(original: str, candidate: str, **settings: bool) -> Comparison:
    return compare(code(original), code(candidate), **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("original", "candidate"), [pair[1:] for pair in EQUIVALENT], ids=[pair[0] for pair in EQUIVALENT]
)
def test_what_does_the_same_is_proved(original: str, candidate: str) -> None:
    there = compared(original, candidate)
    assert there.proved, there.reason
    assert there.reason == ""
    back = compared(candidate, original)
    assert back.proved or back.reason.startswith("locals: the candidate has no"), back.reason


@pytest.mark.parametrize(
    ("original", "candidate"), [pair[1:] for pair in NEAR_MISSES], ids=[pair[0] for pair in NEAR_MISSES]
)
def test_what_differs_is_not_proved(original: str, candidate: str) -> None:
    for comparison in (compared(original, candidate), compared(candidate, original)):
        assert not comparison.proved
        assert comparison.reason


@pytest.mark.parametrize("source", [pair[1] for pair in EQUIVALENT + NEAR_MISSES])
def test_everything_is_exactly_itself_and_provably_equivalent(source: str) -> None:
    assert compared(source, source).finding is Finding.EXACT
    assert compared(source, source, always_prove=True).finding is Finding.EQUIVALENT


def test_a_difference_says_what_and_where() -> None:
    original = "def f(x):\n return x.one"
    comparison = compared(original, "def f(x):\n return x.two")
    assert comparison.finding is Finding.DIFFERENT
    assert "attribute 'one'" in comparison.reason
    assert "attribute 'two'" in comparison.reason
    offset = next(each.offset for each in dis.get_instructions(code(original)) if each.opname == "LOAD_ATTR")
    assert f"at offset {offset} (candidate: {offset})" in comparison.reason


def test_a_nested_difference_names_the_nested_function() -> None:
    comparison = compared("def f(x):\n return lambda: x + 1", "def f(x):\n return lambda: x - 1")
    assert comparison.reason.startswith("in f.<locals>.<lambda>: ")
    assert [child.finding for child in comparison.children] == [Finding.DIFFERENT]


def test_corresponding_offsets_cover_stores_and_calls() -> None:
    original = code("def f(x):\n a = 1\n b = x()\n return b")
    candidate = code("def f(x):\n if 1:\n  a = 1\n b = x()\n return b")
    lines: Dict[int, Optional[int]] = {}
    starts, line = dict(dis.findlinestarts(candidate)), None
    for instruction in dis.get_instructions(candidate):
        line = lines[instruction.offset] = starts.get(instruction.offset, line)
    by_line = {lines[theirs] for _, theirs in compare(original, candidate, always_prove=True).pairs}
    assert {4, 5} <= by_line


def test_nested_comparisons_are_children() -> None:
    comparison = compared(
        "def f():\n class A:\n  def m(self): return 1\n return A",
        "def f():\n class A:\n  def m(self): return 1\n return A",
    )
    assert [each.original_name.rpartition(".")[2] for each in comparison.walk()] == ["f", "A", "m"]


def test_where_the_function_stands_does_not_matter_for_classes_inside() -> None:
    inside = "class C:\n def f(self):\n  class D:\n   x = 1\n  return D"
    body = next(const for const in compile(inside, "<test>", "exec").co_consts if isinstance(const, CodeType))
    method = next(const for const in body.co_consts if isinstance(const, CodeType))
    alone = code("def f(self):\n class D:\n  x = 1\n return D")
    assert compare(method, alone).finding is Finding.EXACT


def test_names_that_are_no_identifiers_can_be_renamed() -> None:
    original = code("def f(x):\n ___y = x()\n g()\n return ___y")
    odd = original.replace(co_varnames=("x", "it's y"))
    assert compare(odd, original, renamed={"___y": "it's y"}).finding is Finding.EXACT
    assert not compare(odd, original).proved


def test_temporaries_of_the_original_may_vanish_if_allowed() -> None:
    original, candidate = "def f(x):\n t = 1\n g(x)\n return x", "def f(x):\n g(x)\n return x"
    assert compared(original, candidate).reason == "locals: the candidate has no t"
    assert (
        compare(code(original), code(candidate), hints=Hints(droppable=frozenset({"t"}))).finding is Finding.EQUIVALENT
    )


NEVER_ENTERED = "def f():\n try:\n  try:\n   pass\n  except A as e:\n   g(e)\n except B as e:\n  h(e)\n return {end}"


def test_a_variable_of_a_handler_that_nothing_leads_to_need_not_be_there() -> None:
    original = code(NEVER_ENTERED.format(end=1))
    assert compare(original, code("def f():\n try:\n  pass\n except B as d:\n  h(d)\n return 1")).proved
    assert compare(original, code("def f():\n return 1")).proved


@pytest.mark.parametrize(
    "original",
    [
        NEVER_ENTERED.replace("pass", "k()").format(end=1),
        NEVER_ENTERED.replace("pass", "k").format(end=1),
        NEVER_ENTERED.format(end="e"),
    ],
)
def test_a_variable_that_some_path_binds_or_reads_must_be_there(original: str) -> None:
    missing = original.replace("as e", "as d").replace("(e)", "(d)").replace("return e", "return 1")
    assert not compare(code(original), code(missing)).proved
    assert compare(code(original), code(original)).proved
