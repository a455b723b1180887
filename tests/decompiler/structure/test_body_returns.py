"""Classes and modules whose bytecode returns inside of statements, where ``return`` is not allowed."""

from __future__ import annotations

import sys
import textwrap

import pytest

from depyf.decompiler import decompile_code

SHAPES = [
    """
    try:
        for x in f1():
            assert f4()
    finally:
        raise f18()
    """,
    """
    if f1():
        f2()
    else:
        for x in f5():
            f6()
        else:
            try:
                f7()
            finally:
                raise f9()
    if f11():
        assert f14()
    """,
    """
    with f1():
        try:
            f2()
        finally:
            raise f3()
    f4()
    """,
    """
    while f1():
        try:
            f2()
        finally:
            raise f3()
    """,
    """
    try:
        try:
            f1()
        except E as e:
            f2()
    finally:
        raise f3()
    """,
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("head", ["", "class C:\n"])
def test_the_end_of_a_class_or_module_is_reached_without_a_return(shape: str, head: str) -> None:
    if head and "else:\n            try" in shape and sys.version_info >= (3, 13):
        pytest.skip("what the compiler stores at the end of a class stands in one arm")
    text = head + textwrap.indent(textwrap.dedent(shape), "    " if head else "")
    answer = decompile_code(compile(text, "<module>", "exec", dont_inherit=True))
    assert answer.verdict.proved, answer.reason
    compile(answer.source, "<again>", "exec")
