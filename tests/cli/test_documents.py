"""The documentation and the examples of the package are shown, written, and found in a wheel as in a checkout."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import webbrowser
import zipfile
from pathlib import Path

import pytest

from depyf.cli import documents, main

ROOT = Path(__file__).resolve().parents[2]


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_all_pages_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _err = run(capsys, "docs")
    names = [line.split()[0] for line in out.splitlines()[1:]]
    assert (status, names[0]) == (0, "index")
    assert sorted(names) == sorted(path.stem for path in (ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("page", ["tutorial", "tutorial.md", "docs/tutorial.md"])
def test_a_page_is_printed_as_it_is_where_the_output_is_no_terminal(
    page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _err = run(capsys, "docs", page)
    assert (status, out.splitlines()[0]) == (0, (ROOT / "docs" / "tutorial.md").read_text().splitlines()[0])


def test_unknown_names_are_answered_with_close_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "docs", "tutrial") == (2, "", "depyf: there is no page 'tutrial'; did you mean tutorial?\n")
    assert run(capsys, "example", "brunch") == (2, "", "depyf: there is no example 'brunch'; did you mean branch?\n")


@pytest.mark.parametrize("starts", [True, False])
def test_pages_open_in_a_browser_and_lead_to_each_other(
    starts: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("markdown_it")
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or starts)
    status, out, err = run(capsys, "docs", "--web", "calls")
    path = Path(out.strip())
    assert (status, opened, path.name) == (0, [path.as_uri()], "calls.html")
    assert ("no browser" in err) is not starts
    for page in path.parent.glob("*.html"):
        for target in re.findall(r'(?:href|src)="([^"#]+)', page.read_text(encoding="utf-8")):
            if target.startswith("file:"):
                assert Path(target[len("file://") :]).exists(), target
            elif target.endswith(".html") and "/" not in target:
                assert (path.parent / target).exists(), (page.name, target)
            assert not re.fullmatch(r"[\w-]+\.md", target), (page.name, target)


def test_an_example_is_written_once_and_is_a_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(capsys, "example", "branch") == (0, "branch.py: run it with    depyf run branch.py\n", "")
    text = (tmp_path / "branch.py").read_text()
    assert "depyf" not in {
        name.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for name in node.names
    }
    (tmp_path / "branch.py").write_text("mine")
    assert run(capsys, "example", "branch.py")[0] == 2
    assert (tmp_path / "branch.py").read_text() == "mine"
    assert run(capsys, "example", "training", "-o", "other.py")[0] == 0
    assert (tmp_path / "other.py").exists()


def test_an_installation_without_them_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents.depyf, "__file__", str(tmp_path / "one" / "two" / "depyf" / "__init__.py"))
    status, out, err = run(capsys, "docs")
    assert (status, out) == (2, "")
    assert "has no docs" in err


def test_the_wheel_has_them(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)], cwd=ROOT, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    names = set(zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist())
    pages = {f"depyf/share/docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    assert pages | {"depyf/share/docs/security.md", "depyf/share/examples/branch.py"} <= names
