"""The command line works without PyTorch, and prints source that can be piped on."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from depyf.cli import main


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, check=False)


def test_neither_the_package_nor_the_command_line_loads_torch() -> None:
    done = python("-c", "import sys, depyf, depyf.cli, depyf.decompiler; print('torch' in sys.modules)")
    assert done.stdout == "False\n", done.stderr


def test_decompile_prints_source_to_the_output_and_the_verdict_to_the_error_stream() -> None:
    done = python("-m", "depyf", "decompile", "heapq:heappush")
    assert done.returncode == 0, done.stderr
    assert isinstance(ast.parse(done.stdout).body[0], ast.FunctionDef)
    assert "exact" in done.stderr


def test_decompile_prints_a_whole_module() -> None:
    done = python("-m", "depyf", "decompile", "colorsys")
    assert done.returncode == 0, done.stderr
    names = [node.name for node in ast.parse(done.stdout).body if isinstance(node, ast.FunctionDef)]
    assert names[:2] == ["rgb_to_yiq", "yiq_to_rgb"]


def test_decompile_can_show_the_bytecode_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decompile", "heapq:heappush", "--bytecode"]) == 0
    printed = capsys.readouterr().out
    assert printed.index("LOAD_GLOBAL") < printed.index("def heappush")


@pytest.mark.parametrize("target", ["heapq:no_such_function", "no_such_module", "no_such_file.py"])
def test_a_target_that_does_not_exist_is_said_in_one_line(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decompile", target]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_sweep_of_small_modules_proves_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "colorsys", "bisect", "heapq", "-j", "2"]) == 0, capsys.readouterr().out
    assert "100.00%" in capsys.readouterr().out
