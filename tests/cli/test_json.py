"""``--json``: what each command prints is the document of docs/json.md, and follows docs/answers.schema.json."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from answer_schema import SCHEMA, answer_of

from depyf.answers.attached import Attached
from depyf.cli import attaching, main

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
