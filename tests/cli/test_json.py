"""``--json``: what each command prints is the document of docs/json.md, and follows docs/answers.schema.json."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from answer_schema import SCHEMA, answer_of, checked

from depyf.answers.attached import Attached
from depyf.answers.shadowed import DROPPED, ShadowCounts, Shadowed, ShadowFinding
from depyf.cli import attaching, main
from depyf.report.render.terminal_links import hyperlink
from depyf.running.runner import SessionOptions, _Recording

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "tests" / "report" / "logs"
LOG = str(LOGS / "torch_2_13.log.gz")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert main(list(arguments)) == status
    return capsys.readouterr().out


def test_the_schema_is_that_of_the_types() -> None:
    spec = importlib.util.spec_from_file_location("write_schema", ROOT / "tools" / "record" / "write_schema.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert SCHEMA.read_text() == module.text(), "run tools/record/write_schema.py"


def test_report(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = printed(capsys, "report", LOG, "-o", str(tmp_path), "--json")
    found = answer_of(text, "report")
    assert found["page"] == str(tmp_path / "index.html")
    (run,) = found["runs"]
    kinds = [each["kind"] for each in run["findings"]]
    assert "graph break" in kinds
    assert "recompilation" in kinds
    broken = next(each for each in run["findings"] if each["kind"] == "graph break")
    assert (broken["line"], Path(broken["file"]).suffix) == (14, ".py")
    assert run["counts"]["graph_breaks"] == 1
    assert json.loads(text)["text"].splitlines() == printed(capsys, "report", LOG, "-o", str(tmp_path)).splitlines()


def test_ranks_are_in_one_report(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = answer_of(printed(capsys, "report", str(LOGS / "ranks"), "-o", str(tmp_path), "--json"), "report")
    assert len(found["runs"]) > 1
    assert len({each["name"] for each in found["runs"]}) == len(found["runs"])


def test_diff(capsys: pytest.CaptureFixture[str]) -> None:
    other = str(LOGS / "torch_2_7.log.gz")
    found = answer_of(printed(capsys, "diff", LOG, other, "--json", status=1), "diff")
    assert found["changes"]
    assert not found["same"]
    same = answer_of(printed(capsys, "diff", LOG, LOG, "--json"), "diff")
    assert same["same"]
    assert same["counts"]["graph breaks"] == [1, 1]


def test_memory(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer_of(printed(capsys, "memory", LOG, "--json"), "memory")
    graph = found["graphs"][0]
    assert graph["peak"] >= graph["inputs"] > 0
    assert any(each["line"] for each in graph["largest"] if not each["input"])


def test_a_command_that_cannot_be_done_prints_no_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["memory", str(tmp_path), "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "depyf: " in err


def test_attach(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    state = Attached(11, ("python", "t.py"), None, "3.11", "2.13", "runs", (("t.py", 3, "f"),)).to_dict()
    answer = {"text": "the text", "why": "", "state": state}
    monkeypatch.setattr(attaching, "ask", lambda *_, **__: answer)
    text = printed(capsys, "attach", "11", "--json")
    found: Any = answer_of(text, "attach")
    assert [each["pid"] for each in found["processes"]] == [11]
    assert json.loads(text)["text"] == "the text"


_FOUND = ShadowFinding(
    DROPPED,
    "f",
    "0/0",
    ("t.py", 4),
    "key is 'tok-77', and was compiled for 'pw-123', and guard_filter_fn has dropped the guard on this",
    values=("'pw-123'", "'tok-77'"),
)


def test_what_shadow_found_follows_the_schema() -> None:
    (found,) = checked(Shadowed((_FOUND,), ShadowCounts(2, 2, 2, {})))["findings"]
    assert (found["filename"], found["line"]) == ("t.py", 4)


def _run_answer(path: Path, values: str) -> Any:
    """What ``depyf run --json`` writes of a program that ended with an error after shadow had found something."""
    recording = _Recording(
        str(path.parent), None, find_nonfinite=False, traced=False, session=SessionOptions(values=values)
    )
    recording._shadow = SimpleNamespace(answer=Shadowed((_FOUND,), ShadowCounts(3, 3, 2, {"'pw-123' is bad": 1})))  # type: ignore[assignment]
    recording.ended_with = "ValueError: pw-123 (t.py:9)"
    recording._write_answer(str(path), [f"ended with {recording.ended_with} {hyperlink('file:///p', 'the page')}"])
    return answer_of(path.read_text(), "run")


def test_an_answer_hides_the_values_that_the_dump_hides(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    assert _run_answer(path, "all")["shadow"]["findings"][0]["cause"] == _FOUND.cause
    assert "pw-123" in path.read_text()
    hidden = _run_answer(path, "types")["shadow"]["findings"][0]["cause"]
    assert hidden.startswith("key is ..., and was compiled for ...")
    assert "pw-123" not in path.read_text()
    assert "tok-77" not in path.read_text()


def test_the_text_has_no_escapes_of_terminals(tmp_path: Path) -> None:
    _run_answer(tmp_path / "answer.json", "all")
    text = json.loads((tmp_path / "answer.json").read_text())["text"]
    assert text == "ended with ValueError: pw-123 (t.py:9) the page"


def test_an_answer_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _run_answer(tmp_path / "answer.json", "all")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        _run_answer(tmp_path / "answer.json", "types")
    assert "pw-123" in (tmp_path / "answer.json").read_text()
    assert os.listdir(tmp_path) == ["answer.json"]


@pytest.mark.torch
def test_an_answer_of_an_earlier_run_does_not_pass_for_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "answer.json"
    _run_answer(path, "all")
    assert main(["run", "--json", str(path), "missing.py"]) == 2
    assert not path.exists()
    path.write_text("a text of the user's")
    assert main(["run", "--json", str(path), "missing.py"]) == 2
    assert path.read_text() == "a text of the user's"


@pytest.mark.parametrize("other", [["--caches"], ["--summaries", "sums"], ["--watch"]])
def test_json_is_not_left_out_silently(
    other: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", LOG, "--json", *other]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"can't be combined with {other[0]}" in err
