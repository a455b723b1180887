"""The layout of the text: f-strings, docstrings, blank lines, parentheses."""

from __future__ import annotations

import ast
import sys
from typing import Any, Dict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from depyf.decompiler import decompile_code
from depyf.decompiler.errors import DecompilationError
from depyf.decompiler.source import source_text
from depyf.decompiler.source.printing.docstrings import indented, triple_quoted
from depyf.decompiler.source.printing.statements import unparse
from depyf.decompiler.source.printing.text import to_source


def again(source: str) -> str:
    """``source`` through the printer; it must parse to the same tree."""
    tree = ast.parse(source)
    text = to_source(tree).text
    assert ast.dump(ast.parse(text)) == ast.dump(tree)
    return text


@pytest.mark.parametrize(
    "source",
    [
        "f'{x}'",
        "f'{x!r:>10}'",
        "f'{x:{width}.{precision}}'",
        "f'a{{b}}{c}'",
        "f'{{{x}}}'",
        "f'{ {1: 2}[1]}'",
        "f'{x:}'",
        "f'{(lambda: 1)}'",
        "f'{(x := 1)}'",
        "f'{x if y else z}'",
        "f'{a, b}'",
        "f'{*a,}'",
        "f'{(yield)}'",
        "f''",
        "f\"{d['a']}\"",
        "f\"{d['a']}'\"",
        "f'''{d['a']} {d[\"b\"]}'''",
        'f"""{f\'{d[1]}\'}"""',
        "f'\\n{x}\\t\\\\'",
        'f"it\'s {x}"',
        "f'\"{x}\"'",
        "f'{x}' + 'y'",
        "f'{x}'.y",
        "f\"{x['a'] + ''}\"",
        "f\"{f'{y}' + z['a']}\"",
        "f'{x:\\n}'",
        'f"{x:\'^10}"',
        "f'{x!s}{y!a}'",
        "f'{x}{y}é\\x00'",
        "f'{ {a for a in b} }'",
        "f'{a != b}'",
        "f'{x:%H:%M}'",
        "f'{x[1:2]}'",
        "f'{not x}'",
        "f'{await_}'",
    ],
)
def test_an_f_string_reads_back_the_same(source: str) -> None:
    again(source)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="f-strings hold any expression")
def test_an_expression_in_an_f_string_that_needs_a_backslash_gets_a_placeholder() -> None:
    tree = ast.parse("f'{X.join(a)}'")
    call: Any = tree.body[0].value.values[0].value  # type: ignore[attr-defined]
    call.func.value = ast.Constant(value="\r'\"")
    source = to_source(tree)
    assert source.text == "f'{__const_text_0.join(a)}'\n"
    assert source.constants == {"__const_text_0": "\r'\""}


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="f-strings hold any expression")
@pytest.mark.parametrize("value", ["\n", "\t", "a\n'b", 'a\n"b', "\xa0", b"\n"])
def test_a_character_that_is_written_with_a_backslash_can_stand_in_an_f_string_itself(value: object) -> None:
    tree = ast.parse("def f():\n    return f'{X.join(a)}'")
    call: Any = tree.body[0].body[0].value.values[0].value  # type: ignore[attr-defined]
    call.func.value = ast.Constant(value=value)
    source = to_source(tree)
    assert source.constants == {}
    assert value in compile(source.text, "<test>", "exec").co_consts[0].co_consts


@pytest.mark.skipif(sys.version_info < (3, 12), reason="expressions in f-strings hold no backslash")
def test_an_expression_in_an_f_string_may_need_a_backslash() -> None:
    tree = ast.parse("f'{X.join(a)}'")
    call: Any = tree.body[0].value.values[0].value  # type: ignore[attr-defined]
    call.func.value = ast.Constant(value="\n'\"")
    source = to_source(tree)
    assert ast.literal_eval(ast.parse(source.text).body[0].value.values[0].value.func.value) == "\n'\""  # type: ignore
    assert source.constants == {}


@pytest.mark.skipif(
    not (3, 11) <= sys.version_info < (3, 12), reason="there, no f-string comes from such source, or any can be written"
)
def test_an_f_string_that_needs_a_backslash_was_written_with_percent_if_it_can_be() -> None:
    tree = ast.parse("f'10%: {a!s} {X.join(a)!r}'")
    call: Any = tree.body[0].value.values[3].value  # type: ignore[attr-defined]
    call.func.value = ast.Constant(value="\n")
    source = to_source(tree)
    assert source.text == "'10%%: %s %r' % (a, '\\n'.join(a))\n"
    assert source.constants == {}


def test_f_strings_that_use_up_the_quotes_are_printed_one_after_the_other() -> None:
    strings = ["'", '"', "'''", '"""']
    values: Any = []
    for text in strings[:2]:
        values.append(ast.FormattedValue(value=ast.Constant(value=text), conversion=-1, format_spec=None))
    tree = ast.Module(body=[ast.Expr(value=ast.JoinedStr(values=values))], type_ignores=[])
    text = to_source(tree).text
    assert eval(text) == "'\""


def test_a_format_that_cannot_be_written_is_refused() -> None:
    spec = ast.JoinedStr(values=[ast.Constant(value="{")])
    value = ast.FormattedValue(value=ast.Name(id="x", ctx=ast.Load()), conversion=-1, format_spec=spec)
    with pytest.raises(DecompilationError, match="format specification"):
        to_source(ast.Module(body=[ast.Expr(value=ast.JoinedStr(values=[value]))], type_ignores=[]))


@given(st.text())
def test_a_docstring_reads_back_the_same(value: str) -> None:
    assert ast.literal_eval(triple_quoted(value)) == value


@pytest.mark.parametrize(
    "value",
    [
        '"',
        "\\",
        '\\"',
        '"""',
        "a\\",
        "\r\n",
        "\x0c",
        '""',
        "\t",
        "\\d",
        'a"""b\\',
        "\ud800",
    ],
)
def test_an_awkward_docstring_reads_back_the_same(value: str) -> None:
    again(unparse(ast.Module(body=[ast.Expr(value=ast.Constant(value=value))], type_ignores=[])))
    assert ast.literal_eval(triple_quoted(value)) == value


@given(
    st.lists(st.sampled_from(["\n", " ", "  ", "\t", "\r", "a", "\\", '"', "\x0c"])).map("".join),
    st.sampled_from([4, 8]),
)
def test_the_indentation_of_a_docstring_is_not_stored(value: str, width: int) -> None:
    stored = docstring_of(value)
    assert docstring_of(indented(stored, " " * width)) == stored


def docstring_of(value: str) -> str:
    """Return what the compiler stores of a docstring: since 3.13 without its indentation."""
    made: Dict[str, Any] = {}
    exec(compile(f"def f():\n  {triple_quoted(value)}", "", "exec"), made)
    found: str = made["f"].__doc__
    return found


@pytest.mark.parametrize(
    "field",
    ["f(f'''\n{a}\n''')", "[f'''\n{a!r:>{b}}\n{{}}''' for a in b]", "f'''{a[b]}\n'''.strip()"],
)
def test_an_f_string_with_line_breaks_in_an_f_string(field: str) -> None:
    """Before 3.12 there is no escape sequence in it: the line breaks themselves are."""
    code = compile(f'f"""\n{{{field}}}\n"""', "<program>", "eval", dont_inherit=True)
    answer = decompile_code(code)
    assert answer.verdict.proved, answer.reason


@pytest.mark.parametrize("end", ["", "\n        "])
@pytest.mark.parametrize("text", ["One.", "One.\n\n        Two:\n          three", "One\n\n          two."])
def test_a_docstring_comes_back_with_its_indentation(text: str, end: str) -> None:
    source = f'class A:\n    def f():\n        """{text}{end}"""\n'
    answer = decompile_code(compile(source, "<program>", "exec", dont_inherit=True))
    assert answer.verdict.proved, answer.reason
    if "\n" in text and "  two" not in text:  # else nothing shows how much of it is indentation
        assert answer.source == source


def test_docstrings_are_in_triple_quotes_and_raw_where_that_reads_better() -> None:
    assert again("def f():\n    'Do.\\n\\n    Now.'") == 'def f():\n    """Do.\n\n    Now."""\n'
    assert again("def f():\n    '\\\\d'") == 'def f():\n    r"""\\d"""\n'


def test_blank_lines_stand_around_definitions_only() -> None:
    source = (
        "import a\ndef f():\n    x = 1\n    def g(): pass\n    @d\n    def h(): pass\n    y = '''\n\n\n'''\n"
        "    z\nclass C:\n    def m(): pass\n    x = 1\nx"
    )
    assert again(source) == (
        "import a\n\n\ndef f():\n    x = 1\n\n    def g():\n        pass\n\n    @d\n    def h():\n        pass\n\n"
        "    y = '\\n\\n\\n'\n    z\n\n\nclass C:\n    def m():\n        pass\n\n    x = 1\n\n\nx\n"
    )


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a and (not b) and (c < d) or (e is None)", "a and not b and c < d or e is None"),
        ("a and (b or not c)", "a and (b or not c)"),
        ("(a or b) and c", "(a or b) and c"),
        ("f((a for a in b))", "f(a for a in b)"),
        ("f((a for a in b), c)(d=(a for a in b))", "f((a for a in b), c)(d=(a for a in b))"),
        ("(a and not b).c", "(a and not b).c"),
        ("not (a and b)", "not (a and b)"),
        ("a, b = b, (c, d)", "a, b = b, (c, d)"),
        ("x = (1, 2)", "x = (1, 2)"),
        ("def f():\n    x = (yield)\n    x += (yield a)", "def f():\n    x = yield\n    x += yield a"),
        (
            "def f():\n    x = a((yield b))\n    return (yield from c)",
            "def f():\n    x = a((yield b))\n    return (yield from c)",
        ),
        ("async def f():\n    x = y = (yield (await b))", "async def f():\n    x = y = yield await b"),
        ("def f():\n    return (a, *b)", "def f():\n    return a, *b"),
        ("def f():\n    return ((yield), (x := 1), lambda: 1)", "def f():\n    return (yield), (x := 1), lambda: 1"),
    ],
)
def test_parentheses_stand_where_they_are_needed(source: str, text: str) -> None:
    assert again(source) == text + "\n"


def test_the_tree_that_is_printed_is_left_as_it_is() -> None:
    tree = ast.parse("class C:\n    def f(self):\n        'Doc'\n        return f'{x}', a and not b, -1, x in {1}")
    before = ast.dump(tree)
    to_source(tree)
    assert ast.dump(tree) == before


def test_a_module_is_decompiled_without_being_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    code = compile("import a\n\ndef f(x):\n    return x or a\n", "m.py", "exec")
    with monkeypatch.context() as patch:
        patch.setattr(source_text, "parse", None)
        result = decompile_code(code)
        assert result.verdict.proved
    assert [type(each).__name__ for each in result.tree.body] == ["Import", "FunctionDef"]
    assert result.tree is result.tree


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("x[_]", "x[a:]"),
        ("x[_, b]", "x[a:, b]"),
        ("x[_,]", "x[a:,]"),
        ("y = _", "y = __const_slice_0(a, None)"),
        ("f(_, x[1:])", "f(__const_slice_0(a, None), x[1:])"),
        ("x[(_, b), c]", "x[(__const_slice_0(a, None), b), c]"),
    ],
)
def test_a_slice_is_text_everywhere(place: str, expected: str) -> None:
    class Slices(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return ast.Slice(ast.Name("a", ast.Load()), None, None) if node.id == "_" else node

    source = to_source(Slices().visit(ast.parse(place)))
    assert source.text.strip() == expected
    assert list(source.constants.values()) == [slice] * ("__const" in expected)
    ast.parse(source.text)
