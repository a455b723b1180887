"""Find the first operation of a graph whose value differs from eager mode, by one of two methods.

If a graph was made from another (by passes, or decompositions), both are interpreted, and every value of the first is
searched among those of the second: the first missing one on a path to a wrong output is the fault. If code was
generated for a graph, the graph is compiled again with all its values as outputs. If the fault has disappeared then,
because nothing is fused any more, prefixes of the graph are compiled, by bisection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.answers.compared import Measured
from depyf.asynchronous import synchronous
from depyf.dynamo.hooks import private_names, torch_names
from depyf.dynamo.observe.graph_facts import output_nodes
from depyf.dynamo.questions.compare.judging import Judge
from depyf.dynamo.questions.compare.recorded import copy_of, kept
from depyf.dynamo.questions.compare.wide import in_float64
from depyf.dynamo.scripts.tensors import is_tensor
from depyf.quick_dataclass import dataclass

if TYPE_CHECKING:
    import torch

_Kind = Tuple[Tuple[int, ...], "torch.dtype"]
"""Shape and type of a tensor."""

Compile = Callable[["torch.fx.GraphModule", List[object]], Callable[[List[object]], Any]]


@dataclass
class Values:
    """What a graph computes: the value of each node, and that in float64, where it could be computed so."""

    module: torch.fx.GraphModule
    nodes: Dict[torch.fx.Node, object]
    wide: Dict[torch.fx.Node, object]

    @property
    def outputs(self) -> List[Tuple[Optional[torch.fx.Node], object, object]]:
        """Node, value and reference of each output; the node is None for constants."""
        from torch import fx

        found: List[Tuple[Optional[torch.fx.Node], object, object]] = []
        for node in output_nodes(self.module.graph):
            if isinstance(node, fx.Node) and node in self.nodes:
                found.append((node, self.nodes[node], self.wide.get(node)))
            else:
                found.append((None, node, None))
        return found


@dataclass
class Found:
    """A node whose value is wrong in the other graph, or in the compiled code."""

    node: torch.fx.Node
    measured: Measured
    instead: Optional[torch.fx.Node] = None


def interpreted(module: torch.fx.GraphModule, inputs: Sequence[object], rng_state: Optional[torch.Tensor]) -> Values:
    """Return the value of every node of the graph for these inputs, which are not changed."""
    import torch

    nodes = _interpret(module, kept(inputs), rng_state)
    narrow = next((v.dtype for v in inputs if isinstance(v, torch.Tensor) and v.dtype.is_floating_point), torch.float32)
    try:
        with in_float64(narrow):
            wide = _interpret(module, [_widened(value) for value in inputs], rng_state)
    except synchronous():  # values without float64 have no reference
        wide = {}
    return Values(module, nodes, wide)


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


def _widened(value: object) -> object:
    import torch

    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().to(torch.float64) if value.dtype.is_floating_point else value.detach().clone()


def _interpret(
    module: torch.fx.GraphModule, inputs: Sequence[object], rng_state: Optional[torch.Tensor]
) -> Dict[torch.fx.Node, object]:
    import torch

    interpreter = torch_names.module("torch.fx").Interpreter
    nodes: Dict[torch.fx.Node, object] = {}
    view, reshape = torch.ops.aten.view.default, torch.ops.aten.reshape.default

    class Noting(interpreter):  # type: ignore[misc, valid-type]
        def call_function(self, target: object, args: Any, kwargs: Any) -> object:
            try:
                return super().call_function(target, args, kwargs)
            except synchronous(RuntimeError):
                # Strides that were planned for compiled convolutions are not those that eager mode gives.
                if target is not view:
                    raise
                return reshape(*args, **kwargs)

        def run_node(self, node: torch.fx.Node) -> object:
            value = super().run_node(node)
            if node.op != "output":
                nodes[node] = value.detach().clone() if isinstance(value, torch.Tensor) else value
            return value

    with torch.random.fork_rng(devices=[]), torch.no_grad():
        if rng_state is not None:
            torch.set_rng_state(rng_state)
        Noting(module).run(*inputs)
    return nodes


def wrong_outputs(good: Values, results: Sequence[object], judge: Judge) -> List[Tuple[torch.fx.Node, Measured]]:
    """Return the outputs that differ from the graph's: their nodes, and the errors."""
    wrong = []
    for number, ((node, value, wide), result) in enumerate(zip(good.outputs, results)):
        if node is None or not is_tensor(value):
            continue
        measured = judge.measure(f"output {number}", result, value, wide)
        if not measured.right:
            wrong.append((node, measured))
    return wrong


def first_missing(good: Values, bad: Sequence[Values], wrong: Sequence[torch.fx.Node], judge: Judge) -> Optional[Found]:
    """Return the first node on a path to the ``wrong`` outputs of ``good`` whose value is not in the other graphs."""
    there: Dict[_Kind, List[torch.Tensor]] = {}
    names: Dict[str, torch.fx.Node] = {}
    for values in bad:
        for node, value in values.nodes.items():
            if is_tensor(value):
                there.setdefault(_kind(value), []).append(value)
                names.setdefault(node.name, node)

    def is_there(node: torch.fx.Node) -> bool:
        value = good.nodes.get(node)
        if not is_tensor(value) or node.op in ("placeholder", "get_attr"):
            return True
        wide = good.wide.get(node)
        return any(judge.measure(node.name, each, value, wide).right for each in there.get(_kind(value), ()))

    first = _first(good, wrong, is_there)
    if first is None:
        return None
    other = next((each for values in bad for each in [_same_name(values, first)] if each is not None), None)
    if other is None:
        other = _stands_instead(good, bad, judge)
    computed = {each: value for values in bad for each, value in values.nodes.items()}
    first, other = _what_goes_in(first, other, good, computed, judge)
    value = None if other is None else computed.get(other)
    expected = good.nodes[first]
    if not is_tensor(value) or not is_tensor(expected) or _kind(value) != _kind(expected):
        return Found(first, Measured(first.name, "", None, None, "its value is not computed"), other)
    return Found(first, judge.measure(first.name, value, expected, good.wide.get(first)), other)


def _what_goes_in(
    node: torch.fx.Node,
    other: Optional[torch.fx.Node],
    good: Values,
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


def _same_name(values: Values, node: torch.fx.Node) -> Optional[torch.fx.Node]:
    return next((each for each in values.nodes if each.name == node.name), None)


def _stands_instead(good: Values, bad: Sequence[Values], judge: Judge) -> Optional[torch.fx.Node]:
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


def _first(
    good: Values, wrong: Sequence[torch.fx.Node], is_there: Callable[[torch.fx.Node], bool]
) -> Optional[torch.fx.Node]:
    """Go up from the wrong outputs, over values that are missing, to those whose inputs are all there."""
    verdicts: Dict[torch.fx.Node, bool] = {}
    todo, missing = list(wrong), set()
    while todo:
        node = todo.pop()
        if node in verdicts:
            continue
        verdicts[node] = (node in wrong and node.op != "placeholder") or not is_there(node)
        if verdicts[node]:
            missing.add(node)
            todo.extend(_tensor_inputs(node))
    order = {node: number for number, node in enumerate(good.module.graph.nodes)}
    for node in sorted(missing, key=lambda each: order[each]):
        if is_tensor(good.nodes.get(node)):
            return node
    return None


def _tensor_inputs(node: torch.fx.Node) -> List[torch.fx.Node]:
    return [each for each in node.all_input_nodes if each.op != "placeholder"]


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
        self._nodes = [
            node
            for node, value in interpreted(module, inputs, rng_state).nodes.items()
            if node.op not in ("placeholder", "get_attr") and is_tensor(value)
        ]

    def first_wrong(self) -> Optional[Found]:
        """Return the first node whose value is wrong in code generated for the graph; None if the graph alone is
        right.
        """
        if not self._nodes:
            return None
        found = self._wrong(self._nodes)
        if found:
            return found[0]
        low, high = 0, len(self._nodes) - 1
        found = self._wrong(self._frontier(high))
        if not found:
            return None
        while low < high:
            middle = (low + high) // 2
            wrong = self._wrong(self._frontier(middle))
            if wrong:
                high, found = middle, wrong
            else:
                low = middle + 1
        return next((each for each in found if each.node is self._nodes[low]), found[0])

    def _frontier(self, last: int) -> List[torch.fx.Node]:
        """Return the values up to a node, inclusive, that are used after it."""
        before = set(self._nodes[: last + 1])
        used = [node for node in self._nodes[:last] if any(user not in before for user in node.users)]
        return [*used, self._nodes[last]]

    def _wrong(self, nodes: Sequence[torch.fx.Node]) -> List[Found]:
        """Return those of these nodes that are wrong when the graph is compiled with them as outputs."""
        module = with_outputs(self._module, nodes)
        good = interpreted(module, self._inputs, self._rng_state)
        import torch

        with torch.random.fork_rng(devices=[]), torch.no_grad():
            compiled = self._compile(copy_of(module), kept(self._inputs))
            if self._rng_state is not None:
                torch.set_rng_state(self._rng_state)
            results = compiled(kept(self._inputs))
        found = []
        for node, (_, value, wide), result in zip(nodes, good.outputs, results):
            measured = self._judge.measure(node.name, result, value, wide)
            if not measured.right:
                found.append(Found(node, measured))
        return found


def with_outputs(
    module: torch.fx.GraphModule, nodes: Sequence[torch.fx.Node], *, only_needed: bool = False
) -> torch.fx.GraphModule:
    """Return the graph up to the last of these nodes, with them as outputs; ``only_needed`` drops what they do not use.
    Unused operations stay otherwise: they may write to their inputs."""
    from torch import fx

    graph = fx.Graph(tracer_cls=private_names.TRACER_OF_GRAPH.of(module.graph))
    listed = list(module.graph.nodes)
    last = max(listed.index(node) for node in nodes)
    needed = _needed(nodes) if only_needed else None
    known: Dict[torch.fx.Node, torch.fx.Node] = {}
    for number, node in enumerate(listed):
        wanted = number <= last or node.op == "placeholder"
        if node.op == "output" or not wanted or (needed is not None and node not in needed):
            continue
        known[node] = copied = graph.node_copy(node, lambda each: known[each])
        copied.meta = dict(node.meta)
    graph.output(tuple(known[node] for node in nodes))
    return fx.GraphModule(module, graph)


def _needed(nodes: Sequence[torch.fx.Node]) -> Set[torch.fx.Node]:
    needed, todo = set(), list(nodes)
    while todo:
        node = todo.pop()
        if node not in needed:
            needed.add(node)
            todo.extend(node.all_input_nodes)
    return needed
