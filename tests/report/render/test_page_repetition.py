"""What many lines, entries or calls have in common is said once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Optional
from urllib.parse import quote

import pytest
from browser import opened, unfold
from large_runs import stormy
from run_builder import RunBuilder
from sample_runs import sample_run

from depyf.report.model.headline import ORDER_OF_FINDINGS
from depyf.report.model.run import (
    FailedEntryGuard,
    Finding,
    Function,
    GraphBreak,
    ModuleKernel,
    ModulePart,
    Place,
    Recompile,
    Run,
    ShapeEvent,
    SourceFile,
)
from depyf.report.render.markdown import index_markdown
from depyf.report.render.page import render_page
from depyf.report.render.summary import summary_lines

TEXT = "def f(x):\n" + "".join(f"    x = g{at}(x)\n" for at in range(1, 9)) + "    return x\n"
LIBRARY = "/site-packages/torch/nn/modules/module.py"


def compiled(**changes: Any) -> Run:
    b = RunBuilder(sources=[SourceFile("/m.py", TEXT), SourceFile(LIBRARY, "x\n" * 20, library=True)])
    b.functions.append(Function("f", "f", 0, 1, 10))
    b.compilation("0/0", 0, [("add", "add(x)", ((0, 2),))])
    run, _ = b.run()
    return replace(run, **changes)


def written(tmp_path: Path, run: Run) -> Path:
    path = tmp_path / "index.html"
    path.write_text(render_page(run, lambda artifact: None), encoding="utf-8")
    return path


def words(text: str) -> str:
    return " ".join(text.split())


def test_what_all_places_of_a_break_have_in_common_is_said_once(chromium: Any, tmp_path: Path) -> None:
    def broken(line: int, explanation: str, *callers: Place) -> GraphBreak:
        stack = (*callers, (0, line))
        return GraphBreak("0/0", (0, line), "Data-dependent branching", explanation, stack=stack, advice="Use where.")

    said = "Detected branching.\nIt is computed as follows:\n  gt(sum_1, {})"
    alike = [broken(line, said.format(line), (0, 9)) for line in (2, 3, 4)]
    with opened(chromium, written(tmp_path, compiled(breaks=tuple(alike))), "#breaks") as page:
        section = words(page.inner_text(".view-breaks section"))
        assert section.count("Detected branching.") == section.count("called from") == section.count("Use where.") == 1
        rows = page.locator(".view-breaks section tbody tr")
        assert rows.count() == 3
        unfold(rows.nth(1).locator("summary"))
        assert "gt(sum_1, 3)" in rows.nth(1).inner_text()
    other = broken(5, "Another.", (0, 8))
    with opened(chromium, written(tmp_path, compiled(breaks=(*alike, other))), "#breaks") as page:
        cells = [words(each) for each in page.locator(".view-breaks section tbody tr").all_inner_texts()]
        assert all("called from" in each for each in cells)


def test_what_an_explanation_quotes_of_a_graph_is_folded(chromium: Any, tmp_path: Path) -> None:
    quoted = '# File "/a/b/model.py", line 2, in f, code: if x:\n  gt = gt(x)'
    said = f"No dynamic control flow.\nComputed as follows:\n  {quoted}"
    breaks = (GraphBreak("0/0", (0, 2), "Data-dependent branching", said),)
    for address, scope in (("#breaks", ".view-breaks section"), ("#source/f0/2", ".card.break")):
        with opened(chromium, written(tmp_path, compiled(breaks=breaks)), address) as page:
            card = page.locator(scope).first
            assert "# File" not in card.text_content()
            assert "gt = gt" not in card.inner_text()
            unfold(card.get_by_text("Computed as follows:"))
            assert "# model.py:2  if x:\ngt = gt(x)" in card.inner_text()


def test_breaks_of_one_title_at_other_functions_have_sections_of_their_own(chromium: Any, tmp_path: Path) -> None:
    def broken(line: int, name: str, advice: str) -> GraphBreak:
        said = f"Dynamo does not know how to trace builtin operator `{name}` with argument types ['str']"
        return GraphBreak("0/0", (0, line), "Failed to trace builtin operator", said, advice=advice)

    run = compiled(breaks=(broken(2, "print", "Print later."), broken(3, "open", "Open before.")))
    with opened(chromium, written(tmp_path, run), "#breaks") as page:
        heads = page.locator(".view-breaks section h2").all_inner_texts()
        assert heads == [f"{name} (Failed to trace builtin operator)" for name in ("print", "open")]
    with opened(chromium, written(tmp_path, run), "#source/f0/2") as page:
        assert "Graph break: print (Failed to trace builtin operator)" in page.inner_text("#source-code .remark")


def test_calls_in_libraries_are_folded_and_unfold(chromium: Any, tmp_path: Path) -> None:
    stack = ((0, 9), *((1, line) for line in (7, 8, 9, 10)), (0, 2))
    run = compiled(breaks=(GraphBreak("0/0", (0, 2), "r", "e", stack=stack),))
    with opened(chromium, written(tmp_path, run), "#breaks") as page:
        called = page.locator(".view-breaks section p:has-text('called from')")
        assert words(called.inner_text()) == "called from module.py:10, from 3 more lines of libraries, from m.py:9"
        called.locator("button").click()
        assert words(called.inner_text()).endswith("module.py:9, from module.py:8, from module.py:7, from m.py:9")


def test_a_check_that_failed_for_many_entries_is_said_once(chromium: Any, tmp_path: Path) -> None:
    run = stormy(compiled(), 4)
    with opened(chromium, written(tmp_path, run), "#recompiles/0%2F3") as page:
        card = page.locator("li[id='recompile-0/3']")
        failed = card.locator(".failed").all_inner_texts()
        said = "0/2 0/1 0/0 n is 3, and was compiled for 2 (the others for 1, 0) called from m.py:17"
        assert [words(each) for each in failed] == [said]
        assert "What would avoid" not in card.inner_text()
        assert page.inner_text(".view-recompiles").count("Pass n as a tensor.") == 1


def test_the_remark_of_a_line_says_how_a_value_changed(chromium: Any, tmp_path: Path) -> None:
    def again(number: int) -> Recompile:
        said = f"n is {number}, and was compiled for {number - 1}"
        failed = FailedEntryGuard("0/0", f"n == {number - 1}", said, str(number - 1), str(number), checked="n")
        return Recompile(f"0/{number}", 0, (failed,), place=(0, 3))

    with opened(chromium, written(tmp_path, compiled(recompiles=(again(1), again(2)))), "#source/f0/3") as page:
        assert page.inner_text("#source-code .remark") == "Recompiled 2 times: n: 0 → 1, 1 → 2"
    with opened(chromium, written(tmp_path, compiled(recompiles=(again(1),))), "#source/f0/3") as page:
        assert page.inner_text("#source-code .remark") == "Recompiled: n is 1, and was compiled for 0"


def test_calls_of_one_library_function_are_one_link_of_an_operation(chromium: Any, tmp_path: Path) -> None:
    run = compiled()
    graph = next(each for each in run.artifacts if each.stage == "Captured_Graph")
    modules = (ModulePart("self.up", "Linear", None, ("add",)),)
    calls = tuple(
        ModuleKernel(graph.id, "extern_kernels.mm", "0/0", False, extern=True, calls=(at,), nodes=("add",))
        for at in range(1, 13)
    )
    artifacts = tuple(replace(each, modules=modules) if each is graph else each for each in run.artifacts)
    with opened(chromium, written(tmp_path, replace(run, artifacts=artifacts, kernels=calls)), "#layers") as page:
        assert words(page.locator(".operation span").last.inner_text()) == "extern_kernels.mm 12 times"


def test_findings_say_what_they_cost(chromium: Any, tmp_path: Path) -> None:
    found = (Finding("It broke", "Mend it.", 3, (0, 2), "0/0", 2.5), Finding("It fell back", "Do.", 10, (0, 3)))
    with opened(chromium, written(tmp_path, compiled(findings=found)), "#overview") as page:
        assert page.locator(".findings > li").first.locator(".cost").inner_text() == "2.50 s"
        assert page.locator(".findings > li").last.locator(".cost").count() == 0
        assert page.get_by_text(ORDER_OF_FINDINGS).count() == 1
    with opened(chromium, written(tmp_path, compiled(findings=found[:1])), "#overview") as page:
        assert page.get_by_text(ORDER_OF_FINDINGS).count() == 0
    long = replace(found[0], title="It broke " * 20)
    first, second = summary_lines(compiled(findings=(long, found[1])))[-2:]
    assert len(first) == 110
    assert first.endswith("... (m.py:2), 2.50 s"), first
    assert second == "! It fell back (m.py:3)"
    assert ORDER_OF_FINDINGS in index_markdown(compiled(findings=found))


def test_a_rank_says_that_the_ranks_differ(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["ranks"], "#overview") as page:
        said: List[str] = page.locator(".view-overview .card li").all_inner_texts()
        assert said
        page.click(".view-overview .card a")
        page.wait_for_selector(".view-ranks:not([hidden])")
        for each in said[:1]:
            assert each in page.inner_text(".view-ranks")


def test_a_table_is_sorted_by_its_columns(chromium: Any, tmp_path: Path) -> None:
    run = compiled()
    (one,) = run.compilations
    many = tuple(replace(one, compile_id=f"0/{at}", seconds=took) for at, took in enumerate((0.2, 3.0, None, 0.01)))
    with opened(chromium, written(tmp_path, replace(run, compilations=many)), "#compilations") as page:

        def ids() -> List[str]:
            found: List[str] = page.locator(".view-compilations tbody .chip").all_inner_texts()
            return found

        time = page.locator("th:has-text('Time')")
        assert ids() == ["0/0", "0/1", "0/2", "0/3"]
        time.locator("button").focus()
        page.keyboard.press("Enter")
        assert (ids()[0], time.get_attribute("aria-sort")) == ("0/1", "descending")
        time.locator("button").click()
        assert (ids()[-1], time.get_attribute("aria-sort")) == ("0/1", "ascending")
        time.locator("button").click()
        assert (ids(), time.get_attribute("aria-sort")) == (["0/0", "0/1", "0/2", "0/3"], None)


def test_the_bar_of_the_overview_has_the_shares_of_the_view_of_time(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#overview") as page:
        shown = page.locator(".legend li b").all_inner_texts()
        page.evaluate("location.hash = '#time'")
        page.wait_for_selector(".view-time:not([hidden])")
        table = page.locator(".view-time .narrow tbody tr td:nth-child(3)").all_inner_texts()
        assert shown[0] == table[0]
        assert set(shown[:-1]) <= set(table)


def test_why_dynamo_began_again_is_said_by_reason(chromium: Any, tmp_path: Path) -> None:
    run = compiled()
    (one,) = run.compilations
    many = tuple(
        replace(one, compile_id=f"0/{at}", restarts=("a break",) if at else ("`x` is read",)) for at in range(12)
    )
    with opened(chromium, written(tmp_path, replace(run, compilations=many)), "#compilations") as page:
        table = page.locator("[aria-label='Why Dynamo began again'] tbody")
        rows = [words(each) for each in table.locator("tr").all_inner_texts()]
        assert rows == ["a break 11 0/1 0/2 0/3 0/4 0/5 0/6 0/7 0/8 3 more", "x is read 1 0/0"]
        table.locator("button").click()
        assert words(table.locator("tr").first.inner_text()).endswith("0/8 0/9 0/10 0/11")


def test_callers_have_each_function_once_and_those_that_are_not_known_come_last(chromium: Any, tmp_path: Path) -> None:
    run = compiled()
    (one,) = run.compilations
    many = tuple(replace(one, compile_id=f"0/{at}", callers=((0, 9),) if at < 3 else ()) for at in range(5))
    with opened(chromium, written(tmp_path, replace(run, compilations=many)), "#compilations") as page:
        known, unknown = page.locator(".view-compilations > .tree").all_inner_texts()
        assert words(known) == "m.py:9 x = g8(x) 0/0 0/1 0/2 f"
        assert words(unknown) == "0/3 0/4 f"


def test_shapes_of_no_compilation_are_shown(chromium: Any, tmp_path: Path) -> None:
    run = compiled(shapes=(ShapeEvent(None, "symbol", "s0 = x.size()[0], 5 here"),))
    with opened(chromium, written(tmp_path, run), "#compilations") as page:
        section = page.locator("h2:has-text('Symbolic shapes outside of compilations') + .scroll")
        assert "s0 = x.size()[0], 5 here" in section.inner_text()


def test_a_list_that_lost_its_emptiness_is_said_to_be_not_empty(chromium: Any, tmp_path: Path) -> None:
    failed = FailedEntryGuard("0/0", "not L['a']", "a is not empty", "empty", None, checked="length of a")
    run = compiled(recompiles=(Recompile("0/1", 0, (failed,)),))
    with opened(chromium, written(tmp_path, run), "#recompiles") as page:
        assert page.inner_text(".view-recompiles .change") == "empty → not empty"


def test_resume_functions_are_listed_with_their_lines(chromium: Any, tmp_path: Path) -> None:
    run = compiled()
    (one,) = run.compilations
    resumed = Function(
        "torch_dynamo_resume_in_f_at_4", "torch_dynamo_resume_in_f_at_4", 0, 4, 10, resumes=0, resumes_at=4
    )
    again = tuple(replace(each, id=f"{each.id}.1", compile_id="1/0") for each in run.artifacts)
    run = replace(
        run,
        functions=(*run.functions, resumed),
        compilations=(one, replace(one, compile_id="1/0", function=1)),
        artifacts=(*run.artifacts, *again),
    )
    with opened(chromium, written(tmp_path, run), "#stages") as page:
        assert page.locator(".items summary .what").all_inner_texts() == ["f", "f, from line 4"]


def test_a_comparison_shows_the_captured_graph_first_with_short_names_and_notes_last(
    chromium: Any, pages: Dict[str, Path]
) -> None:
    with opened(chromium, pages["diff"]) as page:
        heads = page.locator(".view-ranks h2").all_inner_texts()
        assert heads[-1] == "Notes" or "Notes" not in heads
        titles = [head.rstrip("0123456789, ") for head in heads]
        assert len(set(titles)) == len(titles)
        for section in page.locator(".difference:has(h3:has-text('another graph'))").all():
            assert section.locator(".sides h3").first.inner_text() == "Captured graph"
        assert not page.locator(".difference pre .row:has-text('+++ ')").count()


def layered(count: int) -> Run:
    """A graph of ``count`` equal layers in a module that has seven operations of its own behind them."""
    run = compiled()
    graph = next(each for each in run.artifacts if each.stage == "Captured_Graph")
    names = [f"add_{at}" for at in range(count + 7)]
    text = "def forward(self, x):\n" + "".join(f'    {name}: "f32[2]" = torch.add(x, 1)\n' for name in names)
    modules = [ModulePart("self.up", "Stack", None, tuple(names[count:]))]
    modules += [ModulePart(f"self.up.layers.{at}", "Layer", 0, (names[at],)) for at in range(count)]
    changed = replace(graph, modules=tuple(modules), text=text, links=())
    return replace(run, artifacts=tuple(changed if each is graph else each for each in run.artifacts))


def test_equal_layers_and_operations_between_them_are_one_line_each(chromium: Any, tmp_path: Path) -> None:
    with opened(chromium, written(tmp_path, layered(6)), "#layers") as page:
        lines = [words(each) for each in page.locator(".layers summary:visible").all_inner_texts()]
        assert [each.split(" Layer ")[0] for each in lines[1:]] == [
            "layers.0",
            "layers.1 to layers.5 5 layers, each the same as the one before",
            "7 operations between them",
        ]
        page.click(".layers summary:has-text('layers.1 to')")
        page.locator(".layers summary:has-text('the same as self.up.layers.')").nth(4).wait_for()
    address = "#layers/" + quote(next(each.id for each in layered(6).artifacts if each.modules), safe="")
    with opened(chromium, written(tmp_path, layered(6)), f"{address}/self.up.layers.3") as page:
        assert "layers.3" in page.inner_text(".layer.chosen > summary")
    with opened(chromium, written(tmp_path, layered(3)), "#layers") as page:
        assert not page.locator(".layers summary:has-text(' to ')").count()


def test_source_begins_with_the_model_where_a_library_calls_it(chromium: Any, tmp_path: Path) -> None:
    b = RunBuilder(
        sources=[SourceFile(LIBRARY, "x\n" * 20, library=True), SourceFile("/lib/model.py", TEXT, library=True)]
    )
    b.functions.append(Function("wrapper", "Model.forward", 0, 1, 20))
    b.compilation("0/0", 0, [(f"add_{at}", "add(x)", ((0, 7), (1, at))) for at in range(2, 8)])
    with opened(chromium, written(tmp_path, b.run()[0]), "#source") as page:
        assert page.locator("#source-pick option:checked").inner_text() == "model.py (traced into)"
        page.select_option("#source-pick", index=0)
        page.wait_for_function("() => location.hash.startsWith('#source/f0')")
        assert page.locator("#source-pick option:checked").inner_text() == "Model.forward  :1"


def test_names_of_torch_in_advice_are_code(chromium: Any, tmp_path: Path) -> None:
    said = "Mark it, torch._dynamo.mark_dynamic(x, 0), set torch._dynamo.config.a_b = True, or use dynamic=True; torch."
    found = (Finding("It broke", said),)
    with opened(chromium, written(tmp_path, compiled(findings=found)), "#overview") as page:
        assert page.locator(".findings .remedy").inner_text() == f"{said.partition(';')[0]}."
        assert page.locator(".findings details p").text_content() == "torch."
        code = page.locator(".findings p code").all_inner_texts()
        assert code == ["torch._dynamo.mark_dynamic(x, 0)", "torch._dynamo.config.a_b = True", "dynamic=True"]


@pytest.mark.parametrize(
    ("said", "cause", "remedy", "rest"),
    [
        ("Because s is 'Good bye. Now', not 'a; b'. Fix s.", "Because s is 'Good bye. Now', not 'a; b'.", "Fix s.", []),
        ("Take the print out. Also at m.py:5.", None, "Take the print out.", ["Also at m.py:5."]),
        ("Mark it; torch.f(x) helps.", None, "Mark it.", ["torch.f(x) helps."]),
        ("Python's own error (a. B).", None, "Python's own error (a. B).", []),
    ],
)
def test_a_finding_is_cut_between_sentences_and_not_in_values(
    chromium: Any, tmp_path: Path, said: str, cause: Optional[str], remedy: str, rest: List[str]
) -> None:
    with opened(chromium, written(tmp_path, compiled(findings=(Finding("It broke", said),))), "#overview") as page:
        causes = page.locator(".findings .cause").all_inner_texts()
        assert causes == ([] if cause is None else [cause])
        assert page.locator(".findings .remedy").inner_text() == remedy
        assert page.locator(".findings details p").all_text_contents() == rest


@pytest.mark.parametrize("advice", ["Use a mask.", ""])
def test_what_to_do_about_code_left_to_python_stands_before_pytorchs_long_text(
    chromium: Any, tmp_path: Path, advice: str
) -> None:
    run, _ = sample_run()
    reason = "Dynamic shape operator\n  Explanation: of many words\n\n  Developer debug context: aten.nonzero"
    lost = (replace(run.fallbacks[0], cause="a graph break", reason=reason, advice=advice),)
    with opened(chromium, written(tmp_path, replace(run, fallbacks=lost)), "#recompiles") as page:
        card = page.locator(".card.fallback")
        assert "Dynamic shape operator" in card.inner_text()
        assert card.locator("text=Explanation: of many words").is_visible() == (not advice)
        card.locator("summary").click()
        assert card.locator("text=Explanation: of many words").is_visible() == bool(advice)
