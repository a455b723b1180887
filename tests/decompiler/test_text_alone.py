"""The shown text is what was proved: it alone compiles to the original, or the verdict says what is missing."""

from __future__ import annotations

import importlib.util
import marshal
import math
import sys
import warnings
from pathlib import Path
from types import CodeType
from typing import Any, Dict, List

import pytest
from corpus import code_of_function, compile_corpus, corpus_files

from depyf.cli import main
from depyf.decompiler import decompile_code
from depyf.decompiler.result import Decompilation, Verdict
from depyf.decompiler.verify import compare

POSTPONED = "from __future__ import annotations\n"
FLUFL = "from __future__ import barry_as_FLUFL\n"
NOT_EQUAL = "<>" if sys.version_info >= (3, 14) else "!="  # before, the import itself does not change its module

MODULES = [
    POSTPONED + "class C:\n    def m(self, __x: __Secret) -> list[__C]: pass\n",
    POSTPONED + "class C:\n    x: list[__C]\n    __y: __C = 1\n    def m(self): z: __C = 2\n",
    POSTPONED + "class _C:\n    class D:\n        async def m(self, *__a: __A, __b: _C.__B, **__c: 'a b'): pass\n",
    POSTPONED
    + "def f():\n    class C:\n        x: __C\n        def m(self, x: __C): return eval('__C')\n    return C\n",
    "class C:\n    def m(self, __x: __Secret) -> '__C': return self.__x\n",
    "x = 1e309 - 1e309\n",
    "x = -(1e309 - 1e309), 1e309j - 1e309j, (1e309 - 1e309) * 1j, -1e309, -0.0\n",
    "def f(x=1e309 - 1e309):\n    return x in {1, 1e309 - 1e309}\n",
    "def f(x):\n    try:\n        return x\n    finally:\n        x(1e309 - 1e309)\n",
    "def f():\n    return eval('1')\n",
    "from __future__ import division, annotations\ndef f(x: __T):\n    return eval('1')\n",
    f"{FLUFL}print(1 {NOT_EQUAL} 2)\n",
    f"{FLUFL}def f(a, b):\n    return eval('a'), a {NOT_EQUAL} b, f'{{a {NOT_EQUAL} b!r}}'\n",
    f"{FLUFL}class C:\n    def m(self, a: 'b') -> 1 {NOT_EQUAL} 2: return [a for b in a if b {NOT_EQUAL} '!=']\n",
    "x = f'''{\"\"\"a\n\tb'c\"\"\".join(y)!r:>{w}}'''\n",
    "x = '%-5.2r|%s' % ('\\\\'.join(y), '\\r' + z)\n",
    "x = '\\ud800', b'\\xff', 1 << 9999, {'\\0': ...}\n",
    "class C:\n    MESSAGE = __doc__ = 'text'\n",
    "class C:\n    __doc__ = MESSAGE = 'text'\n",
    "X = __doc__ = 'x'\n",
    "__doc__ = X = 'x'\n",
    "__doc__ = '\\n    kept\\n      as it is\\n'\nclass C:\n    __doc__ = '\\n    kept\\n'\n    x = 1\n",
    "class C:\n    a = __doc__ = __qualname__ = __module__ = 'C'\n",
    "class C:\n    __type_params__ = 1\n    __classdict__ = 2\n    __conditional_annotations__ = 3\n    x = 4\n",
    "class C:\n    x = 1\n    __static_attributes__ = ('a',)\n    __classdictcell__ = 2\n    __classcell__ = None\n",
    "__conditional_annotations__ = 1\nx = 2\n",
]
GENERIC = [
    "class C[__T](B[__T], __D):\n    x: __T\n    def __f(self, a: __T) -> __C: return __T\n",
    "class C:\n    type __A[__T] = dict[__T, __A]\n    def f[__T: __B](self, x: __T): return __T\n",
]


@pytest.mark.parametrize("text", MODULES + (GENERIC if sys.version_info >= (3, 12) else []))
def test_the_text_of_a_module_by_itself_is_the_module(text: str) -> None:
    code = compile(text, "<module>", "exec", dont_inherit=True)
    answer = decompile_code(code)
    assert answer.verdict is Verdict.EXACT, (answer.source, answer.reason)
    check_alone(answer)


@pytest.mark.parametrize("file", corpus_files())
def test_the_text_of_a_corpus_file_by_itself_is_the_file(file: str) -> None:
    answer = decompile_code(compile_corpus(file))
    assert answer.verdict.proved
    check_alone(answer)


@pytest.mark.parametrize(
    "text",
    [
        POSTPONED + "def f(x):\n    class C:\n        y: __T\n    return eval(x)\n",
        POSTPONED + "def f(a, compile='all'):\n    return lambda: a(eval=compile)\n",
        *MODULES[-3:],
    ],
)
def test_the_text_of_what_stands_in_a_module_is_that_with_the_imports_it_needs(text: str) -> None:
    module = compile(text, "<module>", "exec", dont_inherit=True)
    for code in module.co_consts:
        if isinstance(code, CodeType):
            answer = decompile_code(code)
            assert answer.verdict.proved, answer.reason
            again = code_of_function(compile(answer.source, "<again>", "exec", dont_inherit=True), code.co_name)
            assert compare(code, again).proved


def check_alone(answer: Decompilation) -> None:
    assert answer.placeholders == ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = compile(answer.source, "<again>", "exec", dont_inherit=True)
    comparison = compare(answer.code, again)
    assert comparison.proved, comparison.reason


def plain(a: Any) -> Any:
    return a.attribute, 12345, math


def odd(**changes: Any) -> CodeType:
    """The code of ``plain`` with other constants and names: nothing that a text can say."""
    code: CodeType = plain.__code__
    fields: Dict[str, Any] = {}
    for field in ("co_consts", "co_names", "co_varnames"):
        old = getattr(code, field)
        fields[field] = tuple(changes.get(str(value), value) for value in old)
    return code.replace(**fields)


@pytest.mark.parametrize(
    ("changes", "listed"),
    [
        ({"12345": math}, ["__const_math_0 is the module math"]),
        ({"12345": plain.__code__}, ["__const_code_0 is the code of plain"]),
        ({"12345": object()}, ["__const_object_0 is <object object>"]),
        ({"attribute": "a-b"}, ["a_b is the name 'a-b'"]),
        ({"a": "L['x']"}, ["L_x is the name \"L['x']\""]),
        ({"a": "class", "12345": frozenset({1})}, ["__const_frozenset_0 is a frozenset", "class_ is the name 'class'"]),
    ],
)
def test_what_a_text_cannot_say_is_listed_beside_it(changes: Dict[str, Any], listed: List[str]) -> None:
    code = odd(**changes)
    answer = decompile_code(code)
    assert answer.verdict is Verdict.PLACEHOLDERS
    assert (answer.verdict.proved, answer.verdict.code_proved) == (False, True)
    assert list(map(str, answer.placeholders)) == listed
    assert [placeholder.value for placeholder in answer.placeholders if placeholder.value in changes.values()]
    comment = [line for line in answer.source.splitlines() if line.startswith("#")]
    assert comment[2:] == [f"# {placeholder}" for placeholder in answer.placeholders]
    assert len(comment) == 2 + len(listed)
    assert all(part in answer.reason for part in map(str, answer.placeholders))
    again = answer.compile_like()
    assert compare(code, again).proved
    offsets = answer.line_map.offsets
    assert offsets
    assert min(offsets) > len(comment)
    assert answer.source.splitlines()[again.co_firstlineno - 1].startswith("def plain(")


def test_a_name_that_the_text_does_not_need_is_no_placeholder() -> None:
    """The first argument of a generator expression is called ".0", which no text has to say."""
    module = compile("(x for x in y)", "<module>", "exec", dont_inherit=True)
    answer = decompile_code(next(each for each in module.co_consts if isinstance(each, CodeType)))
    assert answer.verdict.proved
    assert answer.placeholders == ()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="qualified names are no part of code objects")
def test_a_function_that_is_called_as_if_from_elsewhere_is_listed() -> None:
    text = "def outer():\n    def inner(): ...\n    return inner\n"  # annotations are functions as well (3.14)
    code = code_of_function(compile(text, "<module>", "exec", dont_inherit=True), "outer")
    changed = tuple(
        each.replace(co_qualname="elsewhere.<locals>.inner") if isinstance(each, CodeType) else each
        for each in code.co_consts
    )
    answer = decompile_code(code.replace(co_consts=changed))
    assert answer.verdict is Verdict.PLACEHOLDERS
    (placeholder,) = answer.placeholders
    assert (placeholder.name.endswith("outer.<locals>.inner"), placeholder.value) == (True, "elsewhere.<locals>.inner")


def test_the_exit_status_says_that_the_text_alone_is_not_the_original(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = compile("a.attribute = 1\n", "<module>", "exec", dont_inherit=True)
    names = tuple("a-b" if name == "attribute" else name for name in module.co_names)
    path = tmp_path / "odd.pyc"
    path.write_bytes(importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(module.replace(co_names=names)))
    assert main(["decompile", str(path), "--verdict"]) == 1
    output = capsys.readouterr()
    assert "# a_b is the name 'a-b'" in output.out
    assert output.out.splitlines()[-1].startswith("# depyf: placeholders: ")
    assert main(["sweep", str(path), "-j", "1"]) == 1
    assert "placeholders" in capsys.readouterr().out
