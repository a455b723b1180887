"""Decompiled standard library modules pass and fail their own tests exactly as the originals do."""

from __future__ import annotations

import importlib.util
import platform
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parent.parent.parent / "tools" / "others_tests" / "run_decompiled_module.py"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("test.support") is None, reason="this Python comes without its own test suite"
)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(TOOL), *arguments], capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.parametrize(
    "module",
    ["bisect", "calendar", "colorsys", "copy", "csv", "difflib", "fnmatch", "fractions", "graphlib", "heapq", "html",
     "json", "optparse", "pprint", "sched", "shlex", "string", "textwrap"],
)  # fmt: skip
def test_a_decompiled_module_passes_its_own_tests(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip("this Python has no such module")
    done = run(module)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("module", ["argparse", "configparser", "statistics"])
@pytest.mark.slow
def test_a_large_decompiled_module_passes_its_own_tests(module: str) -> None:
    done = run(module)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("module", ["fractions", "heapq", "textwrap"])
def test_functions_stand_in_for_the_originals_one_by_one(module: str) -> None:
    done = run(module, "--form", "functions")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kept as they were" not in done.stdout


@pytest.mark.parametrize("module", ["bisect", "shlex", "string"])
def test_a_decompiled_test_module_finds_what_the_original_finds(module: str) -> None:
    done = run(module, "--decompile-tests")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrongly_decompiled_function_would_be_noticed(tmp_path: Path) -> None:
    """The check itself can fail: with a decompiler that writes ``<=`` for ``<``, ``bisect`` does not pass its tests."""
    planted = tmp_path / "planted.py"
    planted.write_text(
        "import runpy, sys\n"
        "from dataclasses import replace\n"
        "import depyf.decompiler as real\n"
        "right = real.decompile_code\n"
        "def wrong(code, **options):\n"
        "    answer = right(code, **options)\n"
        "    return replace(answer, source=answer.source.replace('x < a[mid]', 'x <= a[mid]'))\n"
        "real.decompile_code = wrong\n"
        f"sys.path.insert(0, {str(TOOL.parent)!r})\n"
        f"sys.argv[0] = {str(TOOL)!r}\n"
        f"runpy.run_path({str(TOOL)!r}, run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, str(planted), "bisect"], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "passed before, failed" in done.stdout


def test_many_modules_make_a_table() -> None:
    done = subprocess.run(
        [sys.executable, str(TOOL.with_name("run_others_tests.py")), "colorsys", "bisect"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 2 pass and fail as the originals do; " in done.stdout


def test_a_package_is_replaced_in_its_source_distribution(tmp_path: Path) -> None:
    """As with a package from PyPI, but what would be fetched is there already."""
    sys.path.insert(0, str(TOOL.parent))
    try:
        from third_party import Package, check_package
    finally:
        sys.path.remove(str(TOOL.parent))

    python = tmp_path / f"tiny-{platform.python_version()}" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (python.parent.parent / "done").touch()
    sources = tmp_path / "sources" / "tiny-1.0"
    (sources / "src" / "tiny").mkdir(parents=True)
    (sources / "tests").mkdir()
    (sources / "src" / "tiny" / "__init__.py").write_text("from tiny.more import add  # comments go\n")
    (sources / "src" / "tiny" / "more.py").write_text("def add(a, b):\n    return a + b  # comments go\n")
    (sources / "tests" / "test_tiny.py").write_text(
        "import inspect, pytest, tiny\n"
        "def test_sum(): assert tiny.add(1, 2) == 3\n"
        "def test_fails(): assert tiny.add(1, 2) == 4\n"
        "@pytest.mark.skip\ndef test_is_skipped(): pass\n"
        "def test_source(): assert 'comments' in inspect.getsource(tiny.add)\n"
    )
    report = check_package(Package("tiny", "1.0", "src", ("src/tiny",)), cache=tmp_path)
    assert report.before == {"failure": 1, "passed": 2, "skipped": 1}
    assert report.after == {"failure": 2, "passed": 1, "skipped": 1}
    assert [line.partition(":")[0] for line in report.differences] == ["tests.test_tiny.test_source"]
    assert (report.proved, report.objects) == (3, 3)
