"""Measure how long the page of a transformer takes to write, to become usable in Chromium, and to show a chosen line.

    python benchmarks/report_page.py                 # a run made by hand, of the size of a real one, with 24 layers
    python benchmarks/report_page.py --layers 96
    python benchmarks/report_page.py DIR...          # dumps that depyf made earlier (with a manifest.json)
    python benchmarks/report_page.py --limits        # 96 layers, 70 functions, 10,000 cache entries: open, scroll

Usable means: the source of the first function is shown, a line of it was selected, and its part in graph and kernel is
highlighted; measured from the start of the navigation, in a running browser. CPU is that of the page's main thread
(script, style and layout): other work of the machine does not count.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Iterator, List, Optional, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from browser import browser
from dumps import dumped
from large_runs import many_functions, stormy
from transformer_run import transformer_run

from depyf.report.model.run import Artifact, Run
from depyf.report.render.page import render_page

TextOf = Callable[[Artifact], Optional[str]]


def runs(folders: List[str], layers: int) -> Iterator[Tuple[str, Run, TextOf]]:
    for folder in folders:
        yield (folder, *dumped(Path(folder)))
    if not folders:
        yield (f"{layers} layers, made by hand", *transformer_run(layers))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", metavar="DIR")
    parser.add_argument("--layers", type=int, default=24, help="of the run that is made by hand (24)")
    parser.add_argument("--limits", action="store_true", help="what the page has to stand, each with its limit")
    arguments = parser.parse_args()
    if arguments.limits:
        limits()
        return
    with tempfile.TemporaryDirectory() as scratch, browser() as chromium:
        for name, run, text_of in runs(arguments.folders, arguments.layers):
            texts = sum(len(text_of(each) or "") for each in run.artifacts)
            start = time.perf_counter()
            page = render_page(run, text_of)
            path = Path(scratch, "index.html")
            path.write_text(page, encoding="utf-8")
            wrote = time.perf_counter() - start
            times = sorted(measured(chromium, path, run) for _ in range(3))
            opening, cpu, lines = times[1]
            slowest = max(lines)
            print(f"{name}: {len(run.artifacts)} artifacts, {sum(len(a.links) for a in run.artifacts)} links")
            print(f"  texts {texts / 1e6:.1f} MB, page {path.stat().st_size / 1e6:.1f} MB, written in {wrote:.2f} s")
            print(f"  usable after {opening:.2f} s (of three: {', '.join(f'{each:.2f}' for each, _, _ in times)})")
            print(
                f"  of the page's thread: {cpu:.2f} s of CPU until then, a chosen line {1000 * slowest:.0f} ms at most"
            )


def limits() -> None:
    """Print what opening and scrolling large runs takes, the middle one of three each."""
    entries = stormy(many_functions(1)[0], 10_000)
    pages = [
        ("96 layers", transformer_run(96), [("#source/f0", 1.5), ("#stages", 1.5)]),
        ("70 functions", many_functions(70), [("", 2.0), ("#source/f69", 2.0), ("#time", 2.0), ("#stages", 2.0)]),
        ("10,000 cache entries", (entries, lambda _: None), [(f"#{view}", 1.0) for view in ("recompiles", "source")]),
        ("10,000 rows", (entries, lambda _: None), [(f"#{view}", 1.0) for view in ("compilations", "time")]),
    ]
    with tempfile.TemporaryDirectory() as scratch, browser() as chromium:
        for name, (run, text_of), views in pages:
            path = Path(scratch, "index.html")
            path.write_text(render_page(run, text_of), encoding="utf-8")
            for view, limit in views:
                rows = name.endswith("rows")
                took, cpu, step = sorted(opening(chromium, path, view, rows=rows) for _ in range(3))[1]
                print(f"{name}, {view or '#overview'}: shown after {took:.2f} s, {cpu:.2f} s of CPU, limit {limit} s")
                if rows:
                    print(f"  with room for all rows; scrolled by a screen: {1000 * step:.0f} ms at most")


def opening(chromium: Any, path: Path, view: str, *, rows: bool) -> Tuple[float, float, float]:
    """Return the seconds until a view is shown, those of CPU, and those of CPU for the slowest of ten screens; with
    ``rows`` all rows of its tables are asked for."""
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    start = time.perf_counter()
    page.goto(path.as_uri() + view)
    page.wait_for_selector("html[data-ready]", state="attached")
    if rows:
        for button in page.locator("button:has-text('Show all')").all():
            button.click()
    drawn(page)
    took = time.perf_counter() - start
    spent = [cpu_of(session)]
    for _ in range(10):
        page.evaluate("document.querySelector('.view:not([hidden])').scrollBy(0, 700)")
        drawn(page)
        spent.append(cpu_of(session))
    page.close()
    return took, spent[0], max(after - before for before, after in zip(spent, spent[1:]))


def drawn(page: Any) -> None:
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")


def measured(chromium: Any, path: Path, run: Run) -> Tuple[float, float, List[float]]:
    """Return the seconds until the page is usable, those of CPU, and those of CPU for each of a few chosen lines."""
    function, places = lines_of_graphs(run)
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    start = time.perf_counter()
    page.goto(f"{path.as_uri()}#source/f{function}/{places[0][1]}")
    page.wait_for_selector("#source-code .line.hit")
    page.wait_for_selector("#stage-code .line.hit:visible, #stage-code .line.near:visible")
    took = time.perf_counter() - start
    spent = [cpu_of(session)]
    for _, line in places[1:6]:
        page.click(f"#source-code-L{line} .text")
        drawn(page)
        spent.append(cpu_of(session))
    page.close()
    return took, spent[0], [after - before for before, after in zip(spent, spent[1:])]


def cpu_of(session: Any) -> float:
    """Return the seconds of CPU that the page's main thread has spent on tasks."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(float(each["value"]) for each in metrics if each["name"] == "TaskDuration")


def lines_of_graphs(run: Run) -> Tuple[int, List[Tuple[int, int]]]:
    """Return a function of the user's, and lines of its file that are in its graph."""
    return next(
        (
            c.function,
            list(dict.fromkeys(p for link in a.links for p in link.places if p[0] == run.functions[c.function].source)),
        )
        for c in run.compilations
        if c.function is not None and run.functions[c.function].resumes is None
        for a in run.artifacts
        if a.compile_id == c.compile_id and a.stage == "Captured_Graph" and a.links
    )


if __name__ == "__main__":
    main()
