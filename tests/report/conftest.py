"""The pages that the tests examine, written once, and the browser for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Iterator, Optional, Tuple

import pytest
from browser import browser
from sample_runs import hostile_run, sample_run
from transformer_run import transformer_run

from depyf.report.diff.comparison import compare
from depyf.report.diff.comparison_output import as_differences, tables_of
from depyf.report.diff.matching import ComparedRun
from depyf.report.model.run import Artifact, Run
from depyf.report.render.page import TextOf, render_page, render_pages


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    with browser() as one:
        yield one


def comparison_page(sample: Tuple[Run, TextOf]) -> str:
    """The sample before and after: a graph break less, a function gone, another graph, hostile names."""
    run, text_of = sample
    hostile = "<img src=x onerror=alert(1)>"
    functions = tuple(
        replace(f, qualified_name=hostile, name=hostile) if f.name == "route" else f for f in run.functions
    )
    after = replace(run, breaks=run.breaks[1:], functions=functions)

    def other_text(artifact: Artifact) -> Optional[str]:
        text = text_of(artifact)
        return text if text is None else text.replace("sigmoid.default", "tanh.default")

    comparison = compare(ComparedRun("old", run, text_of), ComparedRun(hostile, after, other_text))
    pair = [(run, text_of), (after, other_text)]
    return render_pages(pair, as_differences(comparison), ["old", hostile], tables_of(comparison))


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
        "diff": comparison_page(sample),
        "large": render_page(*transformer_run(24)),
    }
    paths = {}
    for name, text in texts.items():
        paths[name] = folder / f"{name}.html"
        paths[name].write_text(text, encoding="utf-8")
    return paths
