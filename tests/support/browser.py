"""A real Chromium, headless, for tests of the page; tests are skipped where there is none."""

from __future__ import annotations

import re
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, List, Tuple

import pytest

from depyf.report.render import page as page_of_runs

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-lcd-text",  # greys instead of colours at the edges of letters: half as large pictures
]

_SCRIPTS = Path(page_of_runs.__file__).parent / "web" / "script"
_PUSHED = re.compile(r"VIEWS\.push\((?!RANKS).*")
_VIEW = re.compile(r'VIEWS\.push\(\{ id: "(\w+)", title: "([^"]+)"')


def _views() -> Iterator[Tuple[str, str]]:
    for name in page_of_runs._SCRIPTS:
        for push in _PUSHED.findall((_SCRIPTS / name).read_text("utf-8")):
            match = _VIEW.match(push)
            assert match is not None, f'{name}: write VIEWS.push({{ id: "...", title: "...": tests find a view by that'
            yield match.group(1), match.group(2)


TITLES = dict(_views())
"""The titles of the views by their ids, in the order of the tabs."""

NOT_OF_THE_SAMPLE = ("passes", "run")
"""The ids of views that the page of the sample lacks: no pass changed a graph in it, and nothing was profiled."""

VIEWS = [view for view in TITLES if view not in NOT_OF_THE_SAMPLE]
"""The ids of those that it has."""


def chromium() -> str:
    """The path of a Chromium; skips the test where there is none, or nothing that drives it."""
    pytest.importorskip("playwright", reason="playwright drives the browser (pip install 'depyf[dev]')")
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    pytest.skip("no Chromium on this machine (apt-get install chromium)")


@contextmanager
def browser() -> Iterator[Any]:
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=path, headless=True, args=ARGUMENTS)


@contextmanager
def opened(
    chromium: Any, path: Path, address: str = "", *, width: int = 1280, height: int = 800, scheme: str = "light"
) -> Iterator[Any]:
    """The page at ``path`` in a tab of its own, ready. Afterwards the console must hold no complaint."""
    context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(10_000)
    complaints: List[str] = []
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.append(request.url) if "file:" not in request.url[:5] else None)
    page.goto(f"{path.as_uri()}{address}")
    page.wait_for_selector("html[data-ready]", state="attached")
    yield page
    context.close()
    # data: is the empty icon, which keeps browsers from asking for one.
    complaints = [each for each in complaints if not each.startswith("data:")]
    assert not complaints, complaints


def unfold(summary: Any) -> None:
    """Click ``summary``, and wait for what the page adds: ``toggle`` is sent after the click has returned."""
    summary.evaluate("""one => { window.toggled = new Promise((done) => {
        one.parentNode.addEventListener("toggle", done, { once: true });
    }); }""")
    summary.click()
    summary.evaluate("() => window.toggled.then(() => true)")


def as_text(chromium: Any, fragment: str) -> str:
    """What a person reads of a piece of HTML."""
    page = chromium.new_page()
    page.set_content(fragment)
    text = str(page.inner_text("body"))
    page.close()
    return text
