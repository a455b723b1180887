"""The package's metadata, and what a forge reads of this repository: workflows, issue forms, the citation."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

import depyf

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")


def read_yaml(text: str) -> Any:
    """Return the data of a YAML text. Raises for keys that stand twice, of which YAML takes the last."""
    yaml = pytest.importorskip("yaml")

    class Strict(yaml.SafeLoader):  # type: ignore[misc,name-defined]
        pass

    def mapping(loader: Any, node: Any) -> Dict[Any, Any]:
        keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key stands twice: {keys}"
        return {key: loader.construct_object(value, deep=True) for key, (_, value) in zip(keys, node.value)}

    Strict.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    return yaml.load(text, Loader=Strict)


def project() -> Dict[str, Any]:
    if sys.version_info < (3, 11):
        pytest.skip("tomllib comes with Python 3.11")
    import tomllib

    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def steps_of(workflow: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
    for job in workflow["jobs"].values():
        yield from job["steps"]


def faults_of(text: str) -> List[str]:
    """Return what a workflow must not have: rights to write, actions of any version, jobs without an end."""
    workflow = read_yaml(text)
    found = []
    if workflow.get("permissions") != {"contents": "read"}:
        found.append("permissions")
    for name, job in workflow["jobs"].items():
        found += [f"{name}: permissions"] * ("permissions" in job) + [f"{name}: no limit"] * (
            "timeout-minutes" not in job
        )
    for step in steps_of(workflow):
        if "uses" in step:
            if not re.fullmatch(r"actions/[a-z-]+@v\d+\.\d+\.\d+", step["uses"]):
                found.append(f"{step['uses']} is not pinned")
            if step["uses"].startswith("actions/checkout@") and step["with"]["persist-credentials"] is not False:
                found.append("the checkout keeps its credentials")
        elif "${{" in step["run"]:
            found.append(f"{step['run']}: an expression in a script")
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_pinned_and_may_only_read(path: Path) -> None:
    assert faults_of(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("contents: read", "contents: write"),
        ("checkout@v5.0.0", "checkout@v5"),
        ("persist-credentials: false", "persist-credentials: true"),
        ("    timeout-minutes: 60\n", ""),
        ("- run: make docs", "- run: make ${{ github.head_ref }}"),
    ],
)
def test_a_workflow_that_may_do_more_is_found(right: str, wrong: str) -> None:
    text = (ROOT / ".github" / "workflows" / "docs.yml").read_text(encoding="utf-8")
    assert right in text
    assert faults_of(text.replace(right, wrong)) != []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_workflows_run_is_there(path: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for step in steps_of(read_yaml(path.read_text(encoding="utf-8"))):
        command = step.get("run", "")
        assert set(re.findall(r"\bmake ([a-z]+)", command)) <= targets
        for name in re.findall(r"(?<![\w.])(?:tools|tests|\.ci)/[\w./]+", command):
            assert (ROOT / name).exists(), name


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_issue_forms_have_what_a_forge_asks_of_them(path: Path) -> None:
    form = read_yaml(path.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= set(form)
    fields = [each for each in form["body"] if each["type"] != "markdown"]
    assert fields
    assert all(each["type"] == "textarea" and each["attributes"]["label"] for each in fields)
    assert len({each["id"] for each in fields}) == len(fields)


def test_every_yaml_file_of_the_forge_is_read() -> None:
    paths = sorted((ROOT / ".github").rglob("*.yml"))
    assert len(paths) >= len(WORKFLOWS) + len(FORMS) > 5
    for path in paths:
        assert read_yaml(path.read_text(encoding="utf-8"))
    with pytest.raises(AssertionError, match="twice"):
        read_yaml("a: 1\na: 2\n")


def test_version_author_and_licence_are_the_same_everywhere() -> None:
    citation = read_yaml((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    licence = (ROOT / "LICENSE").read_text()
    metadata = project()["project"]
    (author,) = metadata["authors"]
    assert re.search(rf"^Copyright \(c\) \d+ {author['name']}$", licence, re.MULTILINE)
    assert citation["authors"] == metadata["authors"]
    assert metadata["license"] == citation["license"] == "MIT"
    assert licence.startswith("MIT License")
    assert citation["version"] == depyf.__version__.split(".dev")[0]


def test_the_changelog_has_this_version_on_top() -> None:
    heads = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert depyf.__version__ in heads[0]


def test_the_description_for_the_package_index_has_no_link_into_the_repository() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    hook = project()["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    assert [fragment["path"] for fragment in hook["fragments"]] == ["README.md"]
    for each in hook["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"].replace("\\1", r"\g<1>"), text)
    assert re.findall(r"\]\((?!https://)[^)]*\)", text) == []
    assert "<!--" not in text
    assert "https://github.com/thuml/depyf" in text
    assert len(text) > 3000


ONLY_ON_SOME_SYSTEMS = {"fcntl", "resource", "msvcrt", "winreg", "pwd", "grp", "termios", "tty"}


def unguarded(source: str) -> List[str]:
    """Return the modules of one system that are imported outside of a ``try`` with ``except ImportError``."""
    tree = ast.parse(source)
    guarded = {
        id(each)
        for node in ast.walk(tree)
        if isinstance(node, ast.Try)
        and any(isinstance(h.type, ast.Name) and h.type.id == "ImportError" for h in node.handlers)
        for statement in node.body
        for each in ast.walk(statement)
    }
    return [
        name
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom)) and id(node) not in guarded
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""])
        if name in ONLY_ON_SOME_SYSTEMS
    ]


def test_no_module_of_one_system_is_needed() -> None:
    found = {path.name: unguarded(path.read_text(encoding="utf-8")) for path in (ROOT / "src").rglob("*.py")}
    assert {name: modules for name, modules in found.items() if modules} == {}
    assert unguarded("import fcntl\ntry:\n    import pwd\nexcept ImportError:\n    pwd = None\n") == ["fcntl"]


WITHOUT = """
import subprocess
import sys
import torch
import subprocess, multiprocessing.util, tempfile, asyncio, concurrent.futures.process
for name in ("fcntl", "pwd", "grp", "resource", "termios"):
    sys.modules[name] = None
import depyf

@torch.compile(backend="aot_eager")
def twice(x):
    return x * 2

with depyf.prepare_debug("dump"):
    print(twice(torch.ones(2)).tolist())
print(depyf.decompile(depyf.decompile).splitlines()[0])
"""


@pytest.mark.torch
def test_a_dump_without_the_modules_of_posix(tmp_path: Path) -> None:
    """As near to Windows as can be tried on Linux: what is imported there under a guard is missing."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "[2.0, 2.0]" in done.stdout
    assert "depyf" not in done.stderr
    assert (tmp_path / "dump" / "index.html").exists()
    assert (tmp_path / "dump" / "__transformed_code_0_for_twice.py").exists()
