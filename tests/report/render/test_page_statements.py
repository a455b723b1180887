"""The statements of the page are right: locations of lines, callees, copied text, and the views of the whole run."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List

import pytest
from browser import VIEWS, opened
from large_runs import many_functions, stormy
from run_builder import RunBuilder
from sample_runs import sample_run

from depyf.report.model.run import (
    EntryGuard,
    FailedEntryGuard,
    Function,
    GraphBreak,
    Link,
    ModuleKernel,
    ModulePart,
    Phase,
    Recompile,
    Run,
    SourceFile,
)
from depyf.report.render.page import render_page

MODEL = """\
class Block:
    def forward(self, x):

        h = self.norm(x)
        return self.linear(h)


def norm(x):
    return x - x.mean()


def linear(x):
    return x @ w


def other(x):
    return x.sin()


def unseen(x):
    return x
"""


def model_run() -> Any:
    """``Block.forward`` calls two functions that it traces into; ``other`` is compiled on its own."""
    b = RunBuilder(sources=[SourceFile("/m.py", MODEL)])
    b.functions += [Function("forward", "Block.forward", 0, 2, 5), Function("other", "other", 0, 16, 17)]
    first, second = (0, 4), (0, 5)
    ops = [("sub", "sub(x)", (first, (0, 9))), ("mm", "mm(sub)", (second, (0, 13)))]
    b.compilation("0/0", 0, ops)
    b.compilation("1/0", 1, [("sin", "sin(x)", ((0, 17),))])
    at = next(index for index, each in enumerate(b.artifacts) if each.kind == "transformed")
    everything = ((0, 4), (0, 9), (0, 13), (0, 5))  # transformed code has sets of lines, not stacks
    b.artifacts[at] = replace(b.artifacts[at], links=(Link(2, 2, everything),))
    return b.run()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("model") / "index.html"
    path.write_text(render_page(*model_run()), encoding="utf-8")
    return path


def click(page: Any, line: int) -> None:
    page.click(f"#source-code-L{line} .text")


def chosen(page: Any) -> Dict[str, Any]:
    return {
        "function": page.locator("#source-pick option:checked").inner_text(),
        "graphs": page.locator(".graphs .chip").all_inner_texts(),
        "stage": page.locator("#stage-code .line.hit").count(),
        "kernels": page.locator("#kernel-code .line.hit").count(),
    }


def test_a_chosen_line_leads_to_the_function_that_it_belongs_to(chromium: Any, model: Path) -> None:
    with opened(chromium, model, "#source/f0") as page:
        assert "Block.forward" in chosen(page)["function"]
        click(page, 17)
        there = chosen(page)
        assert "other" in there["function"]
        assert there["graphs"] == ["1/0"]
        assert there["stage"] > 0
        assert there["kernels"] > 0
        click(page, 9)  # traced into by forward
        there = chosen(page)
        assert there["graphs"] != ["1/0"]
        assert there["stage"] > 0
        assert there["kernels"] > 0
        click(page, 20)  # nothing is known of it: what is shown stays
        assert chosen(page)["function"] == there["function"]


def broken_run(breaks: int) -> Any:
    """A function with ``breaks`` resume functions, each of which has two cache entries."""
    b = RunBuilder(sources=[SourceFile("/m.py", "\n".join(f"x{line} = f(x)" for line in range(1, 60)))])
    b.functions.append(Function("f", "f", 0, 1, 59))
    b.functions += [Function(f"resume_{n}", "f", 0, n, 59, 0, n) for n in range(2, breaks + 2)]
    for function in range(breaks + 1):
        for entry in range(2):
            b.compilation(f"{function}/{entry}", function, [("sin", "sin(x)", ((0, function + 1),))])
    return b.run()


def test_many_graphs_are_shown_function_by_function(chromium: Any, tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    path.write_text(render_page(*broken_run(25)), encoding="utf-8")
    with opened(chromium, path, "#source/f0") as page:
        assert chosen(page)["graphs"] == ["0/0", "0/1"]
        assert "Graphs of 26 functions" in page.inner_text(".graphs")
        page.select_option("#graph-function", label="resumed at line 9  (2 graphs)")
        assert chosen(page)["graphs"] == ["8/0", "8/1"]
        assert page.locator("#stage-pick option:checked").inner_text() == "Captured graph 8/0"
        assert page.evaluate("document.activeElement.id") == "graph-function"
        page.click(".graphs .chip >> text=8/1")
        assert page.locator("#graph-function option:checked").inner_text() == "resumed at line 9  (2 graphs)"
        click(page, 4)
        assert chosen(page)["graphs"] == ["3/0", "3/1"]
        page.select_option("#source-pick", label="all of m.py")
        page.select_option("#graph-function", label="f, resumed at line 5  (2 graphs)")
        assert chosen(page)["graphs"] == ["4/0", "4/1"]
    path.write_text(render_page(*broken_run(5)), encoding="utf-8")
    with opened(chromium, path, "#source/f0") as page:
        assert len(chosen(page)["graphs"]) == 12
        assert page.locator("#graph-function").count() == 0


def test_no_line_that_has_kernels_is_said_to_have_no_part_in_them(chromium: Any, model: Path) -> None:
    run, _ = model_run()
    lines = sorted({place[1] for kernel in run.kernels for place in kernel.places})
    assert len(lines) == 5
    with opened(chromium, model, "#source/f0") as page:
        for line in lines:
            click(page, line)
            assert "not in it" not in page.locator(".hits").all_inner_texts()[1], line
        click(page, 20)
        assert page.locator(".hits").all_inner_texts()[1] == "not in it"


def test_calls_are_those_of_recorded_stacks(chromium: Any, model: Path) -> None:
    def calls(page: Any, line: int) -> List[str]:
        click(page, line)
        found: List[str] = page.locator(".details h3:has-text('Calls') + ul a").all_inner_texts()
        return found

    with opened(chromium, model, "#source/f0") as page:
        assert calls(page, 4) == ["m.py:9"]
        assert calls(page, 5) == ["m.py:13"]
        assert calls(page, 9) == calls(page, 13) == []


def test_calls_stand_in_the_order_of_the_program(chromium: Any, tmp_path: Path) -> None:
    """The first text of a graph has few whole stacks: of calls that one way only leads to."""
    b = RunBuilder(sources=[SourceFile("/m.py", MODEL)])
    b.functions += [Function("forward", "Block.forward", 0, 2, 5)]
    b.compilation("0/0", 0, [(name, f"{name}(x)", ((0, 4), (0, line))) for name, line in (("sub", 9), ("mm", 13))])
    run, text_of = b.run()
    graph = next(each for each in run.artifacts if each.stage == "Captured_Graph")
    links = (Link(3, 3, ((0, 9),)), Link(4, 4, ((0, 4), (0, 13))))
    early = replace(
        graph, id="early.py", stage="pre_insert_deferred_runtime_asserts", order=graph.order - 1, links=links
    )
    run = replace(run, artifacts=(early, *run.artifacts))
    page_of = tmp_path / "index.html"
    page_of.write_text(render_page(run, lambda each: text_of(graph if each.id == early.id else each)), encoding="utf-8")
    with opened(chromium, page_of, "#source/f0") as page:
        click(page, 4)
        assert page.locator(".details h3:has-text('Calls') + ul a").all_inner_texts() == ["m.py:9", "m.py:13"]


def test_keys_lead_to_lines_that_something_is_known_of(chromium: Any, model: Path) -> None:
    """No graph was broken there."""
    with opened(chromium, model, "#source/f0") as page:
        page.keyboard.press("n")
        assert page.locator("#source-code .line.hit").first.get_attribute("data-line") == "4"


def test_a_file_without_breaks_is_not_said_to_have_some(chromium: Any, model: Path) -> None:
    with opened(chromium, model, "#source/f0") as page:
        assert "No line of this file broke a graph" in page.inner_text(".details")
        assert "5 lines of it are compiled" in page.inner_text(".details")
    path = model.with_name("broken.html")
    run, text_of = model_run()
    broken = replace(run, breaks=(GraphBreak("0/0", (0, 5), "print"),))
    path.write_text(render_page(broken, text_of), encoding="utf-8")
    with opened(chromium, path, "#source/f0") as page:
        assert "1 line of this file broke a graph" in page.inner_text(".details")


def library_run() -> Any:
    """A function whose line is in one kernel and two calls of libraries, and a wrapper of a library around it."""
    b = RunBuilder(
        sources=[SourceFile("/lib/wrap.py", "def inner():\n    pass\n", True), SourceFile("/m.py", "x = f(x)")]
    )
    b.functions += [Function("inner", "inner", 0, 1, 2), Function("f", "f", 1, 1, 1)]
    b.compilation("0/0", 0, [])
    b.compilation("1/0", 1, [("mm", "mm(x)", ((1, 1),))])
    module = next(each.id for each in b.artifacts if each.kind == "kernels" and each.compile_id == "1/0")
    b.kernels[:] = [ModuleKernel(module, f"k{at}", "1/0", False, extern=at > 0, places=((1, 1),)) for at in range(3)]
    b.compilations[0] = replace(b.compilations[0], status="empty", guards=(EntryGuard("TYPE_MATCH", "t"),))
    b.compilations[1] = replace(b.compilations[1], guards=(EntryGuard("TYPE_MATCH", "t"),))
    return b.run()


def test_calls_of_libraries_are_counted_apart_from_kernels(chromium: Any, tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    path.write_text(render_page(*library_run()), encoding="utf-8")
    with opened(chromium, path, "#source/f1/1") as page:
        assert page.locator("#source-code-L1 .tally").all_inner_texts()[1] == "1 kernel"
        assert page.locator("#source-code-L1 .tally").nth(1).get_attribute("title") == "1 kernel, 2 library calls"
        assert "1 kernel, 2 library calls" in page.locator(".details h3").all_inner_texts()
    with opened(chromium, path, "#flow/f1") as page:
        assert "1 kernel, 2 library calls" in page.locator(".drawing text").all_text_contents()
    with opened(chromium, path) as page:
        assert ["1", "kernel, 2 library calls"] in [
            text.split("\n") for text in page.locator(".tile").all_inner_texts()
        ]


def test_functions_of_the_program_come_before_those_of_libraries(chromium: Any, tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    path.write_text(render_page(*library_run()), encoding="utf-8")
    with opened(chromium, path) as page:
        names = page.locator(".view-overview td:first-child").all_inner_texts()
        assert names == ["f", "inner"]
    with opened(chromium, path, "#flow") as page:
        assert page.locator("#flow-pick option").all_inner_texts() == names
        assert page.inner_text("h1") == "f"
    with opened(chromium, path, "#guards") as page:
        assert page.locator("#guards-pick option:checked").inner_text() == "1/0  f: 1 guard"
    with opened(chromium, path, "#compilations") as page:
        assert page.locator(".view-compilations td:nth-child(3)").all_inner_texts() == ["no graph", ""]


@pytest.mark.parametrize("width", [1000, 1100, 1190, 1280, 1440])
@pytest.mark.parametrize("name", ["sample", "ranks", "diff"])
def test_names_of_views_are_whole_and_on_one_line(chromium: Any, pages: Dict[str, Path], name: str, width: int) -> None:
    with opened(chromium, pages[name], width=width) as page:
        heights = page.eval_on_selector_all("#views a", "all => all.map((each) => each.offsetHeight)")
        lines = page.eval_on_selector_all(
            "#views a",
            """all => all.map((each) => {
                const range = document.createRange();
                range.selectNodeContents(each);
                return range.getClientRects().length;
            })""",
        )
        assert set(lines) == {1}
        assert max(heights) <= 42
        inside = page.evaluate(
            "() => [...document.querySelectorAll('#views a, #tools *')].every((each) =>"
            " each.getBoundingClientRect().right <= innerWidth)"
        )
        assert inside
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_panes_show_the_graph_of_the_chosen_line_where_it_has_no_kernels(chromium: Any, tmp_path: Path) -> None:
    b = RunBuilder(sources=[SourceFile("/m.py", "x = f(x)\ny = g(x)\n")])
    b.functions.append(Function("f", "f", 0, 1, 2))
    for entry, line in enumerate((1, 2)):
        b.compilation(f"0/{entry}", 0, [("sin", "sin(x)", ((0, line),))])
    b.kernels[:] = [each for each in b.kernels if each.compile_id == "0/0"]
    path = tmp_path / "index.html"
    path.write_text(render_page(*b.run()), encoding="utf-8")
    with opened(chromium, path, "#source/f0/1") as page:
        assert page.locator("#kernel-pick option:checked").inner_text() == "Kernels 0/0"
        click(page, 2)
        assert page.locator("#stage-pick option:checked").inner_text() == "Captured graph 0/1"
        assert page.locator("#kernel-pick option:checked").inner_text() == "Kernels 0/1"
        assert page.locator(".hits").all_inner_texts()[1] == "not in it"


def test_the_graph_of_a_stage_that_is_asked_for_is_in_front(chromium: Any, tmp_path: Path) -> None:
    b = RunBuilder(sources=[SourceFile("/m.py", "x = f(x)\n")])
    b.functions.append(Function("f", "f", 0, 1, 1))
    for entry in range(2):
        b.compilation(f"0/{entry}", 0, [("sin", "sin(x)", ((0, 1),))])
    path = tmp_path / "index.html"
    path.write_text(render_page(*b.run()), encoding="utf-8")
    forward = [each.id for each in b.artifacts if each.stage == "Forward_graph"]

    def front(page: Any) -> List[str]:
        chosen = page.locator(".graphs .chip[aria-pressed=true]").all_inner_texts()
        return [*chosen, *page.locator(".panes option:checked").all_inner_texts()[1:]]

    with opened(chromium, path, f"#source/f0/1?stage={forward[1]}") as page:
        assert front(page) == ["0/1", "Forward graph 0/1", "Kernels 0/1"]
        page.select_option("#stage-pick", forward[0])
        assert front(page) == ["0/0", "Forward graph 0/0", "Kernels 0/0"]


def test_texts_of_pytorch_have_no_empty_lines_and_no_indentation_in_common(chromium: Any, tmp_path: Path) -> None:
    run, text_of = model_run()
    why = "It branches on `x`.\n\n    The condition:\n      lt = lt(sum_1, 0)\n"
    path = tmp_path / "index.html"
    broken = replace(run, breaks=(GraphBreak("0/0", (0, 5), "Branching", why),))
    path.write_text(render_page(broken, text_of), encoding="utf-8")
    with opened(chromium, path, "#breaks") as page:
        assert page.text_content(".told") == "It branches on x.\nThe condition:\n  lt = lt(sum_1, 0)"


def test_time_in_phases_of_one_name_inside_of_each_other_counts_once(chromium: Any, tmp_path: Path) -> None:
    run, text_of = model_run()
    phases = (
        Phase("0/0", "compile_file", 0.0, 4.0),
        Phase("0/0", "other", 0.0, 3.0, parent=0),
        Phase("0/0", "compile_file", 1.0, 2.0, parent=1),
    )
    path = tmp_path / "index.html"
    path.write_text(render_page(replace(run, phases=phases), text_of), encoding="utf-8")
    with opened(chromium, path, "#time") as page:
        row = page.locator(".view-time tr", has_text="compile_file").first
        assert row.locator("td").all_inner_texts() == ["compile_file", "the C++ compiler", "2", "4.00 s", "3.00 s"]


def test_a_phase_is_not_called_what_phases_inside_of_it_do(chromium: Any, tmp_path: Path) -> None:
    phases = (Phase("0/0", "dynamo", 0.0, 9.0), Phase("0/0", "backend_compile", 1.0, 8.0, parent=0))
    path = tmp_path / "index.html"
    path.write_text(render_page(replace(model_run()[0], phases=phases), lambda artifact: None), encoding="utf-8")
    with opened(chromium, path, "#time") as page:
        assert page.locator(".track .phase").all_inner_texts() == ["the whole compilation", "the backend"]


def test_a_file_that_was_traced_into_begins_with_what_is_in_a_graph(chromium: Any, tmp_path: Path) -> None:
    library = "\n".join(["# license"] * 300 + ["y = sin(x)"] + ["# more"] * 300)
    b = RunBuilder(sources=[SourceFile("/m.py", "x = f(x)"), SourceFile("/lib.py", library)])
    b.functions.append(Function("f", "f", 0, 1, 1))
    b.compilation("0/0", 0, [("sin", "sin(x)", ((0, 1), (1, 301)))])
    path = tmp_path / "index.html"
    path.write_text(render_page(*b.run()), encoding="utf-8")
    with opened(chromium, path, "#source/s1") as page:
        page.wait_for_selector("#source-code-L301")
        page.wait_for_function("document.getElementById('source-code-L301').getBoundingClientRect().top < innerHeight")


def test_escape_closes_the_search_at_once(chromium: Any, model: Path) -> None:
    with opened(chromium, model) as page:
        page.keyboard.press("Control+k")
        page.fill("#search-for", "norm")
        page.keyboard.press("Escape")
        assert not page.evaluate("document.getElementById('search').open")


def test_a_module_that_was_found_is_opened(chromium: Any, tmp_path: Path) -> None:
    run, text_of = sample_run()
    graph = next(each for each in run.artifacts if each.kind == "graph" and each.links)
    names = ["model", "model.deep", "model.deep.part"]
    modules = tuple(
        ModulePart(name, "M", at - 1 if at else None, graph.links[0].names) for at, name in enumerate(names)
    )
    artifacts = tuple(replace(each, modules=modules) if each is graph else each for each in run.artifacts)
    path = tmp_path / "index.html"
    path.write_text(render_page(replace(run, artifacts=artifacts), text_of), encoding="utf-8")
    with opened(chromium, path) as page:
        page.keyboard.press("Control+k")
        page.fill("#search-for", "deep.part")
        page.click(".found a")
        page.wait_for_selector(".layer.chosen[open]")
        assert page.inner_text(".layer.chosen > summary b") == "part"


@pytest.mark.parametrize("line", [10, 16, 22, 40])
def test_a_chosen_line_stays_in_sight_when_what_is_said_of_it_takes_room(
    chromium: Any, tmp_path: Path, line: int
) -> None:
    b = RunBuilder(sources=[SourceFile("/m.py", "\n".join(f"x{number} = f(x)" for number in range(1, 60)))])
    b.functions.append(Function("f", "f", 0, 1, 59))
    b.compilation("0/0", 0, [("sin", "sin(x)", ((0, line),))])
    run, text_of = b.run(breaks=(GraphBreak("0/0", (0, line), "print", "Because.\n" * 30),))
    path = tmp_path / "index.html"
    path.write_text(render_page(run, text_of), encoding="utf-8")
    below = """(line) => document.getElementById(`source-code-L${line}`).getBoundingClientRect().bottom
        <= document.querySelector("#source-code").getBoundingClientRect().bottom"""
    with opened(chromium, path, f"#source/f0/{line}", height=760) as page:
        assert page.evaluate(below, line)
    with opened(chromium, path, "#source/f0", height=760) as page:
        page.locator(f"#source-code-L{line} .text").click()
        assert page.evaluate(below, line)


def test_the_line_of_a_guard_is_not_its_own_caller(chromium: Any, tmp_path: Path) -> None:
    run, text_of = model_run()
    failed = FailedEntryGuard("1/0", "t", "n is 2", place=(0, 5), stack=((0, 4), (0, 5), (0, 13)))
    path = tmp_path / "index.html"
    path.write_text(render_page(replace(run, recompiles=(Recompile("1/0", 1, (failed,)),)), text_of), encoding="utf-8")
    with opened(chromium, path, "#recompiles") as page:
        assert " ".join(page.inner_text(".failed").split()).endswith("n is 2 m.py:5 called from m.py:4")


def test_copied_code_is_the_code(chromium: Any, model: Path) -> None:
    with opened(chromium, model, "#source/f0") as page:
        copied = page.evaluate(
            """() => {
                const range = document.createRange();
                range.selectNodeContents(document.querySelector("#source-code .inner"));
                getSelection().removeAllRanges();
                getSelection().addRange(range);
                return getSelection().toString();
            }"""
        )
        assert copied.strip("\n") == MODEL.strip("\n")
        ast.parse(copied)


def test_parameters_have_short_names_that_copy_as_the_whole_ones(chromium: Any, tmp_path: Path) -> None:
    b = RunBuilder(sources=[SourceFile("/m.py", "x = f(x)")])
    b.functions.append(Function("f", "f", 0, 1, 1))
    weight = "l_self_modules_layer_modules_0_modules_attn_parameters_weight_"
    other = "L_model_modules_layer_norm_buffers_running_mean_"
    code = f"mm({weight}, {other}, l_x_, l_parameters_, L_labels_)"
    b.compilation("0/0", 0, [("mm", code, ((0, 1),))])
    path = tmp_path / "index.html"
    path.write_text(render_page(*b.run()), encoding="utf-8")
    marked = "(line) => { getSelection().selectAllChildren(line); return getSelection().toString(); }"
    with opened(chromium, path, "#source/f0/1") as page:
        line = page.locator("#stage-code .line.hit .text", has_text="mm(")
        assert line.evaluate(marked).endswith(f"= torch.ops.aten.{code}  # f32[64, 16]")
        short = "all => all.map((each) => [each.dataset.short, each.title])"
        assert line.locator(".renamed").evaluate_all(short) == [
            ["layer.0.attn.weight", weight],
            ["model.layer_norm.running_mean", other],
        ]
    with opened(chromium, path, "#stages") as page:
        assert page.locator(".renamed").count() == 0  # the text as it is


def test_inputs_of_aotautograd_have_the_names_of_parameters_and_are_found_by_them(
    chromium: Any, tmp_path: Path
) -> None:
    b = RunBuilder(sources=[SourceFile("/m.py", "x = f(x)")])
    b.functions.append(Function("f", "f", 0, 1, 1))
    b.compilation("0/0", 0, [("mm", "mm(primals_1, primals_2, primals_3)", ((0, 1),))])
    weight = "L_self_modules_up_parameters_weight_"
    captured, forward = (
        next(e for e in b.artifacts if e.stage == stage) for stage in ("Captured_Graph", "Forward_graph")
    )
    b.texts[captured.id] = (
        f'class G:\n    def forward(self, L_x_: "f32[4][1]cpu", {weight}: "f32[4][1]cpu", {weight[:-1]}g_: "f32[]"):\n'
    )
    inputs = "".join(
        f'        primals_{n + 1}: "{type}[4][1]cpu",  # PlainAOTInput(idx={n})\n'
        for n, type in enumerate(("f32", "f32", "i64"))
    )
    text = b.texts[forward.id]
    b.texts[forward.id] = text.replace("(self, arg0_1, arg1_1)", f"(\n{inputs})")
    path = tmp_path / "index.html"
    path.write_text(render_page(*b.run()), encoding="utf-8")
    with opened(chromium, path, f"#source/f0/1?stage={forward.id}") as page:
        short = "all => all.map((each) => [each.dataset.short, each.title])"
        names = page.locator("#stage-code .line .renamed").evaluate_all(short)
        assert names == [["up.weight", "primals_2"]] * 2  # its own line, and mm; one of another dtype is not guessed
        page.keyboard.press("Control+k")
        page.fill("#search-for", "up.weight")
        page.wait_for_selector(".found a")
        assert [each for each in page.locator(".found a").all_inner_texts() if each.startswith("Forward graph 0/0")]


def test_only_the_script_of_the_page_may_run(chromium: Any, tmp_path: Path) -> None:
    text = render_page(*sample_run())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.group(1).split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert re.fullmatch(r"'sha256-[\w+/]+=*'", rules["script-src"])
    assert " onclick=" not in text
    path = tmp_path / "index.html"
    injected = "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'>"
    path.write_text(text.replace("<main", injected + "<main"), encoding="utf-8")
    context = chromium.new_context()
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")
    assert page.evaluate("window.pwned") is None
    context.close()


def test_breaks_are_shown_by_reason(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#breaks") as page:
        assert page.locator(".view-breaks > .scroll tbody tr").count() == 5
        section = page.locator(".view-breaks section:has(h2:has-text('Data-dependent branching'))").inner_text()
        assert "What to do: Use torch.where, or torch.cond." in section
        assert "train.py:20" in section
        row = page.locator(".view-breaks > .scroll tr:has-text('Data-dependent branching') td").all_inner_texts()
        assert row[1:4] == ["1", "1", "1"]
        assert row[4].endswith("s")
        page.click(".view-breaks section >> text=train.py:20")
        page.wait_for_function("() => location.hash.startsWith('#source/f0/20')")
    with opened(chromium, pages["sample"], "#overview") as page:
        page.click(".tile:has-text('graph breaks')")
        page.wait_for_selector(".view-breaks:not([hidden])")


def test_guards_are_shown_in_groups(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#guards/6%2F0") as page:
        groups = page.locator(".view-guards details.guards > summary").all_inner_texts()
        assert [each.split(" ")[:2] for each in groups] == [["Tensors", "1"], ["Values", "1"]]
        row = page.locator(".view-guards details.guards:has-text('Values') td").all_inner_texts()
        assert row[:2] == ["factor", "0"]
        assert "train.py:33" in row[3]
        page.click(".view-guards .place")
        page.wait_for_function("() => location.hash.startsWith('#source/f6/33')")


def test_all_guards_of_a_group_are_shown(chromium: Any, tmp_path: Path) -> None:
    run = model_run()[0]
    guards = tuple(EntryGuard("EQUALS_MATCH", f"L['n{at}'] == 1", f"L['n{at}']") for at in range(700))
    path = tmp_path / "index.html"
    whole = replace(run, compilations=(replace(run.compilations[0], guards=guards),))
    path.write_text(render_page(whole, lambda artifact: None), encoding="utf-8")
    with opened(chromium, path, "#guards/0%2F0") as page:
        page.click(".view-guards details.guards > summary")
        page.click("button:has-text('Show all 700 rows')")
        page.evaluate("document.querySelector('.view-guards').scrollTo(0, 1e9)")
        page.wait_for_selector(".view-guards td:has-text('n699')")


def storm(count: int) -> Run:
    return stormy(model_run()[0], count)


def test_many_rows_with_the_same_guard_first_are_one(chromium: Any, tmp_path: Path) -> None:
    """The guards of older entries that failed differ in each."""
    first = FailedEntryGuard("0/0", "n == 0", "n is 1", "0", "1", checked="n")
    others = [FailedEntryGuard("0/0", f"m{at} == 0", f"m{at} is 1", "0", "1", checked=f"m{at}") for at in range(20)]
    path = tmp_path / "index.html"
    for count, rows in ((12, 12), (13, 1)):
        run = replace(
            storm(count + 1),
            recompiles=tuple(Recompile(f"0/{at + 1}", 0, (first, others[at])) for at in range(count)),
        )
        path.write_text(render_page(run, lambda artifact: None), encoding="utf-8")
        with opened(chromium, path, "#recompiles") as page:
            assert page.locator(".view-recompiles tbody tr").count() == rows
    with opened(chromium, path, "#recompiles") as page:
        cells = page.locator(".view-recompiles tbody td").all_inner_texts()
        assert " ".join(cells[0].split()) == "0/1 … 0/13"
        assert cells[1] == "13"
        assert "and 10 more" in cells[-1]  # of 14 guards


def after_breaks(count: int) -> Run:
    """``count`` resume functions, each recompiled as the size of a variable of its own changed, and a caller."""
    run = storm(2)
    recompiles = [
        replace(run.recompiles[0], failed=(FailedEntryGuard("0/0", "", "", "2", "3", checked=checked),))
        for checked in ["n", *(f"size of h{number}" for number in range(count))]
    ]
    two = (*recompiles[0].failed, FailedEntryGuard("0/0", "", "", "a", "b", checked="mode"))
    return replace(run, recompiles=(*recompiles, replace(recompiles[0], failed=two)))


def test_guards_of_one_row_each_share_a_column_and_equal_changes_a_row(chromium: Any, tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    path.write_text(render_page(after_breaks(26), lambda artifact: None), encoding="utf-8")
    with opened(chromium, path, "#recompiles") as page:
        heads = page.locator(".view-recompiles thead th").all_inner_texts()
        assert heads == ["Entries", "Times", "n", "mode", "Other guards"]
        rows = [row.split("\t")[1:] for row in page.locator(".view-recompiles tbody tr").all_inner_texts()]
        shared = "2 → 3\none of: size of h0, size of h1, size of h2, size of h3, and 22 more"
        assert rows == [["1", "2 → 3", "", ""], ["26", "", "", shared], ["1", "2 → 3", "a → b", ""]]
    path.write_text(render_page(after_breaks(1), lambda artifact: None), encoding="utf-8")
    with opened(chromium, path, "#recompiles") as page:
        heads = page.locator(".view-recompiles thead th").all_inner_texts()
        assert heads == ["Entries", "Times", "n", "size of h0", "mode"]


def test_recompiles_that_took_longest_come_first(chromium: Any, tmp_path: Path) -> None:
    run = many_functions(2)[0]
    one, other = run.compilations
    again = (replace(one, compile_id="0/1", seconds=1.0), replace(other, compile_id="1/1", seconds=2.2))
    failed = (FailedEntryGuard("0/0", "n == 1", "n is 2", "1", "2"),)
    run = replace(
        run,
        compilations=(*run.compilations, *again),
        recompiles=(Recompile("0/1", 0, failed), Recompile("1/1", 1, failed)),
    )
    path = tmp_path / "index.html"
    path.write_text(render_page(run, lambda artifact: None), encoding="utf-8")
    with opened(chromium, path, "#recompiles") as page:
        names = page.locator(".view-recompiles h2").all_inner_texts()
        assert [each.split()[0] for each in names] == ["f1", "f0"]
        assert "recompiled once, 2.33 s of compile time" in page.inner_text("#recompiles-f1")


def test_what_would_avoid_many_recompiles_is_in_sight(chromium: Any, tmp_path: Path) -> None:
    run = storm(14)
    causes = [("number", "Pass n as a tensor.")] * 9 + [("size", "Mark x.")] * 4
    again = tuple(replace(each, cause=cause, advice=words) for each, (cause, words) in zip(run.recompiles, causes))
    path = tmp_path / "index.html"
    path.write_text(render_page(replace(run, recompiles=again), lambda artifact: None), encoding="utf-8")
    with opened(chromium, path, "#recompiles") as page:
        assert not page.locator(".view-recompiles ol.recompiles").is_visible()
        said = page.locator(".view-recompiles section > ul > li").all_inner_texts()
        assert said == ["n (9 of them): Pass n as a tensor.", "n (4 of them): Mark x."]
    many = tuple(replace(each, cause=f"cause {at}", advice=f"Do {at}.") for at, each in enumerate(run.recompiles))
    path.write_text(render_page(replace(run, recompiles=many), lambda artifact: None), encoding="utf-8")
    with opened(chromium, path, "#recompiles") as page:
        said = page.locator(".view-recompiles section > ul > li").all_inner_texts()
        assert said[6:] == [f"and {len(many) - 6} more causes, each with its recompilations below"]


def test_equal_recompiles_are_one_row(chromium: Any, tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    path.write_text(render_page(storm(300), lambda artifact: None), encoding="utf-8")
    with opened(chromium, path, "#recompiles") as page:
        cells = page.locator(".view-recompiles tbody tr td").all_inner_texts()
        assert len(cells) == 3
        assert cells[1] == "299"
        assert cells[2] == "0 → 1, 1 → 2, 2 → 3, … 298 → 299, 299 different ones"
        assert page.locator(".view-recompiles tbody b").count() == 1
        assert page.locator("li[id^=recompile-]").count() == 0
        page.click("summary:has-text('Each of the 299')")
        page.wait_for_selector("li[id^=recompile-]")
        assert page.locator("li[id^=recompile-]").count() == 40
        page.click("button:has-text('Show 40 more')")
        assert page.locator("li[id^=recompile-]").count() == 80
    with opened(chromium, path, "#recompiles/0%2F250") as page:
        assert "n is 250" in page.inner_text(".recompiles > li.chosen")
        assert "called from m.py:17" in page.inner_text(".recompiles > li.chosen .failed >> nth=0")


def test_what_is_beyond_a_text_is_said_and_harms_nothing(chromium: Any, tmp_path: Path) -> None:
    run, text_of = model_run()
    kernels = next(each for each in run.artifacts if each.kind == "kernels")
    short = {kernels.id: "# one line\n"}
    path = tmp_path / "index.html"
    path.write_text(render_page(run, lambda artifact: short.get(artifact.id) or text_of(artifact)), encoding="utf-8")
    with opened(chromium, path, "#source/f0/4") as page:
        page.click(".details button.link >> nth=0")
        assert "there is no line" in page.locator(".hits").all_inner_texts()[1]
        assert "the text has 1 line" in page.locator(".hits").all_inner_texts()[1]
    with opened(chromium, path, f"#stages/{kernels.id}/L9999") as page:
        assert "there is no line 9999: the text has 1 line" in page.inner_text(".heading")
    path.write_text(
        render_page(replace(run, sources=(SourceFile("/m.py\0", MODEL),)), lambda artifact: None), encoding="utf-8"
    )
    with opened(chromium, path, "#source/f0") as page:
        assert "is not there" in page.inner_text("#stage-code")
        assert page.locator("#source-code .line").count() > 10


def test_thousands_of_entries_are_cut_and_counted(chromium: Any, tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    text = render_page(storm(2000), lambda artifact: None)
    assert "1,940 more cache entries" in text
    assert len(text) < 1_000_000
    path.write_text(text, encoding="utf-8")
    with opened(chromium, path, "#time") as page:
        rows = ".view-time [aria-label^='Each compilation'] tbody tr"
        assert page.locator(rows).count() == 100
        page.click("button:has-text('Show all 2,000 rows')")
        assert page.locator("button:has-text('Show all 2,000 rows')").count() == 0
        assert page.locator(rows).count() < 1200  # the others are made when they come into sight
        page.evaluate("document.querySelector('.view-time').scrollTo(0, 1e9)")
        page.wait_for_selector(f"{rows}:has-text('0/1999')")
        assert page.locator(".unmade").count() > 5
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator(rows).count() == 2000
        assert page.locator(rows).last.get_attribute("aria-rowindex") == "2001"  # the head is the first
    with opened(chromium, path, "#source/f0/17") as page:
        assert page.locator(".details .card.recompile").count() == 12
        assert "and 1,987 more like these" in page.inner_text(".details")


def test_columns_of_a_long_table_are_looked_through_once(chromium: Any, tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    path.write_text(render_page(storm(2000), lambda artifact: None), encoding="utf-8")
    with opened(chromium, path, "#overview") as page:
        page.evaluate("""() => {
            const some = Array.prototype.some;
            window.looked = 0;
            Array.prototype.some = function (wanted) {
                return some.call(this, (...each) => { window.looked += 1; return wanted(...each); });
            };
        }""")
        page.evaluate("location.hash = '#compilations'")
        page.wait_for_selector("button:has-text('Show all 2,000 rows')")
        assert page.evaluate("window.looked") < 50_000


def test_everything_is_found(chromium: Any, pages: Dict[str, Path]) -> None:
    def found(page: Any, words: str) -> List[str]:
        page.fill("#search-for", words)
        page.wait_for_function("words => document.getElementById('found').dataset.words === words", arg=words.lower())
        kinds: List[str] = page.locator("#found h3").all_inner_texts()
        return kinds

    with opened(chromium, pages["sample"], "#overview") as page:
        page.keyboard.press("Control+k")
        assert page.evaluate("document.activeElement.id") == "search-for"
        assert "Functions" in found(page, "train_step")
        assert "Graph breaks" in found(page, "data-dependent")
        assert "Kernels" in found(page, "cpp_fused_")
        assert "Guards" in found(page, "L['factor']")
        assert "Stages and files" in found(page, "Forward_graph")
        assert "Lines of stages" in found(page, "_softmax.default")
        assert found(page, "nothing like this") == []
        assert "Nothing holds" in page.inner_text("#found")
        assert found(page, "y.cos() + y.sin()")[0] == "Your code"
        page.keyboard.press("Enter")
        page.wait_for_selector(".view-source:not([hidden])")
        assert page.locator("#source-code .line.hit").get_attribute("data-line") == "34"
        assert not page.evaluate("document.getElementById('search').open")
    with opened(chromium, pages["hostile"], "#overview") as page:
        page.keyboard.press("/")
        assert found(page, "pwned")
        assert page.evaluate("window.pwned") is None


def test_panes_beside_the_source_name_files_briefly(chromium: Any, model: Path) -> None:
    with opened(chromium, model, "#source/f0") as page:
        comment = page.locator("#stage-code .line .text[title^='# File: ']").first
        assert re.fullmatch(r"\s*# [\w.]+:\d+  \S.*", comment.inner_text())


def test_a_pane_that_has_nothing_to_show_gives_its_room_away(chromium: Any, model: Path, tmp_path: Path) -> None:
    run, text_of = model_run()
    bare = replace(run, artifacts=tuple(each for each in run.artifacts if each.kind != "kernels"), kernels=())
    path = tmp_path / "index.html"
    path.write_text(render_page(bare, text_of), encoding="utf-8")

    def widths(page: Any) -> List[int]:
        return [round(pane.bounding_box()["width"]) for pane in page.locator(".pane").all() if pane.is_visible()]

    with opened(chromium, model, "#source/f0") as page:
        assert len(widths(page)) == 3
    with opened(chromium, path, "#source/f0") as page:
        assert len(widths(page)) == 2
        assert sum(widths(page)) == pytest.approx(1280, abs=6)


@pytest.mark.parametrize("view", ["source/f0/18", *VIEWS])
def test_nothing_lies_over_something_else_on_a_narrow_screen(chromium: Any, pages: Dict[str, Path], view: str) -> None:
    with opened(chromium, pages["sample"], f"#{view}", width=400, height=900) as page:
        header, main = page.locator("header").bounding_box(), page.locator("main").bounding_box()
        assert header["height"] < 150  # all views are in sight
        assert header["y"] + header["height"] <= main["y"] + 1
        for link in page.locator("#views a").all():
            assert link.bounding_box()["height"] < 40
        below = main["y"]
        for pane in page.locator(".view:not([hidden]) .pane").all():
            box = pane.bounding_box()
            assert box["y"] >= below - 1
            assert box["height"] > 200
            below = box["y"] + box["height"]
