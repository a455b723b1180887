"""The text of graph files."""

from __future__ import annotations

import ast

import pytest

from depyf.torch_trace.stages import (
    NamedStage,
    Outline,
    Stage,
    graph_file,
    outlines,
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
    assert outlines(graph_file(READABLE, "")) == [
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
    assert with_input_types(boxed, typed) == boxed.replace("a = next", 'a: "f32[2]" = next')


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
