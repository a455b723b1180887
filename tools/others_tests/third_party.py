"""Third-party packages with tests: fetched as source distributions, run in a separate environment.

``check_package`` does for a package what ``check_module`` in run_decompiled_module.py does for a standard library
module. Downloads and environments stay in a cache folder, one for each Python.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Tuple

from decompiled_copies import copy_tree
from run_decompiled_module import Outcomes, Report, compare_runs, run_command

CACHE = Path(__file__).resolve().parents[2] / "build" / "others"


@dataclass(frozen=True)
class Package:
    """A source distribution. ``packages``: the files and folders in it that are decompiled. ``path``: where they are
    imported from. ``requirements``: the requirements of its tests."""

    name: str
    version: str
    path: str
    packages: Tuple[str, ...]
    requirements: Tuple[str, ...] = ()
    tests: str = "tests"


PACKAGES = {
    package.name: package
    for package in [
        Package("attrs", "23.2.0", "src", ("src/attr", "src/attrs"), ("hypothesis",)),
        Package("jinja2", "3.1.4", "src", ("src/jinja2",), ("markupsafe",)),
        Package("more-itertools", "10.5.0", ".", ("more_itertools",)),
        Package("toolz", "0.12.1", ".", ("toolz", "tlz"), tests="toolz tlz"),
    ]
}


def check_package(package: Package, form: str = "source", timeout: float = 600.0, cache: Path = CACHE) -> Report:
    """Run the package's tests on its sources and on their decompiled form. Raises ``subprocess.CalledProcessError``
    when pip can't get it."""
    start = time.perf_counter()
    python = _environment(package, cache)
    sources = _sources(package, cache)
    report = Report(f"{package.name} {package.version}")
    with tempfile.TemporaryDirectory(prefix="decompiled_") as place:
        before, after = Path(place) / "before", Path(place) / "after"
        shutil.copytree(sources, before, symlinks=True)
        report.copies = copy_tree(sources, after, map(Path, package.packages), form)
        try:
            compare_runs(report, lambda decompiled: _pytest(package, python, after if decompiled else before, timeout))
        except RuntimeError as error:
            report.differences.append(str(error))
    report.seconds = time.perf_counter() - start
    return report


def _sources(package: Package, cache: Path) -> Path:
    folder = cache / "sources" / f"{package.name}-{package.version}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as place:
            command = ["download", "--no-deps", "--no-binary", ":all:", "--dest", place]
            _pip(sys.executable, *command, f"{package.name}=={package.version}")
            (archive,) = Path(place).glob("*.tar.gz")
            with tarfile.open(archive) as tar:
                tar.extractall(Path(place) / "unpacked")
            (unpacked,) = (Path(place) / "unpacked").iterdir()
            os.replace(unpacked, folder)
    return folder


def _environment(package: Package, cache: Path) -> Path:
    """Return the Python of a virtual environment with pytest and the tests' requirements, but without the package."""
    folder = cache / f"{package.name}-{platform.python_version()}"
    done = folder / "done"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        _pip(str(folder / "bin" / "python"), "install", "pytest", *package.requirements)
        done.touch()
    return folder / "bin" / "python"


def _pip(python: str, *arguments: str) -> None:
    subprocess.run([python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], check=True)


def _pytest(package: Package, python: Path, tree: Path, timeout: float) -> Outcomes:
    file = tree / "outcomes.xml"
    if file.exists():
        file.unlink()
    path = [(tree / package.path).resolve()]
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={file}", *package.tests.split()]
    output = run_command([str(python), *arguments], tree, path, timeout)
    if not file.exists():
        raise RuntimeError(f"pytest wrote no results: {output[-3000:]}")
    for name in package.packages:
        module = Path(name).stem
        origin = run_command([str(python), "-c", f"import {module}; print({module}.__file__)"], tree, path, 60).strip()
        if not origin.startswith(str(path[0])):
            raise RuntimeError(f"{module} is imported from {origin}, not from {path[0]}")
    return _outcomes(ElementTree.parse(file).getroot())


def _outcomes(results: ElementTree.Element) -> Outcomes:
    """Return outcomes by class and test name; a test whose teardown fails as well has two entries: the worse one is
    used."""
    outcomes: Dict[str, str] = {}
    for case in results.iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        outcome = "passed"
        for child in case:
            if child.tag in ("failure", "error"):
                outcome = f"{child.tag}: {child.get('message')}"[:500]
            elif child.tag == "skipped":
                outcome = "expected failure" if child.get("type") == "pytest.xfail" else "skipped"
        if outcomes.get(name, "passed") == "passed":
            outcomes[name] = outcome
    return outcomes
