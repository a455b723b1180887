"""Decompiled standard library modules pass and fail their own tests exactly as the originals do."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parent.parent.parent / "tools" / "run_decompiled_module.py"

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
        "import ast, runpy, sys, pathlib\n"
        "import depyf.decompiler as real\n"
        "from dataclasses import replace\n"
        "right = real.decompile_code\n"
        "def wrong(code, name=None):\n"
        "    text = pathlib.Path(code.co_filename).read_text().replace('x < a[mid]', 'x <= a[mid]')\n"
        "    return replace(right(code), source=text, tree=ast.parse(text))\n"
        "real.decompile_code = wrong\n"
        f"sys.argv[0] = {str(TOOL)!r}\n"
        f"runpy.run_path({str(TOOL)!r}, run_name='__main__')\n"
    )
    # The tool starts itself for each run; here it is told to be the child, as it tells itself.
    outcomes = tmp_path / "outcomes.json"
    arguments = ["bisect", "--test", "test.test_bisect", "--form", "source", "--child", str(outcomes)]
    subprocess.run([sys.executable, str(planted), *arguments], check=True, timeout=60)
    assert "failed" in outcomes.read_text()
