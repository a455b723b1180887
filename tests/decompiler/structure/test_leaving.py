"""Whether control can run off the end of statements."""

from __future__ import annotations

import ast
import sys
import textwrap

import pytest

from depyf.decompiler.structure.leaving import always_matches, fails, leaves

LEAVES = [
    "return",
    "raise E",
    "break",
    "continue",
    "f(); return 1",
    "assert False",
    "if a:\n    return\nelse:\n    raise E",
    "try:\n    return\nexcept E:\n    raise",
    "try:\n    f()\nexcept E:\n    return\nelse:\n    return",
    "try:\n    f()\nfinally:\n    return",
    "while True:\n    f()",
    "while True:\n    for x in a:\n        break",
]
GOES_ON = [
    "",
    "f()",
    "return 1; f()",
    "assert a",
    "assert 0",
    "if a:\n    return",
    "if a:\n    return\nelse:\n    f()",
    "with a:\n    return",  # the manager may swallow an exception
    "try:\n    return\nexcept E:\n    f()",
    "try:\n    f()\nexcept E:\n    return",
    "try:\n    return\nexcept E:\n    return\nelse:\n    f()",
    "for x in a:\n    return",
    "while a:\n    return",
    "while True:\n    break",
    "while True:\n    if a:\n        break",
    "while True:\n    try:\n        f()\n    except E:\n        break",
    "while True:\n    for x in a:\n        f()\n    else:\n        break",
]
MATCHES = {
    "match a:\n    case 1:\n        return\n    case _:\n        return": True,
    "match a:\n    case 1:\n        return\n    case x:\n        return": True,
    "match a:\n    case 1 | _:\n        return": True,
    "match a:\n    case 1:\n        return": False,
    "match a:\n    case 1:\n        f()\n    case _:\n        return": False,
    "match a:\n    case _ if b:\n        return": False,
}


@pytest.mark.parametrize("text", LEAVES)
def test_statements_that_leave(text: str) -> None:
    assert leaves(ast.parse(text).body)


@pytest.mark.parametrize("text", GOES_ON)
def test_statements_that_may_go_on(text: str) -> None:
    assert not leaves(ast.parse(text).body)


@pytest.mark.skipif(sys.version_info < (3, 10), reason="there is no match statement")
@pytest.mark.parametrize("text", MATCHES)
def test_match_leaves_if_all_cases_do_and_one_always_matches(text: str) -> None:
    assert leaves(ast.parse(text).body) is MATCHES[text]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there is no except*")
def test_except_star_is_a_try_statement() -> None:
    text = "try:\n    return\nexcept* E:\n    {}"
    assert leaves(ast.parse(text.format("raise F")).body)
    assert not leaves(ast.parse(text.format("f()")).body)


@pytest.mark.skipif(sys.version_info < (3, 10), reason="there is no match statement")
@pytest.mark.parametrize(
    ("pattern", "expected"), [("_", True), ("x", True), ("(1 | x) as y", True), ("[*_]", False), ("1 as x", False)]
)
def test_patterns_that_always_match(pattern: str, expected: bool) -> None:
    statement: object = ast.parse(textwrap.dedent(f"match a:\n    case {pattern}:\n        pass")).body[0]
    assert always_matches(statement.cases[0].pattern) is expected  # type: ignore[attr-defined]


def test_only_assert_false_fails() -> None:
    assert [fails(statement) for statement in ast.parse("assert False, m\nassert a\nassert None\nf()").body] == [
        True,
        False,
        False,
        False,
    ]
