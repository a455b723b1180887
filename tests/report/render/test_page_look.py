"""The page at the widths of a telephone and of a large screen, and on paper."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict

import pytest
from browser import opened, unfold
from sample_runs import sample_run

from depyf.report.model.run import Phase
from depyf.report.render.page import render_page, render_pages
from depyf.report.render.perfetto import perfetto_trace

TABLES = ["overview", "breaks", "recompiles", "guards/6%2F1", "compilations", "compilations/6%2F1", "time"]
"""Addresses of views with tables."""

SIDEWAYS = """() => [...document.querySelectorAll(".view:not([hidden]) .scroll")]
    .filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => each.getAttribute("aria-label"))"""


@pytest.mark.parametrize("address", TABLES)
def test_tables_stand_whole_on_a_telephone(chromium: Any, pages: Dict[str, Path], address: str) -> None:
    with opened(chromium, pages["sample"], f"#{address}", width=400) as page:
        assert page.evaluate(SIDEWAYS) == []
        indents = page.eval_on_selector_all(
            ".view:not([hidden]) .stacks td",
            """all => all.filter((each) => each.checkVisibility())
              .map((each) => parseFloat(getComputedStyle(each).paddingLeft) / each.offsetWidth)""",
        )
        assert all(each > 0.35 for each in indents)  # the head stands there


def test_the_numbers_of_a_comparison_stand_whole_on_a_telephone(chromium: Any, tmp_path: Path) -> None:
    numbers = [["recompilations", 5, 1, "", True], ["compile time", 15.85, 9.07, "s", True]]
    numbers.append(["  tracing forward and backward (AOTAutograd)", 1.46, 0.758, "s", False])
    spreads = [[0.13, 0.19], [0.35, 0.4]]
    numbers.append(["  looking in caches", 0.14, 0.361, "s", True, *spreads, "slower"])
    numbers.append(["  waiting for compilers", 0.14, 0.15, "s", False, *spreads, "within the noise"])
    comparison = {"numbers": numbers, "functions": [], "notes": []}
    path = tmp_path / "index.html"
    path.write_text(render_pages([sample_run()] * 2, [], ["before", "after"], comparison), encoding="utf-8")
    with opened(chromium, path, width=400) as page:
        assert page.locator(".view-ranks table").count() == 1
        assert page.evaluate(SIDEWAYS) == []
        assert "+221 ms, +158 % worse" in page.locator(".view-ranks tr", has_text="looking in caches").inner_text()
        assert "within the noise" in page.locator(".view-ranks tr", has_text="waiting for").inner_text()
        assert page.locator(".view-ranks h1").inner_text() == "The same was compiled"


def test_cells_have_their_heads_beside_them_where_columns_have_no_room(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#overview", width=400) as page:
        heads = page.eval_on_selector_all(
            ".stacks tbody tr:first-child td",
            """all => all.filter((each) => each.checkVisibility()).map((each) => {
              const [head, cell] = [getComputedStyle(each, "::before").content, each.textContent];
              return [JSON.parse(head), cell];
            })""",
        )
        assert ["Graphs", "1"] in heads or ["Graphs", "5"] in heads or ["Graphs", "6"] in heads, heads
        assert all(head and cell for head, cell in heads)


@pytest.mark.parametrize(
    ("view", "part"), [("overview", ".beside"), ("breaks", ".beside"), ("recompiles", ".recompiles")]
)
def test_a_wide_window_is_used(chromium: Any, pages: Dict[str, Path], view: str, part: str) -> None:
    with opened(chromium, pages["sample"], f"#{view}", width=2560) as page:
        if view == "recompiles":
            unfold(page.locator(".view-recompiles details:has(.recompiles) > summary").first)
        boxes = page.eval_on_selector_all(
            f"{part} > *", "all => all.slice(0, 2).map(e => e.getBoundingClientRect().toJSON())"
        )
        assert boxes[0]["top"] == boxes[1]["top"]
        assert boxes[1]["right"] > 0.9 * 2560
        page.evaluate("location.hash = '#time'")  # but not by a table with a handful of words
        page.wait_for_selector(".view-time:not([hidden])")
        assert page.locator(".view-time .narrow").bounding_box()["width"] < 800


def test_a_page_is_printed_whole_and_light(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#overview", scheme="dark", width=760, height=400) as page:
        page.keyboard.press("t")  # light, and dark again: the theme that was chosen does not matter either
        page.keyboard.press("t")
        page.emulate_media(media="print")
        for address in ("time", "stages", "overview", "compilations", "source/f0/20"):
            page.evaluate(f"location.hash = '#{address}'")
            page.wait_for_timeout(60)
            cut = page.evaluate(
                """() => [document.body, ...document.querySelectorAll(".view:not([hidden]), .view:not([hidden]) *")]
                .filter((each) => each.checkVisibility() && !each.closest("svg, caption, .hidden, .bars"))
                .filter((each) => getComputedStyle(each).overflowY !== "visible")
                .filter((each) => each.scrollHeight > each.clientHeight + 1)
                .map((each) => `${each.tagName} ${each.className}`)"""
            )
            assert cut == [], address
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
            assert not page.is_visible("header nav")
            if "source" not in address:
                continue
            code, details = (page.locator(each).bounding_box() for each in ("#source-code", ".details"))
            assert code["y"] + code["height"] <= details["y"]
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.pdf().count(b"/Type /Page\n") > 1


def test_layers_are_a_view_only_where_there_are_some(chromium: Any, pages: Dict[str, Path], tmp_path: Path) -> None:
    with opened(chromium, pages["sample"]) as page:
        assert page.locator("#views >> text=Layers").count() == 1
    run, text_of = sample_run()
    path = tmp_path / "index.html"
    artifacts = tuple(replace(each, modules=()) for each in run.artifacts)
    path.write_text(render_page(replace(run, artifacts=artifacts), text_of), "utf-8")
    with opened(chromium, path) as page:
        assert page.locator("#views >> text=Layers").count() == 0


def test_a_tile_of_guards_opens_its_group(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#guards") as page:
        name = page.locator(".view-guards .tile span").last.inner_text()
        page.locator(".view-guards .tile").last.click()
        opened_group = page.locator("details.guards[open] summary:focus")
        assert name in opened_group.inner_text()


def test_counts_of_a_function_lead_to_what_they_count(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"]) as page:
        page.click("[aria-label='Recompilations of scaled']")
        page.wait_for_selector(".view-recompiles:not([hidden])")
        assert page.evaluate("location.hash") == "#recompiles/f6"


def test_the_timeline_is_packed_and_compilations_have_names(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#time", width=1440) as page:
        lanes = page.locator(".track:has(.phase)").count()
        assert lanes == 1  # one after the other, in one thread
        boxes = page.eval_on_selector_all(
            ".phase", "all => all.map(e => { const b = e.getBoundingClientRect(); return [b.left, b.top, b.right]; })"
        )
        rows: Dict[float, float] = {}
        for left, top, right in sorted(boxes):
            assert left >= rows.get(top, 0) - 1.5  # none stands over another
            rows[top] = right
        page.click(".whose:has-text('3/0')")
        assert page.evaluate("location.hash") == "#compilations/3%2F0"


def test_a_phase_that_is_called_as_the_one_around_it_is_a_part_of_that(chromium: Any, tmp_path: Path) -> None:
    phases = (
        Phase("0/0", "dynamo", 0.0, 10.0),
        Phase("0/0", "entire_frame_compile", 0.0, 9.0, parent=0),
        Phase("0/0", "backend_compile", 1.0, 6.0, parent=1),
    )
    path = tmp_path / "index.html"
    path.write_text(render_page(replace(sample_run()[0], phases=phases), lambda _: None), "utf-8")
    with opened(chromium, path, "#time", width=1440) as page:
        assert page.locator(".phase").all_inner_texts()[1:] == ["the backend"]
        assert page.locator(".phase").first.evaluate("e => e.style.getPropertyValue('--own')") == "0.4"
        page.check("#deep")
        assert page.locator(".phase").all_inner_texts()[1] == "entire_frame_compile"


def test_the_page_saves_the_trace_that_the_command_writes(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#time") as page:
        with page.expect_download() as download:
            page.click("text=Save for Perfetto")
        saved = json.loads(Path(download.value.path()).read_text("utf-8"))
    written = json.loads(perfetto_trace([("rank 0", sample_run()[0])]))
    assert len(saved["traceEvents"]) == len(written["traceEvents"]) > 50
    for one, other in zip(saved.pop("traceEvents"), written.pop("traceEvents")):
        for key in ("ts", "dur"):
            assert one.pop(key, 0) == pytest.approx(other.pop(key, 0), abs=0.01)
        assert one == other
    assert saved == written


def test_a_drawing_is_made_larger_and_fits_the_width(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#flow/f0", width=800) as page:
        drawing = page.locator(".drawing")
        assert drawing.evaluate("e => e.scrollWidth > e.clientWidth")
        page.click("text=Fit to the width")
        assert drawing.evaluate("e => e.scrollWidth <= e.clientWidth")
        height = page.locator(".drawing svg").bounding_box()["height"]
        page.click("[aria-label=Larger]")
        assert page.locator(".drawing svg").bounding_box()["height"] > 1.2 * height
        share = page.inner_text(".scale")
        page.evaluate("location.hash = '#flow/f6'")
        page.wait_for_timeout(60)
        assert page.inner_text(".scale") == share  # of all drawings


@pytest.mark.parametrize("function", ["f0", "f6"])
def test_a_drawing_is_a_list_on_a_telephone(chromium: Any, pages: Dict[str, Path], function: str) -> None:
    with opened(chromium, pages["sample"], f"#flow/{function}", width=400) as page:
        assert not page.is_visible(".drawing")
        assert page.locator(".zoom button:visible").count() == 0
        drawn = page.eval_on_selector_all(
            ".drawing svg :is(a, g:has(> rect))",
            """all => all.map((box) => [...box.querySelectorAll('text')])
              .map((texts) => texts.map((each) => each.dataset.whole || each.textContent))""",
        )
        listed = page.eval_on_selector_all(
            ".flow-list .step", "all => all.map((e) => [...e.children].map((each) => each.textContent))"
        )
        assert listed == drawn
        assert page.locator(".flow-list h2").all_inner_texts()[0].startswith("Call of ")
        assert page.evaluate("document.documentElement.scrollWidth") == 400
        beyond = (
            "all => all.filter((e) => e.getBoundingClientRect().right > 400 || e.scrollWidth > e.clientWidth).length"
        )
        assert page.eval_on_selector_all(".flow-list *", beyond) == 0
        page.locator(".flow-list a.step").first.click()
        page.wait_for_selector(".view-flow", state="hidden")


def test_ticks_are_round_and_where_they_belong(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#time", width=1280) as page:
        ticks = page.eval_on_selector_all(
            ".axis span", "all => all.map((e) => [e.textContent, parseFloat(e.style.left)])"
        )
        numbers = [float(text.split(" ")[0]) for text, _ in ticks]
        assert numbers[0] == 0
        assert 3 <= len(numbers) <= 7
        step = numbers[1]
        assert float(f"{step:.1e}") == step
        assert f"{step:.1e}"[:3] in ("1.0", "2.0", "2.5", "5.0")
        assert numbers == pytest.approx([step * at for at in range(len(numbers))])
        lefts = [left for _, left in ticks]
        assert lefts == pytest.approx([lefts[1] * at for at in range(len(lefts))], rel=1e-3)


def test_the_numbers_beside_lines_have_the_room_that_they_need(chromium: Any, pages: Dict[str, Path]) -> None:
    for width in (400, 1280, 2560):
        with opened(chromium, pages["sample"], "#source/f0", width=width) as page:
            cut = page.eval_on_selector_all(
                "#source-code .line",
                """all => all.map((line) => [...line.querySelectorAll('.tally')]).flat()
                  .filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.parentElement.textContent)""",
            )
            assert cut == []
            starts = page.eval_on_selector_all(
                "#source-code .line .text", "all => [...new Set(all.map((e) => e.getBoundingClientRect().left))]"
            )
            assert len(starts) == 1, starts


COLOUR = "e => (e.className.match(/graph-[0-9]/) || [''])[0]"


def test_a_line_and_its_parts_have_one_colour(chromium: Any, pages: Dict[str, Path]) -> None:
    address = "#source/f0?stage=__compiled_fn_1.Forward_graph.0.py"
    with opened(chromium, pages["sample"], address, width=1920) as page:
        relu, other = (
            page.locator("#source-code-L12").evaluate(COLOUR),
            page.locator("#source-code-L13").evaluate(COLOUR),
        )
        assert relu
        assert other
        assert relu != other
        assert page.locator("#stage-code .line:has-text('relu =')").first.evaluate(COLOUR) == relu
        fused = page.locator("#kernel-code .banded")
        assert "linear-gradient" in fused.first.evaluate("e => getComputedStyle(e).backgroundImage")
        page.click("#source-code-L12 .text")
        hit = page.locator("#source-code-L12").evaluate("e => getComputedStyle(e).backgroundColor")
        assert hit == page.locator("#kernel-code .line.hit").first.evaluate("e => getComputedStyle(e).backgroundColor")


def test_what_stands_beside_a_line_is_said(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#source/f0", width=2560) as page:
        assert page.inner_text("#source-code-L33 .tally >> nth=0") == "14 guards"
        assert "how many kernels, or calls of a library, compute the line" in page.inner_text(".details")
        page.click("#source-code-L33 .text")
        page.click(".details >> text=all of 6/0")
        assert page.evaluate("location.hash") == "#guards/6%2F0"


@pytest.mark.parametrize(
    ("tile", "view", "shown"),
    [
        ("graphs", "stages", ".heading:has-text('graph')"),
        ("kernels", "stages", ".heading:has-text('Kernels')"),
        ("fallbacks? to eager", "recompiles", "#left-to-python"),
    ],
)
def test_a_tile_leads_to_what_it_counts(
    chromium: Any, pages: Dict[str, Path], tile: str, view: str, shown: str
) -> None:
    with opened(chromium, pages["sample"], height=500) as page:
        page.click(f".tile:has(span:text-matches('^{tile}'))")
        page.wait_for_selector(f".view-{view}:not([hidden])")
        box = page.locator(shown).first.bounding_box()
        assert 0 <= box["y"] < 500


def test_the_keys_are_said_in_the_width_of_a_telephone(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], width=400) as page:
        page.click("#help")
        widths = page.eval_on_selector_all("#keys dd", "all => all.map(e => e.getBoundingClientRect().width)")
        assert min(widths) > 160
