"""Findings become annotations of source lines: for GitHub Actions, and as SARIF."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Tuple

import pytest

from depyf.cli import main
from depyf.report.model.run import BREAK, COMPILE_TIME, ERROR, Finding, Run, SourceFile
from depyf.report.render.annotations import github_annotations, sarif

LOGS = Path(__file__).resolve().parents[1] / "logs"


def run(root: Path, *findings: Finding) -> Run:
    return Run(sources=(SourceFile(str(root / "src" / "a,b.py")), SourceFile("/elsewhere/lib.py")), findings=findings)


def test_a_finding_stands_at_its_line(tmp_path: Path) -> None:
    found = run(tmp_path, Finding("Graph break in f: print", "100 % of it.\nMove it.", 2, (0, 7), "0/0", 1.5, BREAK))
    assert list(github_annotations([found, found], str(tmp_path))) == [
        "::warning file=src/a%2Cb.py,line=7,title=Graph break in f%3A print::"
        "100 %25 of it.%0AMove it. It cost 1.50 s of compile time."
    ]
    (result,) = sarif([found, found], str(tmp_path), "1.0")["runs"][0]["results"]  # type: ignore[index]
    assert result["ruleId"] == "graph-break"
    assert result["level"] == "warning"
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "src/a,b.py", "uriBaseId": "ROOT"},
        "region": {"startLine": 7},
    }
    assert result["properties"] == {"count": 2, "compileId": "0/0", "seconds": 1.5}


def test_a_finding_outside_of_the_checkout_names_its_line_in_the_text(tmp_path: Path) -> None:
    raised = Finding("f raised", "Why.", 1, (1, 3), kind=ERROR)
    slow = Finding("Most of the compile time is X", "Because.", kind=COMPILE_TIME)
    assert list(github_annotations([run(tmp_path, raised, slow)], str(tmp_path))) == [
        "::error title=f raised::Why. (lib.py:3)",
        "::notice title=Most of the compile time is X::Because. (an unknown line)",
    ]
    first, second = sarif([run(tmp_path, raised, slow)], str(tmp_path), "1.0")["runs"][0]["results"]  # type: ignore[index]
    assert first["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///elsewhere/lib.py"}
    assert "locations" not in second


def test_a_hostile_title_is_no_command(tmp_path: Path) -> None:
    hostile = Finding("x\n::add-path::/evil\x1b[2J", "y\r\n::stop-commands::z", 1, (0, 1), kind=BREAK)
    (line,) = github_annotations([run(tmp_path, hostile)], str(tmp_path))
    assert "\n" not in line
    assert "\x1b" not in line
    assert line.count("::add-path") == 0


@pytest.mark.parametrize("how", ["github", "sarif"])
def test_report_prints_nothing_but_the_annotations(
    how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(LOGS / "torch_2_13.log.gz"), "-o", str(tmp_path), "--format", how]) == 0
    out = capsys.readouterr().out
    assert (tmp_path / "index.html").exists()
    kinds: Tuple[str, ...]
    if how == "github":
        assert all(line.startswith("::") for line in out.splitlines())
        kinds = tuple(line.split()[0] for line in out.splitlines())
        assert "::warning" in kinds
    else:
        log = json.loads(out)
        kinds = tuple(each["ruleId"] for each in log["runs"][0]["results"])
        assert {"graph-break", "recompilation"} <= {*kinds}
        assert [each["id"] for each in log["runs"][0]["tool"]["driver"]["rules"]] == list(dict.fromkeys(kinds))


def test_an_old_manifest_has_no_kinds(tmp_path: Path) -> None:
    old = run(tmp_path, replace(Finding("t", "x", 1, (0, 1)), kind=""))
    (line,) = github_annotations([old], str(tmp_path))
    assert line == "::notice file=src/a%2Cb.py,line=1,title=t::x"
