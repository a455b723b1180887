"""Everything made from a run takes time linear in the run's size."""

from __future__ import annotations

import json
from functools import partial
from typing import Callable, Dict, List, Optional, Set

import pytest
from cost import grows_like

from depyf.report.analysis import causes, compilations
from depyf.report.analysis.anchors import Anchored, anchored
from depyf.report.analysis.artifacts import after_the_whole
from depyf.report.analysis.facts import Files
from depyf.report.analysis.from_events import build_run
from depyf.report.analysis.functions import Functions
from depyf.report.analysis.in_parts import Parts
from depyf.report.analysis.linking import linked
from depyf.report.analysis.sources import Sources
from depyf.report.diff.matching import ComparedRun
from depyf.report.diff.rank_summary import summary_of
from depyf.report.model.counts import counts_by_function
from depyf.report.model.run import Artifact, Run
from depyf.report.render.markdown import index_markdown
from depyf.report.render.page import render_page
from depyf.torch_trace.events import Event
from depyf.torch_trace.generations import distinguished

SIZE, TIMES = 60, 5
NEARLY_LINEAR = 1.2


def events(size: int) -> List[Event]:
    """``size`` functions, each with a graph break, a resume function and a recompilation of it."""
    found = []
    for number in range(size):
        for frame, name, line in (
            (2 * number, f"f{number}", 10),
            (2 * number + 1, f"torch_dynamo_resume_in_f{number}_at_12", 12),
        ):
            for again in (0, 1):
                compile_id = f"{frame}/{again}"
                meta = {"co_name": name, "co_filename": f"/net/{number}.py", "co_firstlineno": line}
                reasons = [f"{frame}/0: L['n'] == 1"]
                found += [
                    Event("recompile_reasons", compile_id, 0, {}, str(reasons).replace('"', "'"), 1.0)
                    if again
                    else Event("dynamo_start", compile_id, 0, {}, None, 1.0),
                    Event("fx_graph_cache_hit", compile_id, 0, {}, None, 1.0),
                    Event("compilation_metrics", compile_id, 0, {**meta, "has_guarded_code": True}, None, 2.0),
                ]
    return found


def artifacts(size: int) -> List[Artifact]:
    return [
        Artifact(
            f"{kind}{number}", kind, f"of __compiled_fn_{number}", f"{number}/0", path=f"{kind}{number}.py", text=""
        )
        for number in range(2 * size)
        for kind in ("graph", "kernels", "transformed")
    ]


def ids(size: int) -> Set[Optional[str]]:
    return {each.compile_id for each in artifacts(size)}


def no_text(asked: object) -> None:
    return None


def run_of(size: int) -> Run:
    return build_run(events(size), artifacts(size), files=Files(read=no_text))


def functions(size: int) -> Functions:
    known = Functions(Sources(no_text))
    for number in range(size):
        known.index(f"f{number}", f"/net/{number}.py", 10)
        known.index(f"torch_dynamo_resume_in_f{number}_at_12", f"/net/{number}.py", 12, frame=f"{number}/0")
    return known


def short_names(size: int) -> Callable[[], object]:
    """Torch names some files by their last parts only: of these, nobody knows the whole name."""
    sources = Sources(no_text, [f"/net/{number}.py" for number in range(size)])
    return lambda: [sources.full(f"other/file{number}.py") for number in range(size)]


def pieces(size: int) -> List[Artifact]:
    return [Artifact(str(number), "graph", "", "0/0", piece=f"submod_{number}") for number in range(size)]


def resets(size: int) -> List[Event]:
    return [
        Event(name, f"{frame}/0", 0, {}, None, 1.0)
        for _ in range(2)
        for frame in range(size)
        for name in ("dynamo_start", "compilation_metrics")
    ]


STEPS: Dict[str, Callable[[int], Callable[[], object]]] = {
    "the model": lambda size: partial(build_run, events(size), artifacts(size), files=Files(read=no_text)),
    "index.md": lambda size: partial(index_markdown, run_of(size)),
    "index.html": lambda size: partial(render_page, run_of(size), no_text),
    "summary of a rank": lambda size: partial(summary_of, ComparedRun("rank 0", run_of(size), no_text)),
    "counts": lambda size: partial(counts_by_function, run_of(size)),
    "links": lambda size: partial(linked, artifacts(size), Anchored({}), Sources(no_text), {}, Parts()),
    "cache hits": lambda size: partial(anchored, artifacts(size), {}, ids(size), Sources(no_text)),
    "functions": lambda size: functions(size).table,
    "short names": short_names,
    "pieces": lambda size: partial(after_the_whole, pieces(size)),
    "resets": lambda size: partial(distinguished, resets(size)),
}


@pytest.mark.parametrize("step", STEPS)
def test_work_grows_like_the_run(step: str) -> None:
    assert grows_like(STEPS[step], SIZE, TIMES) < NEARLY_LINEAR


def storm(entries: int) -> List[Event]:
    """One function that is compiled again for each of so many values: torch reports a guard of each earlier entry."""
    meta = {"co_name": "f", "co_filename": "/net/0.py", "co_firstlineno": 10, "has_guarded_code": True}
    found = []
    for number in range(entries):
        reasons = [f"0/{entry}: L['n'] == {entry}" for entry in reversed(range(number))]
        begun = "recompile_reasons" if number else "dynamo_start"
        found += [
            Event(begun, f"0/{number}", 0, {}, json.dumps(reasons) if number else None, 1.0),
            Event("compilation_metrics", f"0/{number}", 0, meta, None, 2.0),
        ]
    return found


def test_the_guards_of_each_entry_of_a_storm_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: List[object] = []
    read = compilations.required_values
    for module in (causes, compilations):
        monkeypatch.setattr(module, "required_values", lambda guards: asked.append(guards) or read(guards))
    run = build_run(storm(12), [], files=Files(read=no_text))
    assert [len(each.failed) for each in run.recompiles] == list(range(1, 12))
    assert len(asked) == 12
