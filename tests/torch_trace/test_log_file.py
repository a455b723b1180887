"""Logs of torch's trace in any state are read: packed, truncated, mixed with others, of several processes."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import List, Optional, Tuple

import pytest

from depyf.base.stored_text import StoredText
from depyf.torch_trace import log_records
from depyf.torch_trace.log_file import LogError, TraceLog, find_logs, is_log, read_log

LOGS = Path(__file__).resolve().parent.parent / "report" / "logs"
RECORDED = [LOGS / f"torch_{version}.log.gz" for version in ("2_7", "2_13", "2_15")]


def record(data: dict[str, object], payload: str = "", process: int = 7, second: int = 0, mark: str = "") -> str:
    lines = [f"{mark}V0601 12:00:{second:02}.250000 {process} torch/_dynamo/utils.py:12] {json.dumps(data)}"]
    lines += [f"{mark}\t{line}" for line in payload.split("\n")] if payload else []
    return "".join(f"{line}\n" for line in lines)


def graph(frame: int = 0, **context: object) -> dict[str, object]:
    return {"dynamo_output_graph": {}, "frame_id": frame, "frame_compile_id": 0, "attempt": 0, **context}


def read(tmp_path: Path, text: str) -> List[TraceLog]:
    path = tmp_path / "dedicated_log_torch_trace_x.log"
    path.write_text(text, encoding="utf-8")
    return read_log(str(path))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_recorded_logs_are_read_whole(path: Path) -> None:
    (log,) = read_log(str(path))
    assert (log.rank, log.notes) == (None, ())
    assert list(dict.fromkeys(event.compile_id for event in log.events if event.compile_id))[:3] == [
        "0/0",
        "1/0",
        "2/0",
    ]
    starts = [event.meta["stack"][-1] for event in log.events if event.name == "dynamo_start"]
    assert starts[0]["name"] == "loss" or starts[0]["filename"].endswith("traced.py")
    assert all(isinstance(frame["filename"], str) for start in starts for frame in [start])


def test_the_clock_of_the_recorded_process_counts() -> None:
    (log,) = read_log(str(LOGS / "torch_2_13.log.gz"))
    metrics = next(event for event in log.events if event.name == "compilation_metrics")
    begun = metrics.meta["start_time_us"] / 1e6
    assert begun <= metrics.created <= begun + metrics.meta["duration_us"] / 1e6 + 1
    assert abs(log.started - begun) < 2


def test_each_rank_has_its_own_log() -> None:
    found = [read_log(path)[0].rank for path in find_logs(str(LOGS / "ranks"))]
    assert found == [0, 1]


def test_payloads_keep_their_tabs_and_empty_lines(tmp_path: Path) -> None:
    payload = "def f():\n\treturn 1\n\n    é"
    (log,) = read(tmp_path, record(graph(), payload))
    assert [event.payload for event in log.events] == [payload]


def test_numbers_of_files_become_names(tmp_path: Path) -> None:
    stack = [{"line": 3, "name": "f", "filename": 5}]
    text = record({"str": ["/a/b.py", 5]}) + record({"dynamo_start": {"stack": stack}, "frame_id": 0})
    (log,) = read(tmp_path, text)
    assert log.events[0].meta["stack"][0]["filename"] == "/a/b.py"


def test_a_log_without_its_beginning_says_that_names_are_missing(tmp_path: Path) -> None:
    stack = [{"line": 3, "name": "f", "filename": 5}]
    (log,) = read(tmp_path, record({"dynamo_start": {"stack": stack}, "frame_id": 0}) * 2)
    assert log.events[1].meta["stack"][0]["filename"] == "<file 5 of the log>"
    assert log.notes == ("1 names of files are missing: the beginning of the log is not there",)


def test_a_log_that_is_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = gzip.decompress((LOGS / "torch_2_13.log.gz").read_bytes()).decode()
    all_of_it = read(tmp_path, whole)[0].events
    for end in (len(whole) // 2, len(whole) // 3, len(whole) // 3 + 17):
        (log,) = read(tmp_path, whole[:end])
        assert [event.name for event in log.events[:-1]] == [event.name for event in all_of_it[: len(log.events) - 1]]
        assert 5 < len(log.events) < len(all_of_it)
        assert "cut off" in "".join(log.notes) or whole[end - 1 : end + 1].count("\n") == 1


def test_a_packed_log_that_is_cut_off_says_so(tmp_path: Path) -> None:
    packed = (LOGS / "torch_2_13.log.gz").read_bytes()
    path = tmp_path / "cut.log.gz"
    path.write_bytes(packed[: len(packed) // 2])
    (log,) = read_log(str(path))
    assert len(log.events) > 5
    assert "could not be unpacked to its end" in log.notes[-1]


def test_what_a_program_prints_between_the_records_is_left_out_and_said(tmp_path: Path) -> None:
    text = f"hello\n{record(graph(0), 'a')}loss: {{0.3}}\n\tindented by the program\n{record(graph(1), 'b')}"
    (log,) = read(tmp_path, text)
    assert [event.compile_id for event in log.events] == ["0/0", "1/0"]
    assert log.notes[-1].startswith("2 lines of the log do not belong to the trace")


def test_a_payload_that_was_mixed_with_other_output_is_said(tmp_path: Path) -> None:
    (log,) = read(tmp_path, record(graph(has_payload="0" * 32), "not this"))
    assert log.notes == ("1 records of the log have only a part of their text (cut off, or mixed with other output)",)


def test_processes_that_wrote_into_one_file_are_taken_apart(tmp_path: Path) -> None:
    text = "".join(
        record(graph(frame, rank=process - 10), f"of {process}", process, second=frame)
        for frame in range(3)
        for process in (10, 11)
    )
    first, second = read(tmp_path, text)
    assert [(log.rank, log.process, len(log.events)) for log in (first, second)] == [(0, 10, 3), (1, 11, 3)]
    assert {event.payload for event in second.events} == {"of 11"}


def test_lines_with_the_mark_of_a_launcher_may_take_turns(tmp_path: Path) -> None:
    one = record(graph(0), "a\nb", 10, mark="[rank0]: ").splitlines(True)
    other = record(graph(1), "c\nd", 11, mark="[rank1]: ").splitlines(True)
    logs = read(tmp_path, "".join(line for pair in zip(one, other) for line in pair))
    assert [[event.payload for event in log.events] for log in logs] == [["a\nb"], ["c\nd"]]


def test_the_year_is_that_of_the_file(tmp_path: Path) -> None:
    import time

    path = tmp_path / "a.log"
    path.write_text(record(graph()))
    january = time.mktime((2024, 1, 5, 0, 0, 0, 0, 0, -1))
    os.utime(path, (january, january))
    assert time.localtime(read_log(str(path))[0].started)[:5] == (2023, 6, 1, 12, 0)


def test_what_is_no_log_is_said(tmp_path: Path) -> None:
    path = tmp_path / "other.log"
    path.write_text("V0601 12:00:00.000000 1 torch/a.py:1] no record\n\tnothing\n")
    assert not is_log(str(path))
    assert find_logs(str(tmp_path)) == []
    with pytest.raises(LogError, match=r"other\.log: no log of torch's trace"):
        read_log(str(path))


def test_logs_are_found_by_torchs_names_or_by_what_they_hold(tmp_path: Path) -> None:
    (tmp_path / "mine.log").write_text(record(graph()))
    (tmp_path / "notes.log").write_text("nothing\n")
    assert find_logs(str(tmp_path)) == [str(tmp_path / "mine.log")]
    named = tmp_path / "dedicated_log_torch_trace_rank_0_abc.log.gz"
    named.write_bytes(gzip.compress(record(graph()).encode()))
    assert find_logs(str(tmp_path)) == [str(named)]


def events_of(path: Path) -> List[Tuple[str, Optional[str], object, Optional[str]]]:
    return [(each.name, each.compile_id, each.meta, each.payload) for log in read_log(str(path)) for each in log.events]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_where_a_block_ends_makes_no_difference(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = events_of(path)
    text = gzip.decompress(path.read_bytes())
    plain, marked = tmp_path / "plain.log", tmp_path / "marked.log"
    plain.write_bytes(text)
    marked.write_bytes(b"".join(b"[rank0]: " + line for line in text.splitlines(keepends=True)))
    for size in (1 << 18, 997, 64):
        monkeypatch.setattr(log_records, "_BLOCK", size)
        assert events_of(path) == expected
        assert events_of(plain) == expected
        assert events_of(marked) == expected


def test_long_payloads_stay_in_the_file_that_was_read(tmp_path: Path) -> None:
    path, payload = tmp_path / "a.log", "é\n\tfirst\n\n" * 500
    path.write_bytes((record(graph(), payload) + record(graph(1), "short")).encode())
    (log,) = read_log(str(path))
    assert isinstance(log.events[0].text, StoredText)
    other = tmp_path / "other.log"
    other.write_text(record(graph(), "x" * 9000))
    os.replace(other, path)
    assert [event.payload for event in log.events] == [payload, "short"]


def test_a_log_may_become_longer_after_it_was_read_and_other_changes_are_an_error(tmp_path: Path) -> None:
    path, payload = tmp_path / "a.log", "line\n" * 50_000
    path.write_text(record(graph(), payload))
    (log,) = read_log(str(path))
    with path.open("ab") as file:
        file.write(b"\tmore\n")
    assert log.events[0].payload == payload
    os.truncate(path, 200)
    with pytest.raises(OSError, match="another program has changed the file"):
        str(log.events[0].text)
    path.write_text(record(graph(), payload.replace("line", "other")))
    with pytest.raises(OSError, match="another program has changed the file"):
        str(log.events[0].text)


def test_a_payload_with_other_lines_between_its_own_is_whole(tmp_path: Path) -> None:
    lines = "".join(f"\tline {number} {'x' * 100}\n" for number in range(20))
    (log,) = read(tmp_path, f"{record(graph(), 'head')}printed\n{lines}")
    assert log.events[0].payload == "head\n" + lines.replace("\t", "")[:-1]
    assert log.notes == ("1 lines of the log do not belong to the trace and were skipped",)


def test_what_is_no_utf_8_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    bad = b"\xff\xe2\x80\n\xed\xa0\x80\0" + b"x" * 2000
    path.write_bytes(record(graph()).encode() + b"\t" + bad.replace(b"\n", b"\n\t") + b"\n")
    (log,) = read_log(str(path))
    assert log.events[0].payload == bad.decode("utf-8", "replace")


def test_limits_of_lines_and_of_unpacking_end_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = record(graph(), "a") + "\t" + "b" * 3000 + "\n" + record(graph(1), "c")
    monkeypatch.setattr(log_records, "_LONGEST_LINE", 2000)
    (log,) = read(tmp_path, text)
    assert [event.payload for event in log.events] == ["a"]
    assert "a line of more than" in log.notes[-1]
    monkeypatch.undo()
    monkeypatch.setattr(log_records, "_HARMLESS", 2000)
    monkeypatch.setattr(log_records, "_MOST_PACKED", 1)
    packed = tmp_path / "packed.log.gz"
    packed.write_bytes(gzip.compress((record(graph(), "a\n" * 900) + record(graph(1), "b\n" * 900)).encode()))
    (log,) = read_log(str(packed))
    assert [event.compile_id for event in log.events] == ["0/0"]
    assert "unpacks to more than 1 times its size" in log.notes[-1]


def test_the_end_of_a_phase_is_kept_in_few_words(tmp_path: Path) -> None:
    phase = {"name": "dynamo", "ph": "B", "ts": 1.0, "pid": 0, "tid": 0, "args": {"a" * 5000: 1}, "cat": "x"}
    begun = {"chromium_event": {}, "frame_id": 0, "frame_compile_id": 0, "has_payload": True}
    (log,) = read(tmp_path, record(begun, json.dumps(phase, indent=0)) + record(begun, "no JSON"))
    assert [(each.payload, each.meta) for each in log.events] == [
        (None, {"name": "dynamo", "ph": "B", "ts": 1.0, "pid": 0, "tid": 0}),
        ("no JSON", {}),
    ]


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="lists the open files")
def test_of_many_logs_few_stay_open(tmp_path: Path) -> None:
    open_before = len(os.listdir("/dev/fd"))
    logs = []
    for number in range(100):
        path = tmp_path / f"{number}.log"
        path.write_text(record(graph(), f"{number} " * 1000))
        logs += read_log(str(path))
    path.write_bytes(gzip.compress(path.read_bytes()))
    logs += read_log(str(path))
    assert len(os.listdir("/dev/fd")) - open_before < 80
    assert all(log.events[0].payload == f"{number} " * 1000 for number, log in enumerate(logs[:99]))
    assert logs[100].events[0].payload == "99 " * 1000
    del logs
    assert len(os.listdir("/dev/fd")) == open_before
    (again,) = read(tmp_path, record(graph(), "x" * 2000))
    assert isinstance(again.events[0].text, StoredText)
