"""The pages that the tests look at, written once, and the browser that they are looked at with."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Iterator

import pytest
from browser import browser
from sample_runs import hostile_run, sample_run
from transformer_run import transformer_run

from depyf.report.render.page import render_page, render_pages


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    with browser() as one:
        yield one


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    sample, hostile = sample_run(), hostile_run()
    differences = [
        {
            "title": "scaled was compiled more often on rank 1",
            "text": "7 times, and once on rank 0.",
            "ranks": {"rank 0": "6/0", "rank 1": "6/0\n6/1 factor == 0"},
            "place": [0, 33],
        }
    ]
    texts = {
        "sample": render_page(*sample),
        "hostile": render_page(*hostile),
        "ranks": render_pages([sample, sample], differences),
        "large": render_page(*transformer_run(24)),
    }
    paths = {}
    for name, text in texts.items():
        paths[name] = folder / f"{name}.html"
        paths[name].write_text(text, encoding="utf-8")
    return paths
