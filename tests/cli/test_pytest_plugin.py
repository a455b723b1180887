"""``pytest --depyf``: quiet without its options; with them what each test compiles, compared with a baseline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, Dict, List

import pytest
import warm_python

from depyf.running.baseline import (
    BaselineError,
    BaselineSummary,
    TestResult,
    better,
    read_baseline,
    worse,
    write_baseline,
)

SOURCE = str(Path(__file__).resolve().parents[2] / "src")
PLUGIN = "depyf.running.pytest_plugin"


def is_installed() -> bool:
    """Whether this installation knows the entry point (an editable one may be older)."""
    found: Any = metadata.entry_points()
    plugins = found.select(group="pytest11") if hasattr(found, "select") else found.get("pytest11", [])
    return any(each.value == PLUGIN for each in plugins)


def run(folder: Path, *options: str, fresh: bool = False, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on the tests in a folder, in a process without PyTorch if it has to be ``fresh``."""
    plugin = [] if is_installed() else ["-p", PLUGIN]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *plugin, *options]
    variables = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "GITHUB_"))}
    variables = {**variables, "PYTHONPATH": SOURCE, **environment}
    if fresh:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=variables)
    return warm_python.run(command, cwd=folder, env=variables)


PLAIN = "def test_nothing():\n    pass\n"

COMPILING = """
import torch


def compiled(function, *arguments):
    return torch.compile(function, backend="eager")(*arguments)


def test_one_graph():
    compiled(lambda x: x + 1, torch.ones(2))


def test_breaks():
    def scaled(x):
        return x * x.sum().item()

    compiled(scaled, torch.ones(2))


def test_plain():
    pass
"""


def test_nothing_but_the_options_is_loaded_without_them(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import sys\n"
        "def pytest_unconfigure():\n"
        "    print(sorted(name for name in sys.modules if name.partition('.')[0] in ('depyf', 'torch')))\n"
    )
    (tmp_path / "test_it.py").write_text(PLAIN)
    done = run(tmp_path, fresh=True)
    assert done.returncode == 0, done.stdout + done.stderr
    loaded = ["depyf", "depyf.base", "depyf.base.lazy_names", "depyf.running", "depyf.running.pytest_plugin"]
    assert str(loaded) in done.stdout
    assert "= depyf =" not in done.stdout


def test_without_pytorch_it_says_that_nothing_was_compiled(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(PLAIN)
    done = run(tmp_path, "--depyf", fresh=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no test has compiled anything" in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--depyf-baseline-update"], "needs --depyf-baseline FILE"),
        (["--depyf-baseline", "none.json"], "none.json: no such baseline"),
        (["--depyf-baseline", "test_it.py"], "this baseline can't be read"),
    ],
)
def test_what_can_not_be_done_is_said_before_any_test_runs(tmp_path: Path, options: List[str], message: str) -> None:
    (tmp_path / "test_it.py").write_text(PLAIN)
    done = run(tmp_path, *options)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert message in done.stderr


@pytest.mark.torch
def test_a_test_that_got_worse_fails_and_the_summaries_say_why(tmp_path: Path) -> None:
    program = tmp_path / "test_it.py"
    program.write_text(
        COMPILING
        + "\n\ndef test_wrong():\n    compiled(lambda x: x - x.max().item(), torch.ones(2))\n    assert False\n"
    )
    done = run(tmp_path, "--depyf-baseline=base.json", "--depyf-baseline-update")
    assert done.returncode == 1
    assert "3 tests compiled 5 graphs: 2 graph breaks, 0 recompiles, 0 fallbacks" in done.stdout
    assert "\ntest_it.py::test_wrong (failed)\n  graph break " in done.stdout
    assert "the baseline is written" in done.stdout
    tests = json.loads((tmp_path / "base.json").read_text())["tests"]
    assert tests["test_it.py::test_breaks"] == {"breaks": 1, "recompiles": 0, "graphs": 2, "fallbacks": 0}
    assert "test_it.py::test_wrong" not in tests  # it came to no end

    done = run(tmp_path, "--depyf-baseline=base.json", "--depyf-summary=wrong.md")
    assert "0 tests worse, 0 better, 0 new; not compared: 1 test that did not pass" in done.stdout
    assert "`test_it.py::test_wrong (failed)`" in (tmp_path / "wrong.md").read_text()

    program.write_text(COMPILING)
    done = run(tmp_path, "--depyf-baseline=base.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "compared with the baseline: 0 tests worse, 0 better, 0 new" in done.stdout

    program.write_text(COMPILING.replace("x + 1", "x + x.max().item()") + "\n\ndef test_new():\n    pass\n")
    done = run(tmp_path, "--depyf-baseline=base.json", "--depyf-format=github", GITHUB_STEP_SUMMARY="step.md")
    assert done.returncode == 1
    line = next(at for at, text in enumerate(program.read_text().splitlines(), 1) if "x.max().item()" in text)
    annotations = [text for text in done.stdout.splitlines() if text.startswith("::")]
    assert [text.partition(",title")[0] for text in annotations] == [f"::warning file=test_it.py,line={line}"]
    assert "A number is read out of a tensor" in annotations[0]
    assert "FAILED test_it.py::test_one_graph - depyf: worse than the baseline: " in done.stdout
    assert "worse: test_it.py::test_one_graph: 1 graph break, 0 in the baseline" in done.stdout
    assert "What avoids it: A number is read out of a tensor." in done.stdout
    assert "1 failed, 3 passed" in done.stdout
    assert "compared with the baseline: 1 test worse, 0 better, 1 new" in done.stdout
    markdown = (tmp_path / "step.md").read_text()
    assert "| `test_it.py::test_one_graph` | 0 → **1** | 0 | 1 → **2** | 0 |" in markdown
    assert "What avoids it: A number is read out of a tensor." in markdown


EXPECTING = """
import depyf
import torch


def function(x):
    print("here")
    return x * 2


def test_breaks():
    with depyf.expect(breaks=0):
        torch.compile(function, backend="eager")(torch.ones(2))
"""


@pytest.mark.torch
def test_below_a_test_that_fails_stand_no_records_of_pytorchs_trace(tmp_path: Path) -> None:
    """Pytest adds its handlers to loggers that do not propagate, and depyf makes PyTorch's log at debug level."""
    (tmp_path / "test_expecting.py").write_text(EXPECTING, encoding="utf-8")
    done = run(tmp_path, "test_expecting.py")
    assert "1 graph break, expected 0" in done.stdout
    assert "torch.__trace" not in done.stdout


@pytest.mark.torch
def test_workers_of_xdist_send_what_they_count(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    (tmp_path / "test_it.py").write_text(COMPILING)
    (tmp_path / "base.json").write_text('{"depyf_baseline": 1, "tests": {}}')
    done = run(tmp_path, "--depyf-baseline=base.json", "--depyf-summary=summary.md", "-n1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 tests compiled 3 graphs: 1 graph break" in done.stdout
    assert "0 tests worse, 0 better, 3 new" in done.stdout
    assert (tmp_path / "summary.md").read_text().count("### What the tests compiled") == 1


@pytest.mark.slow
@pytest.mark.torch
def test_a_reset_before_each_test_makes_the_numbers_independent_of_the_others(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import torch\n"
        "@torch.compile(backend='eager', dynamic=False)\n"
        "def scaled(x, n):\n"
        "    return x * n\n"
        "def test_two():\n"
        "    scaled(torch.ones(2), 2)\n"
        "def test_three():\n"
        "    scaled(torch.ones(2), 3)\n"
    )
    assert "2 graphs: 0 graph breaks, 1 recompile," in run(tmp_path, "--depyf").stdout
    assert "2 graphs: 0 graph breaks, 0 recompiles," in run(tmp_path, "--depyf-reset").stdout


def test_a_baseline_that_can_not_be_written_fails_the_run_and_no_test(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(PLAIN)
    (tmp_path / "base.json").mkdir()
    done = run(tmp_path, "--depyf-baseline=nowhere/base.json", "--depyf-baseline-update", "--depyf-summary=base.json")
    assert done.returncode == 1
    assert "1 passed" in done.stdout
    assert "! the baseline is not written" in done.stdout
    assert "! the summary is not written" in done.stdout


ZERO: Dict[str, int] = {"breaks": 0, "recompiles": 0, "graphs": 0, "fallbacks": 0}


@pytest.mark.parametrize(
    ("before", "now", "is_worse", "is_better"),
    [
        ({}, {}, False, False),
        ({"graphs": 1}, {"graphs": 2}, True, False),
        ({"graphs": 2, "breaks": 1}, {"graphs": 1}, False, True),
        ({"graphs": 2}, {"graphs": 0}, True, False),  # nothing is compiled any more
        ({"graphs": 1, "breaks": 1}, {"graphs": 1, "fallbacks": 1}, True, False),
        ({"recompiles": 1, "graphs": 1}, {"recompiles": 2, "graphs": 1}, True, False),
    ],
)
def test_what_is_worse_and_what_better(before: Any, now: Any, is_worse: bool, is_better: bool) -> None:
    assert bool(worse({**ZERO, **before}, {**ZERO, **now})) is is_worse
    assert better({**ZERO, **before}, {**ZERO, **now}) is is_better


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "[" * 100_000, '{"depyf_baseline": 2, "tests": {}}', '{"depyf_baseline": 1, "tests": {"a": 1}}'],
)
def test_a_file_that_is_no_baseline_is_said_to_be_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "base.json"
    path.write_text(text)
    with pytest.raises(BaselineError, match=r"base\.json"):
        read_baseline(str(path))


def test_a_baseline_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = str(tmp_path / "base.json")
    tests = {"b": {**ZERO, "graphs": 1}, "a": ZERO}
    write_baseline(path, tests)
    assert read_baseline(path) == tests
    assert os.listdir(tmp_path) == ["base.json"]


def test_names_of_tests_do_not_break_the_markdown() -> None:
    name = "test_it.py::test[`a`|<b>\n]"
    result = TestResult({**ZERO, "breaks": 1}, ("graph break",), "```\ntext")
    lines = BaselineSummary({name: result}).markdown().splitlines()
    assert "| ``test_it.py::test[`a`\\|<b> ]`` | 1 | 0 | 0 | 0 |" in lines
    assert "````text" in lines
    assert not any("<b>" in line for line in lines if line.startswith("<"))


def test_annotations_name_each_line_once() -> None:
    at = ("/repo/model.py", 3, "graph break", "a, b: 100%\nc")
    result = TestResult(
        ZERO, places=(at, ("/elsewhere/lib.py", 4, "recompile", "words"), (None, 0, "fallback", "words"))
    )
    results = {"one": result, "two": TestResult(ZERO, places=(at,))}
    assert list(BaselineSummary(results).annotations("/repo")) == [
        "::warning file=model.py,line=3,title=graph break::a, b: 100%25%0Ac",
        "::warning title=recompile::words",
        "::warning title=fallback::words",
    ]
    assert list(BaselineSummary(results, {"one": ZERO, "two": ZERO}).annotations("/repo")) == [], "none is worse"
    assert TestResult.from_json(result.to_json()) == result


STALE = """
import torch

class Box:
    pass

def changed(box, value):
    compiled = torch.compile(lambda x: x + 1 if box.now is box.a else x - 1, backend="eager")
    box.a = box.now = object()
    compiled(torch.ones(2))
    box.now = value
    compiled(torch.ones(2))

def test_stale():
    changed(Box(), object())

def test_right():
    box = Box()
    compiled = torch.compile(lambda x: x * 2, backend="eager")
    compiled(torch.ones(2))
    compiled(torch.ones(2))
"""


@pytest.mark.slow
@pytest.mark.torch
def test_a_test_with_compiled_code_that_is_wrong_fails(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "test_it.py").write_text(STALE)
    done = run(tmp_path, "--depyf-shadow=1")
    assert "1 failed, 1 passed" in done.stdout
    assert "stale changed.<locals>.<lambda> [0/0] test_it.py:8: box.now was box.a, is <object at 0x" in done.stdout
