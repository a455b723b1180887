"""Code compiled in any mode is decompiled: expressions, interactive input, modules that await."""

from __future__ import annotations

import ast
import asyncio
import sys
import types
import warnings
from types import CodeType
from typing import Any, Dict, List, Tuple

import pytest

from depyf.decompiler import decompile_code
from depyf.decompiler.normal.modes import Mode

EXPRESSIONS = [
    "n + 1",
    "None",
    "'text'",
    "n and None",
    "none or 1",
    "n and none or 3",
    "n and 3 or (f if none else 4)",
    "[x * y for x in items for y in items if x]",
    "(lambda x, y=n: (x, y, n))(1)",
    "sum(x for x in items)",
    "0 < n < 3 in items",
    "n == (lambda: n) == none",
    "f(*items, **{'k': (w := 3)}), w",
    "f'{n!r:>{n}} {items}'",
    "(lambda: [x for x in (lambda: items)()])()",
    "list((lambda: (yield n))())",
    "{**{1: n}, 2: none}[1:] if none else (1, 2, (3, None))",
]

TYPED = [
    *EXPRESSIONS,
    "x = n; x; n; x + 1",
    "'first'; x = 1; x",
    "__doc__ = 'x'; __doc__",
    "if n:\n    n\n    1\nelse:\n    none",
    "for x in items:\n    x\n    if x > 1: break\nelse:\n    'else'",
    "try:\n    n\n    none.missing\nexcept AttributeError as e:\n    type(e)\nfinally:\n    'end'",
    "class A:\n    'doc'\n    n\n    def f(self):\n        n\n        return self\n\n    def g(self): return 1",
    "def g(x=n):\n    x\n    return x\n",
    "x: int = n",
    "x = '''two\nlines'''; x",
    "0 < n < 3; (w := 4); w",
    "import math; math",
    "pass; del n; items",
    "assert n, none",
]

AWAITING = [
    "await answer(n)",
    "x = await answer(n); await answer(x)",
    "async for x in stream(items):\n    await answer(x)\n    if x == 2: break\nelse:\n    await answer('else')",
    "async with manager as x:\n    await answer(x)",
    "[await answer(x) async for x in stream(items) if await answer(x)]",
    "try:\n    await answer(1 / 0)\nexcept ArithmeticError:\n    await answer('no')\nfinally:\n    await answer('end')",
    "if await answer(n): await answer('yes')\nelse: await answer('no')",
    "await answer(0) < await answer(n) < await answer(3)",
    "(await answer(1), [await answer(2)], f(*await answer(items)))",
    "async def g():\n    return await answer(1)\nawait g()",
]

FLAG = getattr(ast, "PyCF_ALLOW_TOP_LEVEL_AWAIT", 0)


class Manager:
    async def __aenter__(self) -> str:
        return "entered"

    async def __aexit__(self, *error: Any) -> None:
        return None


def run(code: CodeType) -> Tuple[Any, List[Any], List[str]]:
    """What ``code`` gives, what it shows or awaits, and the names that it leaves."""
    seen: List[Any] = []

    async def answer(value: Any) -> Any:
        seen.append(value)
        return value

    async def stream(values: Any) -> Any:
        for value in values:
            yield value

    helpers: Dict[str, Any] = {"answer": answer, "stream": stream, "manager": Manager()}
    names: Dict[str, Any] = {**helpers, "n": 2, "none": None, "items": [1, 2, 3], "f": lambda *a, **k: (a, k)}
    hook, sys.displayhook = sys.displayhook, seen.append
    try:
        result = eval(code, names)
        if code.co_flags & 0x80:
            result = asyncio.run(result)
    finally:
        sys.displayhook = hook
    return repr(result).split(" at 0x")[0], [repr(value).split(" at 0x")[0] for value in seen], sorted(names)


def is_the_same(text: str, mode: str, flags: int = 0) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            code = compile(text, "<typed>", mode, flags, True)
        except SyntaxError:
            pytest.skip("this Python has no such syntax, or not in this mode")
        answer = decompile_code(code)
        assert answer.verdict.proved, answer.reason
        again = compile(answer.source, "<decompiled>", answer.text.mode.value, flags, True)
    assert run(again) == run(answer.compile_like()) == run(code)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression(text: str) -> None:
    is_the_same(text, "eval")


@pytest.mark.parametrize("text", TYPED)
def test_what_is_typed_at_a_prompt(text: str) -> None:
    is_the_same(text, "single")


@pytest.mark.parametrize("mode", ["exec", "eval", "single"])
@pytest.mark.parametrize("text", AWAITING)
def test_what_awaits_outside_of_a_function(text: str, mode: str) -> None:
    is_the_same(text, mode, FLAG)


def test_the_answer_says_which_mode_its_text_is_for() -> None:
    modes = {mode: decompile_code(compile("f(1)", "<typed>", mode.value)).text.mode for mode in Mode}
    assert modes == {mode: mode for mode in Mode}


@types.coroutine
def waits(value: Any) -> Any:
    received = yield value
    if received:
        return received
    return (yield from waits(1))


def test_a_generator_that_may_be_awaited_is_no_async_def() -> None:
    answer = decompile_code(waits.__code__)
    assert answer.verdict.proved, answer.reason
    assert answer.source.startswith("@types.coroutine\ndef waits(value")
    assert answer.compile_like().co_flags == waits.__code__.co_flags
