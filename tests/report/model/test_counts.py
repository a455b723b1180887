"""A number is the same wherever it is shown, and the headline starts with the most important one."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Dict, List

import pytest
from sample_runs import sample_run

from depyf.report.diff.comparison import compare
from depyf.report.diff.matching import ComparedRun
from depyf.report.model.counts import RAISED, counts_by_function, counts_of
from depyf.report.model.headline import headline
from depyf.report.model.manifest import from_json, to_json
from depyf.report.model.run import (
    Compilation,
    FailedEntryGuard,
    Fallback,
    Function,
    GraphBreak,
    ModuleKernel,
    Recompile,
    Run,
    SourceFile,
)
from depyf.report.read.reading import load
from depyf.report.render.inline import summary_html
from depyf.report.render.markdown import index_markdown
from depyf.report.render.page import render_page
from depyf.report.render.summary import summary_lines

LOGS = Path(__file__).parents[1] / "logs"


def data_of(page: str) -> Any:
    """The data of the only run of a page."""
    found = re.search(r'id="data"( data-packed)?>(.*?)</script>', page, re.DOTALL)
    assert found is not None
    text = zlib.decompress(base64.b64decode(found.group(2))) if found.group(1) else found.group(2)
    return json.loads(text)["runs"][0]


def recorded(name: str) -> Run:
    return load([str(LOGS / name)])[0].run


def shown_in_summary(run: Run) -> Dict[str, int]:
    rows = (re.match(r"(\S.*?)\s{2,}(\d+)", line) for line in summary_lines(run))
    return {row.group(1): int(row.group(2)) for row in rows if row}


def shown_in_index(run: Run) -> Dict[str, int]:
    rows = re.findall(r"^\| ([a-z ]+) \| (\d+) \|$", index_markdown(run), re.MULTILINE)
    return {name: int(number) for name, number in rows}


def shown_in_notebook(run: Run) -> Dict[str, int]:
    return {name: int(number) for number, name in re.findall(r"<li><b>(\d+)</b> ([a-z ]+)</li>", summary_html(run))}


NAMES = {
    "functions compiled": "functions",
    "graphs": "graphs",
    "graph breaks": "graph_breaks",
    "recompilations": "recompilations",
    "fallbacks to eager": "fallbacks",
    "kernels": "kernels",
    "guards": "guards",
}


@pytest.mark.parametrize("name", ["torch_2_7.log.gz", "torch_2_13.log.gz", "sample"])
def test_a_number_is_the_same_wherever_it_stands(name: str) -> None:
    run = sample_run()[0] if name == "sample" else recorded(name)
    counts = asdict(counts_of(run))
    side = ComparedRun("a", run, lambda _: None)
    in_diff = {name: one for name, (one, _) in compare(side, side).counts.items()}
    page: Any = data_of(render_page(run, lambda _: None))
    for title, field in NAMES.items():
        assert shown_in_summary(run)[title] == counts[field], title
        assert shown_in_index(run)[title] == counts[field], title
        assert in_diff.get(title, counts[field]) == counts[field], title
        assert page["run"]["totals"][field] == counts[field], title
        several = shown_in_notebook(run).get(title, counts[field])  # "1 graph" is there in the singular
        assert several == counts[field], title
    of_functions: List[Dict[str, int]] = list(page["counts"].values())
    for field in ("graphs", "compilations", "recompilations", "guards"):
        assert sum(each[field] for each in of_functions) == counts[field], field


def test_totals_of_an_older_manifest_are_counted_anew() -> None:
    run = replace(recorded("torch_2_13.log.gz"), totals={"graphs": 99, "functions": 99})
    read = from_json(to_json(run))
    assert shown_in_index(read)["graphs"] == counts_of(run).graphs != 99


GUARD = FailedEntryGuard("0/0", "n == 1", "n is 2")
FUNCTIONS = (
    Function("f", "Net.f", 0, 1, 9),
    Function("torch_dynamo_resume_in_f_at_4", "Net.torch_dynamo_resume_in_f_at_4", 0, 4, 9, 0, 4),
    Function("g", "g", 0, 20, 29),
)


def run_of(*statuses: str, **more: Any) -> Run:
    """A run whose compilations are of ``f``, its resume function and ``g`` in turn."""
    compilations = tuple(Compilation(f"{at}/0", at % 3, status=status) for at, status in enumerate(statuses))
    return Run(sources=(SourceFile("/m.py"),), functions=FUNCTIONS, compilations=compilations, **more)


def test_a_function_without_a_graph_is_not_compiled() -> None:
    counts = counts_of(run_of("empty", "empty", "failed"))
    assert (counts.functions, counts.graphs, counts.compilations, counts.failed) == (0, 0, 3, 1)
    counts = counts_of(run_of("empty", "compiled", "failed"))
    assert (counts.functions, counts.resume_functions, counts.graphs) == (1, 1, 1)


def test_a_graph_break_is_one_however_many_compilations_meet_it() -> None:
    breaks = tuple(GraphBreak(f"{at}/0", (0, 3), "print") for at in range(3))
    more = (*breaks, GraphBreak("0/0", (0, 3), "item()"), GraphBreak("0/0", (0, 5), "print"))
    run = run_of("compiled", "compiled", "compiled", breaks=more)
    assert (counts_of(run).graph_breaks, counts_of(run).graph_breaks_met) == (3, 5)
    assert counts_by_function(run)[0].graph_breaks == 3
    assert "graph breaks            3 (m.py:3, m.py:5), met in 5 compilations" in summary_lines(run)


def test_calls_of_libraries_are_no_kernels() -> None:
    kernels = (
        ModuleKernel("a", "triton_0", "0/0", False),
        ModuleKernel("a", "extern_kernels.mm", "0/0", False, extern=True),
    )
    assert "kernels                 1, 1 library call" in summary_lines(run_of("compiled", kernels=kernels))


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (Run(), "nothing was compiled"),
        (run_of("compiled"), "1 function compiled as 1 graph, without graph breaks or recompilations"),
        (
            run_of("compiled", "compiled", breaks=(GraphBreak("0/0", (0, 3), "print"),)),
            "1 function compiled as 2 graphs, 1 graph break",
        ),
        (
            run_of(
                "compiled", recompiles=(Recompile("0/1", 0, (GUARD,)),), fallbacks=(Fallback(2, None, "limit", "r"),)
            ),
            "1 function compiled as 1 graph, 1 recompilation, 1 fallback to eager",
        ),
        (run_of("empty"), "no graph was compiled: Net.f has no operation on tensors in it"),
        (
            run_of("failed", fallbacks=(Fallback(0, "0/0", "error while compiling", "boom"),)),
            "no graph was compiled: Net.f runs as plain Python (error while compiling)",
        ),
        (
            run_of("failed", fallbacks=(Fallback(0, "0/0", RAISED, "boom"),)),
            "no graph was compiled: Net.f failed to compile, and the call raised the error",
        ),
        (
            run_of("compiled", fallbacks=(Fallback(0, "0/1", RAISED, "boom"),)),
            "1 function compiled as 1 graph, 1 error while compiling",
        ),
        (
            run_of("skipped", fallbacks=(Fallback(0, "0/0", "skipped", "No ops traced"),)),
            "no graph was compiled: Net.f has nothing in it to compile",
        ),
        (
            run_of("compiled", origin="files"),
            "1 function compiled as 1 graph; graph breaks, recompilations and times are not known: "
            "there is no manifest",
        ),
    ],
)
def test_the_headline_comes_first_everywhere(run: Run, said: str) -> None:
    assert headline(run) == said
    assert summary_lines(run)[0] == said
    assert f"**{said}**" in index_markdown(run).splitlines()[2]
    page: Any = data_of(render_page(run, lambda _: None))
    assert page["headline"] == said
    assert said in summary_html(run)


def test_a_result_has_the_same_words_in_the_index_as_on_the_page() -> None:
    row = next(line for line in index_markdown(run_of("empty")).splitlines() if line.startswith("| 0/0 |"))
    assert "| no graph |" in row


def test_frames_of_libraries_come_last_where_no_graph_was_compiled() -> None:
    run = run_of("empty")
    library = SourceFile("/env/lib/python3.11/site-packages/typing_extensions.py", "", library=True)
    functions = (*run.functions, Function("g", "g", len(run.sources), 1, 2))
    skipped = Fallback(len(run.functions), None, "skipped", "no tensor-related objects found in frame")
    run = replace(run, sources=(*run.sources, library), functions=functions, fallbacks=(skipped,))
    expected = "Net.f has no operation on tensors in it; g has nothing in it to compile"
    assert headline(run) == f"no graph was compiled: {expected}"
