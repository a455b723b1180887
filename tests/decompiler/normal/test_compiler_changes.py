"""Code of two Pythons is compared modulo what their compilers do differently, and modulo nothing else."""

from __future__ import annotations

from pathlib import Path
from types import CodeType
from typing import Any, Iterator

import pytest

from depyf.decompiler import decompile_code
from depyf.decompiler.bytecode.opcode_table import running_version
from depyf.decompiler.bytecode.pyc import read_pyc
from depyf.decompiler.normal.across import in_common_terms
from depyf.decompiler.normal.compiler_changes import CHANGES
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.verify import compare

HERE = Path(__file__).resolve().parents[1] / "bytecode"
TEXT = (HERE / "changes.py").read_text()


def older() -> Iterator[Any]:
    for path in sorted((HERE / "pycs_of_changes").glob("*.pyc")):
        if read_pyc(path).version < running_version():
            yield pytest.param(path, id=path.stem)


_TESTED_ONCE_AND_TWICE = {"a value is not tested twice", "a value may be tested twice"}


def compiled(text: str) -> CodeType:
    return compile(text, "changes.py", "exec", dont_inherit=True)


@pytest.mark.parametrize("path", list(older()))
def test_what_an_older_python_compiled_is_proved_and_the_changes_are_named(path: Path) -> None:
    pyc = read_pyc(path)
    answer = decompile_code(pyc.code, python="none")
    assert answer.verdict.proved, answer.reason
    between = {change.what for change in CHANGES if pyc.version < change.since <= running_version()}
    if between >= _TESTED_ONCE_AND_TWICE:  # 3.12 dropped the second test, 3.14 may have it again
        between -= _TESTED_ONCE_AND_TWICE
    assert between - set(answer.compiler_changes) <= _NOT_IN_SPECIMEN
    assert all(change in answer.verdict_line() for change in answer.compiler_changes)


_NOT_IN_SPECIMEN = {
    "assert raises AssertionError itself, not the variable",  # it comes back as ``raise``
    "postponed annotations come with an empty set",  # the specimen postpones none: test_postponed_annotations.py
}


@pytest.mark.parametrize("path", list(older()))
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        pytest.param("Its second paragraph", "Its 2nd paragraph", id="docstring of a class"),
        pytest.param("    Its second", "    \\n    Its second", id="another line in a docstring"),
        pytest.param("self.attribute = 1", "self.attribute = 2", id="static attributes"),
        pytest.param("field: int = 3", "field: float = 3", id="annotation of a class"),
        pytest.param("field: int = 3", "field = 3", id="no annotation of a class"),
        pytest.param("field: int = 3", "fields: int = 3", id="annotation of another name"),
        pytest.param('    if field:\n        chosen: str = "x"', '    chosen: str = "x"', id="conditional annotation"),
        pytest.param("x: field,", "x: other,", id="annotation of an argument"),
        pytest.param("*args: int", "*args: float", id="annotation of the other arguments"),
        pytest.param("-> dict", "-> list", id="annotation of the result"),
        pytest.param(" -> dict", "", id="no annotation of the result"),
        pytest.param("counter: int = 0", "counter: str = 0", id="annotation of a module"),
        pytest.param("inner(x: kind) -> kind", "inner(x: kind) -> limit", id="annotation by a local variable"),
        pytest.param("any(x > 1", "all(x > 1", id="another builtin"),
        pytest.param("any(x > 1 for", "any(x < 1 for", id="another generator"),
        pytest.param("tuple(x + 1 for x in xs)", "tuple([x + 1 for x in xs])", id="no generator"),
        pytest.param("list(x.first for x in xs)", "set(x.first for x in xs)", id="another class"),
        pytest.param("set(x.last for x in xs)", "{x.last for x in xs}", id="no call"),
        pytest.param("max(x * 2 for x in xs)", "max(x * 2 for x in iter(xs))", id="an iterator of one's own"),
        pytest.param("y for y in xs.items", "y for y in xs.values", id="another iterable"),
        pytest.param("    import os\n", "    import os.path as os\n", id="another import"),
        pytest.param("{x!s:>30}", "{x!r:>30}", id="another conversion"),
        pytest.param("{x!s:>30}", "{x!s:>31}", id="another format"),
        pytest.param("(x and x.a) or x.b", "(x or x.a) and x.b", id="another test"),
        pytest.param("assert x, ", "assert not x, ", id="another assertion"),
        pytest.param("{1, 2, 3}", "{1, 2, 4}", id="another set"),
        pytest.param("[*x, *x]", "[*x, x]", id="unpacking"),
        pytest.param("{**x}", "{**x, **x}", id="unpacking twice"),
        pytest.param("super()._close()", "super(Annotated, self)._close()", id="super with arguments"),
        pytest.param("[x for x in xs if x]", "[x for x in xs]", id="another comprehension"),
        pytest.param("async with xs", "async with opened", id="another manager"),
    ],
)
def test_a_similar_program_is_not_proved(path: Path, right: str, wrong: str) -> None:
    assert TEXT.count(right) == 1, right
    original = read_pyc(path).code
    assert compare(original, compiled(TEXT)).proved
    assert not compare(original, compiled(TEXT.replace(right, wrong))).proved


def test_nothing_is_bridged_within_one_python() -> None:
    normal, same = lower(compiled(TEXT)), lower(compiled(TEXT))
    assert in_common_terms(normal, same) == (normal, same, frozenset())


@pytest.mark.parametrize("path", list(older()))
def test_text_that_differs_is_shown_with_the_difference_beside_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("depyf.decompiler.normal.across.CHANGES", ())
    answer = decompile_code(read_pyc(path).code, python="none")
    if answer.verdict.proved:
        pytest.skip("these two compilers differ in nothing that the table describes")
    assert not answer.missing
    assert "NotImplementedError" not in answer.source
    assert "# depyf: not proved: " in answer.source
    compiled(answer.source)
