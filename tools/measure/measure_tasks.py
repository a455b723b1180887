"""Drive the page through six questions in Chromium: clicks, seconds, and a picture of where each one ends.

    python tools/measure/measure_tasks.py --dump FOLDER [--after FOLDER] [--out FOLDER] [--tlparse FOLDER]

``--dump`` is a dump, best with a graph break, a recompilation and kernels: questions about what it lacks are left out,
and named. ``--after`` is another one of the same program, for the question of what changed. Without ``--out`` no
pictures are kept. Each question begins with the page newly opened. ``--tlparse`` is a folder that tlparse wrote from a
log of the same program: questions that its pages answer, for one compilation. What a call runs, and what changed, have
no page there.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator, List, Optional, Tuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "src")]

from browser import browser, opened
from dumps import dumped
from playwright.sync_api import TimeoutError as NotFoundInTime

from depyf.report.diff.comparison import compare
from depyf.report.diff.comparison_output import as_differences, tables_of
from depyf.report.diff.matching import ComparedRun
from depyf.report.model.run import Run
from depyf.report.render.page import TextOf, render_page, render_pages


class Clicks:
    """A tab whose clicks are counted."""

    def __init__(self, tab: Any) -> None:
        self.tab = tab
        self.count = 0

    def click(self, selector: str) -> None:
        self.count += 1
        self.tab.locator(selector).first.click(position={"x": 8, "y": 8})  # of a long line, its beginning

    def expect(self, selector: str) -> None:
        """Wait for the answer, which must be in sight."""
        found = self.tab.locator(selector).first
        found.wait_for(state="visible")
        box, size = found.bounding_box(), self.tab.viewport_size
        if box is None or box["y"] > size["height"] or box["x"] > size["width"]:
            print(f"  not in sight: {selector}")


def why_recompiled(page: Clicks, run: Run) -> None:
    page.click(".tile:has-text('recompilation')")
    page.expect(".view-recompiles td .change")
    if not page.tab.locator(".view-recompiles :text('What would avoid')").first.is_visible():  # more than a few
        page.click(".view-recompiles details > summary")
    page.expect(".view-recompiles :text('What would avoid')")


def which_line_breaks(page: Clicks, run: Run) -> None:
    page.click(".tile:has-text('graph break')")
    page.expect(".view-breaks .place")
    page.expect(".view-breaks :text('What to do')")


def which_kernel_and_back(page: Clicks, run: Run) -> None:
    lines = Counter(place for kernel in run.kernels if kernel.first for place in kernel.places)
    source, line = min(lines, key=lines.__getitem__)  # the first that few kernels compute
    page.click("nav >> text=Source")
    number = page.tab.locator(f"#source-code-L{line} .text")
    if number.count() == 0:  # in another function than the one that is shown first
        page.tab.evaluate(f"location.hash = '#source/s{source}/{line}'")
    page.click(f"#source-code-L{line} .text")
    page.expect("#kernel-code .line.hit")
    page.click("#kernel-code .line.hit .text")
    page.expect(f"#source-code-L{line}.hit")


def where_the_time_went(page: Clicks, run: Run) -> None:
    page.expect(".headline")
    page.click("nav >> text=Time")
    page.expect(".view-time table")


def how_a_call_flows(page: Clicks, run: Run) -> None:
    page.click("nav >> text=Flow")
    page.expect(".drawing svg")


def what_changed(page: Clicks, run: Run) -> None:
    page.expect(".view-ranks table")


def has_linked_kernels(run: Run) -> bool:
    return any(kernel.first and kernel.places for kernel in run.kernels)


Task = Tuple[str, Callable[[Clicks, Run], None]]

TASKS: List[Tuple[Task, Callable[[Run], bool]]] = [
    (("why did it recompile", why_recompiled), lambda run: bool(run.recompiles)),
    (("which line breaks the graph, and what to do", which_line_breaks), lambda run: bool(run.breaks)),
    (("which kernel computes a line, and back", which_kernel_and_back), has_linked_kernels),
    (("where did the time go", where_the_time_went), lambda run: bool(run.phases)),
    (("how does a call flow", how_a_call_flows), lambda run: bool(run.functions)),
]
"""The tasks, and whether a run has an answer."""


def of_tlparse(link: str, answer: str) -> Callable[[Clicks, Run], None]:
    """Return the task of following a link of tlparse's first page to a text."""

    def drive(page: Clicks, run: Run) -> None:
        page.click(f"a[href*='{link}']")
        page.expect(f"text=/{answer}/")

    return drive


TLPARSE_TASKS: List[Task] = [
    ("why did it recompile", of_tlparse("recompile_reasons", r"\d+.\d+: ")),  # 0/1: the guard that failed
    ("which line breaks the graph, and what to do", of_tlparse("dynamo_graph_break_reason", "Hint:")),
    ("which kernel computes a line (by its name)", of_tlparse("inductor_output_code", "cpp_fused|triton_")),
    ("where did the time go (of one compilation)", of_tlparse("compilation_metrics", "Compile Time")),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dump", metavar="FOLDER", required=True)
    parser.add_argument("--after", metavar="FOLDER")
    parser.add_argument("--out", metavar="FOLDER")
    parser.add_argument("--tlparse", metavar="FOLDER")
    arguments = parser.parse_args()
    out = Path(arguments.out) if arguments.out else None
    run, text_of = dumped(Path(arguments.dump))
    with tempfile.TemporaryDirectory() as scratch, browser() as chromium:
        page = Path(scratch, "index.html")
        page.write_text(render_page(run, text_of), encoding="utf-8")
        for task, has_answer in TASKS:
            if has_answer(run):
                measure(chromium, page, run, task, out)
            else:
                print(f"{task[0]:<46}nothing of the kind in this dump")
        if arguments.after:
            other = dumped(Path(arguments.after))
            page.write_text(compared_page((run, text_of), other), encoding="utf-8")
            measure(chromium, page, run, ("what changed", what_changed), out)
        for name, task in TLPARSE_TASKS if arguments.tlparse else ():
            measure(
                chromium, Path(arguments.tlparse, "index.html"), run, (f"tlparse: {name}", task), out, of_another_tool
            )


def compared_page(before: Tuple[Run, TextOf], after: Tuple[Run, TextOf]) -> str:
    """Return the page of what changed between two runs."""
    comparison = compare(ComparedRun("before", *before), ComparedRun("after", *after))
    return render_pages([before, after], as_differences(comparison), ["before", "after"], tables_of(comparison))


@contextmanager
def of_another_tool(chromium: Any, page: Path) -> Iterator[Any]:
    """Open a page that does not say when it is ready."""
    tab = chromium.new_page(viewport={"width": 1280, "height": 800})
    tab.set_default_timeout(10_000)
    tab.goto(page.resolve().as_uri())
    yield tab
    tab.close()


def measure(
    chromium: Any, page: Path, run: Run, task: Task, out: Optional[Path], open_page: Callable[..., Any] = opened
) -> None:
    name, drive = task
    begun = time.perf_counter()
    with open_page(chromium, page) as tab:
        ready = time.perf_counter() - begun
        clicks = Clicks(tab)
        try:
            drive(clicks, run)
        except NotFoundInTime:  # of another tool: the first of its links, of a compilation without kernels, say
            print(f"{name:<46}no answer where the first link leads")
            return
        took = time.perf_counter() - begun - ready
        print(f"{name:<46}{clicks.count:>3} clicks, opened in {ready:.2f} s, {took:.2f} s from there", flush=True)
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            tab.screenshot(path=str(out / f"{name.replace(' ', '-').replace(',', '')}.png"))


if __name__ == "__main__":
    main()
