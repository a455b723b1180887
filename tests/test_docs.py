"""What the documentation names is there: paths of this repository."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from pathlib import Path
from typing import List

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
HISTORY = ("CHANGELOG.md",)  # says what was there once

_FILE = r"(?:[\w.-]+/)+[\w.-]*\.(?:py|md|sh|js|css|json)"
_FOLDER = r"(?:src|tests|tools|docs|benchmarks|examples)/[\w./-]+"
_PATH = re.compile(f"`({_FILE}|{_FOLDER})`")


def missing_paths(text: str) -> List[str]:
    """The paths in backticks that neither the repository nor the package has, where they look like paths of it."""
    tops = {each.name for each in [*ROOT.iterdir(), *(ROOT / "src" / "depyf").iterdir()] if each.is_dir()}
    named = [path for path in _PATH.findall(text) if path.split("/")[0] in tops and "XX" not in path]
    return [path for path in named if not ((ROOT / path).exists() or (ROOT / "src" / "depyf" / path).exists())]


@pytest.mark.parametrize("page", [each for each in PAGES if each.name not in HISTORY], ids=lambda page: page.name)
def test_the_paths_of_a_page_exist(page: Path) -> None:
    assert missing_paths(page.read_text()) == []


def test_a_path_that_is_gone_is_found() -> None:
    assert missing_paths("`dynamo/gone.py`, `dynamo/__init__.py`, `docs/none.md`, `torch/no_path_of_ours.py`") == [
        "dynamo/gone.py",
        "docs/none.md",
    ]


def test_the_architecture_has_a_paragraph_for_each_folder() -> None:
    package = ROOT / "src" / "depyf"
    folders = {f"{path.parent.relative_to(package)}/" for path in package.glob("*/**/__init__.py")}
    text = (ROOT / "docs" / "architecture.md").read_text()
    assert len(folders) > 30
    assert set(re.findall(r"^\*\*`([\w/]+/)`\*\* \S", text, re.MULTILINE)) == folders


def test_each_folder_says_where_to_start_and_what_it_may_import() -> None:
    package = ROOT / "src" / "depyf"
    within = ("dynamo/questions/", "dynamo/dump/full_code/")  # the room around them says what they may import
    for path in package.glob("*/**/__init__.py"):
        name = path.relative_to(package).as_posix()
        if name != "bytecode/tables/__init__.py":  # generated data
            text = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split())
            assert "Start reading" in text, name
            assert "import" in text or "Imports" in text or (name.startswith(within) and name.count("/") > 2), name


_MODULE = re.compile(r"``((?:\w+/)*\w+\.py)``")
OTHERS = {"replay.py", "file.py"}
"""What depyf writes for the user, and a file of the user's."""


def test_the_modules_that_docstrings_name_exist() -> None:
    package = ROOT / "src" / "depyf"
    known = [f"/{path.relative_to(package)}" for path in package.rglob("*.py")]
    known += [f"/{path.relative_to(ROOT)}" for folder in ("tests", "tools") for path in (ROOT / folder).rglob("*.py")]
    gone = [
        f"{path.relative_to(package)}: {name}"
        for path in package.rglob("*.py")
        for name in _MODULE.findall(path.read_text())
        if name not in OTHERS and not any(each.endswith(f"/{name}") for each in known)
    ]
    assert gone == []


_LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def test_every_page_is_linked_and_every_link_leads_somewhere() -> None:
    linked = set()
    for page in PAGES:
        for target in _LINK.findall(page.read_text()):
            path = (page.parent / target).resolve()
            assert path.exists(), f"{page.name} links to {target}"
            linked.add(path)
    assert [page.name for page in PAGES if page not in linked and page.name != "README.md"] == []


def test_what_make_quick_leaves_out_is_there() -> None:
    if shutil.which("make") is None:
        pytest.skip("no make")
    planned = subprocess.run(["make", "-n", "quick"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    ignored = re.findall(r"--ignore=(\S+)", planned)
    assert len(ignored) > 30
    assert [path for path in ignored if not (ROOT / path).exists()] == []
