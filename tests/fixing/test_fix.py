"""``depyf fix`` as a whole: small programs that are run before and after, and what is written."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, List

import pytest
from answer_schema import answer_of, checked

from depyf.answers.fixed import Fixed, FixRow, TriedEdit
from depyf.cli import main
from depyf.fixing.edits import Change, Edit, Project
from depyf.fixing.problems import Problem
from depyf.fixing.question import _STILL_THERE, _Fixing, _Verdict
from depyf.fixing.writing import NotWrittenError, write_files
from depyf.report.model.run import Run
from depyf.running.program import UserProgram

NEEDS = pytest.mark.skipif(importlib.util.find_spec("libcst") is None, reason="libcst is not installed")

ITEM = """\
import torch


@torch.compile(backend="eager")
def f(x):
    scale = x.abs().max().item()  # one number
    return x / (scale + 1)


for i in range(6):
    print(f(torch.arange(4.0) + i))
"""

BRANCH = """\
import torch


@torch.compile(backend="aot_eager")
def f(x):
    y = x - 2
    if y.sum() > 0:
        y = y * 0.5
    else:
        y = y + 1
    return (y * y).mean()


w = torch.ones(4, requires_grad=True)
for i in range(6):
    f(w * i).backward()
print(w.grad)
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "depyf", "fix", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.torch
@NEEDS
def test_an_edit_that_removes_the_finding_and_changes_nothing_else_is_kept(tmp_path: Path) -> None:
    pytest.importorskip("torch", minversion="2.13")
    (tmp_path / "train.py").write_text(ITEM)
    done = run(tmp_path, "--write", "--json", "found.json", "train.py")
    assert done.stdout == (
        "--- a/train.py\n+++ b/train.py\n@@ -1,3 +1,4 @@\n import torch\n"
        "+torch._dynamo.config.capture_scalar_outputs = True\n \n \n"
    ), done.stderr
    # No git knows the file: the diff is there, and the file is as it was.
    assert done.returncode == 2
    assert "train.py is not committed in git as it is" in done.stderr
    assert (tmp_path / "train.py").read_text() == ITEM
    assert sorted(os.listdir(tmp_path)) == ["found.json", "train.py"]
    found = answer_of((tmp_path / "found.json").read_text(), "fix")
    assert found["changed"] == ["train.py"]
    (row,) = [each for each in found["rows"] if each["kept"]]
    assert (row["place"], row["finding"]) == ("train.py:6", "graph break: a number read out of a tensor")
    assert row["tried"][0]["before"].startswith("1 break, ")
    assert row["tried"][0]["after"] == "0 breaks, 0 recompilations, 0 fallbacks, 1 graph"


@pytest.mark.torch
@pytest.mark.slow
@NEEDS
def test_a_branch_is_tried_compiled_and_in_eager_mode(tmp_path: Path) -> None:
    pytest.importorskip("torch", minversion="2.13")
    (tmp_path / "train.py").write_text(BRANCH)
    done = run(tmp_path, "train.py")
    assert done.returncode == 0, done.stderr
    assert "+    y = torch.where(y.sum() > 0, y * 0.5, y + 1)\n" in done.stdout
    assert "in eager mode" in done.stderr
    assert (tmp_path / "train.py").read_text() == BRANCH


@pytest.mark.torch
@pytest.mark.slow
@NEEDS
def test_a_program_that_does_something_else_in_each_run_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("torch", minversion="2.13")
    (tmp_path / "train.py").write_text(ITEM.replace("+ i", "+ __import__('time').time_ns() % 1000"))
    done = run(tmp_path, "train.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing was tried: two runs of the unchanged program" in done.stderr


def test_without_libcst_the_message_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "libcst", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("x = 1\n")
    assert main(["fix", "train.py"]) == 2
    assert "pip install 'depyf[fix]'" in capsys.readouterr().err


def test_nothing_that_a_dump_names_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "manifest.json").write_text('{"command": ["evil.py"]}')
    assert main(["fix", "dump"]) == 2
    assert "name the program itself, as in `depyf fix train.py" in capsys.readouterr().err
    assert main(["fix"]) == 2
    assert "name a script" in capsys.readouterr().err


@NEEDS
def test_a_program_outside_of_the_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "train.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path / "here")
    assert main(["fix", "../train.py"]) == 2
    assert "change into the program's folder" in capsys.readouterr().err


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True, capture_output=True
    )


def test_only_files_that_git_has_as_they_are_are_written_without_force(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    path = tmp_path / "train.py"
    path.write_bytes(b"old\n")
    before, after = {"train.py": b"old\n"}, {"train.py": b"new\n"}
    with pytest.raises(NotWrittenError, match="not committed"):
        write_files(str(tmp_path), before, after, force=False)
    git(tmp_path, "add", "train.py")
    with pytest.raises(NotWrittenError, match="not committed"):
        write_files(str(tmp_path), before, after, force=False)
    assert path.read_bytes() == b"old\n"
    git(tmp_path, "commit", "-qm", "a")
    path.chmod(0o755)
    git(tmp_path, "config", "core.fileMode", "false")
    write_files(str(tmp_path), before, after, force=False)
    assert path.read_bytes() == b"new\n"
    assert path.stat().st_mode & 0o777 == 0o755
    with pytest.raises(NotWrittenError, match="has changed while it was tried"):
        write_files(str(tmp_path), before, after, force=True)
    write_files(str(tmp_path), after, before, force=True)
    assert path.read_bytes() == b"old\n"


def test_no_file_is_written_where_one_can_not_be(tmp_path: Path) -> None:
    before, after = {"a.py": b"old\n", "b.py": b"old\n"}, {"a.py": b"new\n", "b.py": b"new\n"}
    for name, text in before.items():
        (tmp_path / name).write_bytes(text)
    (tmp_path / f"b.py.{os.getpid()}.part").write_bytes(b"")  # the second file can't be made
    with pytest.raises(FileExistsError):
        write_files(str(tmp_path), before, after, force=True)
    assert (tmp_path / "a.py").read_bytes() == b"old\n"
    assert sorted(os.listdir(tmp_path)) == ["a.py", "b.py", f"b.py.{os.getpid()}.part"]


def test_files_that_were_written_are_put_back_where_a_later_one_can_not_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {f"{each}.py": b"old\n" for each in "abc"}
    for name, text in before.items():
        (tmp_path / name).write_bytes(text)
    replace, fails, more = os.replace, ["c.py"], [""]

    def failing(source: str, target: str) -> None:
        if os.path.basename(target) in fails:
            raise PermissionError(13, "Permission denied", target)
        replace(source, target)
        fails.extend(more)

    monkeypatch.setattr(os, "replace", failing)
    for later, error, left in (("", PermissionError, ()), ("a.py", NotWrittenError, ("a.py",))):
        more[:] = [later]
        with pytest.raises(error, match="a.py" if left else "c.py"):
            write_files(str(tmp_path), before, dict.fromkeys(before, b"new\n"), force=True)
        now = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
        saved = {f"{name}.{os.getpid()}.old.part": b"old\n" for name in left}
        assert now == {**{name: b"new\n" if name in left else b"old\n" for name in before}, **saved}


def test_an_edit_of_several_findings_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text("x = 1\n")
    said: List[str] = []
    fixing = _Fixing(UserProgram("train.py", []), str(tmp_path), str(tmp_path / "scratch"), said.append)
    monkeypatch.setattr(fixing._trials, "run", lambda edited, *, limit: None)
    gone, stays = (Problem("graph break", "", "train.py", 1, "", about, "words") for about in ("gone", "stays"))
    left = frozenset([stays.key])

    def judged(trial: object, files: object, edits: object, problems: List[Problem], known: object) -> _Verdict:
        return _Verdict(_STILL_THERE if stays in problems else "", left=left)

    monkeypatch.setattr(fixing, "_judged", judged)
    known: Any = SimpleNamespace(first=SimpleNamespace(seconds=1.0))
    project = Project(str(tmp_path), "train.py", ["train.py"], Run(), {})

    def reasons(name: str, *problems: Problem) -> List[str]:
        edit = Edit((name,), name, (Change("train.py", 0, bytes),))
        return [fixing._tried([edit], [each], project, known).reason for each in problems]

    assert reasons("a", gone, stays, gone) == ["", _STILL_THERE, ""]
    assert said == ["trying a"]
    # Refused for one finding, it is tried for the other: what comes after that check was not looked at.
    assert reasons("b", stays, stays, gone, gone) == [_STILL_THERE, _STILL_THERE, "", ""]
    assert said == ["trying a", "trying b", "trying b"]


def test_the_table_says_what_was_kept_refused_and_why() -> None:
    kept = TriedEdit("x = 1", "1 break", "0 breaks", "f() 1 ms")
    refused = TriedEdit("y = 1", "1 break", "1 break", reason="the finding is still there")
    rows = (
        FixRow("graph break: print", "a.py:1", "advice", (refused, kept)),
        FixRow("b", "a.py:2", "advice", reason="no mechanical edit for this finding"),
        FixRow("c", "a.py:3", "advice", reason="no mechanical edit for this finding", gone=True),
    )
    found = Fixed(("a.py",), rows, "diff", before="1 break", after="0 breaks", files={"a.py": b""})
    lines: List[str] = found.lines()
    assert "  refused  y = 1" in lines
    assert "           because the finding is still there" in lines
    assert "  kept     x = 1" in lines
    assert "  no edit  no mechanical edit for this finding" in lines
    assert "  gone     with the edits of other findings" in lines
    assert "3 findings, 2 fixed" in lines
    data = checked(found)
    assert data["changed"] == ["a.py"]
    assert [each["kept"] for each in data["rows"]] == [True, False, False]
