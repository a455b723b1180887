"""``depyf diff`` of two recorded runs: rounding and drift are no fault, a jump is, and a file of a stranger is data."""

from __future__ import annotations

import base64
import dataclasses
import json
import struct
from pathlib import Path
from typing import List, Tuple

import pytest

from depyf.answers import recorded
from depyf.answers.parted import RecordingsCompared, compare_recordings, lines_of
from depyf.answers.recorded import Digest, Event, Recording, header_line, read_recording
from depyf.cli import main


def value(size: float, name: str = "", *, dtype: str = "float32", bits: int = 0, nonfinite: int = 0) -> Digest:
    """The digest of a tensor of ``size``, in which each sum has it."""
    bits = bits or hash((size, nonfinite)) % 2**64
    return Digest(name, dtype, (4,), bits, size, 0.0, size, nonfinite, (size,) * recorded.PROJECTIONS)


def run(*events: Event) -> Recording:
    return Recording("run", {}, tuple(events))


def outputs(*sizes: float, where: str = "Net") -> Recording:
    """A run with one output and one step of an optimizer for each of ``sizes``."""
    events: List[Event] = []
    for step, size in enumerate(sizes):
        events += [
            Event(step, step + 1, "output", where, (value(size),)),
            Event(step, step + 1, "parameter", "SGD", (value(1.0, "0.0 Net.weight"),)),
        ]
    return run(*events)


def compared(after: Recording, before: Recording) -> Tuple[RecordingsCompared, str]:
    found = compare_recordings(before, after)
    return found, "\n".join(lines_of(found, "depyf shadow --at 2 train.py"))


def test_a_jump_is_a_fault_and_names_step_and_module() -> None:
    found, text = compared(outputs(1, 1 + 1e-6, 1.01), outputs(1, 1, 1))
    assert found.parting is not None
    assert (found.parting.step, found.parting.kind, found.parting.where) == (2, "output", "Net")
    assert text.splitlines()[:2] == [
        "the runs part at step 2 (counted from 0): the output of Net",
        "  result: relative difference 0.0099 (up to 0.0001 may be rounding)",
    ]
    assert "names it: depyf shadow --at 2 train.py" in text


def test_runs_are_called_the_same_only_if_all_of_both_was_compared() -> None:
    short, long = outputs(1, 1), outputs(1, 1, 1)
    assert compared(long, long)[1].startswith("the runs are the same, bit by bit: 3 steps, 6 values")
    assert compared(long, short)[1].startswith("what both runs have is the same, bit by bit: 2 steps, 4 values")
    damaged = dataclasses.replace(long, damaged=1)
    assert compared(long, damaged)[1].startswith("what both runs have is the same, bit by bit")


def test_what_grows_slowly_is_drift() -> None:
    sizes = [1 + 1e-5 * 3**step for step in range(8)]
    found, text = compared(outputs(*sizes), outputs(*[1.0] * 8))
    assert found.parting is None
    assert found.drifts
    assert text.startswith("the runs drift apart, without a jump: 8 steps, 16 values, 8 of them bit by bit")


def test_the_coarsest_type_says_what_rounding_is() -> None:
    sides = [outputs(1.0), outputs(1.02)]
    half = Event(0, 1, "output", "Net.inner", (value(1.0, dtype="bfloat16"),))
    found, text = compared(*(dataclasses.replace(each, events=(half, *each.events)) for each in sides))
    assert found.parting is None
    assert text.startswith("the runs agree up to rounding")


def test_a_gradient_that_is_zero_but_for_rounding_is_judged_by_the_others() -> None:
    sides = [
        run(Event(0, 1, "gradient", "Adam", (value(1.0, "0.0 a"), value(noise, "0.1 b")))) for noise in (1e-8, 3e-8)
    ]
    assert compared(*sides)[0].parting is None
    alone = [run(Event(0, 1, "gradient", "Adam", (value(noise, "0.1 b"),))) for noise in (1e-8, 3e-8)]
    assert compared(*alone)[0].parting is not None


def test_a_parameter_parts_where_both_measures_do() -> None:
    def side(plain: float, weighted: float) -> Recording:
        return run(Event(0, 1, "parameter", "Adam", (value(plain, "0.0 a.w"), value(weighted, "0.0* a.w"))))

    assert compared(side(1.0, 1.0), side(1.5, 1.0))[0].parting is None
    found, text = compared(side(1.0, 1.0), side(1.5, 1.5))
    assert found.parting is not None
    assert "module: a; its gradients agree, so the step of Adam differs" in text


def test_infinite_values_and_sizes_part() -> None:
    one = run(Event(0, 1, "output", "Net", (value(1.0),)))
    other = run(Event(0, 1, "output", "Net", (value(1.0, nonfinite=3),)))
    assert "0 and 3 values are NaN or infinite" in compared(other, one)[1]
    sides = [
        run(Event(0, 1, "output", "Net", (dataclasses.replace(value(1.0, nonfinite=3), kinds=kinds, bits=bits),)))
        for bits, kinds in enumerate(((3, 0, 0), (0, 2, 1), ()))
    ]
    assert "3 NaN of 4 values, and 2 inf, 1 -inf of 4 values" in compared(sides[1], sides[0])[1]
    assert compared(sides[0], sides[2])[0].parting is None  # not known of an earlier recording
    longer = run(Event(0, 1, "output", "Net", (dataclasses.replace(value(1.0), shape=(5,)),)))
    assert "other sizes: [4] and [5]" in compared(longer, one)[1]


def test_integers_that_a_run_is_given_part_and_others_do_not() -> None:
    def side(kind: str, where: str, bits: int) -> Recording:
        return run(Event(0, 1, kind, where, (value(1.0, dtype="int64", bits=bits),)))

    found, text = compared(side("input", "Net", 1), side("input", "Net", 2))
    assert found.parting is not None
    assert "so the runs are given other data" in text
    found, text = compared(side("output", "Net", 1), side("output", "Net", 2))
    assert found.parting is None
    assert "rounding may do that" in text


def test_a_module_that_the_runs_do_not_call_equally_often_is_not_compared() -> None:
    twice = run(*[Event(0, 1, "output", "Net.a", (value(size),)) for size in (1.0, 2.0)])
    once = run(Event(0, 1, "output", "Net.a", (value(2.0),)))
    found, text = compared(twice, once)
    assert (found.parting, found.compared) == (None, 0)
    assert text.startswith("nothing was compared")


def test_random_numbers_are_named_if_they_are_used_and_part_at_that_time() -> None:
    def side(size: float, *states: str) -> Recording:
        sizes = [1.0] * (len(states) - 1) + [size]
        return run(
            *[
                Event(0, call, "output", "Net", (value(each),), f"torch:{state} python:{size}")
                for call, (each, state) in enumerate(zip(sizes, states), 1)
            ]
        )

    found, text = compared(side(2.0, "a", "b", "c", "x"), side(1.0, "a", "b", "c", "d"))
    assert found.parting is not None
    assert found.parting.random == ("torch",)  # Python's differ from the start, and are not used
    assert "random numbers differ (torch)" in text
    found, _ = compared(side(2.0, "e", "f", "g", "h"), side(1.0, "a", "b", "c", "d"))
    assert found.parting is not None
    assert found.parting.random == ()  # they differed long before


def write(path: Path, recording: Recording, **header: object) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(header_line(**header) + "".join(each.to_line() for each in recording.events))
    return path


def diff(capsys: pytest.CaptureFixture[str], *arguments: object) -> Tuple[int, str, str]:
    status = main(["diff", *map(str, arguments)])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_the_exit_status_and_the_command_are_those_of_the_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    eager = write(tmp_path / "a" / "recording.jsonl", outputs(1, 1), eager=True, command=["-m", "x"])
    compiled = write(tmp_path / "b" / "recording.jsonl", outputs(1, 2), command=["my train.py", "--lr", "\x1b[2J"])
    assert diff(capsys, eager.parent, eager)[0] == 0
    for sides in ((eager, compiled.parent), (compiled.parent, eager)):
        status, out, err = diff(capsys, *sides)
        assert (status, err) == (1, "")
        assert "depyf shadow --at 1 'my train.py' --lr" in out
        assert "\x1b" not in out


def test_ranks_are_compared_one_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, last in (("a", 1), ("b", 2)):
        for rank in (0, 1):
            write(tmp_path / folder / recorded.file_name(rank), outputs(1, last if rank else 1))
    write(tmp_path / "b" / recorded.file_name(2), outputs(1, 1))
    status, out, err = diff(capsys, tmp_path / "a", tmp_path / "b")
    assert status == 1
    assert err == "depyf: not compared, as only one run has it: recording.rank_2.jsonl\n"
    assert out.index("rank_0.jsonl:\nthe runs are the same") < out.index("rank_1.jsonl:\nthe runs part at step 1")
    (one, other) = (tmp_path / "b" / recorded.file_name(rank) for rank in (0, 1))
    assert diff(capsys, one, other)[0] == 1


def test_two_ranks_of_a_run_share_parameters_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = (write(tmp_path / f"{rank}" / "recording.jsonl", outputs(rank, 1), rank=rank) for rank in (1, 2))
    status, out, _ = diff(capsys, one, other)
    assert status == 0
    assert "note: two ranks: only parameters" in out


def test_a_recording_and_something_else_are_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = write(tmp_path / "a" / "recording.jsonl", outputs(1))
    other = tmp_path / "b"
    other.mkdir()
    status, _, err = diff(capsys, known, other)
    assert status == 2
    assert "there is no recorded run" in err
    assert diff(capsys, known, known, "--html", tmp_path / "x.html")[0] == 2


STRANGE = [
    "[]",
    "nonsense",
    "[" * 100_000,
    '{"step": -1, "call": 0, "kind": "output", "where": "x", "values": []}',
    '{"step": 0, "call": 0, "kind": "other", "where": "x", "values": []}',
    '{"step": 0, "call": 0, "kind": "output", "where": 5, "values": []}',
    '{"step": 0, "call": 0, "kind": "output", "where": "x", "values": [["a"]]}',
    '{"step": 0, "call": 0, "kind": "output", "where": "x", "values": 1}',
    '{"step": 1' + "0" * 5000 + ', "call": 0, "kind": "output", "where": "x", "values": []}',
]


def test_lines_of_strangers_are_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = write(tmp_path / "a" / "recording.jsonl", outputs(1))
    strange = tmp_path / "recording.jsonl"
    strange.write_text(known.read_text() + "\n".join(STRANGE))
    assert read_recording(str(strange)).damaged == len(STRANGE)
    status, out, _ = diff(capsys, known, strange)
    assert status == 0
    assert f"{len(STRANGE)} damaged lines were passed over" in out


def test_numbers_of_strangers_break_nothing(tmp_path: Path) -> None:
    line = json.loads(Event(0, 1, "output", "Net", (value(2.0),)).to_line())
    (entry,) = line["values"]
    for number in (float("nan"), float("inf"), -1e300, 1e308):
        sketch = struct.pack("<d", number) * recorded.PROJECTIONS
        entry[4], entry[8] = number, base64.b64encode(sketch).decode()
        path = tmp_path / "recording.jsonl"
        path.write_text(header_line() + json.dumps(line) + "\n")
        read = read_recording(str(path))
        assert read.damaged == 0
        assert compared(read, outputs(1))[0].parting is not None
    entry[2] = [10**12] * 40
    path.write_text(header_line() + json.dumps(line) + "\n")
    assert read_recording(str(path)).damaged == 1


def test_what_is_no_recording_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "recording.jsonl"
    for text in ("", "{}", '{"depyf_recording": 99}', "\x00\xff"):
        path.write_text(text)
        with pytest.raises(recorded.RecordingError, match="no recording"):
            read_recording(str(path))
    monkeypatch.setattr(recorded, "LARGEST_FILE", -(2**40))
    with pytest.raises(recorded.RecordingError, match="larger"):
        read_recording(str(path))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--record", "out"], "name a script"),
        (["--at", "3", "--eager", "x.py"], "--eager goes with --record"),
        (["--at", "x", "x.py"], "no number of a step"),
        (["--record", "out", "--at", "3", "x.py"], "not allowed with"),
        (["x.py"], "required"),
    ],
)
def test_what_shadow_is_not_asked_right_is_said(
    arguments: List[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(["shadow", *arguments])
    except SystemExit as error:
        status = int(str(error.code))
    assert status == 2
    assert message in capsys.readouterr().err
