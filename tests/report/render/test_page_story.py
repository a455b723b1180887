"""Story: the compilation of a function in ten steps, each with what the run made, and a question with its answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

import pytest
from browser import opened
from run_builder import RunBuilder

from depyf.report.model.run import Function, SourceFile
from depyf.report.render.page import _file, render_page

AT = ".view-story h1:text-matches('^{}[.]')"

SOURCE = "def f(x):\n    y = x.sin()\n    if flag:\n        y = y + 1\n    return y"


def test_each_step_has_a_text_and_the_next_one(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#story") as page:
        view = page.locator(".view-story")
        titles = []
        for number in range(1, 11):
            titles.append(view.locator("h1").inner_text())
            assert view.locator("p").count() >= 2
            assert view.locator(".steps [aria-current]").inner_text() == str(number)
            if number < 10:
                page.keyboard.press("ArrowRight")
                page.wait_for_selector(AT.format(number + 1))
        assert titles[0] == "1. Your function"
        assert titles[-1] == "10. The next call"
        page.keyboard.press("p")
        page.wait_for_selector(AT.format(9))


@pytest.mark.parametrize("kind", ["sample", "hostile", "large"])
def test_every_step_is_shown(chromium: Any, pages: Dict[str, Path], kind: str) -> None:
    with opened(chromium, pages[kind], "#story") as page:
        functions = page.eval_on_selector_all("#story-pick option", "all => all.map(each => each.value)")[:3]
        assert functions
        for address in functions:
            for step in range(1, 11):
                page.evaluate(f"location.hash = {address.rpartition('/')[0] + '/' + str(step)!r}")
                page.wait_for_selector(AT.format(step))
                assert "undefined" not in page.inner_text(".view-story")


def test_answers_are_of_the_run(chromium: Any, tmp_path: Path) -> None:
    b = RunBuilder(sources=[SourceFile("/m.py", SOURCE)])
    b.functions.append(Function("f", "f", 0, 1, 5))
    b.compilation("0/0", 0, [("sin", "torch.ops.aten.sin.default(x)", ((0, 2),))])
    path = tmp_path / "index.html"
    path.write_text(render_page(*b.run()), encoding="utf-8")
    with opened(chromium, path, "#story/f0/1") as page:
        assert page.eval_on_selector_all(".excerpt .hit .no", "all => all.map(each => each.textContent)") == ["2"]
        page.click(".question summary")
        assert "Lines 3, 4, 5. A line that only decides" in page.inner_text(".question")
        page.evaluate("location.hash = '#story/f0/5'")
        page.click(".question summary")
        assert "Which names in the graph come from m.py:2" in page.inner_text(".question")
        assert page.inner_text(".question p code") == "v_sin"


def test_a_page_of_nothing_says_so(chromium: Any, tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    path.write_text(render_page(*RunBuilder().run()), encoding="utf-8")
    with opened(chromium, path, "#story") as page:
        assert "Nothing was compiled in this run" in page.inner_text(".view-story")


def test_lines_of_graphs_begin_with_what_they_compute(chromium: Any, pages: Dict[str, Path]) -> None:
    lines = {
        '        x_1: "f32[4, 8][8, 1]cpu" = torch.sin(x);  x = None': "        x_1 = torch.sin(x)  # f32[4, 8]",
        '        n: "Sym(s0)" = x.size(0)': '        n: "Sym(s0)" = x.size(0)',
        "        getitem = split[0];  split = None": "        getitem = split[0]",
        '        # File: /p/a.py:3 in f, code: y = g("a;  b = None")': '        # a.py:3  y = g("a;  b = None")',
        "        return (x_1,)": "        return (x_1,)",
    }
    script = _file("script", "dom.js") + _file("script", "bookkeeping.js")
    names = ("fileName", "shortComment", "shortLine")
    functions = "\n".join(script[script.index(f"function {name}(") :].split("\n}\n", 1)[0] + "\n}" for name in names)
    with opened(chromium, pages["sample"], "#source") as page:
        for line, short in lines.items():
            assert page.evaluate(f"line => {{ {functions}\n return shortLine(line); }}", line) == short, line
