"""Later graphs are identified as forward or backward by the nodes that they share with these graphs."""

from __future__ import annotations

from typing import List, Optional

from depyf.report.model.run import Artifact, Link, Run
from depyf.report.render.page_data import with_sides


def graph(stage: str, order: int, names: str, backward: Optional[bool] = None, compile_id: str = "0/0") -> Artifact:
    links = tuple(Link(line, line, (), (name,)) for line, name in enumerate(names.split(), 1))
    return Artifact(f"{compile_id} {stage}", "graph", stage, compile_id, stage, order, backward=backward, links=links)


def sides(*artifacts: Artifact) -> List[Optional[bool]]:
    return [each.backward for each in with_sides(Run(artifacts=artifacts)).artifacts]


def test_later_graphs_get_the_side_whose_nodes_they_have() -> None:
    assert sides(
        graph("Captured_Graph", 10, "x y"),
        graph("Joint_graph", 40, "sin cos grad_1"),
        graph("Forward_graph", 50, "sin cos", False),
        graph("Backward_graph", 60, "grad_1 grad_2 cos", True),
        graph("AFTER_POST_GRAD", 80, "sin fused"),
        graph("AFTER_POST_GRAD 2", 80, "grad_1 grad_2"),
    ) == [None, None, False, True, False, True]


def test_without_a_backward_graph_there_are_no_sides() -> None:
    assert sides(graph("Forward_graph", 50, "sin", False), graph("AFTER_POST_GRAD", 80, "sin")) == [False, None]


def test_what_shares_no_node_and_what_is_of_another_compilation_is_left_alone() -> None:
    assert sides(
        graph("Forward_graph", 50, "sin", False),
        graph("Backward_graph", 60, "grad", True),
        graph("AFTER_POST_GRAD", 80, "other"),
        graph("AFTER_POST_GRAD", 80, "grad", None, "1/0"),
    ) == [False, True, None, None]
