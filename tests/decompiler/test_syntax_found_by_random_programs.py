"""Syntax that random programs found refused or unproved, shrunk: each program represents a class of them."""

from __future__ import annotations

import ast
import sys
import textwrap
import warnings
from types import CodeType, FunctionType
from typing import Any, List

import pytest

from depyf.decompiler import decompile_code
from depyf.decompiler.result import Decompilation

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
    "a slice of a constant": """
        def program(a):
            a[1j[:]] = 1[::a], 2[1:4, 3]
            return None[1:2]
    """,
    "groups of keyword arguments": """
        def program(k):
            f(1, sep='', **k, end='', **{'file': None})
            f(**k, end='', **{'file': None})
            f(sep='', **{'end': ''})
            f(**k, **{'a b': 1, 'b': 2})
            f(**k, a=1, b=2, **{'x': 3}, **k)
    """,
    "one keyword twice in braces": """
        def program(k):
            f(**{'a': k, 'a': 2})
            f(a=1, **{'a': 2})
    """,
    "one keyword in two groups": """
        def program(k):
            f(a=1, **k, **{'a': 2, 'b': 3})
            f(a=1, **k, b=2, **{'b': 3})
            f(**k, **{'b': k, 'b': 2}, **k)
    """,
    "a variable is exchanged with what is stored to it meanwhile": """
        def program(a, b):
            a, b = b, (b := g())
            b, a = (a := g()), (b := a)
            a, b, c = b, (b := g()), b
            return (lambda: b)
    """,
    "not of and, or not, where that is an operand": """
        def program(a, b, c, d):
            x = (not (a and b) or c or d) and a
            x = (not (not (a and b)) and c or a) and d
            x = (not (not (a and b)) or c and a) and d
            x = (not (a or b) and (not (a and c)) and d) or c
            f(not (not (a and b) or c) or d)
    """,
    "a walrus in a walrus whose value is tested": """
        def program(a, b, c):
            x = [(a := (b := c[0])) or b or f(3)]
            f(x, (a := (b := f(6))) and c, (b := (c := a)) is (b and c) in x)
            return (lambda: (d := (e := a)) and d)
    """,
    "a chain of comparisons that ends in None": """
        def program(a, b, c, d):
            while a is b is None or c:
                f()
            while c and a < b() is not None or d:
                f()
            if not a < b() is not None and c is a is None:
                return [a for a in b if not a is c is not None or a]
            f(c if a is b() is not d < c is None else d, lambda: 1 if a < b is not None else a)
            return a < b is None
    """,
    "a walrus in both arms of a choice": """
        def program(a, b, c):
            x = f((b := f()) if c else (b := a))
            z = ((b := c.d()) if a else (b := c.e())) or x
            while ((b := f()) if c else (b := a)):
                a[(a := b) if a else f() if x else (a := z)] -= x
    """,
    "a choice whose value the outer operators test": """
        def program(a, b, c, d):
            x = ((a if b else c or d) and f()) or d
            x = ((a if b else f() or (c and d)) or c) and d
            x = (((a if b or c else c or d < a < b) and c) or d) and f()
            f(1, ((a or f(1) if b else c if f(2) else a and b) and c) or d)
    """,
    "and, or and comparisons in a choice that is an operand": """
        def program(a, b, c):
            x = (a if b else p() or q()) or c
            y = (p() if a else b and c) or q()
            z = (p() if a else (b or c) and q()) or c
            f((a and b if c else p() and q()) and a)
            f((a or b if c else 0 < p() < c) or q())
            f(a or (b if c else p() or q() or 0 < a < b) or c or x)
            return ((a if b else c) if x else p() or q()) or z
    """,
    "a choice of tests as an operand of a statement, and in a long line": """
        def program(first_argument, second_argument, third_argument, fourth_argument):
            (first_argument if second_argument else third_argument or fourth_argument) or first_argument[0]
            return first_argument or (second_argument or third_argument.x if fourth_argument else first_argument.y or second_argument.z) or third_argument
    """,  # noqa: E501
    "a constant in a choice that is returned as an operand": """
        def program(a, b, c, d):
            if a:
                return b and c and (None if d else a)
            if b:
                return a and c and (d if b else 0)
            try:
                return a or (True if b else c) or d
            except ValueError:
                return b and c and (None if d else a)
    """,
    "not in operands of a value, each tested once": """
        def program(a, b, c, d):
            x = (not a and not b or c) and d
            y = (not a and (not b or not c) or d) and x
            return (not (a or b) or c) and (not (a and b) or (not c and not d or x) and y)
    """,
    "yield in a subscript": """
        def program(x):
            x[(yield)] = yield
            x[(yield 1)] += yield 2
            with (yield) as x.y[(yield)]:
                yield x[(yield from x)]
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
    "a finally that ends in try with clauses and a finally that jumps": """
        def program(a, b):
            while f(2):
                try:
                    return f(4)
                finally:
                    try:
                        f(11)
                    except Alpha:
                        b()
                    finally:
                        f(16)
                        break
            f(19)
    """,
    "equal arms of an operand before raise": """
        def program(a, b, c):
            if a:
                x[y if k else y] = b
                raise b
            if b:
                raise f(b if c else b)
            try:
                f()
            except Alpha:
                if a:
                    x(y if k else y)
                    raise
                if b:
                    x[a if c else a]()
                    raise
                x[y if k else y] = a
                raise f((b if k else b), c)
    """,
    "a value with tests at the end of an except clause": """
        def program(a, b, c):
            try:
                f()
            except Alpha:
                x[a if b else c] = b
            except Beta:
                x[a if b else a] = b
            except Gamma as error:
                f() <= a < b
            except Delta:
                b if c else x
            return a
    """,
    "a value with tests at the end of an except clause and of the function": """
        def program(a, b, c):
            with c:
                try:
                    f()
                except Alpha:
                    x = a < b < c
                except Beta as error:
                    a < b < c
                    return 1
    """,
    "two returns in a try in a finally": """
        def program(a, b):
            try:
                f(2)
            finally:
                try:
                    try:
                        return f(6)
                    except Beta:
                        pass
                    finally:
                        f(12)
                except Alpha:
                    return f(15)
                finally:
                    f(17)
    """,
    "a finally that continues, in a try with finally": """
        def program(a, b):
            try:
                g()
            except Beta as error:
                for a in f(3):
                    try:
                        g()
                    except Alpha:
                        pass
                    finally:
                        f(16)
                        continue
            finally:
                g()
            return a, b
    """,
    "a finally that continues in the body of one that does not": """
        def program(a, b):
            try:
                for a in f(3):
                    try:
                        g()
                    except Beta:
                        pass
                    finally:
                        f(16)
                        continue
            finally:
                g()
            return a, b
    """,
    "a loop that with breaks, in with in try with finally": """
        def program(a, b):
            try:
                with x:
                    while f(4) or (b if b else c):
                        with y:
                            break
            except Exception:
                pass
            finally:
                g()
    """,
    "a loop with else that with breaks, in try with finally": """
        def program(a, b):
            try:
                while f(4) or b:
                    with x:
                        h()
                        break
                else:
                    k()
                k(2)
            finally:
                g()
    """,
    "a loop in a try, around a finally": """
        def program(a, b):
            try:
                while f(5):
                    try:
                        return f(9)
                    except Alpha:
                        pass
                    finally:
                        f(19)
                f(21)
            except Beta:
                pass
            finally:
                f(29)
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
    "an endless loop, all of which is in two try statements": """
        def program():
            while True:
                try:
                    try:
                        f()
                    except Alpha as error:
                        pass
                    finally:
                        g()
                finally:
                    h()
    """,
    "a new list that is returned in a try": """
        def program(a):
            try:
                return [1]
            except E:
                a = yield
            yield
    """,
    "a break behind a loop in a branch": """
        def program(a, b):
            for i in a:
                if i:
                    for j in b:
                        f(j)
                break
            return a
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


if sys.version_info >= (3, 11):  # columns show which of several calls on a line are copies of one
    AUTHORS_TEXT["an operation on a choice in an arm of a choice that is returned"] = """
        def program(a, b, c, d):
            x = lambda: f(b if a else c) if d else a(c if c else b)
            y = lambda x: 1 < (b < a >= c) if x else (b or c).p
            if a:
                return f(b if a else c) if d else a
            if b:
                return f(f(a if b else c)) if d else f(a if d else f(b if d else c))
            if c:
                return f(b if a else c, 1) if d else a(c or b).p
            return (b if a else c).p if d else -(b if c else d)
    """


@pytest.mark.parametrize("name", AUTHORS_TEXT)
def test_it_comes_back_as_it_was_written(name: str) -> None:
    source = textwrap.dedent(AUTHORS_TEXT[name])
    answer = decompiled(source)
    assert answer.verdict.value == "exact", answer.reason
    assert ast.dump(answer.tree) == ast.dump(ast.parse(source)), answer.source


PROVED = {
    "an assert of a constant, whose message is never computed": """
        def program(a, b):
            for x in b:
                assert 'x', [x for y in b]
            assert not '', lambda: a
            assert b or 1, {a: b for y in b}
            return a
    """,
    "one keyword in two groups, the first in braces": """
        def program(x, y):
            f(**{'a': 1}, **{'a': 2})
            f(1, *x, **{'a': x, 'b': y}, **{'a': y})
            f(**{}, **{'a': x}, a=y, **{'a': 3})
    """,
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
    "a finally with try, clauses and a finally that raises": """
        def program(a, b):
            try:
                pass
            except:
                pass
            else:
                return a
            finally:
                for a in f(13):
                    try:
                        f(15)
                    except Beta:
                        pass
                    finally:
                        raise Alpha(26)
    """,
    "a finally that continues in a finally that breaks": """
        def program(a, b):
            for a in f(1):
                try:
                    return f(3)
                finally:
                    try:
                        f(6)
                        break
                    except Beta:
                        try:
                            pass
                        except (Alpha, Beta):
                            pass
                        finally:
                            f(14)
                            continue
    """,
    "a return of a finally in a finally in a loop": """
        def program(a, b):
            try:
                return a
            except Alpha:
                pass
            finally:
                for a in f(8):
                    try:
                        f(9)
                    except Beta:
                        pass
                    finally:
                        return a
    """,
    "a loop in a try, around one with a clause that returns": """
        def program(a, b):
            for a in f(1):
                try:
                    while f(5):
                        try:
                            if f(6):
                                g()
                            continue
                        except Alpha:
                            if f(12):
                                return a
                except Beta:
                    pass
                else:
                    f(19)
                finally:
                    if f(21):
                        break
            f(25)
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
    "operations on constants that a test kept from being folded": """
        def program(a, b):
            if -(1 or a):
                assert +(0 and a), ~(1 if 2.5 else a)
            x = y = -(1.5 or b)
            a[(1 or b) + 1.5] = ('a' or b) + 'b', (2 or b) ** -3, 2 << (3 or b), (b'x' or b) * 3
            return 'abc'[(1 or b)], not (0 and a), -(-1 or b), ~-(1 or b), (1, (0 and a))
    """,
    "a test of a constant first in a with": """
        def program(a):
            for i in a:
                with f(4), f(5):
                    if 0 is not None:
                        a = f(26)
                    else:
                        f(28)
                        continue
                    break
            return a
    """,
    "constants in tests that have no statement": """
        def program(a, b, c, d):
            class Inner:
                if (d or None) and b or c:
                    y = 1
            x = d and d or (a if a and () else c)
            y = [b for i in a if i or (a and 0)]
            z = lambda x: x and d or (a if a and () else c)
            raise (a or c) and (d or () if (True if d else b) else True)
    """,
    "a walrus of a choice that a constant decides, as an operand": """
        def program(a, b, d):
            a = (((lambda: b) if a else (a.p and a and b)) and (not a)) and ((a := (a if True else a)) or f(1))
            return a
    """,
    "and, or in a choice that a constant decides, as operands": """
        def program(a, b, d):
            x = f((d or f(8) if True else f(9) in b) and a, (d and f(8) if 1 else c) or a)
            return (d or x if True else b) and f(10) is not None
    """,
    "and, or in and, or, which a handler does not cover in 3.14": """
        def program(a, b, c, d):
            try:
                x = f(a or (b or c) or d, a and (b and (c or d) and c) and (d or b))
            except a or (b or c) or d:
                x = a and (b and (c and d) and (x or y and z)) and a
            y = [i and (a and b) and {j or (i or a) or b for j in i if f(a and (i and j) and j)} for i in c]
            yield a or (b or (c and d)) or (a and (b and c) and d) or x
            return a or ((b or d) or c if x else (b or (c or d))) or b
    """,
    "tests of constants in targets that are unpacked, in a class": """
        def program(a, b, d):
            class Inner:
                ((None and d and h)[h], (0 is h != f)[d], b,) = h[d or a]
                for [*((-0.0 or b)).r] in []:
                    y = (*((1j and d)).p,) = a
    """,
    "a test that decides nothing, among operands": """
        def program(a, b, c, d):
            def inner():
                nonlocal b
                x = b in (not d) >= ((None if a and 0 else b) and 1)
                return f(x, b() or (not a if d or True else b) or f(5))
    """,
    "a test that decides nothing, among operands of with": """
        def program(a, b, c, d):
            with b() or (f(4) is not None if d or d.p or True else b) or (d is not None and d) as d:
                f(6)
    """,
    "a test that decides nothing, where no temporary can stand": """
        def program(a, b, c, d):
            class Inner:
                if (a and b and b) == (f(3) if (b or 1) else c) or not c:
                    y = 1
                x = f((a() and b) == (f(3) if (b or 1) else c), c() or (None if d and 0 else c))
                z = f(1, (a() if d or 1 else b))
    """,
    "a returned value that a break in a finally in a finally drops": """
        def program(a, b):
            while probe:
                try:
                    probe
                finally:
                    try:
                        if probe:
                            return probe(9)
                    finally:
                        if probe:
                            break
            probe
    """,
    "operands behind a constant that decides, with variables of functions in them": """
        def program(a, b, c, d):
            c = (b and None) and (lambda: d), (a or 1) or (b and d) or (lambda: c)
            b = a and (() and c) and (lambda: d), (a and ()) and (c or d), (a or (1 or c)) or (lambda: c) or d
            with (None and True) and (lambda: a):
                f((() and a and 0) and (not b or d) and (a or (lambda: b) or d))
            b = (() and 1) and d and (lambda: b), (0 or f()) or b or 1 or (lambda: b), () and (1 or d)
            return (a or 'text') or b, a, b, c, d
    """,
    "displays that a constant before them keeps": """
        def program(a, b):
            for x in [a, b()] if True else 0:
                f(x in (() or [a]), a < x not in (0 or []), x in ({1, 2} if True else a) in (1 and [*a, b]))
            for x in 1 and {1, (2, 3)}:
                while a and b < x in (() or [1, 2, 3]) or x:
                    f(y for y in (0 or [a]) if y in [x] not in ([a] if True else b))
            return [{z: x for z in ([1, 2, 3] if True else 0)} for x in ([*a] if True else b) if x not in (1 and [b])]
    """,
    "constants in tests inside of a choice": """
        def program(f, g, h):
            class Inner:
                x = f() if (() if x else (y or 1)) else g()
                if ((0 and z) if y else z) or (y and 0):
                    x = (f() if (() if (-x) else ((f() and y) or (x is None) or 1)) else (f() or (z if g() else h)))
            return [x for x in f() if (() if x else (g or 1))], lambda x: f if (() if x else (g and h or 1)) else h
    """,
    "a list that a conditional operand of or follows, in a finally": """
        def program(a, b):
            try:
                f()
            finally:
                a, b = b, 1
                ([b, 0] or ((f(1) and f(2)) or f(3)))
            return a
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
if sys.version_info >= (3, 10):
    PROVED["a guard with a test that decides nothing"] = """
        def program(a, b, d):
            match f(6) is None:
                case int() if (((d := d) if not f(7) else a or d.p or a) or (a or f(8) or 1)) and not (f(9) or -b):
                    f(10)
                    return
                case None if (a := (not a)):
                    return a
            return (a, b, d)
    """
    PROVED["guards that constants make false"] = """
        def program(a, b, d):
            match f:
                case int() if (0 if f else b):
                    f()
                case 0:
                    raise Alpha
            match d:
                case 0 if f and None:
                    pass
                case int() if d and False:
                    a -= a
                case str() if d and 0:
                    a -= 1
    """


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


def test_a_lambda_beside_one_in_dead_code_keeps_its_qualified_name() -> None:
    """Before 3.11 names are in the code that makes functions, which dead code has none of."""
    answer = decompiled("def program(a):\n    a(lambda: 1)\n    if 0:\n        a(lambda b: 2)\n    return 'end'\n")
    assert answer.verdict.proved, answer.reason
    made: List[Any] = []
    FunctionType(answer.compile_like(), {})(made.append)
    assert made[0].__qualname__ == "program.<locals>.<lambda>"


def decompiled(source: str) -> Decompilation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = compile(source, "<program>", "exec", dont_inherit=True)
        return decompile_code(next(each for each in module.co_consts if isinstance(each, CodeType)))
