"""``depyf report -j``: logs are read in processes, and nothing else is different."""

from __future__ import annotations

import gzip
import json
import operator
import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Dict, List

import pytest

from depyf.cli import main
from depyf.report.read import side_by_side as reading_at_once
from depyf.report.read.ranks import load_ranks
from depyf.report.read.reading import load
from depyf.report.read.side_by_side import DiedError, jobs_for, side_by_side
from depyf.report.render.writing import write_report

LOGS = Path(__file__).resolve().parents[1] / "logs"
LOG = LOGS / "torch_2_13.log.gz"


def files(logs: List[Path], out: Path, jobs: int, capsys: pytest.CaptureFixture[str]) -> Dict[str, bytes]:
    """Return what a report writes and prints, read in so many processes."""
    assert main(["report", *map(str, logs), "-o", f"{out}/", "-j", str(jobs)]) == 0
    printed = capsys.readouterr().out.replace(str(out), "OUT")
    return {"": printed.encode(), **{path.name: path.read_bytes() for path in out.iterdir()}}


@pytest.mark.parametrize("packed", [True, False])
def test_ranks_that_are_read_in_processes_give_the_same(
    packed: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(str(LOGS / "ranks"), str(logs))
    for path in [] if packed else list(logs.iterdir()):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    alone = files([logs], tmp_path / "alone", 1, capsys)
    assert files([logs], tmp_path / "at_once", 2, capsys) == alone
    one_by_one = sorted(logs.iterdir())
    assert files(one_by_one, tmp_path / "paths", 2, capsys) == files(one_by_one, tmp_path / "paths", 1, capsys)
    assert "rank 1 only" in alone[""].decode()


def test_the_summaries_of_many_ranks_are_made_in_processes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    texts = [gzip.decompress(path.read_bytes()) for path in sorted((LOGS / "ranks").iterdir())]
    for rank in range(10):
        text = texts[rank == 7].replace(b'"rank": %d' % (rank == 7), b'"rank": %d' % rank)
        (logs / f"dedicated_log_torch_trace_rank_{rank}_x.log").write_bytes(text)
    (logs / "dedicated_log_torch_trace_rank_10_x.log").write_text("V no log\n")
    shutil.copy(str(LOG), str(tmp_path / "x"))
    alone = files([logs], tmp_path / "alone", 1, capsys)
    assert "10 ranks, 1 compiled something else than most" in alone[""].decode()
    assert files([logs], tmp_path / "at_once", 2, capsys) == alone


def test_copies_of_packed_texts_are_deleted_with_what_they_are_for(tmp_path: Path) -> None:
    texts = [gzip.decompress(path.read_bytes()) for path in sorted((LOGS / "ranks").iterdir())]
    for rank in range(10):
        text = texts[0].replace(b'"rank": 0', b'"rank": %d' % rank)
        (tmp_path / f"dedicated_log_torch_trace_rank_{rank}_x.log.gz").write_bytes(gzip.compress(text))
    copies = reading_at_once._copies()
    before = set(os.listdir(copies))  # of runs of earlier tests
    assert len(load_ranks([str(tmp_path)], jobs=2).runs) == 1
    assert set(os.listdir(copies)) <= before


def test_results_come_in_order_with_what_is_wrong(tmp_path: Path) -> None:
    things = [("a", str(tmp_path)), ("b", str(tmp_path / "missing")), ("c", str(tmp_path))]
    begun: List[int] = []
    first, second, third = side_by_side(os.listdir, things, 2, begun.append)
    assert (first, third, begun) == ([], [], [0, 1, 2])
    assert isinstance(second, FileNotFoundError)
    assert list(side_by_side(operator.neg, [(str(n), n) for n in range(9)], 3)) == [-n for n in range(9)]


@pytest.mark.parametrize(
    ("make", "how", "words"),
    [
        (os._exit, 3, "with exit status 3"),
        pytest.param(
            signal.raise_signal, 9, "by SIGKILL", marks=pytest.mark.skipif(os.name == "nt", reason="no such signal")
        ),
    ],
)
def test_a_process_that_dies_is_an_error_with_what_it_read(make: object, how: int, words: str) -> None:
    with pytest.raises(DiedError, match=f"rank_[34].log: the process that read it ended {words}; with -j 1 the logs"):
        list(side_by_side(make, [("rank_3.log", how), ("rank_4.log", how)], 1 + 1))  # type: ignore[arg-type]


@pytest.mark.skipif(os.name == "nt", reason="there are no masks of signals")
def test_no_process_gets_ctrl_c(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""
            import signal
            from depyf.report.read.side_by_side import side_by_side
            def is_blocked(thing):
                return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
            if __name__ == "__main__":
                print(list(side_by_side(is_blocked, [("a", 0), ("b", 0)], 2)))
            """)
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, env=environment, check=False)
    assert run.stdout == "[True, True]\n", run.stderr


@pytest.mark.skipif(os.name == "nt", reason="sends a signal to a group of processes")
def test_ctrl_c_ends_all_processes(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import signal, sys, time
        from depyf.report.read.side_by_side import side_by_side
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a program in the background ignores it
        try:
            list(side_by_side(time.sleep, [("a", 100), ("b", 100)], 2, lambda number: print(number, flush=True)))
        except KeyboardInterrupt:
            sys.exit(130)
        """)
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in "ab"] == ["0\n", "1\n"]
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 130
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("a process is left")


def test_processes_are_started_for_large_logs_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_at_once.os, "cpu_count", lambda: 3)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    paths = [tmp_path / f"{number}.log" for number in range(5)]
    for path in paths:
        path.write_bytes(b"")
    logs = list(map(str, paths))
    assert jobs_for([*logs, "missing"]) == 1
    os.truncate(logs[0], 1 << 23)
    assert jobs_for(logs) == 1
    os.truncate(logs[1], 1 << 23)
    assert jobs_for(logs) == 2
    for path in logs:
        os.truncate(path, 1 << 23)
    assert jobs_for(logs) == 3


def test_nothing_is_started_unless_it_is_asked_for(tmp_path: Path) -> None:
    """The page of all processes is made in the user's own program, whose main module may have no guard."""
    program = textwrap.dedent("""
        import sys
        from depyf.report.read.ranks import load_ranks
        print("main", len(load_ranks(sys.argv[1:]).runs))
        """)
    paths = [tmp_path / f"{number}.log" for number in range(2)]
    for path in paths:
        path.write_bytes(gzip.decompress(LOG.read_bytes()) + b"x\n" * (1 << 21))
    script = tmp_path / "program.py"
    script.write_text(program)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, str(script), *map(str, paths)], capture_output=True, text=True, env=environment, check=False
    )
    assert (run.stdout, run.returncode) == ("main 2\n", 0), run.stderr


@pytest.mark.parametrize("jobs", ["0", "-1", "many", "5000"])
def test_a_wrong_number_of_processes_is_refused(jobs: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["report", str(LOG), "-j", jobs])
    assert "-j" in capsys.readouterr().err


def test_a_run_of_a_log_can_be_pickled(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(gzip.decompress(LOG.read_bytes()))
    (loaded,) = load([str(path)])
    again = pickle.loads(pickle.dumps(loaded))
    assert [each.content for each in again.run.artifacts] == [each.content for each in loaded.run.artifacts]
    assert again.run.findings == loaded.run.findings
    again = pickle.loads(pickle.dumps(loaded))
    text = next(each.text for each in again.run.artifacts if not isinstance(each.text, str))
    path.write_bytes(b"other\n" * 9)
    with pytest.raises(OSError, match="another program has changed the file"):
        str(text)


def test_no_page_is_written_of_a_log_that_was_changed_meanwhile(tmp_path: Path) -> None:
    path, out = tmp_path / "a.log", tmp_path / "out"
    text = gzip.decompress(LOG.read_bytes())
    path.write_bytes(text)
    ranks = load_ranks([str(path)])
    with path.open("ab") as file:
        file.write(b"\tmore\n")
    write_report(ranks, str(out))  # a log that grows is no error
    with path.open("r+b") as file:
        file.write(text[len(text) // 2 :] + text[: len(text) // 2])
    before = {each.name: each.read_bytes() for each in out.iterdir()}
    assert json.loads(before["manifest.json"])["artifacts"]
    with pytest.raises(OSError, match="another program has changed the file") as caught:
        write_report(ranks, str(out))
    assert caught.value.filename == str(path)
    assert {each.name: each.read_bytes() for each in out.iterdir()} == before
