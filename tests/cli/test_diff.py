"""``depyf diff``: exit status 0 when the same was compiled, 1 when not, 2 when that can't be decided."""

from __future__ import annotations

import gzip
import io
import re
import shutil
import sys
from pathlib import Path
from typing import Tuple

import pytest

from depyf.cli import main

LOGS = Path(__file__).resolve().parent.parent / "report" / "logs"
LOG = LOGS / "torch_2_13.log.gz"


def diff(capsys: pytest.CaptureFixture[str], *arguments: object) -> Tuple[int, str, str]:
    status = main(["diff", *(str(argument) for argument in arguments)])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_the_same_run_is_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = diff(capsys, LOG, LOG)
    assert (status, err) == (0, "")
    assert out.splitlines()[-1] == "the same was compiled"


def test_another_pytorch_compiles_other_things(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "diff.html"
    status, out, err = diff(capsys, LOGS / "torch_2_7.log.gz", LOG, "--html", page)
    assert (status, err) == (1, "")
    assert "* Recompilations of scaled (traced.py): 2 before, 1 now" in out.splitlines()
    assert "recompilations 2 1" in [" ".join(line.split()) for line in out.splitlines()]
    text = page.read_text()
    assert "What changed" in text
    assert "Recompilations of scaled (traced.py): 2 before, 1 now" in text


def test_a_graph_that_changed_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = gzip.decompress(LOG.read_bytes()).decode()
    changed = tmp_path / "changed.log"
    changed.write_text(text.replace("sin: ", "cos: ").replace("torch.sin(l_x_)", "torch.cos(l_x_)"))
    status, out, _ = diff(capsys, LOG, changed)
    assert status == 1
    lines = [line.strip() for line in out.splitlines()]
    assert '-        sin: "f32[4][1]cpu" = torch.sin(l_x_);  l_x_ = None' in lines
    assert '+        cos: "f32[4][1]cpu" = torch.cos(l_x_);  l_x_ = None' in lines


def test_of_what_changed_only_what_got_worse_may_count(capsys: pytest.CaptureFixture[str]) -> None:
    old = LOGS / "torch_2_7.log.gz"
    assert diff(capsys, old, LOG, "--exit-code")[0] == 1
    assert diff(capsys, old, LOG, "--exit-code", "worse")[0] == 0
    status, out, _ = diff(capsys, LOG, old, "--exit-code", "worse")
    assert status == 1
    assert out.splitlines()[-1].startswith("worse: ")
    assert "worse: 2 recompilations, 1 before" in out.splitlines()


def test_where_it_is_not_known_what_got_worse_the_status_is_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "__compiled_fn_1.Captured_Graph.0.py").write_text("def forward(self):\n    pass\n")
    status, _, err = diff(capsys, LOG, tmp_path, "--exit-code", "worse")
    assert status == 2
    assert "what got worse is not known" in err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_colours_and_the_same_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rich")
    _, plain, _ = diff(capsys, LOGS / "torch_2_7.log.gz", LOG)
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["diff", str(LOGS / "torch_2_7.log.gz"), str(LOG)]) == 1
    coloured = terminal.getvalue()
    assert "\x1b[32m" in coloured
    assert re.sub("\x1b\\[[0-9;]*m", "", coloured) == plain


def test_of_several_ranks_the_first_is_compared_which_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = diff(capsys, LOGS / "ranks", LOGS / "ranks")
    assert status == 0
    assert err.splitlines() == [f"depyf: {LOGS / 'ranks'}: rank 0 is compared; not compared: rank 1"] * 2


def test_what_cannot_be_compared_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = diff(capsys, LOG, tmp_path)
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    (tmp_path / "file").write_text("")
    status, out, err = diff(capsys, LOG, LOG, "--html", tmp_path / "file" / "such" / "x.html")
    assert (status, out, len(err.splitlines())) == (2, "", 1)


def test_the_directory_of_the_page_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "no" / "such" / "x.html"
    status, out, err = diff(capsys, LOG, LOG, "--html", page)
    assert (status, err, out.splitlines()[-1].split()[-1]) == (0, "", str(page))
    assert "What changed" in page.read_text()


def test_more_runs_of_both_give_times_a_spread(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "diff.html"
    logs = [shutil.copy(LOG, tmp_path / f"{number}.log.gz") for number in range(8)]
    one, other, *more = logs
    status, out, err = diff(
        capsys, one, other, "--before", *more[:2], "--before", more[2], "--after", *more[3:], "--html", page
    )
    assert (status, err) == (0, "")
    (line,) = (line for line in out.splitlines() if line.startswith("compile time"))
    assert line.endswith("within the noise")
    assert line.count(" to ") == 2
    assert "within the noise" in page.read_text()


def test_a_run_counts_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, link = LOGS / "torch_2_7.log.gz", tmp_path / "link"
    link.symlink_to(LOG)
    for given in (("--before", old), ("--after", link), ("--before", tmp_path / "a", "--after", tmp_path / "a")):
        status, out, err = diff(capsys, old, LOG, *given)
        assert (status, out) == (2, "")
        assert err == f"depyf: {given[-1]} is given twice: each run counts once\n"


def test_a_run_without_times_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "__compiled_fn_1.Captured_Graph.0.py").write_text("def forward(self):\n    pass\n")
    _, out, _ = diff(capsys, LOGS / "torch_2_7.log.gz", LOG, "--before", tmp_path)
    assert f"note: {tmp_path}: no manifest, so no times, and not counted among the runs" in out.splitlines()


def test_a_run_that_compiled_something_else_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, other = LOGS / "torch_2_7.log.gz", shutil.copy(LOG, tmp_path)
    _, out, _ = diff(capsys, LOG, other, "--before", old)
    assert f" and {old} did not compile the same" in out
