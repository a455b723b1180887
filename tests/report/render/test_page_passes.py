"""The page lists the passes that changed a graph, and shows the difference of the one that is opened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from browser import opened, unfold

from depyf.report.model.run import Artifact, Compilation, Function, Pass, Run, SourceFile
from depyf.report.render.page import render_page

TEXT = "# Passes\n\n```diff\n--- before\n+++ after\n-a = sin(x)</script><b>\n+a = tanh(x)\n b = a\n```\n"


def run(*passes: Pass) -> Run:
    return Run(
        sources=(SourceFile("/a.py", "def f(x): ...\n"),),
        functions=(Function("f", "f", 0, 1, 1),),
        compilations=(Compilation("0/0", 0, passes_ran=58),),
        artifacts=(Artifact("p.md", "passes", "passes over __compiled_fn_1", "0/0", text=TEXT, language="text"),),
        passes=passes,
    )


def page_of(path: Path, found: Run) -> Path:
    path.write_text(render_page(found, lambda artifact: artifact.text), encoding="utf-8")
    return path


def test_passes_are_listed_in_order_with_their_difference(chromium: Any, tmp_path: Path) -> None:
    passes = (
        Pass("0/0", "p.md", "joint_graph_passes", "remove_noop_ops", nodes_before=9, nodes_after=7),
        Pass("0/0", "p.md", "post_grad_passes", "a_custom_pass", "m.<b>mine", ("outer",), 7, 7, 4, 8, ("s1: 2 to ∞",)),
    )
    with opened(chromium, page_of(tmp_path / "index.html", run(*passes))) as page:
        page.click("nav >> text=Passes")
        page.wait_for_selector(".view-passes:not([hidden])")
        names = page.locator(".passes summary .mono").all_inner_texts()
        assert names == ["remove_noop_ops", "outer / a_custom_pass (m.<b>mine)"]
        assert "58 passes ran in this compilation" in page.inner_text(".passes")
        assert "s1: 2 to ∞" in page.inner_text(".passes")
        unfold(page.locator(".passes summary").nth(1))
        assert page.locator(".passes .diff-drop").all_inner_texts() == ["-a = sin(x)</script><b>\n"]
        assert page.locator(".passes .diff-add").all_inner_texts() == ["+a = tanh(x)\n"]


def test_the_only_pass_is_open_and_its_lines_are_not_cut_on_a_telephone(chromium: Any, tmp_path: Path) -> None:
    wide = replace(run().artifacts[0], text=f"-{'a' * 400} = sin(x)")
    only = replace(run(Pass("0/0", "p.md", "g", "pass", first=1, last=1)), artifacts=(wide,))
    with opened(chromium, page_of(tmp_path / "index.html", only), "#passes", width=400) as page:
        assert page.locator(".passes .diff-drop").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 400
        assert page.evaluate("(e => e.scrollWidth - e.clientWidth)(document.querySelector('.difference'))") <= 0


def test_passes_of_pieces_stand_apart_with_their_sizes(chromium: Any, tmp_path: Path) -> None:
    passes = tuple(
        Pass("0/0", "p.md", "post_grad_passes", name, sizes=sizes, piece=piece)
        for piece, sizes in (("submod_0[2]", ()), ("submod_0[1-64]", ("s1: 2 to ∞",)))
        for name in ("one", "two")
    )
    with opened(chromium, page_of(tmp_path / "index.html", run(*passes)), "#passes") as page:
        assert page.locator(".passes h3").all_inner_texts() == ["submod_0[2]", "submod_0[1-64]"]
        assert page.locator(".passes ol").count() == 2
        assert page.locator(".passes h3 + p").all_inner_texts() == ["compiled for sizes s1: 2 to ∞"]


def test_without_passes_there_is_no_such_view(chromium: Any, tmp_path: Path) -> None:
    with opened(chromium, page_of(tmp_path / "index.html", run())) as page:
        assert page.locator("#views a >> text=Passes").count() == 0
