"""The copies and the processes of ``depyf fix``: what a trial may not touch, and what may not be left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import List

import pytest

from depyf.fixing import sameness, trials
from depyf.fixing.problems import problems_of
from depyf.fixing.trials import CannotTryError, Trials
from depyf.report.model.run import Fallback, Function, GraphBreak, Run, SourceFile
from depyf.running.program import UserProgram


def prepared(root: Path, scratch: Path) -> Path:
    scratch.mkdir()
    found = Trials(str(root), UserProgram("train.py", []), str(scratch))
    found.prepare({})
    return Path(found.copy)


def test_a_large_file_that_a_trial_writes_is_not_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "_LARGE", 4)
    root = tmp_path / "root"
    root.mkdir()
    (root / "model.pt").write_bytes(b"trained for days")
    copy = prepared(root, tmp_path / "scratch")
    (copy / "model.pt").write_bytes(b"trial")
    assert (root / "model.pt").read_bytes() == b"trained for days"
    monkeypatch.setattr(trials, "_MOST_BYTES", 8)
    with pytest.raises(CannotTryError, match="links to folders of data"):
        prepared(root, tmp_path / "other")


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right on Windows")
def test_a_link_inside_of_the_folder_names_the_copy(tmp_path: Path) -> None:
    root, data = tmp_path / "root", tmp_path / "data"
    for each in (root / "src", root / "runs", data, root / "venv"):
        each.mkdir(parents=True)
    (root / "src" / "real.py").write_text("old")
    (root / "venv" / "pyvenv.cfg").write_text("")
    (root / "train.py").symlink_to(root / "src" / "real.py")
    (root / "last").symlink_to("runs")
    (root / "data").symlink_to(data)
    copy = prepared(root, tmp_path / "scratch")
    assert os.path.realpath(copy / "train.py") == os.path.realpath(copy / "src" / "real.py")
    (copy / "last" / "a.txt").write_text("trial")
    assert not os.listdir(root / "runs")
    assert os.path.realpath(copy / "data") == os.path.realpath(data)
    assert os.path.realpath(copy / "venv") == os.path.realpath(root / "venv")


LOGS = """\
import logging, sys
from depyf.base.messages import warn
logging.basicConfig(stream=sys.stdout, format="%(message)s")
warn("nothing was compiled")
logging.warning("mine")
"""


def test_what_depyf_logs_is_not_in_the_text_of_the_program(tmp_path: Path) -> None:
    root, scratch = tmp_path / "root", tmp_path / "scratch"
    root.mkdir()
    scratch.mkdir()
    (root / "train.py").write_text(LOGS)
    trial = Trials(str(root), UserProgram("train.py", []), str(scratch)).run({}, eager=True)
    assert (trial.status, trial.out, sameness._without_torchs(trial.err)) == (0, "mine\n", "")


PARENT = """\
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{process}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z"


def wait_until(found: object) -> None:
    for _ in range(600):
        if found():  # type: ignore[operator]
            return
        time.sleep(0.05)
    raise AssertionError("nothing happened")


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="processes are looked up in /proc")
def test_nothing_is_left_of_a_trial_that_is_interrupted(tmp_path: Path) -> None:
    pytest.importorskip("libcst")
    root, scratch = tmp_path / "root", tmp_path / "scratch"
    root.mkdir()
    scratch.mkdir()
    (root / "train.py").write_text(PARENT)
    running = subprocess.Popen(
        [sys.executable, "-m", "depyf", "fix", "-q", "train.py"], cwd=root, env={**os.environ, "TMPDIR": str(scratch)}
    )
    printed: List[Path] = []

    def has_printed() -> bool:
        printed[:] = [each for each in scratch.glob("*/trial_1/stdout") if each.read_text().endswith("\n")]
        return bool(printed)

    wait_until(has_printed)
    child = int(printed[0].read_text())
    running.send_signal(signal.SIGTERM)
    assert running.wait(30) == 130
    assert not os.listdir(scratch)
    wait_until(lambda: gone(child))


def test_a_function_that_dynamo_refuses_as_a_whole_is_not_in_a_library() -> None:
    sources = (SourceFile("/root/train.py", "@compile\ndef f():\n    yield 1\n"), SourceFile("/lib/a.py", "", True))
    run = Run(
        sources=sources,
        functions=(Function("f", "f", 0, 1, 3),),
        fallbacks=(Fallback(0, None, "graph break that Dynamo can't go on from", "Attempt to trace generator"),),
        breaks=(GraphBreak(None, (1, 7), "a"), GraphBreak("0/0", None, "b")),
    )
    found = {each.words: each for each in problems_of(run, "/root")}
    assert found["f: graph break that Dynamo can't go on from"].place == "train.py:1"
    assert found["graph break: a"].place == "outside of the program's folder"
    assert found["graph break: b"].place == "an unknown line"


def test_lines_of_an_edited_file_have_their_old_numbers_in_the_text(tmp_path: Path) -> None:
    """An edit at the top of a file moves each line that a warning or a traceback names."""
    root, scratch = tmp_path / "root", tmp_path / "scratch"
    (root / "lib").mkdir(parents=True)
    scratch.mkdir()
    (root / "train.py").write_text("import torch\n\nx = 1\nwarn(x)\n")
    found = Trials(str(root), UserProgram("train.py", []), str(scratch))
    edited = {"train.py": b"import torch\ntorch.setting = 1\n\nx = 2\nwarn(x)\n"}

    def seen(text: str) -> str:
        return found._with_old_lines(text, edited)

    assert seen("train.py:5: UserWarning: text") == "train.py:4: UserWarning: text"
    assert seen(f'File "{found.copy}/train.py", line 5, in f') == f'File "{found.copy}/train.py", line 4, in f'
    assert seen("train.py:4: the line that the edit has changed") == "train.py:4: the line that the edit has changed"
    for other in ("lib/train.py:5", "mytrain.py:5", "train.py 5", "train.pyi:5", "/elsewhere/train.py:5"):
        assert seen(other) == other


def test_the_edited_line_is_no_old_one() -> None:
    assert trials.moved_lines(b"a\nb\nc\n", b"new\na\nother\nc\n") == {2: 1, 4: 3}
