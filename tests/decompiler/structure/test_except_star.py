"""``except*`` clauses come back as they were written."""

from __future__ import annotations

import ast
import builtins
import sys
from types import CodeType
from typing import Any, Dict, List, Tuple

import pytest

from depyf.decompiler import decompile_code

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="except* needs 3.11")

CLAUSES = {
    "one clause": ["except* ValueError:", "    handle()"],
    "a name": ["except* ValueError as group:", "    handle(group)"],
    "a name that is not used": ["except* ValueError as group:", "    pass"],
    "nothing is done": ["except* ValueError:", "    pass"],
    "several types": ["except* (ValueError, Other.kind()) as group:", "    handle(group)"],
    "several clauses": [
        "except* ValueError as group:", "    handle(group)", "except* OSError:", "    pass", "except* Other as other:",
        "    handle(other)",
    ],
    "else": ["except* ValueError:", "    handle()", "else:", "    fine()"],
    "finally": ["except* ValueError as group:", "    handle(group)", "finally:", "    close()"],
    "else and finally": ["except* ValueError:", "    handle()", "else:", "    fine()", "finally:", "    close()"],
    "raise": ["except* ValueError as group:", "    raise Other from group"],
    "raise again": ["except* ValueError:", "    print(1)", "    raise"],
    "a condition": ["except* ValueError as group:", "    if group:", "        raise", "    handle(group)"],
    "a loop": ["except* ValueError as group:", "    for error in group.exceptions:", "        handle(error)"],
    "try inside": [
        "except* ValueError as group:", "    try:", "        handle(group)", "    except Other as other:",
        "        handle(other)", "    finally:", "        close()", "except* OSError:", "    handle()",
    ],
    "except* inside": [
        "except* ValueError as group:", "    try:", "        handle(group)", "    except* Other as other:",
        "        handle(other)", "except* OSError:", "    handle()",
    ],
    "with inside": ["except* ValueError as group:", "    with group as entered:", "        handle(entered)"],
}  # fmt: skip


LEAVING = ["try:", "    if y:", "        break", "    x()", "except* A as e:", "    y()"]
MORE = ["except* C:", "    x()"]
IN_ELSE = [
    "try:", "    y()", "except B:", "    x()", "else:", "    try:", "        x()", "    except* A:", "        y()",
]  # fmt: skip


def decompiled(source: str) -> str:
    module = compile(source, "<test>", "exec", dont_inherit=True)
    answer = decompile_code(next(constant for constant in module.co_consts if isinstance(constant, CodeType)))
    assert answer.verdict.proved, answer.reason
    return answer.source


def assert_comes_back(*lines: str) -> None:
    source = "\n".join(lines) + "\n"
    assert ast.dump(ast.parse(decompiled(source))) == ast.dump(ast.parse(source))


@pytest.mark.parametrize("name", CLAUSES)
def test_with_code_behind(name: str) -> None:
    body = ["try:", "    work()", *CLAUSES[name], "behind()"]
    assert_comes_back("def f():", *["    " + line for line in body])


@pytest.mark.parametrize("name", CLAUSES)
def test_at_the_end_of_a_function(name: str) -> None:
    body = ["try:", "    work()", *CLAUSES[name]]
    assert_comes_back("def f():", *["    " + line for line in body])


@pytest.mark.parametrize("name", CLAUSES)
def test_in_a_loop(name: str) -> None:
    body = ["for x in y:", "    try:", "        work(x)", *["    " + line for line in CLAUSES[name]], "    behind(x)"]
    assert_comes_back("def f(y):", *["    " + line for line in body])


@pytest.mark.parametrize("name", CLAUSES)
def test_in_try(name: str) -> None:
    inner = ["try:", "    work()", *CLAUSES[name], "behind()"]
    body = ["try:", *["    " + line for line in inner], "except* Outer as outer:", "    handle(outer)"]
    assert_comes_back("def f():", *["    " + line for line in body])


@pytest.mark.parametrize("leave", ["return x", "return 1", "continue", "break"])
def test_leaving_from_the_body(leave: str) -> None:
    body = ["for x in y:", "    try:", "        if x:", f"            {leave}", "        work(x)"]
    clauses = ["    except* ValueError as group:", "        handle(group)", "    behind(x)"]
    assert_comes_back("def f(y):", *["    " + line for line in [*body, *clauses]])


@pytest.mark.parametrize(
    "body",
    {
        "a loop with one more exit": [
            "while True:",
            "    if x():",
            "        break",
            *["    " + line for line in LEAVING],
        ],
        "try around it": [
            "while True:",
            "    try:",
            *["        " + line for line in LEAVING],
            "    except B:",
            "        y()",
        ],
        "else in a finally": ["try:", "    x()", "finally:", *["    " + line for line in IN_ELSE]],
        "several clauses": [
            "while True:",
            "    if x():",
            "        break",
            *["    " + line for line in [*LEAVING, *MORE]],
        ],
    }.items(),
    ids=lambda item: item[0],
)
def test_the_body_goes_on_elsewhere_than_the_clauses(body: Tuple[str, List[str]]) -> None:
    decompiled("\n".join(["def f(x, y):", *["    " + line for line in [*body[1], "return x"]]]))


def test_the_clauses_run_as_before() -> None:
    source = """
def f(group, log):
    try:
        raise group
    except* ValueError as values:
        log.append(values.exceptions)
    except* OSError:
        log.append('os')
        raise KeyError('new')
"""
    results = []
    for text in (source, decompiled(source)):
        namespace: Dict[str, Any] = {}
        exec(compile(text, "<test>", "exec"), namespace)
        log: List[Any] = []
        errors = [ValueError(1), OSError(2), TypeError(3)]
        group = vars(builtins)["ExceptionGroup"]("g", errors)
        try:
            namespace["f"](group, log)
        except Exception as raised:
            results.append((repr(log), repr(raised)))
    assert len(results) == 2
    assert results[0] == results[1]
    assert results[0][0] == "[(ValueError(1),), 'os']"
    assert "KeyError('new')" in results[0][1]
    assert "TypeError(3)" in results[0][1]
