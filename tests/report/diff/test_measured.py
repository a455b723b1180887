"""The time of lines in two profiled runs, matched by their text, with what the spread of several runs allows to say."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict

from depyf.report.diff.comparison import compare
from depyf.report.diff.comparison_output import comparison_lines, tables_of
from depyf.report.diff.matching import ComparedRun
from depyf.report.diff.measured import measured_times
from depyf.report.model.run import Run, SourceFile
from depyf.report.model.timing import TimedLine, Timing

BEFORE = "def f(x):\n    y = x.sin()\n    z = y + 1\n    return y + 1\n"
AFTER = "# a comment\ndef f(x):\n    y = x.cos()\n    z = y + 1\n    return y + 1\n"


def side(text: str, times: Dict[int, float], function: str = "f", name: str = "run") -> ComparedRun:
    lines = tuple(TimedLine((0, line), forward=seconds / 2, backward=seconds / 2) for line, seconds in times.items())
    timing = Timing(function, seconds=sum(times.values()), lines=lines)
    return ComparedRun(name, Run(sources=(SourceFile("/p/prog.py", text),), timings=(timing,)), lambda _: None)


def test_lines_are_matched_by_their_text() -> None:
    one, other = side(BEFORE, {2: 0.004, 3: 0.002, 4: 0.001}), side(AFTER, {3: 0.001, 4: 0.002, 5: 0.003})
    found = {name.strip(): each.medians for name, each in measured_times([one], [other]).items()}
    assert found == {
        "a call, as profiled": (0.007, 0.006),
        "prog.py:2 y = x.sin()": (0.004, 0.0),
        "prog.py:3 y = x.cos()": (0.0, 0.001),
        "prog.py:5 return y + 1": (0.001, 0.003),
        "prog.py:4 z = y + 1": (0.002, 0.002),
    }


def test_equal_lines_are_matched_in_their_order() -> None:
    text = "a\nx + 1\nx + 1\n"
    found = measured_times([side(text, {2: 1.0, 3: 2.0})], [side(f"\n{text}", {3: 1.0, 4: 5.0})])
    assert [each.medians for each in found.values()] == [(3.0, 6.0), (2.0, 5.0), (1.0, 1.0)]


def test_several_runs_say_whether_it_is_beyond_the_noise() -> None:
    before = [side(BEFORE, {2: 0.010 + n / 1000, 4: 0.001}) for n in range(4)]
    after = [side(BEFORE, {2: 0.001 + n / 10000, 4: 0.001}) for n in range(4)]
    found = measured_times(before, after)
    assert [(name.strip(), each.verdict()) for name, each in found.items()] == [
        ("a call, as profiled", "faster"),
        ("prog.py:2 y = x.sin()", "faster"),
        ("prog.py:4 return y + 1", "within the noise"),
    ]


def test_several_blocks_of_one_run_are_no_several_runs() -> None:
    one = side(BEFORE, {2: 0.010})
    several = ComparedRun("run", replace(one.run, timings=one.run.timings * 4), one.text_of)
    assert [each.verdict() for each in measured_times([several], [several]).values()] == ["", ""]


def test_runs_that_measured_something_else_are_not_compared() -> None:
    assert measured_times([side(BEFORE, {2: 1.0})], [side(BEFORE, {2: 1.0}, function="g")]) == {}
    assert measured_times([side(BEFORE, {2: 1.0})], [ComparedRun("run", Run(), lambda _: None)]) == {}


def test_they_are_in_the_comparison() -> None:
    one, other = side(BEFORE, {2: 0.004}, name="one"), side(BEFORE, {2: 0.0000015}, name="other")
    found = compare(one, other)
    assert found.same, "times are no change"
    (line,) = [each for each in comparison_lines(found) if "x.sin()" in each]
    assert line.split() == ["prog.py:2", "y", "=", "x.sin()", "4.00", "ms", "1.50", "us"]
    assert ["  prog.py:2 y = x.sin()", 0.004, 0.0000015, "s", False] in tables_of(found)["numbers"]  # type: ignore[operator]
