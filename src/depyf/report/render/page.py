"""``index.html``: one self-contained page that explains a run, or several runs beside each other.

The page has the data of each run once (``page_data.py``); views are built and highlighted in the browser
(``web/script``). Drawings are made here (``flow.py``).
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import re
from pathlib import Path
from typing import Callable, Iterator, Mapping, Optional, Sequence, Tuple

from depyf.report.model.run import Run
from depyf.report.render.flow import drawings
from depyf.report.render.page_data import Difference, TextOf, data_element, printable

__all__ = ["Difference", "TextOf", "page_parts", "render_page", "render_pages"]

_WEB = Path(__file__).parent / "web"

_STYLES = ("base.css", "code.css", "views.css")

# In this order: later files use what the earlier ones define.
_SCRIPTS = (
    "dom.js",
    "model.js",
    "highlight.js",
    "code.js",
    "links.js",
    "diff.js",
    "router.js",
    "overview.js",
    "details.js",
    "splitter.js",
    "tallies.js",
    "bookkeeping.js",
    "artifact_pane.js",
    "source.js",
    "layers.js",
    "run.js",
    "breaks.js",
    "recompiles.js",
    "guards.js",
    "flow.js",
    "time.js",
    "compilations.js",
    "stages.js",
    "passes.js",
    "story.js",
    "ranks.js",
    "search.js",
    "main.js",
)

# Views that are only there when a run has what they show: a page has their scripts only then.
_NEEDED: Mapping[str, Callable[[Run], bool]] = {
    "layers.js": lambda run: any(each.modules for each in run.artifacts),
    "run.js": lambda run: bool(run.timings),
    "passes.js": lambda run: bool(run.passes),
}


def render_page(run: Run, text_of: TextOf) -> str:
    """Return the page of one run. ``text_of`` returns the text of an artifact, None if it no longer exists."""
    return render_pages([(run, text_of)])


def render_pages(
    runs: Sequence[Tuple[Run, TextOf]],
    differences: Sequence[Difference] = (),
    names: Sequence[str] = (),
    comparison: Optional[Mapping[str, object]] = None,
) -> str:
    """Return the page for several runs as one string; see ``page_parts``."""
    return "".join(page_parts(runs, differences, names, comparison))


def page_parts(
    runs: Sequence[Tuple[Run, TextOf]],
    differences: Sequence[Difference] = (),
    names: Sequence[str] = (),
    comparison: Optional[Mapping[str, object]] = None,
) -> Iterator[str]:
    """Yield one page for several runs, with a selector of the run and a view of their differences, in parts.

    ``names`` are the names of the runs (default: ``rank 0``, ...); the ``ranks`` of ``differences`` use these names.
    With the numbers of a ``comparison`` the view of differences is titled ``What changed`` and comes first.
    """
    called = [f"rank {at if run.rank is None else run.rank}" for at, (run, _) in enumerate(runs)]
    called[: len(names)] = names[: len(called)]
    known = [run for run, _ in runs]
    script, its_hash = _script(
        tuple(each for each in _SCRIPTS if each not in _NEEDED or any(map(_NEEDED[each], known)))
    )
    template, style = _skeleton()
    program = " ".join(runs[0][0].command)[:80] if runs else ""
    parts = {
        "title": html.escape(printable(f"{program or 'A run of torch.compile'} · depyf" if runs else "depyf")),
        "style": style,
        "script": script,
        "hash": its_hash,
        "drawings": "\n".join(_drawings(at, run) for at, (run, _) in enumerate(runs)),
    }
    # One pass: inserted text may itself look like a placeholder. Odd numbers are names of placeholders.
    for number, text in enumerate(template):
        if text == "data" and number % 2:
            yield from data_element(runs, differences, called, comparison)
        else:
            yield parts[text] if number % 2 else text


@functools.lru_cache(maxsize=1)
def _skeleton() -> Tuple[Sequence[str], str]:
    """Return the template of all pages, in which text and the name of a placeholder alternate, and their style."""
    return re.split(r"@@(\w+)@@", _file("", "page.html")), "\n".join(_lines("style", _STYLES))


@functools.lru_cache(maxsize=8)
def _script(names: Tuple[str, ...]) -> Tuple[str, str]:
    """Return the one script of the page, made of the files ``names``, and its hash. The content security policy has the
    hash, so no other script can run."""
    parts = "\n".join(line for line in _lines("script", names) if not line.startswith("//"))
    script = f'"use strict";\n(async () => {{\n{parts}\n}})();\n'
    return script, f"sha256-{base64.b64encode(hashlib.sha256(script.encode('utf-8')).digest()).decode('ascii')}"


def _lines(folder: str, names: Sequence[str]) -> Iterator[str]:
    # Indentation and lines of comments are an eighth of the page of a small program. No text in these files goes over
    # several lines (tests/report/render/test_page.py).
    for name in names:
        yield from filter(None, map(str.strip, _file(folder, name).splitlines()))


def _file(folder: str, name: str) -> str:
    return (_WEB / folder / name).read_text(encoding="utf-8")


def _drawings(at: int, run: Run) -> str:
    return "\n".join(
        f'<template data-run="{at}" data-function="{function}">{printable(svg)}</template>'
        for function, svg in drawings(run, at if at else None)
    )
