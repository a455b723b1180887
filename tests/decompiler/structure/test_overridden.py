"""``finally`` bodies that never end normally: ``return`` stays in its place, and nothing is added."""

from __future__ import annotations

import ast
import sys
from types import CodeType

import pytest

from depyf.decompiler import decompile_code
from depyf.decompiler.result import Verdict

CASES = {
    "a return in a clause that binds the exception": """
def f(a, b):
    for x in a():
        try:
            a.b()
        except ValueError as e:
            return b(e)
        finally:
            try:
                return b()
            except KeyError:
                a.c()
            finally:
                if a.d():
                    continue
            raise TypeError(a, b, a)
    return (a, b)
""",
    "a return in a clause, and in the test of another": """
def f(a, b):
    try:
        a()
    except ValueError:
        if a.b():
            return b()
        a.c()
    finally:
        if a.d():
            b.e()
        raise TypeError(a, b, a)
""",
    "nothing is added behind the clauses": """
def f(a, b):
    try:
        a()
    except ValueError:
        b()
    finally:
        return a
""",
    "two ways to the end of the body": """
def f(a, b):
    try:
        if a():
            b()
        else:
            b.c()
    finally:
        return a.b
""",
    "a finally in the clause": """
def f(a, b):
    try:
        a()
    except ValueError:
        try:
            if b():
                return b.c()
        finally:
            b.d()
    finally:
        return a
""",
    "in a loop": """
def f(a, b):
    for x in a:
        try:
            try:
                return b(x)
            except ValueError:
                if b():
                    return b.a
            finally:
                b.c()
        finally:
            return a
""",
    "continue alone": """
def f(a, b):
    for x in a:
        try:
            a.b()
        except ValueError:
            try:
                return b()
            finally:
                a.c()
        finally:
            continue
""",
    "continue alone behind a with": """
def f(a, b):
    for x in a:
        try:
            with b:
                return b(x)
        finally:
            continue
    b.c()
""",
    "break alone": """
def f(a, b):
    for x in a:
        try:
            try:
                return b(x)
            finally:
                b.c()
        finally:
            break
    b.d()
""",
}


def _function(text: str) -> CodeType:
    (code,) = (each for each in compile(text, "<test>", "exec").co_consts if isinstance(each, CodeType))
    return code


@pytest.mark.parametrize("name", CASES)
def test_the_text_comes_back(name: str) -> None:
    answer = decompile_code(_function(CASES[name]))
    assert answer.verdict in (Verdict.EXACT, Verdict.EQUIVALENT), answer.reason
    assert ast.dump(ast.parse(answer.source)) == ast.dump(ast.parse(CASES[name])), answer.source


SINGLE_LOOPS = {
    "a while": """
def f(a, b):
    while a():
        try:
            a.b()
        finally:
            b()
            break
    return (a, b)
""",
    "a while with else": """
def f(a, b):
    while a():
        try:
            if a.b():
                return b.c()
            a.c()
        finally:
            b()
            break
    else:
        b.d()
    return (a, b)
""",
    "while True": """
def f(a, b):
    for x in a:
        while True:
            try:
                if a.b():
                    return b.c()
                a.c()
            finally:
                b()
                break
        b.d()
""",
    "some ways break": """
def f(a, b):
    while a() and b():
        a.b()
        try:
            a.c()
        finally:
            if b.c():
                break
            b.d()
        return 1
    return (a, b)
""",
}


_OTHER_TEXT = {
    "while True": sys.version_info >= (3, 12) or sys.version_info[:2] == (3, 10),
    "some ways break": sys.version_info < (3, 11),
}
"""Those that come back as a dispatch loop, or with an ``else``."""


@pytest.mark.parametrize("name", SINGLE_LOOPS)
def test_a_loop_that_never_goes_back_is_a_loop_where_finally_breaks_it(name: str) -> None:
    answer = decompile_code(_function(SINGLE_LOOPS[name]))
    assert answer.verdict in (Verdict.EXACT, Verdict.EQUIVALENT), answer.reason
    if not _OTHER_TEXT.get(name):
        assert ast.dump(ast.parse(answer.source)) == ast.dump(ast.parse(SINGLE_LOOPS[name])), answer.source


PROVED = {
    "one of the returns is through two finally bodies": """
def f(a, b):
    try:
        while a():
            try:
                return a.b()
            except ValueError as e:
                b(e)
            finally:
                if a.c():
                    break
                b.a()
            b.b()
        return a
    except TypeError:
        b.c()
    finally:
        b.d()
        return a
""",
    "the end of two copies is shared": """
def f(a, b):
    try:
        return a
    except ValueError:
        a.b()
    finally:
        try:
            a.c()
        except TypeError:
            if b:
                return a
    b()
""",
    "the same in a loop": """
def f(a, b):
    while a():
        try:
            if a.b():
                continue
        except ValueError as e:
            b(e)
        finally:
            try:
                b()
                break
            except:
                if a.c():
                    return b.a()
                return b.b()
    return (a, b)
""",
}


@pytest.mark.parametrize("name", PROVED)
def test_a_return_that_may_be_overridden_is_proved(name: str) -> None:
    answer = decompile_code(_function(PROVED[name]))
    assert answer.verdict in (Verdict.EXACT, Verdict.EQUIVALENT), answer.reason
    assert "__state__" not in answer.source, answer.source
