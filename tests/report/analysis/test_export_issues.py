"""What torch.export found unsound is a finding, with the user's line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from depyf.report.analysis.from_events import build_run
from depyf.report.model.headline import headline
from depyf.report.model.run import Run
from depyf.report.read.reading import load_log
from depyf.report.render.summary import summary_lines
from depyf.torch_trace.events import Event

LOG = Path(__file__).resolve().parents[1] / "logs" / "torch_2_13_export.log.gz"


@pytest.fixture(scope="module")
def exported() -> Run:
    (loaded,) = load_log(str(LOG))
    return loaded.run


def test_a_draft_has_its_issues_with_the_lines_of_the_program(exported: Run) -> None:
    assert headline(exported) == "1 program exported, with 2 issues; nothing was compiled"
    taken, missing = exported.findings
    assert taken.title == "u0 > 2 was taken as True"
    assert taken.text.startswith("Here n is u0. It depends on data")
    assert taken.place is not None
    assert exported.sources[taken.place[0]].path.endswith("drafted.py")
    assert (exported.sources[taken.place[0]].text or "").splitlines()[taken.place[1] - 1].strip() == "if n > 2:"
    assert missing.title == "drafted.twice.default has no fake kernel"
    assert "! u0 > 2 was taken as True (drafted.py:15)" in summary_lines(exported)


def test_an_issue_that_is_met_twice_is_one_and_nonsense_is_none() -> None:
    def event(name: str, meta: Any) -> Event:
        return Event(name, None, 0, meta, None, 1.0)

    wrong = {"op": "m.f", "reason": "Strides differ."}
    events = [event("mismatched_fake_kernel", wrong), event("mismatched_fake_kernel", wrong)]
    events += [
        event("missing_fake_kernel", None),
        event("propagate_real_tensors", {"expr": "u0 > 1", "result": "False"}),
    ]
    events += [event("propagate_real_tensors", {"expr": [1], "user_stack": 7, "frame_locals": {"locals": {"n": 3}}})]
    found = build_run(events).findings
    assert [each.title for each in found] == [
        "The fake kernel of m.f is wrong",
        "u0 > 1 was taken as False",
        "[1] was taken as None",
    ]
    assert found[0].text.startswith("Strides differ. ")
