"""Programs of syntax that random ones found refused or unproved, shrunk: each stands for a class of them."""

from __future__ import annotations

import ast
import sys
import textwrap
import warnings
from types import CodeType

import pytest

from depyf.decompiler import decompile_code
from depyf.result import Decompilation

AUTHORS_TEXT = {
    "a test in a target that is unpacked into": """
        def program(a):
            *d, h[b if d else d] = a
            (b == k in d).q, z[f and a:], c = h
            for x[a or b], (c[d if e else f], e[a or b]) in a:
                h[:x if h else a], = g
            b[::f, a or d], k = a
            q, (r, *s[a or b]) = x[a and d] = b
    """,
    "an augmented slice": """
        def program(i, j, **kw):
            x[i:j] += 1
            x[i:] += 1 if i else 2
            x[:j] *= 1
            x[:] @= lambda: i
            x[f():g()].y[h():] |= 3
            x[f() or 1:[i for i in j]] |= 3
            x[lambda: a:] @= d
            x[1:2] += 1
            x[1:2:3] += 3
            x[1:2, 3:] += 3
            while i:
                i[j:] -= 1
    """,
    "an augmented slice in a class": """
        def program():
            class Other:
                b[:] |= b
                b[x:] |= x[1:]
                x
    """,
    "a walrus in the place that is augmented": """
        def program(i, k):
            def other():
                return a
            (a := k).q -= g
            (b := h)[d] += 'text' if a else b
            d[(a := d)] /= list
            x[(i := 1):i] += i
            x[i:(i := 1)] += i
    """,
    "a display that is unpacked into a call": """
        def program(a, b):
            f(**{**a, 'k': b})
            f(c=b, **{**a, 'k': b, 'l': a}, **b)
            f(**{**a})
            f(**a, k=b)
            f(**a, **b)
            f(*[*a, b], **{'x': 1, **a})
            f(*(*a, b), c, **{**a, **b})
    """,
    "a chain of comparisons that nobody uses, between two regions": """
        def program(b):
            try:
                h != b is g < a()
            except Exception as error:
                pass
            try:
                h != b is (g if a else b) < a()
            except Exception as error:
                pass
            try:
                x = h < x < y
            finally:
                with x:
                    z.q = h < x < y
            with x:
                return x < y < z
    """,
    "a list that is dropped at once": """
        def program(d, z):
            try:
                [x.p, a]
            except Alpha:
                []
            finally:
                [y, *z]
            [] if d else z
    """,
    "a comprehension that uses the variable of the one around it": """
        def program(a, d):
            def other(r):
                [i for j in f if r]
                {i for j in g if {a: [a for j in i] for j in d} for i in b}
    """,
    "a comprehension that is awaited": """
        async def program(x):
            await [f async for j in f]
            z = await [f for j in f]
            y = {a: b async for a in await {await c for c in x}}
            await [[d for d in e] async for e in await y]
            return lambda: z
    """,
}
"""Programs by what is in them; the decompiler writes them as their authors did, and the bytecode is the same."""


if sys.version_info >= (3, 10):
    AUTHORS_TEXT["a test for None in a case, in a with, in a try"] = """
        def program(a):
            try:
                with a as r:
                    match q:
                        case 'commit-msg':
                            with a as f:
                                new = f.read()
                            if new is not None:
                                with b as f:
                                    f.write(new)
                        case 'update':
                            Q(r)
            except E as exc:
                return 1
            return z
    """


@pytest.mark.parametrize("name", AUTHORS_TEXT)
def test_it_comes_back_as_it_was_written(name: str) -> None:
    source = textwrap.dedent(AUTHORS_TEXT[name])
    answer = decompiled(source)
    assert answer.verdict.value == "exact", answer.reason
    assert ast.dump(answer.tree) == ast.dump(ast.parse(source)), answer.source


PROVED = {
    "constants in the condition of a comprehension": """
        def program():
            x = {k: b for i in b if (1 if b else g)}
            y = {k for i in b if (1 if b else g)}
            z = (k for i in b if (0 if b else g) or (d if e else 1))
            w = [k for i in b if (c if b else g) and not (1 if d else e)]
            v = {k: i for i in b if c or 10 if d}
    """,
    "names in parts of a lambda or comprehension that are never reached": """
        def program(b, c):
            s = lambda: True or b
            t = lambda x=b: 0 and (b, c)
            u = (z for i in d if 0 if b)
            v = [(z for i in d if 0 if b), [b for q in () if ''], {b: c for q, s in b if None for t in q}]
            w = (0 and b for j in a)
            x = [lambda: 0 and b for j in a]
            y = [b for i in h if () for j in i]
            k(r=[a for i in h if () for j in i])
            with lambda: True or b:
                pass
            def other():
                return [b for i in c if 0 and b], lambda: 0 and c
            return lambda: b
    """,
    "a variable that is stored while its value waits": """
        def program(a, b, c):
            a, b = b, (b := c(a))
            a.x, b = b, (b := c(a))
            a, c, b = b, 1, (b := c(a))
            a, a, b = a, b, (b := (a := c(a)))
            b, a = (b := c(a)), b
            return c(b, (b := c(a)), b)
    """,
    "a chain of targets while a variable that may be unbound waits": """
        def program(b, h):
            g()
            while h(b):
                (a := h).p = d = b
                d = d = a[1]
            try:
                g()
            except B as b:
                pass
    """,
    "a conditional expression as the test of one, in a lambda": """
        def program():
            d = lambda p: (p if (h if g else b) else h.r)
            return [lambda p: (h if (p if g else b) else p) for h in d], lambda: 1 if (h if g else b) else 2
    """,
    "a return behind with, in a branch in a try": """
        def program(a):
            try:
                if f(a):
                    with x:
                        a = d
                    return h
            except E as error:
                h(error)
    """,
    "a return behind with of two managers, in a branch in a try": """
        def program(a):
            try:
                while f(a):
                    with y, x:
                        a = d
                    return h
            except E as error:
                h(error)
    """,
    "a walrus that is returned from a handler": """
        def program(y):
            try:
                g()
            except A:
                return (a := [*k])
            else:
                b = g.q
            d.r = g()
    """,
    "a lambda that is returned in the place of a value": """
        def program():
            try:
                return k
            finally:
                return lambda p: {}
    """,
    "operations on constants in the value of a walrus": """
        def program(a, b):
            a = (b := a(-1))
            a.x = (b := (1, (2, 3)))
            a = c = (b := (not a in b) + 2 * 3)
            a[0] = (b := a in [1, 2])
            a, b = (c := 'ab'[0], -2)
            a.x = (a, b) = (b := (c := -0.0))
            a = (b := lambda: -3)
            if (b := c(-1)):
                return (a := ())
    """,
    "constants that no operand behind them follows, returned in copies": """
        def f(a, b, c, d):
            while a:
                b.x = c
            try:
                if a and b:
                    return a or b or (0 and c)
                b(c)
            except KeyError:
                return a and b and (1 or d)
            return a and b and (b'x' or c)
    """,
}
"""Programs that come back with the same meaning; the bytecode does not show what stood there."""


@pytest.mark.parametrize("name", PROVED)
def test_it_is_proved(name: str) -> None:
    answer = decompiled(textwrap.dedent(PROVED[name]))
    assert answer.verdict.proved, answer.reason


def test_an_ellipsis_in_a_postponed_annotation_of_constants() -> None:
    """Python 3.8 folds the tuple first and keeps the text ``Callable[(Ellipsis, None)]``."""
    source = textwrap.dedent("""
        from __future__ import annotations

        class A:
            x: Callable[..., None] = f
            y: d[1, (2, ...)]

            def m(self, a: Callable[..., None], b: c[Ellipsis, None]) -> Callable[..., 1]:
                pass
    """)
    answer = decompile_code(compile(source, "<program>", "exec", dont_inherit=True))
    assert answer.verdict.value == "exact", answer.reason
    assert ast.dump(answer.tree) == ast.dump(ast.parse(source)), answer.source


def decompiled(source: str) -> Decompilation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = compile(source, "<program>", "exec", dont_inherit=True)
        return decompile_code(next(each for each in module.co_consts if isinstance(each, CodeType)))
