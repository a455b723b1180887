"""Find the first operation of a graph whose value differs from eager mode, by one of two methods.

If a graph was made from another (by passes, or decompositions), both are interpreted, and every value of the first is
searched among the values of the second: the first missing one on a path to a wrong output is the fault. If code was
generated for a graph, the graph is compiled again with all its values as outputs. If the fault has disappeared then,
because nothing is fused any more, prefixes of the graph are compiled, by bisection. Where the graph writes to memory,
the outputs are clones made at once: a view of what is written later is right, though its memory changes.
"""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Container,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from depyf.answers.compared import Measured
from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.hooks import private_names, torch_names
from depyf.dynamo.observe.graph_facts import copy_of, placeholders, writes_of
from depyf.dynamo.questions.compare.judging import Judge
from depyf.dynamo.questions.compare.node_values import NodeValues, interpreted
from depyf.dynamo.questions.compare.recorded import kept
from depyf.dynamo.scripts.tensors import is_real, is_tensor

if TYPE_CHECKING:
    import torch

_Kind = Tuple[Tuple[int, ...], "torch.dtype"]
"""Shape and type of a tensor."""

_MOST_CANDIDATES = 6
"""How many nodes are tried as the first wrong one, in the order of the graph."""

Compile = Callable[["torch.fx.GraphModule", List[object]], Callable[[List[object]], Any]]


@dataclass
class WrongNode:
    """A node whose value is wrong in the other graph, or in the compiled code."""

    node: torch.fx.Node
    measured: Measured
    instead: Optional[torch.fx.Node] = None


def without_views(module: torch.fx.GraphModule, inputs: Sequence[object]) -> torch.fx.GraphModule:
    """Return the graph with ``reshape`` for ``view`` where eager mode gives other strides than tracing did."""
    import torch

    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch_names.module("torch.fx").Interpreter(module).run(*kept(inputs))
        return module
    except synchronous(RuntimeError):
        changed = copy_of(module)
        for node in changed.graph.nodes:
            if node.target is torch.ops.aten.view.default:
                node.target = torch.ops.aten.reshape.default
        return changed


def wrong_outputs(
    good: NodeValues, results: Sequence[object], judge: Judge, written: Optional[Mapping[int, object]] = None
) -> List[Tuple[torch.fx.Node, Measured]]:
    """Return node and error of each output in ``results`` that differs from the graph's own, and of each input in
    ``written`` (by number, after the call). The node of an input is the last one that writes to it."""
    wrong = []
    for number, ((node, value, wide), result) in enumerate(zip(good.outputs, results)):
        if node is None or not is_tensor(value):
            continue
        measured = judge.measure(f"output {number}", result, value, wide)
        if not measured.right:
            wrong.append((node, measured))
    for number, (node, value, wide) in enumerate(good.inputs if written is not None else ()):
        if written is None or number not in written or not is_real(value):
            continue
        measured = judge.measure(f"{node.name} afterwards", written[number], value, wide)
        if not measured.right:
            writers = [writer for writer, base in writes_of(good.module.graph) if base is node]
            wrong.append((writers[-1] if writers else node, measured))
    return wrong


def missing(
    good: NodeValues, bad: Sequence[NodeValues], wrong: Sequence[torch.fx.Node], judge: Judge
) -> List[WrongNode]:
    """Return the nodes on a path to the ``wrong`` outputs of ``good`` whose value is not in the other graphs, the
    first one first: it is the fault, unless the other graph computes its users in another way."""
    # Passes rename, fuse and reorder nodes. So a value of the good graph is searched by its contents, among all values
    # of the other graphs that have its shape and type.
    there: Dict[_Kind, List[torch.Tensor]] = {}
    for values in bad:
        for value in values.nodes.values():
            if is_tensor(value):
                there.setdefault(_kind(value), []).append(value)

    def is_there(node: torch.fx.Node) -> bool:
        value = good.nodes.get(node)
        if not is_tensor(value) or node.op in ("placeholder", "get_attr"):
            return True
        wide = good.wide.get(node)
        return any(judge.measure(node.name, each, value, wide).right for each in there.get(_kind(value), ()))

    lacking = _missing(good, wrong, is_there)
    return [_compared(node, good, bad, judge) for node in lacking[:_MOST_CANDIDATES]]


def _compared(first: torch.fx.Node, good: NodeValues, bad: Sequence[NodeValues], judge: Judge) -> WrongNode:
    # What the other graph has instead: the node of the same name; else its first node that computes something new from
    # good values. If the two differ only in an operand that a pass has inserted, that operand is the fault.
    other = next((each for values in bad for each in values.nodes if each.name == first.name), None)
    if other is None:
        other = _stands_instead(good, bad, judge)
    computed = {each: value for values in bad for each, value in values.nodes.items()}
    first, other = _what_goes_in(first, other, good, computed, judge)
    value = None if other is None else computed.get(other)
    expected = good.nodes[first]
    if not is_tensor(value) or not is_tensor(expected) or _kind(value) != _kind(expected):
        return WrongNode(first, Measured(first.name, "", None, None, "its value is not computed"), other)
    return WrongNode(first, judge.measure(first.name, value, expected, good.wide.get(first)), other)


def _what_goes_in(
    node: torch.fx.Node,
    other: Optional[torch.fx.Node],
    good: NodeValues,
    computed: Mapping[torch.fx.Node, object],
    judge: Judge,
) -> Tuple[torch.fx.Node, Optional[torch.fx.Node]]:
    """Return the original operand and the inserted one if the nodes differ only by that; else the two nodes."""
    if other is None or other.target != node.target or len(node.all_input_nodes) != len(other.all_input_nodes):
        return node, other
    for ours, theirs in zip(node.all_input_nodes, other.all_input_nodes):
        right, value = good.nodes.get(ours), computed.get(theirs)
        if ours.name != theirs.name and is_tensor(right) and is_tensor(value):
            if not judge.measure(ours.name, value, right, good.wide.get(ours)).right:
                return ours, theirs
    return node, other


def _stands_instead(good: NodeValues, bad: Sequence[NodeValues], judge: Judge) -> Optional[torch.fx.Node]:
    """Return the first node of the other graphs whose inputs are among the good values, and whose value is not."""
    known: Dict[_Kind, List[Tuple[torch.Tensor, object]]] = {}
    for node, value in good.nodes.items():
        if is_tensor(value):
            known.setdefault(_kind(value), []).append((value, good.wide.get(node)))
    for values in bad:
        strange = set()
        for node, value in values.nodes.items():
            if not is_tensor(value) or node.op == "placeholder":
                continue
            if not any(judge.measure("", value, each, wide).right for each, wide in known.get(_kind(value), ())):
                if not any(each in strange for each in node.all_input_nodes):
                    return node
                strange.add(node)
    return None


def _missing(
    good: NodeValues, wrong: Sequence[torch.fx.Node], is_there: Callable[[torch.fx.Node], bool]
) -> List[torch.fx.Node]:
    """Go up from the wrong outputs, over values that are missing, to those whose inputs are all there."""
    # A value that is missing because its operands are missing is not the fault. Operands of a value that is there need
    # not be looked at, even if they are missing: a pass may have fused them away.
    verdicts: Dict[torch.fx.Node, bool] = {}
    todo, lacking = list(wrong), set()
    while todo:
        node = todo.pop()
        if node in verdicts:
            continue
        verdicts[node] = (node in wrong and node.op != "placeholder") or not is_there(node)
        if verdicts[node]:
            lacking.add(node)
            todo.extend(each for each in node.all_input_nodes if each.op != "placeholder")
    order = {node: number for number, node in enumerate(good.module.graph.nodes)}
    return [node for node in sorted(lacking, key=order.__getitem__) if is_tensor(good.nodes.get(node))]


def _kind(value: torch.Tensor) -> _Kind:
    return tuple(value.shape), value.dtype


class Isolated:
    """One graph, compiled again in other shapes to find the node at which its code goes wrong."""

    def __init__(
        self,
        module: torch.fx.GraphModule,
        inputs: Sequence[object],
        rng_state: Optional[torch.Tensor],
        compile_graph: Compile,
        judge: Judge,
    ) -> None:
        self._module = module
        self._inputs = list(inputs)
        self._rng_state = rng_state
        self._compile = compile_graph
        self._judge = judge
        values = interpreted(module, inputs, rng_state)
        self.left_out = values.left_out
        """Of how many nodes the values were not kept, so that they were not looked at."""
        self._rewritten = values.rewritten
        self._nodes = [
            node
            for node, value in values.nodes.items()
            if node.op not in ("placeholder", "get_attr") and is_tensor(value)
        ]

    def wrong(self) -> List[WrongNode]:
        """Return the nodes whose value is wrong in code generated for the graph, the first one first; none if the
        graph alone is right.
        """
        if not self._nodes:
            return []
        # First with all values as outputs, in one compilation: the first wrong one is the fault.
        found = self._wrong(self._nodes)
        if found:
            return found[:_MOST_CANDIDATES]
        # All values are right: the outputs have prevented a fusion that is wrong. Then compile prefixes of the graph,
        # with the outputs that a prefix needs (_frontier), and bisect for the shortest one that is wrong. Invariant:
        # the prefix up to ``high`` is wrong, and ``found`` is what is wrong in it; each one before ``low`` is right.
        low, high = 0, len(self._nodes) - 1
        found = self._wrong(self._frontier(high))
        if not found:
            return []
        while low < high:
            middle = (low + high) // 2
            wrong = self._wrong(self._frontier(middle))
            if wrong:
                high, found = middle, wrong
            else:
                low = middle + 1
        # The node that makes the prefix wrong first; what it writes to may be wrong before it.
        return sorted(found, key=lambda each: each.node is not self._nodes[low])[:_MOST_CANDIDATES]

    def _frontier(self, last: int) -> List[torch.fx.Node]:
        """Return the values up to a node, inclusive, that are used after it."""
        before = set(self._nodes[: last + 1])
        used = [node for node in self._nodes[:last] if any(user not in before for user in node.users)]
        return [*used, self._nodes[last]]

    def _wrong(self, nodes: Sequence[torch.fx.Node]) -> List[WrongNode]:
        """Compile the graph with these nodes as outputs, and return the wrong ones."""
        module = with_outputs(self._module, nodes, self._rewritten)
        return wrong_when_compiled(module, nodes, self._inputs, self._rng_state, self._compile, self._judge)


def wrong_when_compiled(
    module: torch.fx.GraphModule,
    nodes: Sequence[torch.fx.Node],
    inputs: Sequence[object],
    rng_state: Optional[torch.Tensor],
    compile_graph: Compile,
    judge: Judge,
) -> List[WrongNode]:
    """Compile a graph whose outputs are the values of these nodes, and return those that are wrong."""
    import torch

    good = interpreted(module, inputs, rng_state, set())
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        compiled = compile_graph(copy_of(module), kept(inputs))
        if rng_state is not None:
            torch.set_rng_state(rng_state)
        results = compiled(kept(inputs))
    found = []
    for node, (_, value, wide), result in zip(nodes, good.outputs, results):
        measured = judge.measure(node.name, result, value, wide)
        if not measured.right:
            found.append(WrongNode(node, measured))
    return found


def with_outputs(
    module: torch.fx.GraphModule, nodes: Sequence[torch.fx.Node], rewritten: Container[torch.fx.Node] = ()
) -> torch.fx.GraphModule:
    """Return the graph up to the last of these nodes, with them as outputs; clones of those that are ``rewritten``.
    Unused operations stay: they may write to their inputs; so do all placeholders, which the recorded inputs fit."""
    listed = list(module.graph.nodes)
    last = max(listed.index(node) for node in nodes)
    return part_of(module, {*listed[: last + 1], *placeholders(module.graph)}, nodes, rewritten=rewritten)


def part_of(
    module: torch.fx.GraphModule,
    wanted: Iterable[torch.fx.Node],
    outputs: Sequence[torch.fx.Node],
    entering: Iterable[torch.fx.Node] = (),
    rewritten: Container[torch.fx.Node] = (),
) -> torch.fx.GraphModule:
    """Return the graph of the ``wanted`` nodes with these outputs; nodes that are ``entering`` become placeholders. Of
    nodes that are ``rewritten`` later, the outputs are clones that are made at once.
    """
    import torch
    from torch import fx

    graph = fx.Graph(tracer_cls=private_names.TRACER_OF_GRAPH.of(module.graph))
    part, outside = set(wanted), set(entering)
    known: Dict[torch.fx.Node, torch.fx.Node] = {}
    results: Dict[torch.fx.Node, torch.fx.Node] = {}
    for node in module.graph.nodes:
        if node in outside:
            known[node] = graph.placeholder(node.name)
            known[node].meta = dict(node.meta)
    for node in module.graph.nodes:
        if node in outside or node not in part or node.op == "output":
            continue
        known[node] = graph.node_copy(node, known.__getitem__)
        known[node].meta = dict(node.meta)
        results[node] = known[node]
        if node in outputs and node in rewritten:
            results[node] = graph.call_function(torch.ops.aten.clone.default, (known[node],))
            results[node].meta = dict(node.meta)
    graph.output(tuple(results[node] for node in outputs))
    return fx.GraphModule(module, graph)


def needed_by(nodes: Iterable[torch.fx.Node]) -> Set[torch.fx.Node]:
    """Return the nodes, and all that they are computed from."""
    needed, todo = set(), list(nodes)
    while todo:
        node = todo.pop()
        if node not in needed:
            needed.add(node)
            todo.extend(node.all_input_nodes)
    return needed
