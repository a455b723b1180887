"""Each difference between ranks is reported once, and none between ranks that compile the same."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Dict, List, Sequence, Tuple

from depyf.report.diff import ranks as diff_ranks
from depyf.report.diff.matching import ComparedRun
from depyf.report.diff.rank_groups import Difference
from depyf.report.diff.rank_summary import summary_of
from depyf.report.model.counts import RAISED
from depyf.report.model.run import (
    Artifact,
    Compilation,
    FailedEntryGuard,
    Fallback,
    Function,
    GraphBreak,
    Recompile,
    Run,
    SourceFile,
)

GRAPH = 'class GraphModule(torch.nn.Module):\n    def forward(self, x: "f32[{}]"):\n        return {}\n'


def run(compiled: List[Tuple[str, int, str]]) -> Run:
    """A run with the functions f (0), g (1) and a resume function of f (2), and these: id, function, graph."""
    return Run(
        sources=(SourceFile("/a/prog.py"),),
        functions=(
            Function("f", "f", 0, 1, 5),
            Function("g", "M.g", 0, 10, 15),
            Function(
                "torch_dynamo_resume_in_f_at_3", "torch_dynamo_resume_in_f_at_3", 0, 1, 5, resumes=0, resumes_at=3
            ),
        ),
        compilations=tuple(Compilation(compile_id, function, seconds=0.1) for compile_id, function, _ in compiled),
        artifacts=tuple(
            Artifact(f"g{number}", "graph", "t", compile_id, "Captured_Graph", 10, text=f"# {number}\n{graph}")
            for number, (compile_id, _, graph) in enumerate(compiled)
        ),
    )


SAME = run([("0/0", 0, GRAPH.format(4, "x")), ("1/0", 1, GRAPH.format(4, "x + 1"))])


def differences(sides: Sequence[ComparedRun]) -> List[Difference]:
    graph_of = {side.name: side.captured_graph for side in sides}
    paths = [source.path for source in sides[0].run.sources] if sides else []
    return diff_ranks.differences(
        [summary_of(side) for side in sides], paths, lambda name, compile_id: graph_of[name](compile_id)
    )


def told(*runs: Run) -> Dict[str, Dict[str, str]]:
    sides = [ComparedRun(f"rank {number}", each, lambda artifact: artifact.text) for number, each in enumerate(runs)]
    found = differences(sides)
    assert json.loads(json.dumps(found)) == found
    return {each["title"]: each["ranks"] for each in found}


def test_ranks_that_compile_the_same_differ_in_nothing() -> None:
    assert told(SAME, SAME, SAME) == {}
    assert told(SAME) == {}
    assert told() == {}


def test_compile_ids_and_times_may_differ() -> None:
    other = run([("3/0", 0, GRAPH.format(4, "x")), ("5/0", 1, GRAPH.format(4, "x + 1"))])
    assert told(SAME, other) == {}


def test_another_order_is_told() -> None:
    other = run([("0/0", 1, GRAPH.format(4, "x + 1")), ("1/0", 0, GRAPH.format(4, "x"))])
    assert told(SAME, other) == {
        "Compiled in another order": {
            "rank 0": "1. f (prog.py)\n2. M.g (prog.py)",
            "rank 1": "1. M.g (prog.py)\n2. f (prog.py)",
        }
    }


def test_a_recompilation_on_one_rank_is_told_with_its_reason() -> None:
    more = run([("0/0", 0, GRAPH.format(4, "x")), ("1/0", 1, GRAPH.format(4, "x + 1")), ("0/1", 0, "")])
    more = replace(more, recompiles=(Recompile("0/1", 0, (FailedEntryGuard("0/0", "x == 1", "x was 1, is 2"),)),))
    assert told(SAME, more, SAME) == {
        "f was recompiled on rank 1 only": {"rank 0": "0/0", "rank 1": "0/0\n0/1: x was 1, is 2", "rank 2": "0/0"}
    }
    assert list(told(more, more, SAME)) == ["f was recompiled on all but rank 2"]


def test_a_function_that_one_rank_does_not_compile_is_told() -> None:
    found = told(SAME, run([("0/0", 0, GRAPH.format(4, "x"))]))
    assert found == {"M.g was compiled on rank 0 only": {"rank 0": "1/0 compiled", "rank 1": "not compiled"}}


def test_a_graph_break_is_told_and_not_its_resume_function_again() -> None:
    broken = run([("0/0", 0, GRAPH.format(4, "x")), ("0/0", 2, ""), ("1/0", 1, GRAPH.format(4, "x + 1"))])
    broken = replace(broken, breaks=(GraphBreak("0/0", (0, 3), "Encountered graph break:\n\nprint"),))
    assert told(SAME, broken) == {"Graph break on rank 1 only (prog.py:3)": {"rank 0": "no", "rank 1": "yes"}}


def test_the_place_is_one_in_the_sources_of_the_first_rank() -> None:
    broken = replace(SAME, breaks=(GraphBreak("0/0", (0, 3), "print"),))
    sides = [ComparedRun("a", SAME, lambda _: None), ComparedRun("b", broken, lambda _: None)]
    assert [each["place"] for each in differences(sides)] == [[0, 3]]
    elsewhere = replace(broken, sources=(SourceFile("/b/prog.py"),))
    assert differences([sides[0], ComparedRun("b", elsewhere, lambda _: None)])[0]["place"] is None


def test_other_graphs_and_other_shapes_are_told_apart() -> None:
    other = run([("0/0", 0, GRAPH.format(4, "-x")), ("1/0", 1, GRAPH.format(5, "x + 1"))])
    found = told(SAME, other)
    assert list(found) == ["f gave another graph", "M.g gave the same operations on other shapes or types"]
    assert "-        return x\n+        return -x" in found["f gave another graph"]["rank 1"]


def test_what_runs_as_plain_python_on_one_rank_is_told() -> None:
    eager = replace(SAME, fallbacks=(Fallback(0, "0/1", "recompile limit reached", "limit of 8"),))
    assert told(SAME, eager) == {
        "f runs as plain Python on rank 1 only": {"rank 0": "compiled", "rank 1": "limit of 8"}
    }


def test_what_raised_an_error_on_one_rank_is_not_said_to_run() -> None:
    failed = replace(SAME, fallbacks=(Fallback(0, "0/1", RAISED, "TorchRuntimeError: sizes"),))
    assert list(told(SAME, failed)) == ["f fails to compile on rank 1 only"]


def test_a_slow_rank_is_told() -> None:
    slow = replace(SAME, compilations=tuple(replace(each, seconds=3.0) for each in SAME.compilations))
    assert told(SAME, slow) == {
        "Compiling took 5.8 s longer on rank 1 than on rank 0": {"rank 0": "0.20 s", "rank 1": "6.00 s"}
    }


def test_of_three_ranks_the_one_with_another_graph_is_named() -> None:
    other = run([("0/0", 0, GRAPH.format(4, "-x")), ("1/0", 1, GRAPH.format(4, "x + 1"))])
    sides = [
        ComparedRun(f"rank {number}", each, lambda artifact: artifact.content)
        for number, each in enumerate((SAME, other, SAME))
    ]
    assert [each["title"] for each in differences(sides)] == ["f gave another graph on rank 1 only"]
