"""Find where in a graph a non-finite value comes from: the call is replayed, and the chain is followed upwards. A node
with a bad input and a bad result need not have passed it on. So the node runs again with one input made finite, to find
the inputs that it passes on. A NaN that ``torch.where`` discards is thus not the cause of one that it lets through, and
a mask of -Inf is not a cause once softmax has made it finite.
"""

from __future__ import annotations

import functools
from dataclasses import field
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Set, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.hooks import private_names, torch_names
from depyf.dynamo.hooks.pytree import leaves, mapped
from depyf.dynamo.observe import graph_facts
from depyf.dynamo.observe.finite import STAND_INS, Bad, count_bad, made_finite
from depyf.dynamo.observe.observation import GraphCall
from depyf.dynamo.observe.replay import Makers, Replay, ValueOf, run_node, writes_in_place

if TYPE_CHECKING:
    import torch

_FILLS = ("full", "fill", "where", "scalar_tensor", "constant_pad", "tensor", "lift_fresh", "new_")
"""Parts of the names of operators that fill a tensor with a number from the program."""


@dataclass
class Chain:
    """The nodes on the paths to a bad result, and for each what it passes on. ``made`` are those that made one. ``bad``
    counts the values that are not finite for every node of the graph that has some."""

    order: Dict[torch.fx.Node, int]
    bad: Dict[torch.fx.Node, Bad]
    causes: Dict[torch.fx.Node, List[torch.fx.Node]] = field(default_factory=dict)
    made: Set[torch.fx.Node] = field(default_factory=set)

    @property
    def nodes(self) -> List[torch.fx.Node]:
        """From the first to the last."""
        return sorted(self.causes, key=self.order.__getitem__)

    def becomes_nan(self) -> List[torch.fx.Node]:
        """Return the nodes that produce NaN without a NaN input."""
        return [n for n in self.nodes if self.bad[n].nans and not any(self.bad[c].nans for c in self.causes[n])]

    def sources_of(self, node: torch.fx.Node) -> List[torch.fx.Node]:
        """Return the first nodes of the chains that end in the node's inputs."""
        found, todo, seen = [], list(self.causes[node]), set()
        while todo:
            each = todo.pop()
            if each in seen:
                continue
            seen.add(each)
            if not self.causes[each] or each in self.made:
                found.append(each)
            todo += self.causes[each]
        return sorted(found, key=self.order.__getitem__)


def follow(call: GraphCall, results: Iterable[int], written: Iterable[int]) -> Optional[Chain]:
    """Return the chain to these outputs, and to these inputs that the graph writes to, ``None`` if the replay's are
    finite."""
    from torch import fx

    # First replay: which nodes have bad values, and which node made each operand. The values are not kept:
    # together they may not fit into memory.
    replay = Replay(call)
    graph = call.graph.module.graph
    bad: Dict[torch.fx.Node, Bad] = {}
    makers = Makers()

    def note(node: torch.fx.Node, values: ValueOf, value: object) -> None:
        counted = count_bad(value)
        if counted.nans or counted.infs:
            bad[node] = counted
        makers.note(node, values, value)

    replay.run(note, before=makers.note_inputs)
    makers.forget_values()
    outputs = [makers.of_output(node) for node in graph_facts.output_nodes(graph)]
    ends = [outputs[number] for number in results]
    ends += _writers(graph, set(written), makers)
    starts = [node for node in ends if isinstance(node, fx.Node) and node in bad]
    if not starts:
        return None
    # Second replay, up to the last bad result: each node upstream of a bad result, with bad operands, is tested while
    # its operands exist. The chain then follows only the operands that are passed on.
    chain = Chain({node: number for number, node in enumerate(graph.nodes)}, bad)
    wanted = _upstream(starts, bad, makers)
    passed_on: Dict[torch.fx.Node, Tuple[List[torch.fx.Node], bool]] = {}

    def test(node: torch.fx.Node, values: ValueOf, value: object) -> None:
        if node in wanted:
            inputs = {each: maker for each, maker in makers.inputs[node].items() if maker in bad}
            passed_on[node] = _causes(node, values, value, inputs)

    last = max(starts, key=chain.order.__getitem__)
    replay.run(test, until=last)
    todo = list(starts)
    while todo:
        node = todo.pop()
        if node not in chain.causes:
            chain.causes[node], made = passed_on[node]
            if made:
                chain.made.add(node)
            todo += chain.causes[node]
    return chain


def is_written_down(node: torch.fx.Node) -> bool:
    """Return whether the node writes a non-finite constant of the user's into a tensor, as for a mask."""
    if node.op == "get_attr":
        return True
    return is_written_down_by(node.target, (node.args, node.kwargs))


def is_written_down_by(operator: object, arguments: object) -> bool:
    """Return whether an operator with these arguments does."""
    name = str(getattr(operator, "__name__", operator))
    return any(part in name for part in _FILLS) and has_infinite(arguments)


def has_infinite(arguments: object) -> bool:
    """Return whether one of these arguments is a number that is not finite: the user wrote it."""
    return any(each - each != 0 for each in leaves(arguments) if isinstance(each, float))


def capture(call: GraphCall, node: torch.fx.Node) -> Tuple[Tuple[object, ...], Dict[str, object], object]:
    """Return the arguments of the node before it runs, and its result."""
    import torch
    from torch.fx.node import map_arg

    found: Dict[str, Any] = {}

    def copy(value: object) -> object:
        return value.detach().clone() if isinstance(value, torch.Tensor) else value

    def before(each: torch.fx.Node, values: ValueOf) -> None:
        if each is node:
            found["args"] = map_arg(node.args, lambda n: mapped(copy, values(n)))
            found["kwargs"] = map_arg(node.kwargs, lambda n: mapped(copy, values(n)))

    def after(each: torch.fx.Node, _: ValueOf, value: object) -> None:
        if each is node:
            found["value"] = value

    Replay(call).run(after, until=node, before=before)
    return found["args"], found["kwargs"], found["value"]


def _writers(graph: torch.fx.Graph, written: Set[int], makers: Makers) -> List[object]:
    inputs = {node: number for number, node in enumerate(graph_facts.placeholders(graph))}
    found = [node for node, base in graph_facts.writes_of(graph) if inputs.get(base) in written]
    return found + [makers.of_output(node) for node, number in inputs.items() if number in written]


def _upstream(starts: List[torch.fx.Node], bad: Dict[torch.fx.Node, Bad], makers: Makers) -> Set[torch.fx.Node]:
    found: Set[torch.fx.Node] = set()
    todo = list(starts)
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo += [each for each in makers.inputs[node].values() if each in bad]
    return found


def _causes(
    node: torch.fx.Node, values: ValueOf, value: object, inputs: Dict[torch.fx.Node, torch.fx.Node]
) -> Tuple[List[torch.fx.Node], bool]:
    """Find the nodes that made the bad values that this one passes on, and whether it makes some itself.

    ``inputs`` are those with bad values among the nodes that it takes, each with the one that made its value.
    """
    # A node that must not run twice (it writes, or draws random numbers) is taken to pass on all its bad operands.
    makers = list(dict.fromkeys(inputs.values()))
    if not inputs or not _may_run_again(node):
        return makers, not inputs
    try:
        # ``rests``: bad results with all bad operands made finite: those the node makes itself, as log(0) does. A
        # single operand is a cause if making it finite helps: for ``where(c, nan, x)`` that is false if ``c`` hides the
        # NaN.
        before = count_bad(value)
        rests = [_count_with(node, values, list(inputs), stand_in) for stand_in in STAND_INS]
        causes = [
            inputs[each]
            for each in inputs
            if any(_fewer(_count_with(node, values, [each], stand_in), before) for stand_in in STAND_INS)
        ]
    except synchronous():  # an operator that rejects the changed input: any of them may be the cause
        return makers, False
    if not causes and any(_fewer(rest, before) for rest in rests):
        causes = makers  # each is enough alone
    return causes, not causes or all(rest.nans or rest.infs for rest in rests)


def _count_with(node: torch.fx.Node, values: ValueOf, finite: List[torch.fx.Node], stand_in: Optional[str]) -> Bad:
    replaced = functools.partial(made_finite, stand_in=stand_in)
    return count_bad(run_node(node, lambda n: mapped(replaced, values(n)) if n in finite else values(n)))


def _fewer(now: Bad, before: Bad) -> bool:
    return now.nans < before.nans or (now.nans == before.nans and now.infs < before.infs)


def _may_run_again(node: torch.fx.Node) -> bool:
    if node.op not in ("call_function", "call_method"):
        return False
    schema = private_names.SCHEMA.of(node.target)
    if schema is not None:
        tag = getattr(torch_names.find("torch", "Tag"), "nondeterministic_seeded", None)
        return not schema.is_mutable and tag not in getattr(node.target, "tags", ())
    name = str(getattr(node.target, "__name__", node.target))
    return not writes_in_place(node) and not any(each in name for each in ("rand", "dropout", "norm", "bernoulli"))
