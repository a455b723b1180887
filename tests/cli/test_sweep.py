"""The sweep counts every code object once, lists failures by name, and reports and replaces lost workers."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import CodeType
from typing import Any, Callable, List, Tuple

import pytest

from depyf.cli import main
from depyf.decompiler import decompile_code
from depyf.decompiler.errors import DecompilationError
from depyf.decompiler.result import Decompilation, Verdict
from depyf.sweep import judge
from depyf.sweep.pool import Limits, Selection, sweep_files
from depyf.sweep.targets import find_files, find_target, read_module, targets_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the fake decompiler reaches the workers by fork")

SOURCE = """
def first(a):
    return [b for b in a]

class Second:
    def method(self):
        return lambda: (x for x in self)

def third():
    pass
"""


def answer(code: CodeType, source: str = "", verdict: Verdict = Verdict.EXACT, reason: str = "") -> Decompilation:
    """What a decompiler could say: the truth with another verdict, or some other source."""
    true = decompile_code(code)
    return replace(true, source=source or true.source, verdict=verdict, reason=reason)


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "specimen.py"
    path.write_text(SOURCE)
    return path


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[CodeType], Decompilation]], None]:
    """Put another decompiler in the place of ours."""

    def put(decompile: Callable[[CodeType], Decompilation]) -> None:
        monkeypatch.setattr(judge, "decompile_code", lambda code, python: decompile(code))

    return put


def sweep(*arguments: str) -> Tuple[int, Any]:
    """Exit status and JSON of one run."""
    file = arguments[arguments.index("--json") + 1]
    status = main(["sweep", "-j", "2", *arguments])
    return status, json.loads(Path(file).read_text())


def outcomes(rows: Any) -> List[Tuple[str, str]]:
    return [(row["qualname"], row["outcome"]) for row in rows["objects"]]


def test_every_code_object_is_a_target_and_comprehensions_belong_to_what_they_stand_in(module: Path) -> None:
    targets = list(targets_of(read_module(str(module)), str(module)))
    assert [(target.qualname, target.kind) for target in targets] == [
        ("<module>", "module"),
        ("first", "function"),
        ("Second", "class"),
        ("Second.method", "function"),
        ("Second.method.<locals>.<lambda>", "lambda"),
        ("third", "function"),
    ]


def test_when_all_is_proved_the_exit_status_is_zero(module: Path, pretend: Any, tmp_path: Path) -> None:
    pretend(answer)
    status, rows = sweep(str(module), "--json", str(tmp_path / "out.json"))
    assert status == 0
    assert rows["totals"]["exact"] == 6


def test_each_shortfall_is_named_with_its_reason(
    module: Path, pretend: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def decompile(code: CodeType) -> Decompilation:
        if code.co_name == "first":
            raise DecompilationError("first: offset 12: no shape for that")
        if code.co_name == "method":
            return answer(code, verdict=Verdict.UNVERIFIED, reason="graphs too large")
        if code.co_name == "third":
            return answer(code, source="def third(:")
        if code.co_name == "Second":
            raise KeyError("planted")
        return answer(code, verdict=Verdict.EQUIVALENT)

    pretend(decompile)
    status, rows = sweep(str(module), "--json", str(tmp_path / "out.json"))
    assert status == 1
    assert dict(outcomes(rows)) == {
        "<module>": "equivalent",
        "first": "refused",
        "Second": "crashed",
        "Second.method": "unverified",
        "Second.method.<locals>.<lambda>": "equivalent",
        "third": "different",
    }
    printed = capsys.readouterr().out
    assert "refused: offset _: no shape for that" in printed
    assert "specimen.py:6 Second.method" in printed
    assert "graphs too large" in printed
    assert "does not parse" in printed
    assert "KeyError" in printed


@pytest.mark.parametrize("short", ["<module>", "first", "Second"])
def test_what_stands_in_a_class_or_module_that_is_proved_is_counted_with_it(
    module: Path, pretend: Any, tmp_path: Path, short: str
) -> None:
    asked = tmp_path / "asked"

    def decompile(code: CodeType) -> Decompilation:
        with asked.open("a") as file:
            print(code.co_name, file=file)
        return answer(code, verdict=Verdict.UNVERIFIED if code.co_name in ("<module>", short) else Verdict.EQUIVALENT)

    pretend(decompile)
    status, rows = sweep(str(module), "--whole", "--json", str(tmp_path / "out.json"))
    assert status == 1
    found = dict(outcomes(rows))
    assert {name for name, outcome in found.items() if outcome != "equivalent"} == {"<module>", short}
    inside = ["method"] if short == "Second" else []
    assert asked.read_text().split() == ["<module>", "first", "Second", *inside, "third"]
    assert len(found) == 6


def test_a_worker_that_dies_is_reported_and_the_rest_of_its_file_is_still_judged(
    module: Path, pretend: Any, tmp_path: Path
) -> None:
    def decompile(code: CodeType) -> Decompilation:
        if code.co_name == "Second":
            os._exit(77)
        return answer(code)

    pretend(decompile)
    _status, rows = sweep(str(module), "--json", str(tmp_path / "out.json"))
    assert [row["reason"] for row in rows["objects"] if row["outcome"] == "crashed"] == [
        "the worker process died (exit status 77)"
    ]
    assert rows["totals"]["exact"] == 5


def test_an_endless_loop_runs_into_the_time_limit(module: Path, pretend: Any, tmp_path: Path) -> None:
    def decompile(code: CodeType) -> Decompilation:
        while code.co_name == "Second":
            try:
                pass
            except Exception:
                continue
        return answer(code)

    pretend(decompile)
    _status, rows = sweep(str(module), "--timeout", "0.2", "--json", str(tmp_path / "out.json"))
    assert [(row["qualname"], row["reason"]) for row in rows["objects"] if row["outcome"] == "crashed"] == [
        ("Second", "time limit")
    ]
    assert rows["totals"]["exact"] == 5


def test_a_worker_that_waits_forever_is_killed_and_reported(
    module: Path, pretend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decompile(code: CodeType) -> Decompilation:
        if code.co_name == "third":
            time.sleep(3600)
        return answer(code)

    pretend(decompile)
    monkeypatch.setattr("depyf.sweep.pool._GRACE", 4.0)  # the others must have ended before, on a busy machine, too
    messages = sweep_files([str(module)], Selection(frozenset({"function"})), Limits(0.1, 4096), jobs=1)
    reasons = {message.qualname: message.reason for message in messages if isinstance(message, judge.Result)}
    assert reasons["third"] == "hung beyond the time limit and was killed"
    assert reasons["first"] == ""


def test_an_object_that_eats_memory_is_reported(module: Path, pretend: Any, tmp_path: Path) -> None:
    def decompile(code: CodeType) -> Decompilation:
        if code.co_name == "first":
            bytearray(8 << 30)
        return answer(code)

    pretend(decompile)
    _status, rows = sweep(str(module), "--memory", "2048", "--json", str(tmp_path / "out.json"))
    assert dict(outcomes(rows))["first"] == "crashed"
    assert rows["totals"]["exact"] == 5


def test_a_file_that_does_not_compile_is_skipped_by_name(module: Path, pretend: Any, tmp_path: Path) -> None:
    pretend(answer)
    (tmp_path / "broken.py").write_text("def (:")
    _status, rows = sweep(str(tmp_path), "--json", str(tmp_path / "out.json"))
    assert [Path(path).name for path in rows["skipped"]] == ["broken.py"]
    assert rows["totals"]["exact"] == 6


def test_a_retry_judges_only_what_fell_short_and_says_what_became_better(
    module: Path, pretend: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def decompile(code: CodeType) -> Decompilation:
        if code.co_name in ("first", "third"):
            raise DecompilationError("no")
        return answer(code)

    pretend(decompile)
    before, after = str(tmp_path / "before.json"), str(tmp_path / "after.json")
    sweep(str(module), "--json", before)
    pretend(answer)
    status, rows = sweep("--retry", before, "--compare", before, "--json", after)
    assert status == 0
    assert outcomes(rows) == [("first", "exact"), ("third", "exact")]
    assert "2 newly proved, 0 no longer proved" in capsys.readouterr().out
    pretend(decompile)
    sweep(str(module), "--compare", after, "--json", str(tmp_path / "third.json"))
    assert "0 newly proved, 2 no longer proved" in capsys.readouterr().out


def test_a_sample_is_the_same_every_time(tmp_path: Path, pretend: Any) -> None:
    pretend(answer)
    source = "".join(f"def f{number}(): pass\n" for number in range(200))
    (tmp_path / "many.py").write_text(source)
    rows = [sweep(str(tmp_path), "--sample", "0.2", "--json", str(tmp_path / "out.json"))[1] for _ in range(2)]
    assert outcomes(rows[0]) == outcomes(rows[1])
    assert 20 <= len(rows[0]["objects"]) <= 60


def test_modules_are_found_without_being_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "unloved"
    (package / "test").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "inner.py").write_text("raise RuntimeError('imported')")
    (package / "test" / "test_it.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert find_files(["unloved.inner"]) == [str(package / "inner.py")]
    assert len(find_files(["unloved"])) == 3
    assert len(find_files(["unloved"], tests=False)) == 2
    assert "unloved" not in sys.modules


def test_a_name_that_is_nothing_is_an_error_and_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "no_such_module_anywhere"]) == 2
    assert "no_such_module_anywhere" in capsys.readouterr().err


@pytest.mark.parametrize("where", ["Second.method", "6"])
def test_a_function_is_found_by_name_and_by_line(module: Path, where: str) -> None:
    assert find_target(f"{module}:{where}").qualname.startswith("Second.method")
