"""Code objects that replace a reference: names, variables and their order, flags, kinds of function, depth."""

from __future__ import annotations
import __future__

import ast
import dis
import sys
from types import CodeType, FunctionType
from typing import Any, Callable, Dict, List, Tuple

import pytest
from functions import codes_of, difference

from depyf.decompiler.errors import DecompilationError
from depyf.decompiler.source.compiling.to_code import compile_like
from depyf.decompiler.source.printing.text import to_source
from depyf.decompiler.source.source_text import SourceText
from depyf.decompiler.verify import compare


def code_of(source: str, name: str, flags: int = 0) -> CodeType:
    module = compile(source, "<original>", "exec", flags, True)
    return next(code for code in codes_of(module) if code.co_name == name)


def source_of(text: str, **names: str) -> SourceText:
    return SourceText(text=text, names=names)


def variables(code: CodeType) -> Dict[str, Tuple[str, ...]]:
    return {field: getattr(code, field) for field in ("co_freevars", "co_cellvars")}


CLOSURE = """
def outer():
    b = 1; a = 2
    def f(x):
        return a + b + x
"""


def test_free_variables_come_from_scaffolding_that_the_text_does_not_have() -> None:
    original = code_of(CLOSURE, "f")
    code = compile_like(source_of("def f(x):\n    return a + b + x\n"), original, "<again>")
    assert difference(original, code) is None
    assert code.co_filename == "<again>"
    assert {line for _, line in dis.findlinestarts(code)} - {1, None} == {2}


def test_a_free_variable_that_the_text_does_not_mention_is_kept() -> None:
    original = code_of(CLOSURE, "f")
    code = compile_like(source_of("def f(x):\n    return a + x\n"), original, "<again>")
    assert code.co_freevars == ("a", "b")
    assert code.co_consts == original.co_consts


@pytest.mark.parametrize("order", [("a", "b", "c"), ("c", "a", "b"), ("b", "c", "a"), ("c", "b", "a")])
def test_free_variables_have_the_order_of_the_reference(order: Tuple[str, ...]) -> None:
    original = code_of("def outer():\n a = b = c = 0\n def f():\n  return a, b, c", "f").replace(co_freevars=order)
    code = compile_like(source_of("def f():\n    return a, b, c\n"), original, "<again>")
    assert code.co_freevars == order
    cells = {name: _cell(name) for name in order}
    assert FunctionType(code, {}, closure=tuple(cells[name] for name in order))() == ("a", "b", "c")


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_cells_have_the_order_of_the_reference(order: Tuple[str, ...]) -> None:
    text = "def f():\n    a, b = 'ab'\n    return (lambda: b + a)()\n"
    original = code_of(text, "f").replace(co_cellvars=order)
    code = compile_like(source_of(text), original, "<again>")
    assert code.co_cellvars == order
    assert FunctionType(code, {})() == "ba"


def test_the_order_of_variables_reaches_every_kind_of_binding() -> None:
    text = """
def f(argument):
    import os.path as b, json
    from os import path as a
    class C:
        def method(self): return z, y, x, b, a, json, C, i, argument, error, rest, tail
    for i in (1,): pass
    with argument as x: y = 1
    def z(): return 1
    try: return [C for C in y], (lambda z: z)(1)
    except E as error: nonlocal_ = 1
"""
    if sys.version_info >= (3, 10):
        text += """
    match argument:
        case {"a": 1, **rest}: pass
        case [1, *tail]: pass
"""
    original = code_of(text, "f")
    order = tuple(sorted(original.co_cellvars, key=lambda name: name[::-1]))
    changed = original.replace(co_cellvars=order)
    code = compile_like(source_of(text), changed, "<again>")
    arguments_first = ("argument", *(name for name in order if name != "argument"))
    assert code.co_cellvars in (order, arguments_first)
    assert sorted(code.co_names) == sorted(original.co_names)
    inner, expected = (
        [constant.co_name for constant in made.co_consts if isinstance(constant, CodeType)] for made in (code, original)
    )
    assert inner == expected
    assert {"C", "z", "<lambda>"} <= set(inner)
    names = [(*nested.co_names, getattr(nested, "co_qualname", nested.co_name)) for nested in codes_of(code)]
    assert not [name for each in names for name in each if "depyf" in name]


@pytest.mark.parametrize("flags", [0, __future__.annotations.compiler_flag])
def test_cells_that_nothing_captures_are_made_without_a_trace_in_the_bytecode(flags: int) -> None:
    original = code_of("def f(a):\n    b = a\n    return lambda: (a, b)", "f", flags)
    code = compile_like(source_of('def f(a):\n    """Doc."""\n    b = a\n    return b\n'), original, "<again>")
    assert code.co_cellvars == original.co_cellvars == ("a", "b")
    names = [name for name in _instructions(code) if "CELL" not in name and name != "RESUME"]
    assert names == ["LOAD_DEREF", "STORE_DEREF", "LOAD_DEREF", "RETURN_VALUE"]
    assert FunctionType(code, {})(5) == 5


def test_super_without_arguments_finds_its_class() -> None:
    original = code_of("class A:\n    def f(self):\n        return super().f()", "f")
    code = compile_like(source_of("def f(self):\n    return super().f()\n"), original, "<again>")
    assert difference(original, code) is None


def test_class_in_a_free_variable_keeps_its_place_in_any_order() -> None:
    source = "def outer(a, z):\n class A:\n  def f(self):\n   return super().f(a, z)"
    for order in (("z", "__class__", "a"), ("__class__", "z", "a"), ("z", "a", "__class__")):
        original = code_of(source, "f").replace(co_freevars=order)
        code = compile_like(source_of("def f(self):\n    return super().f(a, z)\n"), original, "<again>")
        assert code.co_freevars == order


def test_a_class_in_a_free_variable_mangles_no_names() -> None:
    original = code_of("class A:\n def f(self, __a):\n  return super().f(_b)", "f")
    names = {
        field: tuple(name.replace("_A__a", "__a") for name in getattr(original, field)) for field in ("co_varnames",)
    }
    original = original.replace(co_names=tuple(name.replace("_b", "__b") for name in original.co_names), **names)
    code = compile_like(source_of("def f(self, __a):\n    return super().f(__b)\n"), original, "<again>")
    assert (code.co_varnames, code.co_names) == (original.co_varnames, original.co_names)


def test_a_local_variable_may_be_called_like_a_free_one_where_it_is_not_used() -> None:
    original = code_of(CLOSURE, "f")
    original = original.replace(co_varnames=("x", "a"), co_nlocals=2)
    code = compile_like(source_of("def f(x):\n    nonlocal a\n    a = b\n"), original, "<again>", all_locals=True)
    assert (code.co_varnames, code.co_freevars) == (("x",), ("a", "b"))


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    yield 1\n",
        "async def f():\n    await x\n",
        "async def f():\n    yield 1\n",
        "def f(a, /, b, *c, d, **e):\n    return a\n",
        "lambda a, *b: a\n",
        "lambda: (yield)\n",
        "class f:\n    x = 1\n",
        "class f:\n    def g(self): return __class__\n",
        "def f():\n    class C:\n        def g(self): return super().g()\n",
        "def f():\n    assert x, y\n",
        "def f(x: int = 1) -> str:\n    return x\n",
        "@a\n@b(lambda: 1)\ndef f():\n    return 1\n",
        "def f(x=lambda: 1):\n    return lambda: x\n",
        "class f(A, metaclass=B):\n    def f(self): pass\n",
    ],
)
def test_every_kind_of_definition_compiles_to_what_it_was(text: str) -> None:
    original = code_of(text, "<lambda>" if text.startswith("lambda") else "f")
    assert difference(original, compile_like(source_of(text), original, "<again>")) is None


COMPREHENSIONS = (
    "[x for x in iterable if x]\n",
    "{x for x in iterable}\n",
    "{x: 1 for x in iterable}\n",
    "(x for x in iterable)\n",
)
WITH_CODE = [text for text in COMPREHENSIONS if len(list(codes_of(compile(text, "<original>", "exec")))) > 1]
"""Since 3.12 most comprehensions have no code object of their own."""


@pytest.mark.parametrize("text", WITH_CODE)
@pytest.mark.parametrize("around", ["{}", "def f(y):\n    {}", "def f(iterable):\n    {}"])
def test_a_comprehension_is_the_code_object_inside_of_its_statement(text: str, around: str) -> None:
    original = next(
        code
        for code in codes_of(compile(around.format(text), "<original>", "exec"))
        if code.co_argcount and code.co_name != "f"
    )
    assert difference(original, compile_like(source_of(text), original, "<again>")) is None


def test_free_variables_of_a_comprehension_are_made() -> None:
    original = code_of("def f(a, b):\n    ((a, x, b) for x in y)", "<genexpr>")
    code = compile_like(source_of("((a, x, b) for x in iterable)\n"), original, "<again>")
    assert difference(original, code) is None


def test_a_module_is_compiled_as_it_stands() -> None:
    text = '"""Doc."""\nimport os\n\ndef f():\n    return os\n'
    original = compile(text, "<original>", "exec")
    assert difference(original, compile_like(source_of(text), original, "<again>")) is None


def test_names_that_cannot_be_written_are_back_in_the_code_object() -> None:
    tree = ast.parse("def f(A):\n    B = A.C\n    GLOBAL(KEY=B)\n    return lambda: (A, B)")
    weird = {"A": "L['x']", "B": "tmp-1", "C": "class", "GLOBAL": "1", "KEY": "for"}
    _Rename(weird).visit(tree)
    plain = code_of("def f(A):\n    B = A.C\n    GLOBAL(KEY=B)\n    return lambda: (A, B)", "f")
    original = _renamed(plain, weird)
    source = to_source(tree)
    assert source.text == ("def f(L_x):\n    tmp_1 = L_x.class_\n    _1(for_=tmp_1)\n    return lambda: (L_x, tmp_1)\n")
    assert difference(original, compile_like(source, original, "<again>")) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def f(y):\n    return x\n", r"original takes the parameters \('x',\), the source \('y',\)"),
        ("def f(x):\n    yield x\n", "not a generator"),
        ("def f(x):\n    return lambda: x\n", "cell variables"),
        ("def f(x):\n    x\n    nonlocal x\n", "does not compile"),
        ("x = 1\n", "has no function"),
    ],
)
def test_what_cannot_stand_in_is_refused_with_the_reason(text: str, reason: str) -> None:
    original = code_of("def f(x):\n    return x", "f")
    with pytest.raises(DecompilationError, match=reason):
        compile_like(source_of(text), original, "<again>")


def test_future_flags_are_those_of_the_reference_and_not_ours() -> None:
    for annotation, flags in (("undefined", 0), ("'undefined'", __future__.annotations.compiler_flag)):
        text = f"def f():\n    def g(x: {annotation}): pass\n    return g\n"
        original = code_of(text.replace("'", ""), "f", flags)
        assert difference(original, compile_like(source_of(text), original, "<again>")) is None


def test_asserts_survive_an_optimising_interpreter() -> None:
    text = "def f(x):\n    assert x\n"
    code = compile_like(source_of(text), code_of(text, "f"), "<again>")
    with pytest.raises(AssertionError):
        FunctionType(code, {"__builtins__": __builtins__})(0)


@pytest.mark.parametrize("operand", ["a + {}", "f({})", "[{}]", "({} if a else b)"])
def test_expressions_nested_deeper_than_the_recursion_limit(operand: str) -> None:
    deepest = 150 if sys.version_info >= (3, 9) else 80  # that the parser reads
    depth = 1200 if operand == "a + {}" else deepest
    expression: ast.expr = ast.Name(id="x", ctx=ast.Load())
    for _ in range(depth):
        expression = _Fill(expression).visit(ast.parse(operand.format("HOLE"), mode="eval").body)
        if operand == "a + {}":
            expression = ast.BinOp(left=expression.right, op=ast.Add(), right=expression.left)  # type: ignore
    tree = ast.parse("def f(a, b, x):\n    return 1")
    tree.body[0].body = [ast.Return(value=expression)]  # type: ignore[attr-defined]
    source = to_source(tree)
    code = compile_like(source, code_of("def f(a, b, x):\n    return 1", "f"), "<again>")
    assert code.co_argcount == 3
    assert source.text.count("a") > depth / 2 or operand in ("f({})", "[{}]")


def test_what_is_nested_too_deeply_for_the_parser_is_refused_in_words() -> None:
    expression: ast.expr = ast.Name(id="x", ctx=ast.Load())
    for _ in range(500):
        expression = ast.List(elts=[expression], ctx=ast.Load())
    source = to_source(ast.Module(body=[ast.Expr(value=expression)], type_ignores=[]))
    with pytest.raises(DecompilationError, match="nested"):
        compile_like(source, compile("x", "<original>", "exec"), "<again>")


class _Fill(ast.NodeTransformer):
    def __init__(self, hole: ast.expr) -> None:
        self.hole = hole

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.hole if node.id == "HOLE" else node


class _Rename(ast.NodeVisitor):
    def __init__(self, names: Dict[str, str]) -> None:
        self.names = names

    def visit(self, node: ast.AST) -> Any:
        for field in ("id", "arg", "attr"):
            if hasattr(node, field):
                setattr(node, field, self.names.get(getattr(node, field), getattr(node, field)))
        self.generic_visit(node)


def _renamed(code: CodeType, names: Dict[str, str]) -> CodeType:
    def renamed(values: Any) -> Any:
        return tuple(
            _renamed(value, names)
            if isinstance(value, CodeType)
            else renamed(value)
            if isinstance(value, tuple)
            else names.get(value, value)
            for value in values
        )

    fields: Tuple[str, ...] = ("co_names", "co_varnames", "co_cellvars", "co_freevars", "co_consts")
    return code.replace(**{field: renamed(getattr(code, field)) for field in fields})


def _cell(value: Any) -> Any:
    function: Callable[[], Any] = lambda: value  # noqa: E731
    closure = function.__closure__
    assert closure is not None
    return closure[0]


def _instructions(code: CodeType) -> List[str]:
    return [instruction.opname for instruction in dis.get_instructions(code)]


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="3.14 evaluates no annotation where it stands")
def test_code_compiled_at_runtime_still_postpones_annotations_where_the_original_did() -> None:
    text = """
def f():
    def g():
        names = {}
        exec("def h(a: Missing): pass", names)
        return names["h"]
    return g()
"""
    flag = __future__.annotations.compiler_flag
    code = compile_like(source_of(text), code_of(text, "f", flag), "<again>")
    assert FunctionType(code, {"__builtins__": __builtins__})().__annotations__ == {"a": "Missing"}
    with pytest.raises(NameError, match="Missing"):
        FunctionType(compile_like(source_of(text), code_of(text, "f"), "<again>"), {"__builtins__": __builtins__})()


def test_annotations_that_are_strings_already_are_not_made_strings_again() -> None:
    text = "def f():\n    def g(a: 'Missing'): pass\n    return g\n"
    code = compile_like(source_of(text), code_of(text, "f", __future__.annotations.compiler_flag), "<again>")
    assert FunctionType(code, {})().__annotations__ == {"a": "Missing"}


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("def f():\n    'Doc.'\n    return 'Doc.'\n", "def f():\n    return 'Doc.'\n"),
        ("def f():\n    return 1\n", "def f():\n    'Doc.'\n    return 1\n"),
    ],
)
def test_a_docstring_is_there_if_the_text_has_one_whatever_the_reference_has(written: str, text: str) -> None:
    original = code_of(written, "f")
    code = compile_like(source_of(text), original, "<again>")
    assert FunctionType(code, {}).__doc__ == FunctionType(code_of(text, "f"), {}).__doc__
    same = FunctionType(original, {}).__doc__ == FunctionType(code, {}).__doc__
    assert compare(original, code).proved == same


def test_local_variables_that_nothing_uses_any_more_are_there_if_asked_for() -> None:
    """PyTorch 2.2 copies the variables of a frame by name into that of the transformed code."""

    def function(a, b):  # type: ignore[no-untyped-def]
        unused = a
        del unused
        return (lambda: b), a

    source = to_source(ast.parse("def function(a, b):\n    return (lambda: b), a"))
    code = compile_like(source, function.__code__, "<test>", all_locals=True)
    assert set(function.__code__.co_varnames) <= set(code.co_varnames)
    assert code.co_cellvars == function.__code__.co_cellvars
    assert "unused" not in compile_like(source, function.__code__, "<test>").co_varnames


@pytest.mark.parametrize("used", ["list(k for i in x)", "k(x)", "(lambda: k)"])
def test_a_local_variable_that_nothing_uses_takes_no_name_of_a_global(used: str) -> None:
    """Since 3.12 the variable of a comprehension is one of the function, although ``k`` outside of it is global."""
    text = f"def function(x):\n    return {used}\n"
    original = code_of(f"{text}    [k for k in x]\n", "function")
    code = compile_like(source_of(text), original, "<test>", all_locals=True)
    assert code.co_cellvars == original.co_cellvars
    assert compare(original, code).proved
