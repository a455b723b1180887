"""The page shows measured time on lines, modules and kernels, and what ran in no compiled graph."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browser import opened

from depyf.report.model.manifest import ManifestError, from_json, to_json
from depyf.report.model.run import Run, SourceFile
from depyf.report.model.timing import (
    TimedGap,
    TimedKernel,
    TimedLine,
    TimedModule,
    TimedOutside,
    TimedPair,
    TimedRun,
    Timing,
)
from depyf.report.render.page import render_page
from depyf.report.render.perfetto import perfetto_trace

SOURCE = "".join(f"line_{number} = '<b>'\n" for number in range(1, 31))

TIMING = Timing(
    "step",
    steps=5,
    seconds=4e-3,
    attributed=0.975,
    parts={"guards": 1e-4, "other Python": 3e-4},
    compiled=5e-3,
    eager=6e-3,
    worth=("Compiling makes it faster.", "It took 3 s.", "Guards take little."),
    lines=(
        TimedLine((0, 4), 1e-3, 2e-3, 5e-4, eager=2.5e-3),
        TimedLine((0, 20), 9e-4, eager=2e-3),
        TimedLine((1, 2), 1e-5),
    ),
    modules=(TimedModule("net.0", "Linear", 1e-3, 2e-3, 1e-3), TimedModule("", "Net", 9e-4)),
    kernels=(
        TimedKernel("cpp_fused_sin_0", "kernel", "0/0", 3e-3, calls=2, bytes=3 * 10**6, places=((0, 4),)),
        TimedKernel("aten::mm", "operation", "", 1e-3, backward=True, calls=1, operations=2 * 10**9),
    ),
    outside=(TimedOutside("a graph break: a <i>print</i>", 1e-3, (0, 20)), TimedOutside("between graphs", 1e-5)),
    notes=("One note.",),
    not_fused=(
        TimedPair("extern_kernels.mm", "relu, <b>", "it is a call of a library", "try max-autotune", (), ((0, 4),)),
        TimedPair("sin", "mean", "both read the same tensor, in another order"),
    ),
    gaps=(
        TimedGap(2e-3, 1.0, 5e-4, 1e-3, before=(0, 4)),
        TimedGap(1e-4, 2.5, after=(0, 4), before=(0, 20)),
    ),
    timeline=(
        TimedRun("guards", "guards", "calling thread", 0.0, 5e-4),
        TimedRun("cpp_fused_sin_0", "kernel", "calling thread", 1e-3, 1e-3, "0/0", False, ((0, 4),)),
        TimedRun("calling graphs", "calling", "calling thread", 2e-3, 2.5e-4),
        TimedRun("cpp_fused_sin_1", "kernel", "calling thread", 2.25e-3, 5e-4, "0/0", True, ((0, 4),)),
        TimedRun("aten::mm", "operation", "thread 9", 2.5e-3, 1e-3),
        TimedRun("aten::add", "operation", "calling thread", 4e-3, 1e-3, "", False, ((0, 20), (1, 2))),
    ),
)


def run(*timings: Timing) -> Run:
    return Run(sources=(SourceFile("/p/a.py", SOURCE), SourceFile("/p/b.py", None)), timings=timings)


def page_of(path: Path, found: Run) -> Path:
    path.write_text(render_page(found, lambda artifact: None), encoding="utf-8")
    return path


def test_lines_have_their_times_and_a_few_lines_around_them(chromium: Any, tmp_path: Path) -> None:
    with opened(chromium, page_of(tmp_path / "index.html", run(TIMING)), "#run") as page:
        view = page.locator(".view-run")
        assert view.locator("h1").inner_text() == "Run of step"
        text = view.inner_text()
        for expected in ("Compiling makes it faster.", "One note.", "97.5 % of it on known lines"):
            assert expected in text
        rows = view.locator(".timed-lines").first.locator("tbody tr")
        numbers = [row.split("\t")[2].strip() for row in rows.all_inner_texts() if "line_" in row]
        assert numbers == ["2", "3", "4", "5", "6", "18", "19", "20", "21", "22"]
        fourth = rows.nth(2)
        assert fourth.inner_text().split()[:4] == ["3.00", "ms", "2.50", "ms"]
        assert "line_4 = '<b>'" in fourth.inner_text()
        assert fourth.locator("td").first.get_attribute("title") == (
            "forward 1.00 ms, backward 2.00 ms, 500 µs of it from kernels that other lines share"
        )
        assert fourth.locator(".differs").count() == 1, "slower than in eager mode"
        assert rows.nth(8).locator(".differs").count() == 0
        assert fourth.locator("a").get_attribute("href") == "#source/f0/4"


def test_modules_kernels_and_what_is_outside(chromium: Any, tmp_path: Path) -> None:
    with opened(chromium, page_of(tmp_path / "index.html", run(TIMING)), "#run") as page:
        tables = page.locator(".view-run table:not(.timed-lines)")
        modules, kernels, outside = (tables.nth(number).locator("tbody tr").all_inner_texts() for number in (0, 1, 4))
        assert [row.split() for row in modules] == [
            ["net.0", "Linear", "1.00", "ms", "2.00", "ms", "3.00", "ms", "1.00", "ms"],
            ["(the", "module", "itself)", "Net", "900", "µs", "900", "µs"],
        ]
        assert kernels[0].split() == ["cpp_fused_sin_0", "0/0", "3.00", "ms", "75.0", "%", "2", "1.00", "G/s", "a.py:4"]
        assert kernels[1].split() == ["aten::mm", "none", "1.00", "ms", "25.0", "%", "1", "2.00e+3", "G/s"]
        assert "a graph break: a <i>print</i>" in outside[0]
        assert "not known" in outside[1]


def test_several_measurements_can_be_chosen(chromium: Any, tmp_path: Path) -> None:
    other = replace(TIMING, function="other", lines=(), modules=(), kernels=(), outside=(), worth=())
    with opened(chromium, page_of(tmp_path / "index.html", run(TIMING, other)), "#run/1") as page:
        assert page.inner_text(".view-run h1") == "Run of other"
        page.select_option("#run-pick", "#run/0")
        page.wait_for_function("document.querySelector('.view-run h1').textContent === 'Run of step'")


def test_the_manifest_has_all_of_it_and_checks_places() -> None:
    assert from_json(to_json(run(TIMING))) == run(TIMING)
    wrong = replace(TIMING, kernels=(TimedKernel("k", "kernel", places=((7, 1),)),))
    with pytest.raises(ManifestError, match="there is no source 7"):
        from_json(to_json(run(wrong)))


def test_what_was_not_fused_has_its_reason(chromium: Any, tmp_path: Path) -> None:
    with opened(chromium, page_of(tmp_path / "index.html", run(TIMING)), "#run") as page:
        rows = page.get_by_role("table", name="Parts of kernels that Inductor has not fused").locator("tbody tr")
        assert [text.split("\t") for text in rows.all_inner_texts()] == [
            ["extern_kernels.mm", "relu, <b> a.py:4", "it is a call of a library. try max-autotune"],
            ["sin", "mean", "both read the same tensor, in another order"],
        ]


def test_gaps_say_what_the_calling_thread_did(chromium: Any, tmp_path: Path) -> None:
    with opened(chromium, page_of(tmp_path / "index.html", run(TIMING)), "#run") as page:
        table = page.get_by_role("table", name="Stretches of a call in which nothing computed")
        heads = [text.strip() for text in table.locator("th").all_inner_texts()]
        assert [text.split("\n")[0] for text in heads] == [
            "After", "Before", "Time", "Times", "Guards", "Calling graphs", "Other Python"
        ]  # fmt: skip
        assert [text.split("\t") for text in table.locator("tbody tr").all_inner_texts()] == [
            ["none", "a.py:4", "2.00 ms", "1", "500 µs", "1.00 ms", "500 µs"],
            ["a.py:4", "a.py:20", "100 µs", "2.5", "", "", "100 µs"],
        ]


def test_a_profiled_call_is_in_the_trace_with_its_source_lines(chromium: Any, tmp_path: Path) -> None:
    written = json.loads(perfetto_trace([("rank 0", run(TIMING))]))
    spans = [each for each in written["traceEvents"] if each["ph"] == "X"]
    lines = [(each["name"], each["ts"], each["dur"]) for each in spans if each["tid"] == 1]
    # Both kernels of line 4 are one span, which ends where another thread computes something else.
    assert lines == [("a.py:4: line_4 = '<b>'", 1000.0, 1500.0), ("a.py:20, b.py:2", 4000.0, 1000.0)]
    kernel = next(each for each in spans if each["name"] == "cpp_fused_sin_1")
    assert kernel["args"] == {"what": "kernel", "graph": "0/0, backward", "lines": ["a.py:4: line_4 = '<b>'"]}
    names = [each["args"]["name"] for each in written["traceEvents"] if each["name"] == "thread_name"]
    assert names == ["source lines", "calling thread", "thread 9"]
    with opened(chromium, page_of(tmp_path / "index.html", run(TIMING)), "#run") as page:
        with page.expect_download() as download:
            page.locator(".view-run").get_by_text("Save for Perfetto").click()
        assert json.loads(Path(download.value.path()).read_text("utf-8")) == written


def test_of_a_device_its_lines_are_in_the_trace() -> None:
    launched = TimedRun("aten::mm", "launching", "calling thread", 0.0, 1e-3, places=((0, 4),))
    of_device = TimedRun("gemm", "operation", "cuda", 2e-3, 3e-3, places=((0, 4),))
    found = run(replace(TIMING, device="cuda", timeline=(launched, of_device)))
    spans = [each for each in json.loads(perfetto_trace([("r", found)]))["traceEvents"] if each["ph"] == "X"]
    assert [(each["ts"], each["dur"]) for each in spans if each["tid"] == 1] == [(2000.0, 3000.0)]


def test_a_page_without_such_pairs_has_no_such_table(chromium: Any, tmp_path: Path) -> None:
    with opened(chromium, page_of(tmp_path / "index.html", run(replace(TIMING, not_fused=()))), "#run") as page:
        assert "Not fused" not in page.locator(".view-run").inner_text()


def test_times_of_a_stranger_are_left_out_of_the_trace() -> None:
    endless = TimedRun("k", "kernel", "calling thread", 1e305, 1.0, places=((0, 4),))
    backwards = TimedRun("k", "kernel", "calling thread", 1.0, -2.0)
    found = run(replace(TIMING, timeline=(backwards, endless)))
    spans = [each for each in json.loads(perfetto_trace([("r", found)]))["traceEvents"] if each["ph"] == "X"]
    assert [(each["name"], each["dur"]) for each in spans] == [("k", 0.0)]
    data = json.loads(to_json(run(TIMING)))
    data["timings"][0]["timeline"][1]["places"] = [[0]]
    with pytest.raises(ManifestError):
        from_json(json.dumps(data))
