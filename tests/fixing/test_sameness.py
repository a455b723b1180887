"""What may not differ between two runs of a program: rounding may, everything else is named."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Optional, Tuple

import pytest

from depyf.answers.recorded import LEAF, PROJECTIONS, Digest, Event, Recording
from depyf.fixing import sameness
from depyf.fixing.sameness import Baseline, baseline_of, slower, why_not_same
from depyf.fixing.trials import Trial


def value(size: float, name: str = "", *, dtype: str = "float32", bits: int = 0, nonfinite: int = 0) -> Digest:
    bits = bits or hash((size, nonfinite)) % 2**64
    return Digest(name, dtype, (4,), bits, size, 0.0, size, nonfinite, (size,) * PROJECTIONS)


def recorded(*values: Digest, random: str = "torch:1 python:2", kind: str = "output") -> Recording:
    return Recording("run", {}, tuple(Event(0, at + 1, kind, "f()", (each,), random) for at, each in enumerate(values)))


def trial(
    recording: Optional[Recording] = None,
    out: str = "",
    err: str = "",
    status: int = 0,
    times: Tuple[float, ...] = (1.0,),
    written: Tuple[Tuple[str, int], ...] = (),
) -> Trial:
    recording = recording or recorded(value(1.0))
    return Trial(
        status,
        out,
        err,
        recording,
        None,
        tuple(("f()", each) for each in times),
        (),
        1.0,
        {n: (s, s) for n, s in written},
    )


def same(known: Trial, after: Trial, *, exact_text: bool = False, exactly: bool = False) -> str:
    return why_not_same(Baseline(known, known), after, exact_text=exact_text, exactly=exactly)


def test_rounding_is_the_same_unless_nothing_was_compiled() -> None:
    rounded = trial(recorded(value(1.0 + 1e-7)))
    assert same(trial(), rounded) == ""
    assert "relative difference" in same(trial(), rounded, exactly=True)
    other_zeros = trial(recorded(value(1.0, bits=7)))
    assert same(trial(), other_zeros, exactly=True) == ""


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (trial(recorded(value(1.001))), "the output of f() (call 1): relative difference 0.001"),
        (trial(recorded(value(1.0, nonfinite=2))), "2 values are NaN or infinite, and not 0"),
        (trial(recorded(value(1.0, dtype="float64"))), "float64[4] in the place of float32[4]"),
        (trial(recorded(value(1.0, "^"))), "other values, or other requires_grad"),
        (trial(recorded(value(1.0), kind="input")), "it calls the input of f()"),
        (trial(recorded(value(1.0), value(1.0))), "2 calls and values were recorded, and 1 of the unchanged program"),
        (trial(recorded(value(1.0), random="torch:3 python:2")), "random numbers are drawn in another way"),
        (trial(status=1, err="Traceback:\nValueError: x\n"), "exit status 1, and not 0: ValueError: x"),
        (trial(out="a\n"), "it prints other text: 1 lines, and not 0"),
        (trial(err="mine\n"), "it writes other text to stderr"),
        (trial(written=(("a.txt", 3),)), "it writes the file a.txt"),
    ],
)
def test_all_else_is_named(after: Trial, why: str) -> None:
    assert why in same(trial(), after)


def test_integers_have_the_same_bits() -> None:
    whole = [trial(recorded(value(1.0, dtype="int64", bits=bits))) for bits in (1, 2)]
    assert "another number" in same(*whole)


def test_a_bool_is_not_compared_as_rounding_is() -> None:
    assert "another number" in same(
        trial(recorded(value(1.0, dtype="bool", bits=1))), trial(recorded(value(1.0, dtype="bool", bits=2)))
    )


def test_warnings_of_torch_and_messages_of_depyf_are_not_the_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.py").write_text("import warnings\nwarnings.warn('a')\n")
    monkeypatch.setattr(sameness, "_folder_of_torch", lambda: f"{tmp_path}{os.sep}")
    warning = f"{tmp_path / 'a.py'}:2: UserWarning: Graph break\nfor many reasons:\n\n  one\n  warnings.warn('a')\n"
    noise = (
        "W1129 12:00:00.000000 1 torch/_dynamo/convert_frame.py:1] hit limit\ndepyf shadow: 1 steps\n"
        f"[W1129 12:00:00.123 Module.cpp:178] Warning: slow (function f)\n{warning}"
    )
    assert same(trial(err="mine\n"), trial(err=f"{noise}mine\n")) == ""
    assert same(trial(err="mine\n"), trial(err=f"{noise}  mine\n")) != ""


def test_a_warning_of_a_folder_named_torch_is_the_programs() -> None:
    mine = "/home/me/torch/train.py:2: UserWarning: mine\n  warn('mine')\n"
    assert "stderr" in same(trial(), trial(err=mine))
    # Of a file of torch whose line is not known, no other line is left out.
    unknown = f"{sameness._folder_of_torch()}missing.py:1: UserWarning: a\nmine\n  mine\n"
    assert "2 lines, and not 0" in same(trial(), trial(err=unknown))


def test_numbers_that_differ_in_each_run_are_not_compared_but_say_so() -> None:
    first, second = trial(out="took 1.5 s, loss 3\n"), trial(out="took 1.6 s, loss 3\n")
    known, why = baseline_of(first, second)
    assert known is not None, why
    assert known.masked == 1
    assert why_not_same(known, trial(out="took 9.9 s, loss 3\n"), exact_text=False) == ""
    assert "loss 4" in why_not_same(known, trial(out="took 1.5 s, loss 4\n"), exact_text=False)
    assert "can't be compared" in why_not_same(known, first, exact_text=True)


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (trial(recorded(value(1.0 + 1e-7))), "two runs of the unchanged program differ"),
        (trial(out="a\n"), "print different text"),
        (trial(status=2), "exit status 0, then with 2"),
        (trial(written=(("run_2.log", 1),)), "files of different names"),
    ],
)
def test_a_program_that_is_not_deterministic_is_no_baseline(second: Trial, why: str) -> None:
    known, reason = baseline_of(trial(), second)
    assert known is None
    assert why in reason


def test_what_was_not_seen_is_not_called_the_same() -> None:
    known, reason = baseline_of(trial(times=()), trial(times=()))
    assert known is None
    assert "no call of a module or compiled function was seen" in reason
    unseen = dataclasses.replace(trial(), unseen=("inside of torch.func",))
    assert baseline_of(unseen, unseen) == (
        None,
        "not all that the program computes could be recorded: inside of torch.func",
    )


def test_generators_that_the_program_does_not_seed_are_compared_by_their_use() -> None:
    first, second = trial(recorded(value(1.0), random="torch:1")), trial(recorded(value(1.0), random="torch:9"))
    known, why = baseline_of(first, second)
    assert known is not None, why
    assert known.unseeded == ("torch",)
    assert why_not_same(known, trial(recorded(value(1.0), random="torch:5")), exact_text=False) == ""


def test_a_global_that_differs_in_each_run_is_left_out_if_it_is_a_number() -> None:
    def held(number: int, name: str) -> Trial:
        events = (
            *recorded(value(1.0)).events,
            Event(0, 1, "start", "global t0", (value(float(number), name),), "torch:1 python:2"),
        )
        return trial(Recording("run", {}, events))

    assert baseline_of(held(1, ":float"), held(2, ":float"))[0] is not None
    assert baseline_of(held(1, ""), held(2, ""))[0] is None


def leaves(*values: Digest) -> Trial:
    return trial(Recording("run", {}, (Event(0, 1, "gradient", "backward()", values, "torch:1"),)))


def test_leaves_without_a_name_are_compared_in_any_order() -> None:
    one, two, whole = value(1.0, LEAF), value(2.0, LEAF), value(2.0, LEAF, dtype="int64")
    known = leaves(one, two, whole)
    assert same(known, leaves(whole, value(2.0 + 1e-7, LEAF), one)) == ""
    assert "relative difference 0.5" in same(known, leaves(whole, one, value(3.0, LEAF)))
    assert "relative difference 1" in same(leaves(one, one), leaves(one, two))
    assert "in the place of" in same(known, leaves(whole, one, value(2.0, LEAF, dtype="float64")))
    assert "other values" in same(known, leaves(whole, one))
    named = leaves(value(1.0, "main x"), value(2.0, "main y"))
    assert "backward() (call 1) main x: " in same(named, leaves(value(2.0, "main x"), value(1.0, "main y")))


def test_only_clearly_longer_calls_are_refused() -> None:
    known = Baseline(trial(times=(1.0,) * 20), trial(times=(1.1,) * 20))
    assert slower(known, trial(times=(1.2,) * 20))[0] == ""
    assert "calls of f() take longer" in slower(known, trial(times=(1.6,) * 20))[0]
    assert slower(known, trial(times=(9.0,) * 3)) == ("", "too few calls to time")
