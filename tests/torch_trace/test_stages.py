"""The text of graph files."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import Set

import pytest

from depyf.dynamo.capture import steps
from depyf.torch_trace import outlines
from depyf.torch_trace.outlines import Outline, boxed, forwards, with_input_types
from depyf.torch_trace.stages import (
    Expected,
    NamedStage,
    Stage,
    graph_file,
    is_between,
    stage_of,
    without_imports,
)

READABLE = """class <lambda>(torch.nn.Module):
    def forward(self, L_x_: "f32[3][1]cpu"):
        l_x_ = L_x_

        # File: a.py:3 in f, code: return x.sin()
        sin: "f32[3][1]cpu" = torch.sin(l_x_);  l_x_ = None
        cast = sin.to(device(type='cpu')) * inf
        return (cast,)

    class inner(torch.nn.Module):
        def forward(self, a):
            neg = -a
            return neg
"""


def test_a_graph_file_parses_and_imports_what_it_uses() -> None:
    text = graph_file(READABLE, "title").text
    ast.parse(text)
    assert text.startswith("# title\n# Written before")
    assert "class GraphModule(torch.nn.Module):" in text


def test_a_graph_that_is_no_python_is_kept_as_comments() -> None:
    text = graph_file("class G(torch.nn.Module):\n    x = <weird>\n", "title").text
    assert ast.parse(text).body == []
    assert "#     x = <weird>" in text


def test_outlines_tell_inputs_and_results_of_each_graph() -> None:
    assert [each.outline for each in forwards(graph_file(READABLE, "").text)] == [
        Outline(("L_x_",), ("l_x_", "sin", "cast")),
        Outline(("a",), ("neg",)),
    ]


def test_the_outline_of_what_torch_prints_needs_no_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree of a large graph is half a million objects, for which the collector goes through all others."""
    text = graph_file(READABLE, "").text
    monkeypatch.setattr(outlines, "parse", lambda text: pytest.fail("a tree was made"))
    assert len(forwards(text)) == 2


@pytest.mark.parametrize(
    "statements",
    [
        "a = b;  b = None",
        "a = b;  b = c = None",
        "a[0] = b;  setitem = a;  a = setitem = None",
        'a: "f32[2]" = b(1, dtype = x)',
        "a : torch.Tensor = b",
        "a = None",
        "a, b = c",
        "a.b = c",
        "torch._check(a == b);  a = None",
        "a = b(';  c = 1')",
        "a = b('it\\'s;  c = 1')",
        "a = b(\n            1)",
        "a = b(\n        1)",
        'a = b("""\n        c = 1""")',
        "with a:\n            b = 1",
        "a == b",
        "a = b = c",
        "return (\n            a,  # AOTOutput(idx=0)\n            b,\n        )",
        "return (\n            'a;  c = 1',\n        )",
        "c = b;  b = None\n        return (\n            [a, c],\n        )",
    ],
)
@pytest.mark.parametrize(
    "arguments",
    [
        "self",
        "self, a",
        'self, a: "f32[1, 2]", b',
        "self, *args",
        "self, a=1",
        "x, a",
        '\n        self,\n        a: "f32[1, 2]",  # AOTInput(idx=0)\n        b,\n    ',
        "\n        self,\n        *a,\n    ",
    ],
)
def test_outlines_by_lines_are_those_of_the_tree(statements: str, arguments: str) -> None:
    head = f"import torch\nclass G(torch.nn.Module):\n    def forward({arguments}):\n"
    text = f"{head}        {statements}\n        return a\n"
    by_lines = outlines._by_lines(text)
    assert by_lines is None or by_lines == list(outlines._by_syntax(text))
    assert forwards(text) == list(outlines._by_syntax(text))


def test_lines_stay_where_they_are_without_imports() -> None:
    text = graph_file(READABLE, "title").text
    bare = without_imports(text)
    assert "import" not in bare
    assert bare.splitlines()[-1] == text.splitlines()[-1]
    assert len(bare.splitlines()) == len(text.splitlines())


def test_boxed_inputs_get_the_types_of_the_arguments() -> None:
    typed = "class G(M):\n    def forward(self, a: 'f32[2]', b):\n        return a\n"
    boxed = (
        "class G(M):\n    def forward(self, args_list):\n        a = next(i)\n        b = next(i)\n        return a\n"
    )
    assert with_input_types(boxed, forwards(typed)) == boxed.replace("a = next", 'a: "f32[2]" = next')


PRINTED = """class GraphModule(torch.nn.Module):
    def forward(
        self,
        a: "f32[2]",  # PlainAOTInput(idx=0)
        b: "Sym(s0)",  # PlainAOTInput(idx=1)
    ):
        # File: a.py:3 in f, code: return x.sin()
        c: "f32[2]" = torch.ops.aten.mul.Tensor(a, b);  a = b = None

        d: "f32[2]" = torch.ops.aten.sin.default(c);  c = None
        return (
            d,  # PlainAOTOutput(idx=0)
        )
"""
CODE = """


def forward(self, args_list):
    args_iter = iter(args_list)
    a = next(args_iter)
    b = next(args_iter)
    args_list.clear()
    c = torch.ops.aten.mul.Tensor(a, b);  a = b = None
    d = torch.ops.aten.sin.default(c);  c = None
    return (d,)
    """


def test_a_printed_graph_takes_the_arguments_of_its_boxed_form() -> None:
    text = boxed(PRINTED, CODE)
    assert text is not None
    types = forwards(PRINTED)
    assert with_input_types(text, types).splitlines()[1:6] == [
        "    def forward(self, args_list):",
        "        args_iter = iter(args_list)",
        '        a: "f32[2]" = next(args_iter)',
        '        b: "Sym(s0)" = next(args_iter)',
        "        args_list.clear()",
    ]
    assert text.splitlines()[6:] == [*PRINTED.splitlines()[6:10], "        return (d,)"]
    inner = "    class inner(torch.nn.Module):\n        def forward(self, x):\n            return (x,)\n"
    assert boxed(PRINTED + "\n" + inner, CODE) == text + "\n" + inner
    assert boxed(PRINTED, CODE.replace("self, args_list", "self, a, b")) is None
    assert boxed("graph():\n    return d\n", CODE) is None


def test_what_a_graph_file_compiles_to_lacks_its_first_lines() -> None:
    made = graph_file(READABLE, "title")
    whole = compile(without_imports(made.text), "<graph>", "exec")
    assert made.code is not None
    assert whole.co_consts[0].co_code == made.code.co_consts[0].co_code
    assert whole.co_consts[0].co_firstlineno == made.code.co_consts[0].co_firstlineno + made.above


def test_the_same_graph_under_two_names_is_compiled_once() -> None:
    first, second = graph_file(READABLE, "one"), graph_file(READABLE, "other\n# title")
    assert first.code is second.code
    assert first.text != second.text
    assert first.above + 1 == second.above


def test_one_stage_has_one_name_whatever_the_trace_calls_it() -> None:
    assert stage_of("aot_inference_graph", "") is stage_of("aot_forward_graph", "") is Stage.FORWARD
    assert stage_of("inductor_post_grad_graph", "") is stage_of("after_post_grad_graph", "") is Stage.AFTER_POST_GRAD
    assert stage_of("chromium_event", "{}") is None
    assert stage_of("aot_forward_graph", None) is None


@pytest.mark.parametrize(
    ("payload", "is_one"),
    [
        ("class GraphModule(torch.nn.Module):\n    def forward(self): return ()\n", True),
        ("class <lambda>(torch.nn.Module):\n    def forward(self): return ()\n", True),
        ("\n# of a pass\n# that says more\n\nclass submod_0(torch.nn.Module):\n    pass\n", True),
        ("graph():\n    %x : [num_users=1] = placeholder[target=x]\n", True),
        ("import torch\nclass Repro(torch.nn.Module):\n    pass\n", False),
        ("# AOT ID: ['0_inference']\nimport torch\n", False),
        ('{"class A(torch.nn.Module):": 1}', False),
        ("", False),
    ],
)
def test_a_graph_under_any_other_name_is_a_stage_of_that_name(payload: str, is_one: bool) -> None:
    found = stage_of("before split", payload)
    assert found == (NamedStage("before split") if is_one else None)


# One table of stages

SOURCE = Path(__file__).resolve().parents[2] / "src" / "depyf"
SPELL_THEM = {
    "torch_trace/stages.py": "the table",
    "dynamo/hooks/private_names.py": "which module of PyTorch sends an event is a fact about PyTorch",
}


def texts_in(path: Path) -> Set[str]:
    """The texts of a module that are no documentation."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in documentation)
    return {node.value for node in nodes if isinstance(node.value, str)}


def test_a_stage_is_in_the_order_in_which_a_graph_goes_through_it() -> None:
    orders = [stage.facts.order for stage in Stage]
    assert orders == sorted(set(orders)), "the places of the members and their `order` differ"
    levels = [stage.facts.level for stage in Stage if stage is not Stage.WILD]
    assert levels == sorted(levels)


def test_what_the_trace_calls_a_graph_is_one_stage() -> None:
    names = Counter(name for stage in Stage for name in stage.facts.records)
    assert set(names.values()) == {1}
    assert all(stage_of(name, READABLE) is stage for stage in Stage for name in stage.facts.records)


@pytest.mark.parametrize("stage", list(Stage))
def test_a_stage_is_everywhere(stage: Stage) -> None:
    facts = stage.facts
    assert Stage(stage.value) is stage
    assert re.fullmatch(r"[A-Za-z]+(_[A-Za-z]+)+", stage.value), "file names are read by this (report/read)"
    assert facts.phrase
    if facts.records:
        assert facts.records[stage.record]
        assert steps.AFTER[stage.record] == facts.records[stage.record]
    else:
        assert facts.expected is Expected.NEVER
    assert not (facts.lost_when_warm and not facts.records)


def test_nothing_else_spells_a_stage() -> None:
    spelled = {stage.value for stage in Stage} | {name for stage in Stage for name in stage.facts.records}
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if texts_in(path) & spelled:
            found[name] = sorted(texts_in(path) & spelled)
    elsewhere = {name: texts for name, texts in found.items() if name not in SPELL_THEM}
    assert not elsewhere, "take it from the member of Stage"
    assert set(SPELL_THEM) <= set(found)


def test_the_page_names_stages_that_there_are() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (SOURCE / "report" / "render" / "web").rglob("*.js")]
    named = {name for text in texts for name in re.findall(r'"(\w+_[Gg]raph|(?:BEFORE|AFTER)_\w+)"', text)}
    assert named
    known = {stage.value for stage in Stage}
    assert all(name in known or is_between(NamedStage(name)) for name in named), named - known
