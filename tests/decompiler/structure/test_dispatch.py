"""The dispatch loop, which exists for any control flow: its output, and that ordinary code needs no state variable."""

from __future__ import annotations

import ast
import sys
import textwrap
from types import CodeType
from typing import Any, Dict, List

import pytest
from small_nodes import lifted, source

from depyf.decompiler.flow.copies import undo_copies
from depyf.decompiler.flow.graph import build
from depyf.decompiler.lift.lifter import lift
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.source.printing.statements import unparse
from depyf.decompiler.structure.dispatch.loop import dispatch
from depyf.decompiler.structure.unstructured import Unstructured
from depyf.decompiler.verify import compare


def code_of(body: str, head: str = "def f(a, b, c):") -> CodeType:
    module = compile(head + "\n" + textwrap.indent(textwrap.dedent(body), "    "), "<test>", "exec")
    return next(const for const in module.co_consts if isinstance(const, CodeType))


def dispatched(code: CodeType) -> str:
    flow = build(lower(code))
    undo_copies(flow)
    return text_of(dispatch(lift(flow), flow))


def text_of(statements: List[ast.stmt]) -> str:
    return unparse(ast.fix_missing_locations(ast.Module(statements, []))) or "pass"


def assert_same(body: str, text: str) -> None:
    comparison = compare(code_of(body), code_of(text))
    assert comparison.proved, f"{comparison.reason}\n{text}"


ORDINARY = {
    "branches": "if a:\n    b()\nelif b:\n    c()\nelse:\n    a()\nc()",
    "early returns": "if a:\n    return b\nif b:\n    return c\nc()",
    "while": "while a():\n    if b():\n        continue\n    c()",
    "while, left in its middle": "while a():\n    if b():\n        break\n    c()\na()",
    "for": "for x in a:\n    if x:\n        continue\n    b(x)\nc()",
    "nested loops": "for x in a:\n    while b(x):\n        c(x)\n    a(x)",
    "try": "try:\n    a()\nexcept ValueError as e:\n    b(e)\nexcept TypeError:\n    c()\na()",
    "try in a loop": "for x in a:\n    try:\n        b(x)\n    except ValueError:\n        continue\n    c(x)",
    "retry": "while True:\n    try:\n        return a()\n    except ValueError:\n        b()",
    "finally": "try:\n    a()\nfinally:\n    b()\nc()",
    "finally, left by return": "for x in a:\n    try:\n        return b(x)\n    finally:\n        c()",
    "finally around except": "try:\n    a()\nexcept ValueError:\n    b()\nfinally:\n    c()",
    "finally behind nothing that raises": "x = 1\ntry:\n    x = 2\nfinally:\n    a(x)",
    "with": "with a as x:\n    b(x)\nc()",
    "with, left by return": "with a as x, b as y:\n    return c(x, y)",
    "with in a loop": "for x in a:\n    with b:\n        if x:\n            break\n        c(x)",
    "with around a loop": "with a:\n    while b():\n        c()",
    "return from a handler": "try:\n    a()\nexcept ValueError:\n    return b()\nreturn c()",
    "raise again": "try:\n    a()\nexcept:\n    b()\n    raise",
    "handlers in handlers": "try:\n    a()\nexcept A:\n    try:\n        b()\n    except B:\n        return c()",
    "assert": "assert a, b\nassert c",
    "match": "match a:\n    case [1, x] if x:\n        return x\n    case {'k': 1}:\n        b()\nc()",
    "except*": "try:\n    a()\nexcept* ValueError as e:\n    b(e)\nexcept* TypeError:\n    c()\na()",
}

NEEDS_STATE = {
    "two managers that are left for two targets, in a loop": """
        for x in a:
            with b, c:
                if x:
                    continue
                if c(x):
                    c(x)
                break
        a()
        """,
    "three managers that are left for two targets": """
        for x in a:
            with b, a:
                with c as d, x:
                    if d:
                        break
                    if x:
                        continue
                a(d)
        else:
            b()
        a()
        """,
    "a finally in a manager, left for two targets": """
        for x in a:
            with b:
                try:
                    if x:
                        break
                    b(x)
                finally:
                    c()
                if c(x):
                    break
        else:
            c()
        a()
        """,
    "else of a loop that is left twice": """
        for x in a:
            if x:
                break
            if b(x):
                return x
        else:
            b()
        c()
        """,
    "what follows two ways out of a with": """
        while a():
            with b:
                if c():
                    continue
                if a():
                    break
            c()
        """,
    "else of try": "try:\n    a()\nexcept ValueError:\n    b()\nelse:\n    c()\na()",
    "breaks out of two loops": """
        for x in a:
            for y in x:
                if y:
                    break
            else:
                continue
            b()
            break
        else:
            c()
        """,
    "a manager that may swallow": """
        with a:
            if b():
                return c()
            a()
        return b()
        """,
    "a finally body left by break, to what stands behind the loop": """
        while a():
            try:
                b()
            finally:
                if c():
                    break
                a()
            c()
        b()
        """,
    "a finally body left for two places": """
        while a():
            try:
                if b():
                    continue
            finally:
                if c():
                    break
                try:
                    b()
                finally:
                    if a():
                        continue
            c()
        else:
            a()
        return b()
        """,
}


SINCE = {"match": (3, 10), "except*": (3, 11)}
"""The Python that has the syntax."""


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_code_needs_no_state_variable(name: str) -> None:
    if sys.version_info < SINCE.get(name, (3,)):
        pytest.skip("this Python does not have the syntax")
    text = dispatched(code_of(ORDINARY[name]))
    assert "__state" not in text
    assert_same(ORDINARY[name], text)


@pytest.mark.parametrize("name", NEEDS_STATE)
def test_what_has_no_plain_form_is_proved_too(name: str) -> None:
    assert_same(NEEDS_STATE[name], dispatched(code_of(NEEDS_STATE[name])))


def test_a_loop_that_runs_once_leaves_a_finally_body() -> None:
    """Control goes on behind the statement, where no ``break`` or ``continue`` of the program leads to."""
    text = dispatched(code_of(NEEDS_STATE["a finally body left by break, to what stands behind the loop"]))
    assert "break" in text.partition("finally:")[2]


def test_a_loop_with_two_entries_is_steered_by_the_variable() -> None:
    """The smallest irreducible graph: either of two blocks may come first, and each goes on to the other."""
    text = source(
        dispatch(
            *lifted(
                """
                pick:   if pick() -> one, two
                one:    one(); -> two
                two:    two(); if more() -> one, end
                end:    return 5
                """
            )
        )
    )
    calls: List[str] = []
    answers = iter([False, True, True, False])

    def ask(name: str) -> bool:
        calls.append(name)
        return next(answers)

    namespace: Dict[str, Any] = {
        "one": lambda: calls.append("one"),
        "two": lambda: calls.append("two"),
        "pick": lambda: ask("pick"),
        "more": lambda: ask("more"),
    }
    exec("def f():\n" + textwrap.indent(text, "    "), namespace)
    assert namespace["f"]() == 5
    assert calls == ["pick", "two", "more", "one", "two", "more", "one", "two", "more"]
    assert text.count("one()") == text.count("two()") == 1


def test_each_node_is_written_once_however_many_ways_lead_to_it() -> None:
    """A ladder of tests that all jump to the same few places would double with every copy."""
    count = 60
    rungs = [f"n{id}: s{id}(); if t{id}() -> n{id + 1}, n{min(id + 2, count)}" for id in range(count)]
    text = source(dispatch(*lifted("\n".join([*rungs, f"n{count}: end(); return None"]))))
    assert all(text.count(f"s{id}()") == 1 for id in range(count))
    assert max(len(line) - len(line.lstrip()) for line in text.splitlines()) < 4 * 60


def test_a_class_body_gets_no_variable_of_ours() -> None:
    code = code_of(
        """
        for x in range(3):
            try:
                y = x
            except ValueError:
                z = 1
            else:
                w = 1
        else:
            v = 1
        if v:
            pass
        """,
        "class A:",
    )
    try:
        text = dispatched(code)
    except Unstructured:
        return
    assert "__state" not in text
