"""Pairs that behave differently and were once proved equal: each represents a class of mistakes."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import AbstractSet, Any, FrozenSet, List

import pytest

from depyf.decompiler import DecompilationError, decompile_code
from depyf.decompiler.hints import Hints
from depyf.decompiler.verify import compare


def code_of(source: str) -> CodeType:
    return next(const for const in compile(source, "<pair>", "exec").co_consts if isinstance(const, CodeType))


@pytest.mark.parametrize(
    ("original", "candidate", "stable"),
    [
        pytest.param(
            "def f(c, d): return (A if c else B)(d())",
            "def f(c, d):\n if c: pass\n t = d()\n return A(t)",
            {"A", "B"},
            id="a stable global stands for another one",
        ),
        pytest.param(
            "def f(g): return locals()", "def f(g):\n t = 5\n return locals()", set(), id="a temporary is seen"
        ),
        pytest.param(
            "def f(c):\n y = 2; z = 3\n return list(locals())",
            "def f(c):\n z = 3; y = 2\n return list(locals())",
            set(),
            id="another order is seen",
        ),
        pytest.param(
            "def f():\n for x in {8, 0}: g(x)",
            "def f():\n for x in {0, 8}: g(x)",
            set(),
            id="a set in another order",
        ),
        pytest.param(
            "def f(): return {8, 0, 16}", "def f(): return {16, 0, 8}", set(), id="a new set in another order"
        ),
        pytest.param(
            "def f():\n g(A.made_anew)\n h()",
            "def f():\n g((t := A.made_anew))\n h()",
            set(),
            id="an attribute of a global lives longer",
        ),
        pytest.param(
            "def f(a, b):\n t = (a, b)\n return t[:] is t", "def f(a, b): return False", set(), id="a tuple's own slice"
        ),
        pytest.param(
            "def f(a, g):\n b = a\n while g():\n  g(a, b)\n  a = g()",
            "def f(a, g):\n b = a\n while g():\n  g(a, a)\n  a = g()",
            set(),
            id="a copy made before a loop in which the other one changes",
        ),
        pytest.param(
            "def f(a, g):\n b = a is None\n while g():\n  g(b)\n  a = g()",
            "def f(a, g):\n b = a is None\n while g():\n  g(a is None)\n  a = g()",
            set(),
            id="a test made before a loop in which the tested value changes",
        ),
    ],
)
def test_these_are_not_the_same(original: str, candidate: str, stable: AbstractSet[str]) -> None:
    assert not compare(code_of(original), code_of(candidate), hints=Hints(stable_globals=frozenset(stable))).proved


def test_where_only_members_count_the_order_of_a_set_does_not() -> None:
    one, other = (code_of(f"def f(x): return x in {{{members}}}") for members in ("8, 0", "0, 8"))
    assert compare(one, other).proved


@pytest.mark.parametrize(
    "members", ["8, 0", "0, 8", "7, 15, 23", "23, 7, 15, 31", "1.5, 8, 0, (1, 2)", "'b', 'a', 'c'", "-1, -2, 6, 14"]
)
def test_sets_are_gone_through_in_the_order_of_the_original(members: str) -> None:
    code = code_of(f"def f():\n for x in {{{members}}}: y = x; print(y)\n return {{{members}}}")
    answer = decompile_code(code)
    assert answer.verdict.proved
    made = code_of(answer.source)
    if "'" not in members:
        assert [*FunctionType(code, {"print": id})()] == [*FunctionType(made, {"print": id})()]
        pairs = zip(_sets(code), _sets(made))
        assert all([*one] == [*other] for one, other in pairs)


def _sets(code: CodeType) -> List[FrozenSet[Any]]:
    return [constant for constant in code.co_consts if isinstance(constant, frozenset)]


def test_a_qualified_name_counts_outside_of_classes() -> None:
    one, other = (compile(f"__qualname__ = {name!r}", "<pair>", "exec") for name in "AB")
    assert not compare(one, other).proved


def test_the_truth_of_a_value_is_tested_as_often_as_in_the_original() -> None:
    class Fickle:
        def __init__(self) -> None:
            self.tests = 0

        def __bool__(self) -> bool:
            self.tests += 1
            return self.tests > 1

    code = code_of("def f(a, b, c):\n return ((\n  a and b)\n  or c)")
    try:
        answer = decompile_code(code)
    except DecompilationError:
        return  # no answer is no wrong answer
    assert answer.verdict.proved
    tests = []
    for made in (code, code_of(answer.source)):
        first = Fickle()
        FunctionType(made, {})(first, "b", "c")
        tests.append(first.tests)
    assert tests[0] == tests[1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("class A:\n __firstlineno__ = 0", "class A:\n __firstlineno__ = 1", id="a line that is none"),
        pytest.param(
            "class A:\n __qualname__ = 'A'\n __firstlineno__ = 1",
            "\nclass A:\n __qualname__ = 'A'\n __firstlineno__ = 2",
            id="a line after a name, as the compiler writes them",
        ),
        pytest.param("__firstlineno__ = 0", "__firstlineno__ = 1", id="a line in a module"),
        pytest.param(
            "class A:\n __static_attributes__ = 'a', 'b'",
            "class A:\n __static_attributes__ = 'b', 'a'",
            id="attributes in another order",
        ),
        pytest.param(
            "class A:\n __static_attributes__ = 'a', 1",
            "class A:\n __static_attributes__ = 'a', 2",
            id="attributes that have no order",
        ),
    ],
)
def test_what_a_person_writes_is_not_taken_for_what_the_compiler_adds(one: str, other: str) -> None:
    assert not compare(compile(one, "<pair>", "exec"), compile(other, "<pair>", "exec")).proved


def test_a_variable_of_the_function_around_is_no_variable_of_its_own() -> None:
    (free,) = (const for const in code_of("def f():\n x = 1\n def g(): return lambda: x\n return g").co_consts
               if isinstance(const, CodeType))  # fmt: skip
    own = code_of("def g():\n return lambda: x\n x = 1")
    assert not compare(free, own.replace(co_name="g")).proved


@pytest.mark.parametrize("text", ["exec(s)", "return __builtins__.compile(s, '', 'exec')"])
def test_what_compiles_code_hands_on_the_futures_of_its_own(text: str) -> None:
    with_future = code_of(f"from __future__ import annotations\ndef f(s): {text}")
    without = compile(f"def f(s): {text}", "<pair>", "exec", dont_inherit=True).co_consts[0]
    assert isinstance(without, CodeType)
    assert not compare(with_future, without).proved
    assert decompile_code(with_future).verdict.proved
