"""Code moves to a file only when that file compiles to the same bytecode."""

from __future__ import annotations

from types import CodeType, FunctionType

import pytest

from depyf.dynamo.capture.relocate import SourceFile, in_file

SOURCE = "def f(x):\n    y = x + 1\n    return [y * k for k in (1, 2)]\n"


def compiled(source: str, filename: str = "old.py") -> CodeType:
    return next(const for const in compile(source, filename, "exec").co_consts if isinstance(const, CodeType))


def test_same_bytecode_moves_with_its_nested_code_and_keeps_its_name() -> None:
    moved = SourceFile("# a comment\n\nclass C:\n" + "".join(f"    {line}\n" for line in SOURCE.splitlines()), "new.py")
    code = moved.relocated(compiled(SOURCE))
    assert code is not None
    assert (code.co_filename, code.co_firstlineno, code.co_name) == ("new.py", 4, "f")
    assert all(const.co_filename == "new.py" for const in code.co_consts if isinstance(const, CodeType))
    assert FunctionType(code, {})(2) == [3, 6]


@pytest.mark.parametrize(
    ("old", "new"),
    [("x + 1", "x - 1"), ("x + 1", "x + 1.0"), ("x + 1", "x + True"), ("(1, 2)", "(1, 3)"), ("y", "z"), ("x", "w")],
)
def test_anything_that_runs_differently_does_not_move(old: str, new: str) -> None:
    assert SourceFile(SOURCE.replace(old, new), "new.py").relocated(compiled(SOURCE)) is None


def test_zero_and_negative_zero_are_not_the_same() -> None:
    assert SourceFile("def f(): return -0.0\n", "n.py").relocated(compiled("def f(): return 0.0\n")) is None


def test_a_file_that_was_given_another_name_is_named_in_nested_code_too() -> None:
    code = in_file(compiled(SOURCE), "given.py")
    assert {code.co_filename, *(c.co_filename for c in code.co_consts if isinstance(c, CodeType))} == {"given.py"}


def test_equal_code_of_two_files_differs_wherever_it_moves() -> None:
    # debugpy remembers by code object where no breakpoint is, and file names do not count when those are compared.
    first, second = SourceFile(SOURCE, "first.py"), SourceFile(SOURCE, "second.py")
    one, two = first.relocated(compiled(SOURCE)), second.relocated(compiled(SOURCE))
    assert one is not None
    assert two is not None
    nested = [const for code in (one, two) for const in code.co_consts if isinstance(const, CodeType)]
    assert one != two
    assert len(set(nested)) == len(nested)
    assert second.relocated(one) == two
    assert FunctionType(one, {})(2) == FunctionType(two, {})(2) == [3, 6]
