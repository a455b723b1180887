"""Answers as plain data: what ``to_dict`` returns follows docs/answers.schema.json, and is what the object says."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from answer_schema import checked
from torch_versions import needs_stances

torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.base.plain_data import as_data  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo"), needs_stances]


def scaled(x: Any, k: int) -> Any:
    y = x * k
    torch._dynamo.graph_break()
    return y.log()


def test_calls_that_are_watched_explained_and_compared(tmp_path: Path) -> None:
    compiled = torch.compile(scaled, backend="eager")
    with depyf.watch(lambda _: None) as watched, depyf.trace() as trace:
        compiled(torch.ones(3), 2)
        compiled(torch.ones(3), 3)
    found = checked(watched)
    assert [each["kind"] for each in found["happened"]] == [each.kind for each in watched.happened]
    assert found["graphs"] == watched.graphs > 0
    assert checked(trace)["totals"]

    why = depyf.why(compiled, torch.ones(4, 4), 3)
    guard = checked(why)["entries"][0]["failed"][0]
    assert guard["explanation"]["words"] == why.entries[0].failed[0].explanation.words
    assert "guard" not in guard["explanation"], "an object of depyf's own"

    compared = checked(depyf.compare(compiled, torch.ones(3), 3, directory=str(tmp_path)))
    assert compared["same"] is True
    assert compared["stages"]


def test_values_that_are_looked_for(tmp_path: Path) -> None:
    compiled = torch.compile(scaled, backend="eager")
    with depyf.find_nonfinite(str(tmp_path)) as finding, depyf.probe("y") as probed:
        compiled(-torch.ones(3), 2)
    found = checked(finding)
    assert [each["kind"] for each in found["found"]] == ["NaN"]
    assert found["found"][0]["line"]["line"] == finding.found[0].line.line
    (value,) = checked(probed)["values"]["y"]
    assert value["facts"]["count"] == 3
    assert "value" not in value

    with depyf.shadow(1, callback=lambda _: None) as shadow:
        compiled(torch.ones(3), 2)
    assert checked(shadow)["counts"]["sampled"] == shadow.counts.sampled > 0


def test_a_block_that_is_not_as_expected() -> None:
    compiled = torch.compile(scaled, backend="eager")
    with pytest.raises(depyf.ExpectationError) as raised, depyf.expect(breaks=0) as block:
        compiled(torch.ones(3), 2)
    found = checked(block)
    assert found["counts"]["breaks"] == 1
    said = raised.value.to_dict()
    assert (said["counts"], said["happened"], said["expected"]) == (found["counts"], found["happened"], {"breaks": 0})


def test_what_json_lacks() -> None:
    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError

        __str__ = __repr__

    values = (math.nan, -math.inf, 1.5, Hostile(), range(1, 3))
    assert as_data(values) == [None, None, 1.5, "<Hostile>", {"from": 1, "to": 2}]
    assert as_data(range(0, 5, 2)) == {"from": 0, "to": 4, "step": 2}
