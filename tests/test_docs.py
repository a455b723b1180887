"""Everything that the documentation names exists: paths, pages, anchors, commands, variables and names."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, List

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
HISTORY = ("CHANGELOG.md",)  # says what was there once

_FILE = r"(?:[\w.-]+/)+[\w.-]*\.(?:py|md|sh|js|css|json)"
_FOLDER = r"(?:src|tests|tools|docs|benchmarks|examples)/[\w./-]+"
_PATH = re.compile(f"`({_FILE}|{_FOLDER})`")


def missing_paths(text: str) -> List[str]:
    """The paths in backticks that neither the repository, the package nor its decompiler has, where they look like
    paths of one of them."""
    roots = [ROOT, ROOT / "src" / "depyf", ROOT / "src" / "depyf" / "decompiler"]
    tops = {each.name for root in roots for each in root.iterdir() if each.is_dir()}
    named = [path for path in _PATH.findall(text) if path.split("/")[0] in tops and "XX" not in path]
    return [path for path in named if not any((root / path).exists() for root in roots)]


@pytest.mark.parametrize("page", [each for each in PAGES if each.name not in HISTORY], ids=lambda page: page.name)
def test_the_paths_of_a_page_exist(page: Path) -> None:
    assert missing_paths(page.read_text()) == []


def test_a_path_that_is_gone_is_found() -> None:
    text = "`dynamo/gone.py`, `dynamo/__init__.py`, `flow/gone.py`, `flow/graph.py`, `docs/none.md`, `torch/other.py`"
    assert missing_paths(text) == ["dynamo/gone.py", "flow/gone.py", "docs/none.md"]


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
        if name != "decompiler/bytecode/tables/__init__.py":  # generated data
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
    assert [page.name for page in PAGES if page not in linked and page.name not in ("README.md", "index.md")] == []


def test_what_make_quick_leaves_out_is_there() -> None:
    if shutil.which("make") is None:
        pytest.skip("no make")
    planned = subprocess.run(["make", "-n", "quick"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    ignored = re.findall(r"--ignore=(\S+)", planned)
    assert len(ignored) > 30
    assert [path for path in ignored if not (ROOT / path).exists()] == []


_HEADING = re.compile(r"^#{1,6} (.*)$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_ANCHORED = re.compile(r"\]\(([^)#:\s]*)#([^)\s]+)\)")


def anchors_of(text: str) -> List[str]:
    """The anchors of the headings of a page, as GitHub and the site make them."""
    plain = [re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", head) for head in _HEADING.findall(_FENCE.sub("", text))]
    return [re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in plain]


def wrong_anchors(page: Path, text: str) -> List[str]:
    wrong = []
    for target, anchor in _ANCHORED.findall(text):
        path = (page.parent / target).resolve() if target else page
        if path.suffix == ".md" and anchor not in anchors_of(path.read_text() if target else text):
            wrong.append(f"{page.name}: {target}#{anchor}")
    return wrong


def test_the_pictures_are_those_that_the_pages_show() -> None:
    shown = {
        name for each in PAGES for name in re.findall(r"\(\S*screenshots/([\w-]+\.png)\)", each.read_text("utf-8"))
    }
    assert {each.name for each in ROOT.glob("docs/screenshots/*")} == shown


def test_every_anchor_that_is_linked_is_a_heading() -> None:
    assert [each for page in PAGES for each in wrong_anchors(page, page.read_text())] == []


def test_an_anchor_that_is_gone_is_found() -> None:
    page = ROOT / "docs" / "none.md"
    text = "# A `b(c, *d)`: e?\n```text\n# none\n```\n[x](#a-bc-d-e) [y](#none) [z](report.md#gone)"
    assert wrong_anchors(page, text) == ["none.md: #none", "none.md: report.md#gone"]


def _tool(path: str) -> Any:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_generated_parts_name_every_command_and_public_name() -> None:
    import depyf

    generated = _tool("tools/site/generated.py")
    text = generated.command_line(ROOT)
    usage = subprocess.run(
        [sys.executable, "-m", "depyf", "--help"], capture_output=True, text=True, check=True, cwd=ROOT / "src"
    ).stdout
    commands = re.findall(r"^    ([a-z][\w-]+)", usage, re.MULTILINE)
    assert len(commands) > 7
    assert [name for name in commands if f"\n## depyf {name}\n" not in text] == []
    interface = generated.python_interface(ROOT)
    assert [name for name in depyf.__all__ if f"      heading: depyf.{name}\n" not in interface] == []


def test_every_mark_for_a_generated_part_has_one() -> None:
    generated = _tool("tools/site/generated.py")
    marks = [mark for page in PAGES for mark in generated.MARK.findall(page.read_text())]
    assert sorted(marks) == sorted(generated.PARTS)


def test_every_environment_variable_is_documented() -> None:
    used = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r"[\"'](DEPYF_[A-Z_]+)[\"']", path.read_text(encoding="utf-8"))
    }
    documented = set(re.findall(r"^\| `(DEPYF_[A-Z_]+)", (ROOT / "docs" / "environment.md").read_text(), re.MULTILINE))
    assert len(used) > 5
    assert documented == used


def test_the_support_table_of_the_readme_is_that_of_the_last_matrix() -> None:
    matrix = _tool("tools/check/run_matrix.py")
    readme = matrix.README.read_text(encoding="utf-8")
    data = json.loads(matrix.DATA.read_text())
    assert matrix.with_support(readme, data) == readme
    assert matrix.with_support(readme, {**data, "3.8+2.2.2": {"unavailable": "gone", "date": "today"}}) != readme


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    listed = re.findall(r"^ +- .*: ([\w.-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    root = {"changelog.md", "contributing.md", "security.md"}  # made from the pages of the repository's root
    assert len(listed) == len(set(listed))
    assert set(listed) - root == {page.name for page in (ROOT / "docs").glob("*.md")} - root
