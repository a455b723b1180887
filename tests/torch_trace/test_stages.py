"""The text of graph files."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import Set

import pytest

from depyf.running import progress
from depyf.torch_trace.stages import (
    Expected,
    NamedStage,
    Outline,
    Stage,
    forwards,
    graph_file,
    outline_of,
    stage_of,
    with_input_types,
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
    text = graph_file(READABLE, "title")
    ast.parse(text)
    assert text.startswith("# title\n# Written before")
    assert "class GraphModule(torch.nn.Module):" in text


def test_a_graph_that_is_no_python_is_kept_as_comments() -> None:
    text = graph_file("class G(torch.nn.Module):\n    x = <weird>\n", "title")
    assert ast.parse(text).body == []
    assert "#     x = <weird>" in text


def test_outlines_tell_inputs_and_results_of_each_graph() -> None:
    assert [outline_of(function) for function in forwards(graph_file(READABLE, ""))] == [
        Outline(("L_x_",), ("l_x_", "sin", "cast")),
        Outline(("a",), ("neg",)),
    ]


def test_lines_stay_where_they_are_without_imports() -> None:
    text = graph_file(READABLE, "title")
    bare = without_imports(text)
    assert "import" not in bare
    assert bare.splitlines()[-1] == text.splitlines()[-1]
    assert len(bare.splitlines()) == len(text.splitlines())


def test_boxed_inputs_get_the_types_of_the_arguments() -> None:
    typed = "class G(M):\n    def forward(self, a: 'f32[2]', b):\n        return a\n"
    boxed = (
        "class G(M):\n    def forward(self, args_list):\n        a = next(i)\n        b = next(i)\n        return a\n"
    )
    assert with_input_types(boxed, list(forwards(typed))) == boxed.replace("a = next", 'a: "f32[2]" = next')


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
    assert orders == sorted(set(orders))
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
        assert progress._NEXT[stage.record] == facts.records[stage.record]
        assert facts.expected is not Expected.NEVER, "what is missing in a dump would not be said"
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
    assert {name: texts for name, texts in found.items() if name not in SPELL_THEM} == {}
    assert set(SPELL_THEM) <= set(found)


def test_the_page_names_stages_that_there_are() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (SOURCE / "report" / "render" / "web").rglob("*.js")]
    named = {name for text in texts for name in re.findall(r'"(\w+_[Gg]raph|(?:BEFORE|AFTER)_\w+)"', text)}
    assert named
    assert named <= {stage.value for stage in Stage}
