"""The page in a real Chromium: every view, links into it, choosing lines both ways, keys, themes, widths."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Optional
from urllib.parse import quote

import pytest
from browser import TITLES, VIEWS, opened
from sample_runs import HOSTILE, sample_run
from transformer_run import transformer_run

from depyf.report.model.counts import RAISED
from depyf.report.model.manifest import from_json, json_parts
from depyf.report.model.run import Artifact, Compilation, Function, Run, SourceFile
from depyf.report.render.page import render_page, render_pages

KERNELS = "__compiled_fn_1.kernel_0.py"
BACKWARD = "__compiled_fn_1.kernel_1.py"


def test_these_are_all_views(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"]) as page:
        links = page.eval_on_selector_all("#views a", "all => all.map(each => each.getAttribute('href'))")
        assert links == [f"#{view}" for view in VIEWS], "which the sample lacks is said in tests/support/browser.py"


def lit(page: Any, pane: str, kind: str = "hit") -> List[int]:
    """The lines of a pane that light up."""
    numbers: List[int] = page.eval_on_selector_all(f"#{pane} .line.{kind}", "all => all.map(e => +e.dataset.line)")
    return numbers


def press(page: Any, key: str) -> None:
    """Press a key, and wait until what it led to is drawn: a new address is told to the page a little later."""
    page.keyboard.press(key)
    page.evaluate("() => new Promise((done) => setTimeout(() => requestAnimationFrame(() => setTimeout(done))))")


def text_of(page: Any, pane: str, line: int) -> str:
    return str(page.inner_text(f"#{pane}-L{line} .text"))


def overflow(page: Any) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def test_every_view_can_be_clicked(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"]) as page:
        for view in (*VIEWS[1:], VIEWS[0]):
            page.click(f"nav >> text={TITLES[view]}")
            page.wait_for_selector(f".view-{view}:not([hidden])")
            assert page.evaluate("location.hash") == f"#{view}" or view in ("source", "stages")
            assert page.locator(".view:not([hidden])").count() == 1
            assert page.get_attribute(f"nav >> text={TITLES[view]}", "aria-current") == "page"


def test_the_overview_counts_and_puts_the_dearest_first(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"]) as page:
        tiles = [text.split("\n") for text in page.locator(".tile").all_inner_texts()]
        assert ["5", "graph breaks"] in tiles
        assert ["6", "recompilations"] in tiles
        assert ["43", "kernels, 21 library calls"] in tiles
        assert page.locator(".findings li strong").all_inner_texts() == [
            "route runs as plain Python",
            "5 graph breaks in train_step",
            "scaled was compiled 7 times",
        ]
        page.click(".findings >> text=train.py:32")
        assert page.evaluate("location.hash").startswith("#source/f6/32")


def test_on_a_telephone_the_views_are_one_row_with_the_current_one_in_sight(
    chromium: Any, pages: Dict[str, Path]
) -> None:
    with opened(chromium, pages["sample"], f"#{list(VIEWS)[-1]}", width=390) as page:
        assert page.locator("header").evaluate("e => e.getBoundingClientRect().height") <= 64
        left, right = page.locator("nav [aria-current=page]").evaluate(
            "e => [e.getBoundingClientRect().left, e.getBoundingClientRect().right]"
        )
        around = page.locator("header nav").evaluate(
            "e => [e.getBoundingClientRect().left, e.getBoundingClientRect().right]"
        )
        assert around[0] - 1 <= left < right <= around[1] + 1


def test_what_did_not_happen_has_no_tile(chromium: Any, tmp_path: Path) -> None:
    run, text_of = sample_run()
    path = tmp_path / "index.html"
    path.write_text(render_page(replace(run, breaks=(), recompiles=()), text_of), encoding="utf-8")
    with opened(chromium, path) as page:
        names = {text.split("\n")[1] for text in page.locator(".tile").all_inner_texts()}
        assert "graphs" in names
        assert not names & {"graph breaks", "recompilations"}


def test_source_begins_with_the_function_of_most_findings_and_groups_stages_by_maker(
    chromium: Any, pages: Dict[str, Path]
) -> None:
    with opened(chromium, pages["sample"], "#source") as page:
        assert page.input_value("#source-pick").startswith("#source/f")
        shown = page.locator("#source-pick option:checked").inner_text()
        assert shown.startswith("scaled"), shown
        makers = page.locator("[data-pane=stage] .maker").all_inner_texts()
        assert set(makers) <= {"Dynamo", "AOTAutograd", "Inductor"}
        assert len(makers) == len(set(makers)) > 1


@pytest.mark.parametrize("view", VIEWS)
def test_a_link_leads_into_a_view(chromium: Any, pages: Dict[str, Path], view: str) -> None:
    with opened(chromium, pages["sample"], f"#{view}") as page:
        assert page.locator(f".view-{view}:not([hidden])").count() == 1


def test_a_link_to_a_line_shows_what_became_of_it(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#source/f0/20") as page:
        assert lit(page, "source-code") == [20]
        details = page.inner_text(".details")
        assert "Data-dependent branching" in details
        assert "What to do: Use torch.where, or torch.cond." in details
        stage = lit(page, "stage-code")
        assert [text_of(page, "stage-code", line).split("=")[0].strip() for line in stage] == ["v_sum_1", "v_lt"]
        assert any("cpp_fused_sum_1_lt_1" in text_of(page, "kernel-code", line) for line in lit(page, "kernel-code"))


def test_a_line_is_in_all_stages_and_backward(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#source/f0/12") as page:
        assert lit(page, "source-code") == [12]
        tabs = page.locator(".where .tab.some").all_inner_texts()
        names = [text.split("\n")[0].rstrip("0123456789") for text in tabs]
        for name in ("Captured graph", "Joint graph", "Forward graph", "Backward graph", "Kernels (backward)"):
            assert name in names
        page.click(".where >> text=Backward graph")
        assert "_grad" in text_of(page, "stage-code", lit(page, "stage-code")[0])
        page.click(".where >> text=Kernels (backward)")
        assert "relu_grad" in "".join(text_of(page, "kernel-code", line) for line in lit(page, "kernel-code"))


def test_a_line_of_a_kernel_leads_back_to_the_source(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], f"#source/f0?kernel={BACKWARD}") as page:
        page.click("#kernel-code >> text=cpp_fused_add_grad_relu_grad_0 = ")
        assert lit(page, "source-code") == [12, 13, 17]
        assert "Your code" in page.inner_text(".details")
        page.click(".details >> text=train.py:13")
        page.wait_for_function("() => document.querySelectorAll('#source-code .line.hit').length === 1")
        assert lit(page, "source-code") == [13]


def test_a_line_of_a_graph_leads_to_source_and_kernel(chromium: Any, pages: Dict[str, Path]) -> None:
    address = "#source/f0?stage=__compiled_fn_1.Forward_graph.0.py"
    with opened(chromium, pages["sample"], address) as page:
        page.click("#stage-code .line:has-text('relu =') .text")
        assert lit(page, "source-code") == [12]
        assert lit(page, "source-code", "near") == [17]
        kernels = "".join(text_of(page, "kernel-code", line) for line in lit(page, "kernel-code"))
        assert "cpp_fused_relu_add_1" in kernels
        assert "cpp_fused_permute_addmm_0" not in kernels
        assert "Computes relu" in page.inner_text(".details").replace("\n", " ")


def test_choosing_goes_to_the_graph_that_holds_the_line(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#source/f0") as page:
        page.click("#source-code-L23 .text")
        assert page.get_attribute(".graphs .chip:has-text('3/0')", "aria-pressed") == "true"
        assert page.input_value("#stage-pick") == "__compiled_fn_7.Captured_Graph.0.py"
        assert "stage=__compiled_fn_7.Captured_Graph.0.py" in page.evaluate("location.hash")
        page.reload()
        assert lit(page, "source-code") == [23]


def test_lines_have_their_marks(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#source/f0", width=1920) as page:
        assert page.inner_text("#source-code-L18 + .remarks") == "Graph break: print() was called"
        assert "Recompiled: factor was 0 and is now 1" in page.inner_text("#source-code-L33 + .remarks")
        assert "Left to Python: the recompile limit (8) was hit" in page.inner_text("#source-code-L38 + .remarks")
        assert page.locator(".line .sign.break").count() == 5
        assert "tinted" in (page.get_attribute("#source-code-L12", "class") or "")
        assert page.inner_text("#source-code-L33 .tally >> nth=1") == "7 kernels"


@pytest.mark.parametrize("width", [400, 1280, 1920])
def test_remarks_stand_under_their_line_and_are_whole(chromium: Any, pages: Dict[str, Path], width: int) -> None:
    with opened(chromium, pages["sample"], "#source/f0/18", width=width) as page:
        pane = page.locator("#source-code").bounding_box()
        line = page.locator("#source-code-L18").bounding_box()
        below = page.locator("#source-code-L19").bounding_box()
        remark = page.locator("#source-code-L18 + .remarks .remark").bounding_box()
        assert pane
        assert line
        assert below
        assert remark
        assert line["y"] + line["height"] <= remark["y"]
        assert remark["y"] + remark["height"] <= below["y"]
        assert pane["x"] <= remark["x"]
        assert remark["x"] + remark["width"] <= pane["x"] + pane["width"]


def test_kernels_are_shown_from_the_first_one_on(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#source/f0") as page:
        pane = page.locator("#kernel-code").bounding_box()
        kernel = page.locator("#kernel-code .line:has-text('cpp_fused_') >> nth=0").bounding_box()
        assert pane
        assert kernel
        assert pane["y"] <= kernel["y"] <= pane["y"] + pane["height"] / 3


def test_keys_move_through_what_matters(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#source/f0") as page:
        press(page, "n")
        assert lit(page, "source-code") == [18]
        press(page, "n")
        press(page, "n")
        press(page, "p")
        assert lit(page, "source-code") == [20]
        page.focus("#source-code")
        press(page, "ArrowDown")
        press(page, "j")
        press(page, "Enter")
        assert lit(page, "source-code") == [22]
        press(page, "Escape")
        assert lit(page, "source-code") == []
        before = page.input_value("#stage-pick")
        press(page, "]")
        assert page.input_value("#stage-pick") != before
        press(page, "[")
        assert page.input_value("#stage-pick") == before
        for at, view in enumerate(VIEWS[:10], 1):
            press(page, str(at % 10))
            assert page.get_attribute(f"#views a[href^='#{view}']", "title").endswith(f" ({at % 10})")
            page.wait_for_selector(f".view-{view}:not([hidden])")
        press(page, "/")
        assert page.evaluate("document.activeElement.id") == "stage-filter"
        page.keyboard.type("backward")
        page.wait_for_timeout(50)
        assert set(page.locator(".items a").all_inner_texts()) == {"Backward graph", "Kernels (backward)"}


def test_the_keys_are_explained(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"]) as page:
        press(page, "?")
        assert "next, previous line with a break" in page.inner_text("dialog")
        press(page, "Escape")
        assert not page.is_visible("dialog")


def test_everything_is_reached_with_tab(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#source/f0") as page:
        seen = set()
        for _ in range(60):
            press(page, "Tab")
            seen.add(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
        assert {"source-pick", "source-code", "stage-pick", "stage-code", "kernel-pick", "kernel-code", "theme"} <= seen


def test_the_theme_follows_the_system_and_the_switch(chromium: Any, pages: Dict[str, Path]) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    with opened(chromium, pages["sample"], scheme="dark") as page:
        dark = page.evaluate(ground)
        page.click("#theme")
        light = page.evaluate(ground)
        assert light == "rgb(255, 255, 255)"
        assert dark != light
        page.reload()
        assert page.evaluate(ground) == light
        press(page, "t")
        assert page.evaluate(ground) == dark


def test_the_drawing_shows_entries_in_order_and_leads_on(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#flow/f6") as page:
        texts = page.locator(".drawing text").all_text_contents()
        guards = [text for text in texts if text.startswith("Guards of")]
        assert guards == ["Guards of 6/0", "Guards of 6/6"]
        assert "5 entries like it: 6/1 to 6/5" in texts
        assert "ran 10 times, exact" in texts
        page.click(".drawing a:has-text('__compiled_fn_13')")
        assert page.evaluate("location.hash") == "#stages/__compiled_fn_13.Captured_Graph.0.py"
        page.go_back()
        page.select_option("#flow-pick", label="route")
        assert "Plain Python" in page.text_content(".drawing")


def test_an_error_that_the_program_got_is_not_shown_as_plain_python(chromium: Any, tmp_path: Path) -> None:
    run, text_of = sample_run()
    place = run.breaks[0].place
    assert place is not None
    error = replace(run.fallbacks[0], cause=RAISED, reason="TorchRuntimeError: no such size", place=place)
    run = replace(run, fallbacks=(error,))
    (tmp_path / "index.html").write_text(render_page(run, text_of))
    with opened(chromium, tmp_path / "index.html", "#recompiles/left") as page:
        assert page.inner_text("#left-to-python") == "Failed to compile"
        assert "Left to Python" not in page.inner_text(".view-recompiles")
        assert page.inner_text("#left-to-python + .card h3").startswith(
            run.functions[error.function or 0].qualified_name
        )
        page.click("#left-to-python + .card .place")
        page.wait_for_selector(".remark.fallback")
        assert page.inner_text(".remark.fallback") == "Failed to compile: TorchRuntimeError: no such size"


def test_recompiles_say_which_guard_and_what_changed(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#recompiles/6%2F3") as page:
        assert page.locator(".recompiles > li").count() == 6
        chosen = page.inner_text(".recompiles > li.chosen")
        assert "factor was 2 and is now 3" in chosen
        assert "train.py:33" in chosen
        assert "Pass factor as a tensor" in page.inner_text(".view-recompiles")


def test_time_adds_up(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#time") as page:
        row = page.locator(".view-time tr:has-text('inductor_compile')").first.locator("td").all_inner_texts()
        assert row[:3] == ["inductor_compile", "making kernels (Inductor)", "15"]
        assert row[3] == "3.85 s"
        assert page.locator(".track .phase").count() == 15 * 4 + 6  # Dynamo's own phase is a part of the one around it
        page.check("#deep")
        assert page.locator(".track .phase").count() == 15 * 5 + 6
        page.hover(".track .phase >> nth=0")
        assert "dynamo, tracing the program (Dynamo): 900 ms" in page.inner_text(".timeline [role=status]")


def test_time_says_first_where_it_went(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#time") as page:
        rows = page.locator(".view-time table").first.locator("tbody tr")
        texts = [text.split("\t") for text in rows.all_inner_texts()]
        assert texts[0][0] == "making kernels (Inductor)"
        assert texts[0][1].endswith("s")
        assert texts[0][2].endswith("%")
        widths = rows.locator(".share").evaluate_all("all => all.map(e => e.getBoundingClientRect().width)")
        assert widths == sorted(widths, reverse=True)


def test_a_chosen_phase_fills_the_timeline(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#time") as page:
        whole = page.locator(".axis span").all_inner_texts()
        first = page.locator(".track .phase").first
        narrow = first.bounding_box()["width"]
        first.focus()
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.activeElement.textContent === 'Show the whole run'")
        assert page.locator(".track:has(.phase)").count() == 1  # nothing else was compiled meanwhile
        assert page.locator(".track .phase").first.bounding_box()["width"] > 3 * narrow
        assert page.locator(".axis span").all_inner_texts() != whole
        page.click(".track .phase >> nth=1")  # one inside of it
        page.keyboard.press("Escape")
        page.wait_for_function("() => document.activeElement.className === 'timeline'")
        assert page.locator(".axis span").all_inner_texts() == whole
        assert not page.locator("button:has-text('Show the whole run')").is_visible()


def test_a_stage_is_compared_with_the_one_before(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#stages/__compiled_fn_1.Forward_graph.0.py/L9") as page:
        assert lit(page, "stage-text") == [9]
        assert "comes from train.py:12" in page.inner_text(".heading")
        press(page, "d")
        assert page.locator(".diff-drop").all_inner_texts() != []
        added = page.locator("#stage-text .diff-add .text").all_inner_texts()
        assert added == ["        return (add,)"]
        page.select_option("#stage-against", label="nothing: show the text")
        page.wait_for_function("() => !document.querySelector('.diff-add')")


def test_stages_are_highlighted_as_what_they_are(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], f"#stages/{KERNELS}") as page:
        assert "for" in page.locator("#stage-text-L9 .t-k").all_inner_texts()  # C++ in a string of Python's
        assert page.locator("#stage-text-L5 .t-d").inner_text().startswith("#include")
        assert page.locator("#stage-text-L2 .t-k").all_inner_texts() == ["import"]


def test_ranks_are_chosen_and_compared(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["ranks"], "#ranks") as page:
        assert "scaled was compiled more often on rank 1" in page.inner_text(".view-ranks")
        assert page.locator(".sides h3").all_inner_texts() == ["rank 0", "rank 1"]
        page.select_option("#rank", label="rank 1")
        page.click("nav >> text=Source")
        assert "rank=1" in page.evaluate("location.hash")
        page.click("#source-code-L20 .text")
        assert lit(page, "source-code") == [20]
        assert "rank=1" in page.evaluate("location.hash")


def test_nothing_but_the_ranks_stands_below_a_difference(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["ranks"], "#ranks") as page:
        assert page.locator(".difference").evaluate_all("all => all.map((each) => each.lastChild.className)") == [
            "sides"
        ]


def test_a_compilation_has_its_numbers_its_callers_and_its_shapes(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#compilations") as page:
        row = page.locator(".view-compilations tbody tr", has_text="6/3").first.inner_text().split("\t")
        heads = page.locator(".view-compilations thead th").all_inner_texts()
        assert "Result" not in heads  # all of them were compiled
        assert [each.strip() for each in row[2:]][:5] == ["2", "43", "90", "2", "2"]
        assert row[heads.index("Cache")].strip() == "fx: hit"
        ways = page.locator(".tree").first.inner_text()
        assert ways.count("6/4") == 1
        assert "train.py:49 log = []" in ways
        page.click(".view-compilations tbody a:has-text('6/4')")
        about = page.inner_text("#compilation")
        assert page.evaluate("location.hash") == "#compilations/6%2F4"
        assert "Eq(s0, 64)" in about
        assert "gc_time_us\t1.50 ms" in about
        page.click('#compilation summary:has-text("PyTorch\'s stack")')
        assert "symbolic_shapes.py:6000" in page.inner_text("#compilation")
        page.click("#compilation .links a >> nth=0")
        assert page.evaluate("location.hash").startswith("#stages/")
        page.keyboard.press("Control+k")
        page.fill("#search-for", "guard added")
        page.wait_for_selector(".found >> text=Eq(s0, 64)")
        page.fill("#search-for", "graph_op_count")
        page.click(".found a:has-text('6/3')")
        assert "it was specialised again" in page.inner_text("#compilation")


def test_a_compilation_has_the_memory_of_its_graphs(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#compilations/0%2F0") as page:
        row = page.locator("#compilation tr", has_text="40.0 KiB").inner_text()
        assert "6.0 KiB" in row
        assert "32.0 KiB" in row
        page.click('#compilation summary:has-text("Alive at the peak")')
        assert page.locator("#compilation tr", has_text="primals_1").inner_text().split("\t")[-1] == "an input"
        page.locator("#compilation tr", has_text="addmm").locator("a").first.click()
        assert page.evaluate("location.hash").endswith("L4")


def test_layers_hold_their_operations_and_kernels(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#layers") as page:
        assert page.locator(".layer b").all_inner_texts() == ["block", "hidden"]
        assert page.locator(".layer .sum").all_inner_texts() == ["3 operations, 2 kernels", "2 operations, 1 kernel"]
        operations = page.locator(".operation").all_inner_texts()
        assert [each.split()[0] for each in operations] == ["permute", "addmm", "relu"]
        assert page.locator(".operation:has-text('aten.addmm.default') a.place").inner_text() == "train.py:12"
        page.click(".operation:has-text('addmm') a.kernel")
        assert page.evaluate("location.hash").startswith("#stages/__compiled_fn_1.kernel_0.py/L")
        page.keyboard.press("Control+k")
        page.fill("#search-for", "block.hidden")
        page.click(".found a:has-text('Linear')")
        assert page.evaluate("location.hash").startswith("#layers/")


def test_a_layer_is_compared_with_the_one_before(chromium: Any, tmp_path: Path) -> None:
    run, text_of = transformer_run(3)

    def changed(artifact: Artifact) -> Optional[str]:
        text = text_of(artifact)
        if text is None:
            return None
        named = re.sub(r"torch\.ops\.aten\.getitem_2\.default\(primals_(\d+).*", r"split_\1[0]", text)  # no difference
        return named.replace("aten.erf.default(primals_24", "aten.tanh.default(primals_24")

    path = tmp_path / "layers.html"
    path.write_text(render_page(run, changed), encoding="utf-8")
    with opened(chromium, path, "#layers") as page:
        rows = page.locator(".inside > .layer > summary")
        texts = [text for text in rows.all_inner_texts() if text.startswith("layers.")]
        assert "the same as self.layers.0" in texts[1]
        assert "unlike self.layers.1: 1 added, 2 removed" in texts[2]
        rows.filter(has_text="layers.2").click()
        assert page.inner_text(".layer pre .diff-add").startswith("+ aten.tanh.default")
        assert page.inner_text(".layer pre .diff-drop").startswith("- aten.erf.default")


def widths(page: Any) -> List[int]:
    return [
        round(page.locator(f"#{pane}").bounding_box()["width"]) for pane in ("source-code", "stage-code", "kernel-code")
    ]


def test_panes_are_dragged_and_stay_so(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#source/f0") as page:
        before = widths(page)
        bar = page.locator(".splitter").nth(1).bounding_box()
        page.mouse.move(bar["x"] + 2, bar["y"] + 200)
        page.mouse.down()
        page.mouse.move(bar["x"] + 122, bar["y"] + 200, steps=4)
        page.mouse.up()
        dragged = widths(page)
        assert dragged[0] == pytest.approx(before[0] + 120, abs=4)
        assert dragged[1] == pytest.approx(before[1] - 120, abs=4)
        assert dragged[2] == pytest.approx(before[2], abs=4)
        page.focus(".splitter >> nth=2")
        page.keyboard.press("ArrowLeft")
        assert widths(page)[2] > dragged[2]
        page.focus(".splitter >> nth=1")
        page.keyboard.press("ArrowRight")  # a divider again that was moved before another one
        moved = widths(page)
        page.reload()
        page.wait_for_selector("html[data-ready]", state="attached")
        assert widths(page) == pytest.approx(moved, abs=4)
        page.evaluate("localStorage.setItem('depyf-panes', '{\"source-stage\": {}, \"details\":')")
        page.reload()
        page.wait_for_selector("html[data-ready]", state="attached")
        assert widths(page) == pytest.approx(before, abs=4)


def test_panes_are_dragged_where_nothing_can_be_stored(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#source/f0") as page:
        page.evaluate("Object.defineProperty(window, 'localStorage', { get() { throw new Error('denied'); } })")
        before = widths(page)
        page.focus(".splitter >> nth=1")
        page.keyboard.press("ArrowRight")
        assert widths(page)[0] > before[0]


def test_a_comparison_opens_with_its_table(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["diff"]) as page:
        assert page.inner_text("nav a[aria-current]") == "What changed"
        rows = page.locator(".view-ranks table").first.locator("tbody tr").all_inner_texts()
        assert any(row.split() == ["graph", "breaks", "5", "4", "\u22121", "better"] for row in rows)
        assert any(row.split() == ["recompilations", "6", "6", "same"] for row in rows)
        functions = page.locator(".view-ranks table").nth(1).inner_text()
        assert "5 → 4" in functions
        assert "no longer compiled" in functions
        assert "<img src=x onerror=alert(1)>" in functions
        assert page.locator(".view-ranks img").count() == 0
        assert page.locator(".diff-add >> text=tanh.default").count() >= 1
        page.click("nav >> text=Overview")
        assert page.evaluate("location.hash").startswith("#overview")


@pytest.mark.parametrize("which", ["sample", "hostile", "ranks", "diff"])
@pytest.mark.parametrize("width", [400, 1280, 1920])
def test_nothing_is_wider_than_the_window(chromium: Any, pages: Dict[str, Path], which: str, width: int) -> None:
    with opened(chromium, pages[which], width=width) as page:
        for address in [
            *VIEWS,
            "source/f0/20",
            "flow/f0",
            "stages/__compiled_fn_1.Forward_graph.0.py/L9",
        ]:
            page.evaluate(f"location.hash = '#{address}'")
            page.wait_for_timeout(60)
            assert overflow(page) == 0, address
            wide = page.evaluate(
                """() => [...document.querySelectorAll('.view:not([hidden]), .view:not([hidden]) > *, .pane, .bar')]
                    .filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.className)"""
            )
            assert wide == [], address


def test_hostile_texts_stay_texts(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["hostile"]) as page:
        for address in [
            *VIEWS,
            "source/f0/18",
            "source/f6/33",
            "flow/f0",
            "stages/__compiled_fn_1.Captured_Graph.0.py",
        ]:
            page.evaluate(f"location.hash = '#{address}'")
            page.wait_for_timeout(60)
            assert page.evaluate("window.pwned") is None, address
        assert page.locator("img").count() == 0
        assert page.locator("a[href^='javascript']").count() == 0
        page.evaluate("location.hash = '#source/f0/18'")
        page.wait_for_timeout(60)
        assert "</script><script>window.pwned = 1</script>" in page.inner_text(".details")
        assert "漢字" in page.inner_text(".details")


WORDS_OF_THE_MODEL = ("kind", "status", "language", "outcome")
"""Fields whose values the page tells apart: with other words it would show less."""


MARKUP = HOSTILE.replace("\ud800", "")  # addresses can't hold it


def hostile_everywhere(value: Any, name: str = "") -> Any:
    """A manifest with markup in each text and in each name of a free table; equal texts stay equal."""
    if isinstance(value, dict):
        free = name in ("cache", "metrics", "totals")
        return {key + MARKUP if free else key: hostile_everywhere(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [hostile_everywhere(each, name) for each in value]
    return f"{value}{MARKUP}" if isinstance(value, str) and name not in WORDS_OF_THE_MODEL else value


def test_every_text_of_a_manifest_may_be_hostile(chromium: Any, tmp_path: Path) -> None:
    run, text_of = sample_run()
    bare = replace(run, artifacts=tuple(replace(each, text=text_of(each)) for each in run.artifacts))
    manifest = hostile_everywhere(json.loads("".join(json_parts(bare))))
    hostile = from_json(json.dumps(manifest))
    assert hostile.compilations[0].compile_id.endswith(MARKUP)
    assert hostile.compilations[0].guards[0].text.endswith(MARKUP)
    path = tmp_path / "index.html"
    one = (hostile, lambda artifact: artifact.text)
    path.write_text(render_pages([one, one], [], [MARKUP, f"{MARKUP} 2"]), encoding="utf-8")
    compilation, artifact = (
        quote(each, safe="") for each in (hostile.compilations[0].compile_id, hostile.artifacts[3].id)
    )
    with opened(chromium, path) as page:
        page.evaluate("addEventListener('securitypolicyviolation', () => { window.pwned = 'asked for'; })")
        addresses = [*TITLES, "source/f0/18", "source/f6/33", "flow/f0", "breaks/0"]
        addresses += [f"{view}/{compilation}" for view in ("compilations", "guards", "recompiles")]
        for address in [*addresses, f"stages/{artifact}/L3", f"layers/{artifact}"]:
            page.evaluate("(address) => { location.hash = address; }", f"#{address}")
            page.wait_for_timeout(60)
            page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
            assert page.evaluate("window.pwned") is None, address
            assert page.locator("img, iframe").count() == 0, address
        page.keyboard.press("Control+k")
        page.fill("#search-for", "pwned")
        page.wait_for_selector(".found a")
        assert page.locator("img").count() == 0
        assert page.evaluate("window.pwned") is None


def test_addresses_that_lead_nowhere_do_no_harm(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#source/f99/100000?stage=none&rank=7") as page:
        assert page.locator(".view-source:not([hidden])").count() == 1
        for address in [
            "stages/none/L5",
            "flow/f99",
            "flow/%",
            "nothing",
            "source/x/y",
            "stages//L999999",
        ]:
            page.evaluate(f"location.hash = '#{address}'")
            page.wait_for_timeout(50)
            assert page.locator(".view:not([hidden])").count() == 1


def test_a_line_of_a_statement_of_several_lines_is_all_of_it(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["ranks"], "#source/f7/45") as page:
        assert text_of(page, "source-code", 45).strip() == "* gate"
        assert lit(page, "source-code") == [44]
        assert "linear" in "".join(text_of(page, "stage-code", line) for line in lit(page, "stage-code"))


def test_of_24_layers_what_is_looked_at_is_built(chromium: Any, pages: Dict[str, Path]) -> None:
    """How long that takes, ``benchmarks/report_page.py`` measures."""
    with opened(chromium, pages["large"], "#source/f0/21") as page:
        page.wait_for_selector("#stage-code .line.near")
        page.wait_for_selector("#kernel-code .line.hit")
    with opened(chromium, pages["large"], "#stages/__compiled_fn_1.Forward_graph.0.py/L1000") as page:
        assert lit(page, "stage-text") == [1000]
        assert page.locator("#stage-text .line").count() < 500  # of 1,400: what is not looked at is not built


def test_what_nobody_has_counted_is_not_shown_as_nothing(chromium: Any, tmp_path: Path) -> None:
    """A dump of a process that was killed before it wrote a manifest."""
    run = Run(
        origin="files",
        sources=(SourceFile("/a.py", "def f(x): ..."),),
        functions=(Function("f", "f", 0, 1, 1),),
        compilations=(Compilation("0/0", 0, graph="__compiled_fn_1"),),
    )
    page_path = tmp_path / "index.html"
    page_path.write_text(render_page(run, lambda artifact: artifact.text))
    with opened(chromium, page_path) as page:
        tiles = dict(reversed(each.split("\n", 1)) for each in page.locator(".tile").all_inner_texts())  # type: ignore[arg-type]
        assert tiles["function compiled"] == "1"
        for unknown in ("graph breaks", "recompilations", "fallbacks to eager", "guards", "to compile"):
            assert tiles[unknown] == "\u2013", unknown
        for view in ("overview", "breaks", "recompiles"):
            page.goto(f"{page_path.as_uri()}#{view}")
            page.wait_for_selector(f".view-{view}:not([hidden])")
            assert "Not known: this was made from the files alone" in page.inner_text(f".view-{view}"), view
