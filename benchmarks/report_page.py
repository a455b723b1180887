"""How long the page of a 24-layer transformer takes to write, and to be usable in Chromium.

    python benchmarks/report_page.py                 # a run made by hand, of the size of a real one
    python benchmarks/report_page.py DIR...          # dumps that depyf made earlier (with a manifest.json)

Usable means: the source of the first function is there, a line of it was chosen, and its part in graph and kernel
lights up; from the start of the navigation, in a browser that is running.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, Iterator, Optional, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from browser import browser, opened
from dumps import dumped
from transformer_run import transformer_run

from depyf.report.model.run import Artifact, Run
from depyf.report.render.page import render_page

TextOf = Callable[[Artifact], Optional[str]]


def runs(folders: list[str]) -> Iterator[Tuple[str, Run, TextOf]]:
    for folder in folders:
        yield (folder, *dumped(Path(folder)))
    if not folders:
        yield ("24 layers, made by hand", *transformer_run(24))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", metavar="DIR")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, browser() as chromium:
        for name, run, text_of in runs(arguments.folders):
            texts = sum(len(text_of(each) or "") for each in run.artifacts)
            start = time.perf_counter()
            page = render_page(run, text_of)
            path = Path(scratch, "index.html")
            path.write_text(page, encoding="utf-8")
            wrote = time.perf_counter() - start
            times = sorted(seconds_until_usable(chromium, path, run) for _ in range(3))
            print(f"{name}: {len(run.artifacts)} artifacts, {sum(len(a.links) for a in run.artifacts)} links")
            print(f"  texts {texts / 1e6:.1f} MB, page {path.stat().st_size / 1e6:.1f} MB, written in {wrote:.2f} s")
            print(f"  usable after {times[1]:.2f} s (of three: {', '.join(f'{each:.2f}' for each in times)})")


def seconds_until_usable(chromium: object, path: Path, run: Run) -> float:
    """With a line of the source that is in a graph."""
    function, place = next(
        (c.function, p)
        for c in run.compilations
        if c.function is not None and run.functions[c.function].resumes is None
        for a in run.artifacts
        if a.compile_id == c.compile_id and a.stage == "Captured_Graph"
        for link in a.links
        for p in link.places
        if p[0] == run.functions[c.function].source
    )
    start = time.perf_counter()
    with opened(chromium, path, f"#source/f{function}/{place[1]}") as page:
        page.wait_for_selector("#source-code .line.hit")
        page.wait_for_selector("#stage-code .line.hit, #stage-code .line.near")
        return time.perf_counter() - start


if __name__ == "__main__":
    main()
