"""The facts parsed from the texts in which torch reports graph breaks."""

from __future__ import annotations

import pytest

from depyf.torch_trace.breaks import BreakReport, break_report
from depyf.torch_trace.events import Event

TODAY = """\
Graph break in user code at /prog.py:47
Graph Break Reason: Skip calling `torch.compiler.disable()`d function
  Explanation: Skip calling function `<function note at {address}>` since it was wrapped with `torch.compiler.disable`
  Hint: Remove the `torch.compiler.disable` call

  Developer debug context: <function note at {address}>

User code traceback:
  File "/prog.py", line 47, in f
    note(y)
"""
BEFORE_2_6 = """\
Graph break in user code at /prog.py:47
Graph Break Reason: call torch._dynamo.disable() wrapped function <function note at {address}>
User code traceback:
  File "/prog.py", line 47, in f
    note(y)
"""


def reported(text: str, address: str = "0x7ff08a794680") -> BreakReport:
    return break_report(Event("dynamo_graph_break_reason", "0/0", 0, {}, text.format(address=address), 1.0))


@pytest.mark.parametrize("text", [TODAY, BEFORE_2_6])
def test_two_runs_report_the_same_break(text: str) -> None:
    one, other = reported(text), reported(text, "0x7f24fbb6dd00")
    assert one == other
    assert one.text == other.text


@pytest.mark.parametrize("text", [TODAY, BEFORE_2_6])
def test_the_function_that_is_disabled_is_in_the_explanation(text: str) -> None:
    report = reported(text)
    assert report.title == "Skip calling `torch.compiler.disable()`d function"
    assert "<function note at 0x0>" in report.explanation
    assert (report.filename, report.line) == ("/prog.py", 47)
