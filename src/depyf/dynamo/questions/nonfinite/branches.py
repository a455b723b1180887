"""Trace a value into a branch of ``torch.cond``: the graph of the branch that ran is replayed like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Sequence

from depyf.dynamo.observe import graph_facts
from depyf.dynamo.observe.graph_facts import GraphCopy
from depyf.dynamo.observe.observation import GraphCall
from depyf.dynamo.questions.nonfinite.origin import follow
from depyf.dynamo.questions.nonfinite.verdict import Verdict, judge
from depyf.quick_dataclass import replace

if TYPE_CHECKING:
    import torch


def inside_branch(call: GraphCall, node: torch.fx.Node, args: Sequence[Any]) -> Optional[Verdict]:
    """Return the cause inside the branch if the node is a ``torch.cond`` with these arguments, else ``None``."""
    if str(node.target) != "cond" or len(args) != 4:
        return None
    condition, if_true, if_false, operands = args
    branch = if_true if bool(condition) else if_false
    copied = GraphCopy(branch)
    inputs = graph_facts.placeholders(copied.graph)
    if len(inputs) != len(operands):
        return None
    results = tuple(range(len(graph_facts.output_nodes(copied.graph))))
    graph = replace(call.graph, copied=copied, input_names=("",) * len(inputs), results=results, written=())
    inner = replace(call, graph=graph, inputs=tuple(operands), outputs=(), written={})
    chain = follow(inner, results, ())
    return None if chain is None else judge(inner, chain)
