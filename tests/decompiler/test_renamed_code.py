"""Code whose names do not fit, as obfuscators leave it: placeholders in the text, and proved with its own names."""

from __future__ import annotations

import importlib.util
import inspect
import marshal
import sys
from types import CodeType
from typing import Any, Callable, Dict, List, Sequence

import pytest

from depyf.decompiler import Verdict, decompile_code
from depyf.decompiler.bytecode.code import PortableCode, nested_codes
from depyf.decompiler.pipeline.reading import module_in
from depyf.decompiler.pipeline.renamed_code import may_not_fit, with_fitting_names
from depyf.decompiler.source.compiling.placeholders import Kind
from depyf.decompiler.verify import Finding, compare

SOURCE = """
def outer(a, b=2):
    total = a + b
    def inner(y):
        return total + y
    class K(object):
        def method(self):
            return self
        attribute = 3
    return inner, K
def decorated(x):
    return x
@decorated
def last(p, q=1):
    r = p * q
    return r
"""
MODULE = compile(SOURCE, "m.py", "exec", dont_inherit=True)


def renamed(code: CodeType, name: Callable[[CodeType], str], fields: Sequence[str] = ("co_name",)) -> CodeType:
    """Return ``code`` with other names in it; the name of the module stays."""
    changes: Dict[str, Any] = {
        "co_consts": tuple(
            renamed(each, name, fields) if isinstance(each, CodeType) else each for each in code.co_consts
        )
    }
    if code.co_name != "<module>":
        changes.update((field, name(code)) for field in fields if hasattr(code, field))
    return code.replace(**changes)


def names(code: Any) -> List[str]:
    return sorted(each.co_name for each in nested_codes(code))


@pytest.mark.parametrize("name", ["", "a b", "if", "a\0b", "\udc80", "1", "é\u0301", "<module>", "outer"])
@pytest.mark.parametrize("fields", [("co_name",), ("co_name", "co_qualname")], ids=" ".join)
def test_code_of_any_name_is_placeholders_and_compiles_to_the_same_names(name: str, fields: Sequence[str]) -> None:
    code = renamed(MODULE, lambda each: name, fields)
    answer = decompile_code(code)
    assert answer.verdict is Verdict.PLACEHOLDERS, answer.reason
    assert not answer.missing
    for line in ("def outer(a, b=2):", "    def inner(y):", "    class K(object):", "def last(p, q=1):"):
        assert line in answer.source.splitlines()
    given = {each.name: each.value for each in answer.placeholders if each.kind is Kind.CODE_NAME}
    assert set(given.values()) == {name}
    assert {"outer.<locals>.inner", "outer.<locals>.K.method", "last"} <= set(given)
    again = answer.compile_like()
    assert names(again) == names(code)
    assert compare(code, again).proved


def test_names_of_others_are_put_back_one_by_one() -> None:
    code = renamed(MODULE, lambda each: f"f{len(each.co_code)} {each.co_firstlineno}")
    answer = decompile_code(code)
    assert answer.verdict is Verdict.PLACEHOLDERS
    assert names(answer.compile_like()) == names(code)


def test_one_name_for_all_variables() -> None:
    def last(code: CodeType) -> CodeType:
        made = next(each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == "last")
        new = made.replace(co_varnames=("O",) * 3)
        return code.replace(co_consts=tuple(new if each is made else each for each in code.co_consts))

    code = last(MODULE)
    answer = decompile_code(code)
    assert answer.verdict is Verdict.PLACEHOLDERS, answer.reason
    assert "def last(O, O_1=1):\n    O_2 = O * O_1\n    return O_2" in answer.source
    assert [str(each) for each in answer.placeholders] == [
        "O_1 in last is the name 'O'",
        "O_2 in last is the name 'O'",
    ]
    assert compare(code, answer.compile_like()).proved


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("total + y", "total - y"),
        ("attribute = 3", "attribute = 4"),
        ("p * q", "q * p"),
        ("return inner, K", "return K"),
    ],
)
def test_other_source_is_not_proved_with_the_names_put_back(wrong: str, right: str) -> None:
    code = renamed(MODULE, lambda each: "O" + each.co_name)
    fitting = with_fitting_names(code)
    assert fitting is not None
    assert compare(code, fitting.undone(MODULE)).proved
    assert SOURCE.count(wrong) == 1
    other = fitting.undone(compile(SOURCE.replace(wrong, right), "m.py", "exec", dont_inherit=True))
    assert compare(code, other).finding is Finding.DIFFERENT


def test_exchanged_names_are_told_apart() -> None:
    exchanged = {"last": "decorated", "decorated": "last"}
    code = renamed(MODULE, lambda each: exchanged.get(each.co_name, each.co_name))
    answer = decompile_code(code)
    assert answer.verdict is Verdict.PLACEHOLDERS
    assert {each.name: each.value for each in answer.placeholders} == exchanged
    assert not compare(code, MODULE).proved


def test_what_a_compiler_made_needs_no_other_names() -> None:
    for module in (inspect, sys.modules[__name__], __import__("functools"), __import__("typing"), __import__("enum")):
        text = inspect.getsource(module)
        code = compile(text, "m.py", "exec", dont_inherit=True)
        assert not may_not_fit(code)
        assert with_fitting_names(code) is None


def test_one_name_for_several_functions_that_were_different_is_none() -> None:
    source = "def f(): return 1\nf()\ndef f(): return 2\n"
    numbers = iter("ab")
    code = renamed(compile(source, "m.py", "exec", dont_inherit=True), lambda each: next(numbers))
    assert with_fitting_names(code) is None


@pytest.mark.parametrize("name", ["", "obfuscated", "<frozen>"])
def test_the_code_of_a_file_is_a_module_whatever_its_name(name: str) -> None:
    data = importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(MODULE.replace(co_name=name))
    pyc = module_in(data, "m.pyc")
    assert pyc.remarks == (f"its code is called {name!r}, and was read as <module>",)
    assert decompile_code(pyc.code).verdict is Verdict.EXACT
    assert isinstance(pyc.code, PortableCode)


@pytest.mark.parametrize("filename", ["", "a\0b", "\udc80", "<string>", "../../etc/passwd"])
def test_the_name_of_the_file_is_no_part_of_the_text(filename: str) -> None:
    def changed(code: CodeType) -> CodeType:
        inner_codes = tuple(changed(each) if isinstance(each, CodeType) else each for each in code.co_consts)
        return code.replace(co_filename=filename, co_consts=inner_codes)

    answer = decompile_code(changed(MODULE))
    assert answer.verdict is Verdict.EXACT
    assert answer.source == decompile_code(MODULE).source
