"""``[tool.depyf]``, ``--version``, exit statuses in the help, and terminals without colours."""

from __future__ import annotations

import argparse
import importlib.util
import io
import os
import platform
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import depyf
from depyf.cli import main, reporting
from depyf.cli.defaults import DefaultsError, apply_defaults

needs_toml = pytest.mark.skipif(
    not any(importlib.util.find_spec(name) for name in ("tomllib", "tomli")), reason="nothing reads TOML"
)


def options(**given: object) -> argparse.Namespace:
    plain = {"output": None, "find_nonfinite": False, "no_stepping": False}
    switches = dict.fromkeys(("open", "trace", "quiet", "follow"), False)
    return argparse.Namespace(**{**plain, **switches, **given})


@needs_toml
def test_defaults_are_taken_from_the_project_and_the_command_line_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.depyf]\noutput = "dumps"\nquiet = true\nfollow = false\nstepping = false\n'
    )
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    found = options()
    apply_defaults(found)
    assert (found.output, found.quiet, found.follow, found.no_stepping) == (str(tmp_path / "dumps"), True, False, True)
    found = options(output="other", follow=True)
    apply_defaults(found)
    assert (found.output, found.follow) == ("other", True)


@needs_toml
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.depyf]\nouput = 'dumps'\n", r"has no 'ouput' \(it has output, open"),
        ("[tool.depyf]\nquiet = 1\n", "quiet of .* must be a bool, not 1"),
        ("[tool.depyf\n", "can't be read"),
        ("[tool]\ndepyf = 1 # tool.depyf\n", "is not a table"),
    ],
)
def test_what_is_wrong_in_the_table_is_said_before_anything_runs(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    (tmp_path / "program.py").write_text("print('ran')")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DefaultsError, match=message):
        apply_defaults(options())
    assert main(["run", "program.py"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.search(message, printed.err)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[project]\nname = 1\n", b"[["])
def test_a_file_that_says_nothing_of_depyf_is_left_alone(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_bytes(content)
    monkeypatch.chdir(tmp_path)
    found = options()
    apply_defaults(found)
    assert found == options()


def test_the_versions_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"depyf {depyf.__version__}, Python {platform.python_version()}, ")


@pytest.mark.parametrize(
    "command", ["run", "report", "diff", "extract", "decompile", "sweep", "install-hook", "uninstall-hook", None]
)
def test_the_help_has_the_exit_statuses(command: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*([command] if command else []), "--help"])
    assert ended.value.code == 0
    assert "exit status" in " ".join(capsys.readouterr().out.split()).lower()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_and_links_are_for_terminals_of_those_who_want_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "index page.html")
    assert reporting.linked(path) == path
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert reporting.linked(path) == f"\x1b]8;;file://{tmp_path}/index%20page.html\x1b\\{path}\x1b]8;;\x1b\\"
    monkeypatch.setenv("NO_COLOR", "1")
    assert reporting.linked(path) == path
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert reporting.linked(path) == path


def test_no_color_means_none(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    logs = os.path.join(os.path.dirname(__file__), os.pardir, "report", "logs")
    assert main(["diff", os.path.join(logs, "torch_2_7.log.gz"), os.path.join(logs, "torch_2_13.log.gz")]) == 1
    assert terminal.getvalue()
    assert "\x1b" not in terminal.getvalue()
