"""Text, originals and globals of ``full_code_*.py``, each alone."""

from __future__ import annotations

import ast
import math
import os.path
import textwrap
from types import CellType, CodeType, ModuleType
from typing import Any, Dict, Tuple

import pytest

from depyf.dynamo.dump.full_code.original import original_of
from depyf.dynamo.dump.full_code.runtime import ___contents, ___placeholder
from depyf.dynamo.dump.full_code.text import (
    MARK,
    Signature,
    commented,
    dedented,
    indented,
    why_it_does_not_compile,
    with_profiler_lines_marked,
)
from depyf.dynamo.dump.full_code.user_globals import definition_of, description, missing_names
from depyf.dynamo.guards.live_values import NotLiveError

MULTILINE = 'def f():\n    """one\n  two\n    """\n    x = f"""\n{1}\n"""\n    return x\n'


def test_indenting_leaves_strings_alone() -> None:
    moved = indented(MULTILINE)
    names: Dict[str, Any] = {}
    exec(MULTILINE, names)
    documentation = names["f"].__doc__  # since 3.13 the compiler takes the indentation away
    exec(f"if True:\n{moved}", names)
    assert names["f"].__doc__ == documentation
    assert names["f"]() == "\n1\n"
    assert dedented(moved) == MULTILINE


def test_dedenting_copes_with_comments_and_strings_at_the_margin() -> None:
    source = '    def f():\n# a comment at the margin\n        return """\nat the margin"""\n'
    names: Dict[str, Any] = {}
    exec(dedented(source), names)
    assert names["f"]() == "\nat the margin"


def test_every_line_becomes_a_comment() -> None:
    assert commented("a\n\n  b") == "# a\n#\n#   b"


def test_the_compilers_complaint_is_told() -> None:
    assert why_it_does_not_compile("x = 1") is None
    assert "SyntaxError" in str(why_it_does_not_compile("x ="))
    assert "nonlocal" in str(why_it_does_not_compile("def f():\n    nonlocal x\n"))
    assert "null" in str(why_it_does_not_compile("x = '\0'"))


def code_of(source: str) -> CodeType:
    code = next(const for const in compile(source, "<test>", "exec").co_consts if isinstance(const, CodeType))
    return code


@pytest.mark.parametrize(
    "parameters",
    ["", "a", "a, /", "a, b, /, c, *d, e, f, **g", "*, a", "*args", "**kwargs", "a, *, b, **c", "a, /, *, b"],
)
def test_a_signature_passes_everything_on(parameters: str) -> None:
    signature = Signature.of(code_of(f"def f({parameters}): pass"))
    assert signature.parameters({}) == parameters
    names: Dict[str, Any] = {}
    exec(
        f"def receive({parameters}):\n    return {signature.frame_locals([])}\n"
        f"def f({parameters}):\n    return receive({signature.arguments()})\n",
        names,
    )
    tree = ast.parse(f"def f({parameters}): pass").body[0]
    assert isinstance(tree, ast.FunctionDef)
    positional = [argument.arg for argument in [*tree.args.posonlyargs, *tree.args.args]]
    keywords = {argument.arg: argument.arg for argument in tree.args.kwonlyargs}
    more: Tuple[Any, ...] = ("more",) if tree.args.vararg else ()
    expected: Dict[str, Any] = {**{name: name for name in positional}, **keywords}
    if tree.args.vararg:
        expected[tree.args.vararg.arg] = more
    if tree.args.kwarg:
        keywords["extra"] = "extra"
        expected[tree.args.kwarg.arg] = {"extra": "extra"}
    assert names["f"](*positional, *more, **keywords) == expected


def test_defaults_stand_at_their_parameters() -> None:
    signature = Signature.of(code_of("def f(a, b=1, *, c=2): pass"))
    assert signature.parameters({"b": "1", "c": "2"}) == "a, b=1, *, c=2"


def test_a_parameter_that_is_no_name_is_spelled_otherwise() -> None:
    (code,) = [const for const in code_of("def f(x): return (y for y in x)").co_consts if isinstance(const, CodeType)]
    assert Signature.of(code).parameters({}) == "___argument_0"
    assert Signature.of(code).frame_locals(["q"]) == "{'.0': ___argument_0, 'q': q}"


def decorate(function: Any) -> Any:
    return function


@decorate
def plain(a: int, b: Any = math.pi, *, c: Tuple[int, ...] = (1, 2), d: Any = decorate) -> Any:
    # A comment that should be kept.
    return a, b, c, d


def test_a_function_is_taken_from_its_file() -> None:
    original = original_of(plain.__code__, "plain")
    assert original.name == "plain"
    assert original.origin.endswith(f"test_full_code_text.py:{plain.__code__.co_firstlineno}")
    assert original.source is not None
    assert "# A comment that should be kept." in original.source
    assert original.source.startswith("# @decorate\n")
    assert original.defaults["c"] == "(1, 2)"
    names: Dict[str, Any] = {"___placeholder": ___placeholder}
    exec("from __future__ import annotations\n" + original.source, names)
    assert names["plain"](1)[2] == (1, 2)
    assert isinstance(names["plain"](1)[1], ___placeholder)


def test_a_lambda_becomes_an_assignment() -> None:
    function = decorate(lambda x, y=2: (x,
                                        y))  # fmt: skip
    original = original_of(function.__code__, "original__lambda_")
    assert original.source is not None
    names: Dict[str, Any] = {}
    exec(original.source, names)
    assert names["original__lambda_"](1) == (1, 2)
    assert original.defaults == {"y": "2"}


def test_a_lambda_that_can_not_be_told_from_another_is_not_guessed() -> None:
    first, second = (lambda x: x + 1), (lambda x: x + 2)
    for function in (first, second):
        source = original_of(function.__code__, "original__lambda_").source
        if source is not None:
            names: Dict[str, Any] = {}
            exec(source, names)
            assert names["original__lambda_"](1) == function(1)


def test_a_file_that_has_changed_is_not_believed(tmp_path: Any) -> None:
    import importlib.util

    path = tmp_path / "changing.py"
    path.write_text("def f(a, b):\n    return a + b\n")
    spec = importlib.util.spec_from_file_location("changing", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path.write_text("def g(a, b):\n    return a - b\n")
    assert not original_of(module.f.__code__, "f").origin.endswith("changing.py:1")


def test_names_that_nobody_defines_are_missing() -> None:
    source = textwrap.dedent(
        """
        import os
        def f(a, b=default):
            global written
            written = 1
            c = a.attribute + os.sep + G1 + written
            return [x + G2 for x in c if len(b)]
        class K:
            y = f
            def m(self): return y, __file__
        """
    )
    assert missing_names(source) == ["G1", "G2", "default", "written", "y"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, "name = 3"),
        (None, "name = None"),
        ("text", "name = 'text'"),
        (2.5, "name = 2.5"),
        (math, "import math as name"),
        (os.path, f"import {os.path.__name__} as name"),
        (math.sin, "from math import sin as name"),
        (textwrap.dedent, "from textwrap import dedent as name"),
        (ast.AST, f"from {ast.AST.__module__} import AST as name"),
    ],
)
def test_what_others_have_is_imported_or_written_out(value: Any, expected: str) -> None:
    assert definition_of("name", {"name": value}, "name") == (expected, False)
    exec(expected)


@pytest.mark.parametrize(
    "value",
    [decorate, ModuleType("users"), object(), [1], math.inf, "long" * 100, test_the_compilers_complaint_is_told],
)
def test_what_is_the_users_becomes_a_placeholder(value: Any) -> None:
    text, is_placeholder = definition_of("name", {"name": value}, "name")
    assert is_placeholder
    assert text.startswith("name = ___placeholder(")
    assert "0x" not in text


def test_asking_what_an_object_is_runs_none_of_its_code() -> None:
    class Touchy:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(f"{name} was asked for")

        def __repr__(self) -> str:
            raise AssertionError

    assert description(Touchy()).endswith("Touchy")
    assert definition_of("name", {"name": Touchy()}, "name")[1]


def test_a_placeholder_says_what_is_missing_when_it_is_used() -> None:
    placeholder: Any = ___placeholder("function a.b")
    for use in (lambda p: p(), lambda p: p.attribute, lambda p: p + 1, lambda p: 2 * p, lambda p: p[0], iter, bool):
        with pytest.raises(NotLiveError, match=r"function a\.b"):
            use(placeholder)
    assert repr(placeholder) == "<function a.b>"


def test_cells_give_their_contents() -> None:
    full, empty = ___contents([CellType(3), CellType()])
    assert full == 3
    assert isinstance(empty, ___placeholder)


def test_lines_for_the_profiler_are_marked_and_nothing_else_changes() -> None:
    source = '''def f(x):
    enabled = __import_torch_dot_autograd_dot_profiler._is_profiler_enabled
    tmp = None
    if enabled:
        tmp = utils.record_pregraph_bytecode_enter()  # already a comment
    if tmp is not None:
        utils.record_pregraph_bytecode_exit(
            tmp
        )
    utils.record_pregraph_bytecode_exit(tmp)
    text = """
    x = _is_profiler_enabled
    """
    other = None
    return text'''
    marked = with_profiler_lines_marked(source)
    assert ast.dump(ast.parse(marked)) == ast.dump(ast.parse(source))
    rows = [row for row, line in enumerate(marked.split("\n"), 1) if line.endswith(MARK)]
    assert rows == [2, 4, 10]
