"""A bug in the reader of one part of a run costs the page that part alone, and the page says so."""

from __future__ import annotations

import importlib
import json
import logging
from pathlib import Path
from typing import Any, Dict

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.base.own_bugs import as_for_users  # noqa: E402

PARTS = {
    "compilations.break_report": "a graph break",
    "compilations.explain": "why a function was recompiled",
    "compilations.guards_of": "guards of a cache entry",
    "compilations.status_of": "a compilation",
    "from_events.calls_in": "calls of transformed code",
    "from_events.with_noted": "the lines of operations",
    "from_events.spans": "the times of the compiler's phases",
    "from_events.callers": "who called what was compiled",
    "from_events._fallback": "why a function runs as plain Python",
    "graph_links.graph_links": "which lines of a compilation",
    "linking.module_parts": "modules of a graph",
    "findings.described_break": "what to do first",
}


def program(x: Any, number: int) -> Any:
    y = x.sin() + number
    torch._dynamo.graph_break()
    return y.cos()


REPORTS_GUARDS = hasattr(torch._logging._internal, "trace_structured")
REPORTS_PHASES = hasattr(torch._dynamo.utils, "get_chromium_event_logger")
"""Whether this PyTorch has a trace, and the trace has them."""


def dumped(folder: Path) -> Dict[str, Any]:
    torch._dynamo.reset()
    compiled = torch.compile(torch.nn.Linear(2, 2), backend="eager")
    with depyf.prepare_debug(folder):
        for number in (1, 2, 3):
            torch.compile(program, backend="eager", dynamic=False)(compiled(torch.ones(2)), number)
        with torch._dynamo.config.patch(cache_size_limit=1):
            for number in (1, 2, 3):
                torch.compile(lambda x, n: x * n, backend="eager", dynamic=False)(torch.ones(2), number)
    return json.loads((folder / "manifest.json").read_text())  # type: ignore[no-any-return]


@pytest.mark.parametrize("function", PARTS)
def test_a_part_that_fails_costs_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, function: str
) -> None:
    if function == "compilations.guards_of" and not REPORTS_GUARDS:
        pytest.skip("this PyTorch reports no guards")

    def broken(*arguments: object) -> object:
        raise KeyError("planted")

    module, _, name = function.partition(".")
    monkeypatch.setattr(importlib.import_module(f"depyf.report.analysis.{module}"), name, broken)
    with as_for_users(), caplog.at_level(logging.WARNING, "depyf"):
        run = dumped(tmp_path)
    (failure,) = run["failures"]
    assert failure.startswith(PARTS[function])
    assert "could not be read: KeyError: 'planted' at depyf/report/analysis/" in failure
    assert [each.getMessage().startswith(failure) for each in caplog.records if each.name == "depyf"] == [True]
    assert failure.partition(" could not")[0] in (tmp_path / "index.html").read_text()
    assert len(run["compilations"]) > 3
    assert {each["kind"] for each in run["artifacts"]} >= {"graph", "transformed", "full_code"}
    others = ["breaks", "recompiles", "findings", *(["phases"] if REPORTS_PHASES else [])]
    kept = [each for each in others if run.get(each)]
    assert len(kept) >= len(others) - 1, "at most one of them is the part"
