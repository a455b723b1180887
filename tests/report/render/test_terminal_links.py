"""Lines of the program in a terminal's summary are links to the page at that line."""

from __future__ import annotations

import io
import re
import sys
import time
from pathlib import Path
from typing import Tuple

import pytest

from depyf.cli import main
from depyf.cli.reporting import ProgressLine
from depyf.report.read.reading import load
from depyf.report.render.terminal_links import addresses_of_lines, with_links

LOG = Path(__file__).resolve().parents[1] / "logs" / "torch_2_13.log.gz"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(monkeypatch: pytest.MonkeyPatch, directory: Path, *, plain: str = "") -> Tuple[str, str]:
    """What a report prints on two terminals: the output, and the error stream."""
    output, errors = Terminal(), Terminal()
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", plain)
    with monkeypatch.context() as patch:  # pytest has streams of its own for each phase of a test
        patch.setattr(sys, "stdout", output)
        patch.setattr(sys, "stderr", errors)
        assert main(["report", str(LOG), "-o", str(directory / "my page.html")]) == 0
    return output.getvalue(), errors.getvalue()


def test_breaks_and_recompilations_link_to_their_line_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, _ = printed(monkeypatch, tmp_path)
    found = re.findall("\x1b\\]8;;file://([^#\x1b]*)#([^\x1b]*)\x1b\\\\([^\x1b]*)\x1b\\]8;;", text)
    assert "source/f0/14" in {address for _, address, _ in found}
    assert {page for page, _, _ in found} == {f"{tmp_path}/my%20page.html"}
    run = load([str(LOG)])[0].run
    for _, address, shown in found:
        _, function, line = address.split("/")
        assert shown.endswith(f":{line}")
        assert run.functions[int(function[1:])].resumes is None


def test_plain_text_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, errors = printed(monkeypatch, tmp_path, plain="1")
    assert "\x1b" not in text
    assert errors == ""


def test_what_is_read_is_shown_meanwhile_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, shown = printed(monkeypatch, tmp_path)
    assert shown.startswith("\rreading ")
    assert shown.endswith("\r\x1b[K")
    assert "\n" not in shown


def test_a_line_of_progress_fits_the_terminal_and_a_log_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal, log = Terminal(), io.StringIO()
    for stream in (terminal, log):
        with ProgressLine(stream) as progress:
            progress("reading\x1b[2J a file with a long name")
            progress("too soon")
    assert terminal.getvalue() == "\rreading\\x1b[2J a fi\x1b[K\r\x1b[K"
    assert log.getvalue() == ""


def test_texts_that_name_two_lines_are_no_links() -> None:
    assert with_links("breaks (a.py:3, b.py:4)", {"a.py:3": "", "b.py:4": "x"}) == (
        "breaks (a.py:3, \x1b]8;;x\x1b\\b.py:4\x1b]8;;\x1b\\)"
    )
    run = load([str(LOG)])[0].run
    assert all(each.endswith("?rank=2") for each in addresses_of_lines(run, "page.html", 2).values())


def test_a_long_name_costs_no_minutes() -> None:
    start = time.process_time()
    assert with_links("a" * 100_000, {"a.py:3": "x"}) == "a" * 100_000
    assert time.process_time() - start < 3.0
