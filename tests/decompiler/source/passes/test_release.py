"""Where ``del`` is put for temporaries that would live too long."""

from __future__ import annotations

import ast
import sys
from types import CodeType
from typing import List

import pytest

from depyf.decompiler import decompile_code
from depyf.decompiler.source.passes.placed_release import delete_before, places_of, statements_of
from depyf.decompiler.source.passes.release import deletion, foreseen, release

CALLS = [
    ("return t() * 2", ["__temp_result_0 = t()", "del t", "return __temp_result_0 * 2"]),
    ("return a + t()", ["__temp_result_0 = t()", "del t", "return a + __temp_result_0"]),
    ("return g(t())", ["__temp_result_0 = t()", "del t", "return g(__temp_result_0)"]),
    ("return g() + t()", ["return g() + t()"]),
    ("return t() + g(t)", ["return t() + g(t)"]),
    ("if t().a:\n    b()", ["__temp_result_0 = t()", "del t", "if __temp_result_0.a:\n    b()"]),
    ("return {'a': t(), **g()}", ["__temp_result_0 = t()", "del t", "return {'a': __temp_result_0, **g()}"]),
]

THOROUGH = [
    ("a, b = t()\nc()", ["__temp_result_0 = t()", "del t", "a, b = __temp_result_0", "c()"]),
    ("return t * 2 + g()", ["__temp_result_0 = t * 2", "del t", "return __temp_result_0 + g()"]),
    ("with a:\n    t = b()\n    t()\nc()", ["with a:\n    t = b()\n    t()\n    del t", "t = None", "c()"]),
]


def text(statements: List[ast.stmt]) -> List[str]:
    module = ast.fix_missing_locations(ast.Module(statements, []))
    # Before 3.11 tuples are printed with parentheses in some places.
    return [ast.unparse(statement).replace("(a, b) =", "a, b =") for statement in module.body]


@pytest.mark.skipif(not hasattr(ast, "unparse"), reason="ast.unparse is new in 3.9")
@pytest.mark.parametrize(("source", "expected"), CALLS)
def test_a_call_that_reads_it_last_gets_a_statement_of_its_own(source: str, expected: List[str]) -> None:
    assert text(release(ast.parse(source).body, {"t"})) == expected


@pytest.mark.skipif(not hasattr(ast, "unparse"), reason="ast.unparse is new in 3.9")
@pytest.mark.parametrize(("source", "expected"), THOROUGH)
def test_any_operation_does_if_need_be(source: str, expected: List[str]) -> None:
    assert text(release(ast.parse(source).body, {"t"}, thorough=True)) == expected


NOTICED = [
    ("t = a()\nb(t)\nreturn c", ["t = a()", "b(t)", "return c"]),
    ("t = a()\nb(t)\nreturn c, 1", ["t = a()", "b(t)", "return (c, 1)"]),
    ("t = a()\nb(t)\nreturn c[0]", ["t = a()", "b(t)", "del t", "return c[0]"]),
    ("t = a()\nb(t)\nd()\nreturn c", ["t = a()", "b(t)", "del t", "d()", "return c"]),
    ("t = a()\nb(t)", ["t = a()", "b(t)"]),
    ("del x", ["del x"]),
    ("a(t)\ndel x", ["a(t)", "del t", "del x"]),
]


@pytest.mark.skipif(not hasattr(ast, "unparse"), reason="ast.unparse is new in 3.9")
@pytest.mark.parametrize(("source", "expected"), NOTICED)
def test_nothing_is_deleted_where_nothing_runs_before_the_return(source: str, expected: List[str]) -> None:
    assert text(release(ast.parse(source).body, {"t"}, noticed=True)) == expected


def test_what_must_be_deleted_is_foreseen_by_what_it_holds() -> None:
    source = """def f(self):
        modules = self._modules
        first, second = modules["layers"][0]
        out = __compiled_fn_1(first)
        copied = out
        call = torch.nn.functional.relu
        entered = __import_torch.enter()
        x = self.kept
        return g(copied, second, call, entered, x)"""
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert foreseen(function, {"self", "x"}) == {"modules", "first", "second", "out", "copied"}


@pytest.mark.skipif(not hasattr(ast, "unparse"), reason="ast.unparse is new in 3.9")
def test_names_of_a_function_inside_are_its_own() -> None:
    inside = "def inner():\n    t = a()\n    u(*t)\n    b()"
    makes = ["s = x()", inside, "y(1)", "return inner(s)"]
    assert text(release(ast.parse("\n".join(makes)).body, {"t"})) == makes
    shares = ["t = x()", inside.replace("t = a()", "nonlocal t\n    t = a()"), "y(1)", "return inner(t)"]
    assert text(release(ast.parse("\n".join(shares)).body, {"t"})) == shares


def test_names_with_numbers_are_deleted_in_their_order() -> None:
    targets = deletion({"b_10", "b", "b_9", "a_2", "b_1"}).targets
    assert [getattr(each, "id", None) for each in targets] == ["a_2", "b", "b_1", "b_9", "b_10"]


@pytest.mark.skipif(not hasattr(ast, "unparse"), reason="ast.unparse is new in 3.9")
def test_a_deletion_stands_before_the_line_that_is_too_late() -> None:
    tree = ast.parse("def f():\n    global g\n    t = a()\n    b(t)\n    c()\n    if d:\n        e()")
    numbers = delete_before(tree, {})
    assert numbers == [0, 1, 2, 3, 4, 5]
    places = places_of([("t", 5), ("t", 7)], tree, numbers, {})
    assert places == {3: {"t"}}
    assert places_of([("t", 4)], tree, numbers, {}) is None  # it is still read there
    assert delete_before(tree, places) == [0, 1, 2, None, 3, 4, 5]
    assert ast.unparse(ast.fix_missing_locations(tree)).splitlines()[4:6] == ["    del t", "    c()"]


def test_statements_are_counted_in_the_order_of_the_text_however_deep_they_stand() -> None:
    """Each is looked at once, and not once for each statement around it."""
    text = "try:\n    a = [b for b in c]\nexcept E:\n    global d\n    d = 1\nfinally:\n    e = 2\nmore = lambda: 3\n"
    kinds = [type(statement).__name__ for statement in statements_of(ast.parse(text))]
    assert kinds == ["Try", "Assign", "Assign", "Assign", "Assign"]
    deep: List[ast.stmt] = [ast.Pass()]
    for _ in range(5000):
        deep = [ast.If(ast.Constant(True), [ast.Pass()], deep)]
    assert len(list(statements_of(ast.Module(deep, [])))) == 10_001


LOOPS = {
    "in a branch": """
def f(a, b):
    while a.a():
        if b:
            a = a.c() + (b if b and () else 0)
""",
    "in inner loops and a with": """
def f(a, b):
    while a.a():
        while b():
            with a:
                for x in b:
                    a = a.c() + (b if b and () else 0)
""",
    "before a finally": """
def f(a, b):
    while a.a():
        try:
            if a.b():
                a = a.c() + (b if b and () else 0)
        finally:
            b()
""",
    "before a clause": """
def f(a, b):
    while a.a():
        try:
            if a.b():
                a = a.c() + (b if b and () else 0)
        except ValueError:
            b()
""",
}
if sys.version_info >= (3, 10):
    LOOPS["in a case"] = """
def f(a, b):
    while True:
        match a():
            case 1:
                a = a.c() + (b if b and () else 0)
                b.d()
            case 2:
                b()
"""


@pytest.mark.parametrize("name", LOOPS)
def test_one_that_an_earlier_iteration_may_have_bound_is_deleted_as_well(name: str) -> None:
    """A test whose outcome does not matter, between two values, needs a temporary; 3.8 keeps its constant."""
    (code,) = (each for each in compile(LOOPS[name], "<test>", "exec").co_consts if isinstance(each, CodeType))
    answer = decompile_code(code)
    assert answer.verdict.proved, answer.reason
    assert "del __temp_0" in answer.source or answer.verdict.value == "exact"
