"""Declarations: with them in front, the surviving statements of a body compile to the same operations."""

from __future__ import annotations

import ast
from types import CodeType
from typing import List

import pytest
from functions import codes_of

from depyf.decompiler import decompile_code
from depyf.decompiler.bytecode.code import docstring, parameter_names
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.result import Verdict
from depyf.decompiler.source.definitions.parameters import arguments
from depyf.decompiler.source.definitions.scopes import declarations, local_names
from depyf.decompiler.source.printing.statements import unparse


def code_of(source: str, name: str = "f") -> CodeType:
    return next(code for code in codes_of(compile(source, "<test>", "exec", 0, True)) if code.co_name == name)


def declared(source: str, name: str = "f", enclosing: str = "", nested: bool = False, inner: str = "") -> List[str]:
    code = code_of(source, name)
    comprehensions = [lower(constant) for constant in codes_of(code) if constant.co_name == inner]
    statements = declarations(lower(code), frozenset(enclosing.split()), nested=nested, comprehensions=comprehensions)
    return [unparse(ast.fix_missing_locations(statement)) for statement in statements]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f():\n    x = y", []),
        ("def f():\n    global x\n    x = y", ["global x"]),
        ("def f():\n    global x, y\n    del x\n    import y", ["global x, y"]),
        ("def f():\n    global x\n    return x", []),
        ("def g():\n    x = 1\n    def f():\n        nonlocal x\n        x = 2", ["nonlocal x"]),
        ("def g():\n    x = 1\n    def f():\n        return x", []),
        ("def g():\n    x = 1\n    def f():\n        nonlocal x\n        del x", ["nonlocal x"]),
        ("def f():\n    return x\n    x = 1", ["x: object"]),
        ("def f():\n    g(lambda: x)\n    if 0: x = 1", ["x: object"]),
        ("def f(x):\n    return x", []),
        ("def f():\n    for x in y:\n        x", []),
        ("def f():\n    return\n    yield", ["if False:\n    yield"]),
        ("async def f():\n    return\n    yield", ["if False:\n    yield"]),
        ("async def f():\n    await x\n    return\n    yield", ["if False:\n    yield"]),
        ("async def f():\n    await x\n    yield", []),
        ("def f():\n    yield", []),
        ("def f():\n    yield from x", []),
        ("class f:\n    global x\n    x = y", ["global x"]),
        ("class f:\n    global x\n    y = x", ["global x"]),
        ("class f:\n    x = y", []),
        ("def g():\n    x = 1\n    class f:\n        nonlocal x\n        x = 2", ["nonlocal x"]),
        ("class A:\n    def f(self):\n        return super().f()", []),
    ],
)
def test_a_body_declares_what_its_statements_do_not_tell(source: str, expected: List[str]) -> None:
    assert declared(source) == expected


def test_a_global_with_the_name_of_an_enclosing_variable_is_declared() -> None:
    source = "def g(x):\n    def f():\n        global x\n        return x"
    assert declared(source, enclosing="x y") == ["global x"]


@pytest.mark.parametrize("kind", ["def f()", "class f"])
def test_a_nested_body_mentions_the_free_variables_that_nothing_uses(kind: str) -> None:
    source = f"def g(x):\n    {kind}:\n        if 0: x"
    assert code_of(source).co_freevars == ("x",)
    assert declared(source, nested=True) == ["if False:\n    x"]
    assert declared(source, nested=False) == []


@pytest.mark.parametrize("kind", ["def f()", "class f"])
def test_a_nested_body_declares_the_unused_variables_of_the_functions_around_it(kind: str) -> None:
    source = f"def g(x):\n    {kind}:\n        nonlocal x\n"
    assert declared(source, enclosing="x", nested=True) == ["nonlocal x"]
    assert decompile_code(compile(source, "<test>", "exec", 0, True)).source == source


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f():\n    global x\n    [x := y for y in z]", ["global x"]),
        ("def g():\n    x = 1\n    def f():\n        nonlocal x\n        [x := y for y in z]", ["nonlocal x"]),
        ("def f():\n    [x := y for y in z]", []),
    ],
)
def test_what_a_comprehension_stores_is_stored_by_the_function_around_it(source: str, expected: List[str]) -> None:
    assert declared(source, inner="<listcomp>") == expected


def test_local_names_are_what_a_nested_function_would_find() -> None:
    source = "def g(a):\n    b = 1\n    def f(c):\n        d = lambda: (a, c)\n    return b\nclass C:\n    x = 1"
    assert local_names(lower(code_of(source, "f"))) == {"a", "c", "d"}
    assert local_names(lower(code_of(source, "g"))) == {"a", "b", "f"}
    assert local_names(lower(code_of(source, "C"))) == frozenset()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f():\n    'Doc'", "Doc"),
        ("def f():\n    return 'no'", None),
        ("def f():\n    pass", None),
        ("f = lambda: 'no'", None),
        ("class f:\n    'Doc'", None),
    ],
)
def test_the_docstring_of_a_function(source: str, expected: object) -> None:
    assert docstring(code_of(source, "<lambda>" if "lambda" in source else "f")) == expected


@pytest.mark.parametrize(
    "parameters",
    [
        "",
        "a",
        "a, b",
        "a, /",
        "a, /, b",
        "*a",
        "**a",
        "*, a",
        "a, /, b, *c, d, **e",
        "a, *, b",
        "a, *b, c",
        "*a, **b",
    ],
)
def test_the_parameters_of_every_function_are_those_it_was_written_with(parameters: str) -> None:
    code = code_of(f"def f({parameters}): x = 1")
    assert unparse(arguments(code)) == parameters
    assert len(parameter_names(code)) == sum(
        part.strip(" *") in "abcde" and part.strip(" *") != "" for part in parameters.split(",")
    )


def test_defaults_and_annotations_stand_with_their_parameters() -> None:
    code = code_of("def f(a, /, b, c, *d, e, g, **h): pass")
    one, two = ast.Constant(1), ast.Constant(2)
    kind = ast.Name("int", ast.Load())
    result = arguments(code, [one, two], {"g": two}, dict.fromkeys("acdegh", kind))
    assert unparse(result) == "a: int, /, b=1, c: int=2, *d: int, e: int, g: int=2, **h: int"


def test_more_defaults_than_parameters_are_an_error() -> None:
    with pytest.raises(ValueError, match="2 defaults for 1"):
        arguments(code_of("def f(a): pass"), [ast.Constant(1), ast.Constant(2)])


MODULES_WITH_GLOBALS = {
    "a function": "x = 1\n\ndef f():\n    global x\n    x = 2\nx",
    "a method": "class C:\n    def f(self):\n        global x\n        x = 2\nx = 1\nx",
    "a class": "x = 1\n\nclass C:\n    global x\n    x = 2",
    "a walrus": "x = 1\n[(x := y) for y in z]\nx",
    "a nested walrus": "[{(x := y) for y in z} for z in w]\nx",
    "a walrus in a lambda": "global x\nx = 1\n[(lambda: (x := y)) for y in z]",
    "the module alone": "global x\nx = 1\n\ndef f():\n    return x",
    "some of them": "global x\nx = 1\ny = 2\n\ndef f():\n    global y\n    y = 3",
    "a private name of a class": "global __x\n__x = 1\n\nclass C:\n    def f():\n        global __x\n        __x = 2",
    "a private name": "__x = 1\n\ndef f():\n    global __x\n    __x = 2",
}


@pytest.mark.parametrize("name", MODULES_WITH_GLOBALS)
def test_a_module_declares_only_what_nothing_in_it_makes_global(name: str) -> None:
    source = MODULES_WITH_GLOBALS[name]
    result = decompile_code(compile(source, "<test>", "exec", 0, True))
    assert result.verdict is Verdict.EXACT, result.reason
    assert ast.dump(ast.parse(result.source)) == ast.dump(ast.parse(source)), result.source
