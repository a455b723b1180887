"""docs/decompiler.md shows for every stage the current output for its example."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / "tools" / "show" / "explain_stages.py"
DOCUMENT = ROOT / "docs" / "decompiler.md"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOOL), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the document shows what CPython 3.11 gives")
def test_the_document_shows_what_the_stages_give() -> None:
    done = run("--document", DOCUMENT, "--check")
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the document shows what CPython 3.11 gives")
def test_a_document_that_is_not_true_is_noticed_and_put_right(tmp_path: Path) -> None:
    copy = tmp_path / "copy.md"
    copy.write_text(DOCUMENT.read_text().replace("LOAD ('fast', 'lock')", "LOAD ('fast', 'key')"))
    assert run("--document", copy, "--check").returncode == 1
    assert run("--document", copy, "--write").returncode == 0
    assert copy.read_text() == DOCUMENT.read_text()


def test_the_stages_of_any_function_can_be_shown() -> None:
    done = run("textwrap:TextWrapper._split_chunks")
    assert done.returncode == 0, done.stderr
    stages = ["bytecode", "flow", "copies", "lifted", "structured", "source", "verdict"]
    assert [line[4:] for line in done.stdout.splitlines() if line.startswith("--- ")] == stages
    assert "exact" in done.stdout.split("--- verdict")[1]
