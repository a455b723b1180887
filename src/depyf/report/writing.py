"""The page, the index and the manifest of runs that were read, as files."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Optional, Sequence

from depyf.report.comparison import Comparison, as_differences
from depyf.report.manifest import to_json
from depyf.report.model import Run
from depyf.report.page import render_pages
from depyf.report.ranks import differences
from depyf.report.reading import Loaded


def write_report(runs: Sequence[Loaded], output: Optional[str]) -> str:
    """Write the page of these runs, and beside it ``index.md`` and the manifests; answers the path of the page.

    ``output`` is a file with the ending ``.html``, or a directory. Without one the page goes into the
    directory of the first run's dump, and for logs into the current one. Raises ``OSError``.
    """
    page = output or _directory(runs)
    if not page.endswith((".html", ".htm")):
        page = os.path.join(page, "index.html")
    directory = os.path.dirname(page) or "."
    os.makedirs(directory, exist_ok=True)
    apart = differences([loaded.side for loaded in runs])
    _write(page, render_pages([(each.run, each.text_of) for each in runs], apart, [each.name for each in runs]))
    for each in runs:
        beside = each.directory is not None and os.path.realpath(each.directory) == os.path.realpath(directory)
        if not (beside and each.has_manifest):
            mark = f".{each.name.replace(' ', '_')}" if len(runs) > 1 else ""
            run = _without_texts(each.run) if beside else _with_texts(each)
            _write(os.path.join(directory, f"manifest{mark}.json"), to_json(run))
    return page


def _with_texts(loaded: Loaded) -> Run:
    """The run with its texts in the manifest, which does not stand beside its files."""
    artifacts = (replace(each, text=loaded.text_of(each), path=None) for each in loaded.run.artifacts)
    return replace(loaded.run, artifacts=tuple(artifacts))


def _without_texts(run: Run) -> Run:
    """The run for a manifest beside its files, which hold the texts."""
    return replace(run, artifacts=tuple(a if a.path is None else replace(a, text=None) for a in run.artifacts))


def write_comparison(before: Loaded, after: Loaded, comparison: Comparison, path: str) -> None:
    """Write the page that shows two runs and what changed from one to the other. Raises ``OSError``."""
    runs = [(each.run, each.text_of) for each in (before, after)]
    _write(path, render_pages(runs, as_differences(comparison), [before.name, after.name], "What changed"))


def _directory(runs: Sequence[Loaded]) -> str:
    return runs[0].directory or "."


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        file.write(text)
