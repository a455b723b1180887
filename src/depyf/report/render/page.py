"""``index.html``: one self-contained page that explains a run, or several runs beside each other.

The page has the data of each run once (``page_data.py``); views are built and highlighted in the browser
(``web/script``). Drawings are made here (``flow.py``).
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from pathlib import Path
from typing import Sequence, Tuple

from depyf.report.model.run import Run
from depyf.report.render.flow import drawings
from depyf.report.render.page_data import Difference, TextOf, data_element, printable

__all__ = ["Difference", "TextOf", "render_page", "render_pages"]

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
    "bookkeeping.js",
    "artifact_pane.js",
    "source.js",
    "breaks.js",
    "recompiles.js",
    "guards.js",
    "flow.js",
    "time.js",
    "stages.js",
    "ranks.js",
    "search.js",
    "main.js",
)


def render_page(run: Run, text_of: TextOf) -> str:
    """The page of one run. ``text_of`` returns the text of an artifact, None if it no longer exists."""
    return render_pages([(run, text_of)])


def render_pages(
    runs: Sequence[Tuple[Run, TextOf]],
    differences: Sequence[Difference] = (),
    names: Sequence[str] = (),
    comparison: str = "",
) -> str:
    """One page for several runs: a selector of the run, and a view of where they differ.

    ``names`` are what the runs are called (``rank 0``, by default); ``differences`` name them in ``ranks``.
    ``comparison`` is the title of that view, ``Ranks`` by default.
    """
    called = [names[at] if at < len(names) else _name(run, at) for at, (run, _) in enumerate(runs)]
    script = _script()
    parts = {
        "title": html.escape(printable(f"{_program(runs[0][0])} · depyf" if runs else "depyf")),
        "style": "\n".join(_file("style", name) for name in _STYLES),
        "script": script,
        "hash": f"sha256-{base64.b64encode(hashlib.sha256(script.encode('utf-8')).digest()).decode('ascii')}",
        "drawings": "\n".join(_drawings(at, run) for at, (run, _) in enumerate(runs)),
        "data": data_element(runs, differences, called, comparison),
    }
    # One pass: inserted text may itself look like a placeholder.
    return re.sub(r"@@(\w+)@@", lambda match: parts[match.group(1)], _file("", "page.html"))


def _script() -> str:
    """Return the one script of the page. The content security policy has its hash, so no other script can run."""
    parts = "\n".join(_file("script", name) for name in _SCRIPTS)
    return f'"use strict";\n(async () => {{\n{parts}\n}})();\n'


def _file(folder: str, name: str) -> str:
    return (_WEB / folder / name).read_text(encoding="utf-8")


def _name(run: Run, at: int) -> str:
    return f"rank {run.rank if run.rank is not None else at}"


def _program(run: Run) -> str:
    return " ".join(run.command)[:80] or "A run of torch.compile"


def _drawings(at: int, run: Run) -> str:
    return "\n".join(
        f'<template data-run="{at}" data-function="{function}">{printable(svg)}</template>'
        for function, svg in drawings(run, at if at else None)
    )
