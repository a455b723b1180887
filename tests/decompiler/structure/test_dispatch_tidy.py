"""The dispatcher's output without empty branches and redundant jumps."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from small_graphs import FUNCTION, MODULE
from small_nodes import dedented, lifted, source

from depyf.decompiler.structure.dispatch.contexts import Contexts
from depyf.decompiler.structure.dispatch.states import States
from depyf.decompiler.structure.dispatch.tidy import Tidy
from depyf.decompiler.structure.unstructured import Unstructured


def tidied(text: str, code: Any = FUNCTION) -> str:
    states = States(Contexts(*lifted("a: return None")))
    return source(Tidy(states).whole(ast.parse(dedented(text)).body, code))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("while True:\n    if a:\n        break\n    f()", "while not a:\n    f()", id="while"),
        pytest.param(
            "while True:\n    if a:\n        break\n    else:\n        f()\n    g()",
            "while not a:\n    f()\n    g()",
            id="while, with an else",
        ),
        pytest.param(
            "while True:\n    if a:\n        f()\n        break",
            "while True:\n    if a:\n        f()\n        break",
            id="something is done before the loop is left",
        ),
        pytest.param("for i in x:\n    f()\n    continue", "for i in x:\n    f()", id="continue at the end"),
        pytest.param(
            "for i in x:\n    if a:\n        f()\n        continue\n    else:\n        g()",
            "for i in x:\n    if a:\n        f()\n        continue\n    g()",
            id="continue in front of something",
        ),
        pytest.param("f()\nreturn", "f()", id="return at the end"),
        pytest.param("f()\nreturn None", "f()", id="return None at the end"),
        pytest.param("f()\nreturn 1", "f()\nreturn 1", id="a value is returned"),
        pytest.param(
            "if a:\n    f()\n    return\nelse:\n    g()\n    return",
            "if a:\n    f()\n    return\ng()",
            id="else of return",
        ),
        pytest.param(
            "try:\n    f()\n    return\nexcept E:\n    g()\n    return",
            "try:\n    f()\nexcept E:\n    g()",
            id="return in a try",
        ),
        pytest.param(
            "try:\n    f()\n    return\nfinally:\n    g()",
            "try:\n    f()\n    return\nfinally:\n    g()",
            id="return in front of a finally body",
        ),
        pytest.param(
            "try:\n    try:\n        f()\n    except E:\n        g()\nfinally:\n    h()",
            "try:\n    f()\nexcept E:\n    g()\nfinally:\n    h()",
            id="one try statement",
        ),
    ],
)
def test_tidied(text: str, expected: str) -> None:
    assert tidied(text) == expected


def test_a_return_in_the_middle_of_a_module_has_no_form() -> None:
    with pytest.raises(Unstructured, match="returns before the end"):
        tidied("if a:\n    return\nf()", MODULE)
