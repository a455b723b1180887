"""What the page says is right: where a line belongs, what it calls, what is copied, and the views of the whole run."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List

import pytest
from browser import opened
from run_builder import RunBuilder
from sample_runs import sample_run

from depyf.report.model.run import FailedGuard, Function, Link, Recompile, Run, Source
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
    b = RunBuilder(sources=[Source("/m.py", MODEL)])
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


def test_keys_lead_to_lines_that_something_is_known_of(chromium: Any, model: Path) -> None:
    """No graph was broken there."""
    with opened(chromium, model, "#source/f0") as page:
        page.keyboard.press("n")
        assert page.locator("#source-code .line.hit").first.get_attribute("data-line") == "4"


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
        assert page.locator(".view-breaks table tbody tr").count() == 5
        section = page.locator(".view-breaks section:has(h2:has-text('Data-dependent branching'))").inner_text()
        assert "What to do: Use torch.where, or torch.cond." in section
        assert "train.py:20" in section
        row = page.locator(".view-breaks tr:has-text('Data-dependent branching') td").all_inner_texts()
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
        assert row[:2] == ["factor", "value"]
        assert "train.py:33" in row[3]
        page.click(".view-guards .place")
        page.wait_for_function("() => location.hash.startsWith('#source/f6/33')")


def storm(count: int) -> Run:
    """A function that was compiled again and again: a guard of each of the last eight entries failed."""
    failed = [
        FailedGuard(
            f"0/{entry}",
            f"n == {entry}",
            f"n is {entry + 1}, and was compiled for {entry}",
            str(entry),
            str(entry + 1),
            checked="n",
            stack=((0, 17), (0, 9)),
        )
        for entry in range(count)
    ]
    recompiles = tuple(
        Recompile(
            f"0/{number}", 0, tuple(reversed(failed[max(0, number - 8) : number])), "Pass n as a tensor.", (0, 17)
        )
        for number in range(1, count)
    )
    run, _ = model_run()
    compilations = tuple(replace(run.compilations[0], compile_id=f"0/{number}") for number in range(count))
    return replace(run, recompiles=recompiles, compilations=compilations)


def test_equal_recompiles_are_one_row(chromium: Any, tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    path.write_text(render_page(storm(300), lambda artifact: None), encoding="utf-8")
    with opened(chromium, path, "#recompiles") as page:
        cells = page.locator(".view-recompiles tbody tr td").all_inner_texts()
        assert len(cells) == 3
        assert cells[1] == "299"
        assert cells[2].startswith("0 → 1, 1 → 2")
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
        render_page(replace(run, sources=(Source("/m.py\0", MODEL),)), lambda artifact: None), encoding="utf-8"
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
        assert page.locator(rows).count() == 500
        page.click("button:has-text('Show all 2,000 rows')")
        assert page.locator(rows).count() == 2000
        assert page.locator("button:has-text('Show all 2,000 rows')").count() == 0
    with opened(chromium, path, "#source/f0/17") as page:
        assert page.locator(".details .card.recompile").count() == 12
        assert "and 1,987 more like these" in page.inner_text(".details")


def test_everything_is_found(chromium: Any, pages: Dict[str, Path]) -> None:
    def found(page: Any, words: str) -> List[str]:
        page.fill("#search-for", words)
        page.wait_for_timeout(200)
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


TRANSFORMED = """\
def __transformed_code_0_for_f(x):
    is_profiler_enabled = __import_torch_dot_autograd_dot_profiler._is_profiler_enabled
    __temp_0 = __import_torch_dot__dynamo_dot_utils
    tmp_1 = None
    if is_profiler_enabled:
        tmp_1 = __temp_0.record_pregraph_bytecode_enter()
    if tmp_1 is not None:
        __temp_0.record_pregraph_bytecode_exit(tmp_1)
    y = __compiled_fn_2(x)[0]
    other = None
    if other:
        return y
"""


def test_what_dynamo_adds_for_the_profiler_is_dimmed(chromium: Any, tmp_path: Path) -> None:
    run, text_of = model_run()
    transformed = next(each.id for each in run.artifacts if each.kind == "transformed")
    path = tmp_path / "index.html"
    texts = {transformed: TRANSFORMED}
    path.write_text(render_page(run, lambda each: texts.get(each.id) or text_of(each)), encoding="utf-8")
    for address, pane in ((f"#stages/{transformed}", "stage-text"), (f"#source/f0?stage={transformed}", "stage-code")):
        with opened(chromium, path, address) as page:
            dimmed = page.eval_on_selector_all(f"#{pane} .line.bookkeeping", "all => all.map(e => +e.dataset.line)")
            assert dimmed == [2, 3, 4, 5, 6, 7, 8]
            assert "not of your program (7 lines)" in page.inner_text(f"#{pane}-L2 + .remarks")


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
        assert sum(widths(page)) == pytest.approx(1280, abs=2)


@pytest.mark.parametrize(
    "view", ["overview", "source/f0/18", "breaks", "recompiles", "guards", "flow", "time", "stages"]
)
def test_nothing_lies_over_something_else_on_a_narrow_screen(chromium: Any, pages: Dict[str, Path], view: str) -> None:
    with opened(chromium, pages["sample"], f"#{view}", width=400, height=900) as page:
        header, main = page.locator("header").bounding_box(), page.locator("main").bounding_box()
        assert header["height"] < 100
        assert header["y"] + header["height"] <= main["y"] + 1
        for link in page.locator("#views a").all():
            assert link.bounding_box()["height"] < 40
        below = main["y"]
        for pane in page.locator(".view:not([hidden]) .pane").all():
            box = pane.bounding_box()
            assert box["y"] >= below - 1
            assert box["height"] > 200
            below = box["y"] + box["height"]
