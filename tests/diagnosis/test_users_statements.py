"""What the statement of a line is: of texts, and with the stacks that PyTorch reports."""

from __future__ import annotations

import textwrap

import pytest

from depyf.diagnosis.users_statements import BranchKind, Handler, branch_at, handler_around, no_text, random_number_at

TRIES = textwrap.dedent("""
    import contextlib
    def outer(x):
        try:
            return inner(x)
        except (OSError, LookupError):
            return fail(x)
    def inner(x):
        with contextlib.suppress(RuntimeError), open("f"):
            x.view(7)
        try:
            def nested(x):
                return x[7]
        except IndexError:
            pass
        finally:
            x.sum()
        return nested(x)
    def all_errors(x):
        try:
            x = x[7]
        except:
            x = x[8]
""")


@pytest.mark.parametrize(
    ("lines", "error", "handler"),
    [
        ((5,), "IndexError", Handler("m.py:4", "LookupError")),
        ((5,), "RuntimeError", None),
        ((7,), "IndexError", None),  # raised by the handler
        ((10,), "RuntimeError", Handler("m.py:9", "RuntimeError")),
        ((10,), "IndexError", None),
        ((13,), "IndexError", None),  # the call of the nested function is not in the try
        ((17,), "IndexError", None),
        ((5, 13), "IndexError", Handler("m.py:4", "LookupError")),
        ((21,), "ValueError", Handler("m.py:20", "Exception")),
        ((23,), "ValueError", None),
    ],
)
def test_the_handler_of_the_program(lines: tuple, error: str, handler: object) -> None:  # type: ignore[type-arg]
    stack = [("/a/m.py", line, "f") for line in lines]
    assert handler_around(stack, error, lambda path: TRIES) == handler
    assert handler_around(stack, error, no_text) is None
    assert handler_around(stack, error, lambda path: "no Python (") is None


def test_what_a_branch_does() -> None:
    text = (
        "if a:\n    raise b\nif c:\n    raise d\nelse:\n    e()\nwhile f:\n    if g:\n        pass\nx = h if i else j\n"
    )
    kinds = [branch_at([("m.py", line, "f")], lambda path: text) for line in (1, 3, 7, 8, 10)]
    assert kinds == [BranchKind.RAISE, BranchKind.OTHER, BranchKind.WHILE, BranchKind.OTHER, BranchKind.OTHER]
    assert branch_at([], no_text) is BranchKind.OTHER


def test_which_random_number_a_line_uses() -> None:
    text = textwrap.dedent("""
        def f(x):
            k = random.randint(0, 3)
            y = torch.randint(3)
            x = x[k:]
            for _ in range(random.randrange(4)):
                x = x + y
            if x.random():
                return k
        k = random.random()
        k + 1
    """)
    used = [random_number_at([("m.py", line, "f")], lambda path: text) for line in range(4, 12)]
    assert used == [
        "",
        "k, of random.randint in line 3",
        "random.randrange in line 6",
        "",
        "",
        "k, of random.randint in line 3",
        "",
        "",
    ]
    assert random_number_at([], no_text) == ""
