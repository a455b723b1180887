"""Find the first wrong operation in the recorded runs: the step, the graph and the node. Each graph is judged
alone, on its actual inputs: an error in the inputs is not its own.
"""

from __future__ import annotations

from types import CellType
from typing import TYPE_CHECKING, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from depyf.answers.compared import AOT, DECOMPOSITIONS, Measured
from depyf.base.asynchronous import synchronous
from depyf.base.messages import describe
from depyf.base.quick_dataclass import dataclass, replace
from depyf.dynamo.hooks import private_names
from depyf.dynamo.observe.graph_facts import placeholders
from depyf.dynamo.observe.observation import GraphCall
from depyf.dynamo.questions.compare.judging import Judge
from depyf.dynamo.questions.compare.locate import (
    Compile,
    Isolated,
    WrongNode,
    missing,
    wrong_outputs,
)
from depyf.dynamo.questions.compare.node_values import NodeValues, interpreted
from depyf.dynamo.questions.compare.recorded import Backend, RecordedCompilation, RecordedGraph, StageRecorder
from depyf.torch_trace.stages import Stage

if TYPE_CHECKING:
    import torch


@dataclass
class Fault:
    """A wrong node, its graph, the inputs of the graph, and the step that made it wrong.

    ``others`` are the nodes that come into question where ``found`` alone is right. ``seen`` is how the node was found:
    "" means that only a wrong output is known, and ``why_not`` says why no node is. ``left_out`` is the number of nodes
    whose values did not fit into the memory that the search may use.
    """

    found: WrongNode
    compilation: RecordedCompilation
    graph: RecordedGraph
    inputs: Sequence[object]
    rng_state: Optional[torch.Tensor]
    step: str
    others: Sequence[WrongNode] = ()
    seen: str = ""
    why_not: str = ""
    left_out: int = 0


COMPILED_ALONE = "the graph was compiled by itself"
INTERPRETED = "the graphs before and after that step were interpreted"


class FaultSearch:
    """Looks for the first wrong operation in recorded runs."""

    def __init__(self, backend: Backend, backend_name: str, judge: Judge) -> None:
        self._backend = backend
        self._name = backend_name
        self._judge = judge
        self._by_itself = ""
        """What came of the graph that was compiled alone last."""
        self._left_out = 0

    def in_stage(self, stage: str, run: StageRecorder, before: Optional[StageRecorder]) -> Optional[Fault]:
        """Return the fault of a stage before the backend; ``before`` is the run of the stage before it."""
        for number, compilation in enumerate(run.compilations):
            earlier = before.compilations[number] if before and number < len(before.compilations) else None
            fault = None
            if stage == AOT:
                fault = self._made_of(compilation, Stage.CAPTURED, compilation, Stage.FORWARD, f"changed by {AOT}")
            elif stage == DECOMPOSITIONS and earlier is not None:
                step = "its decomposition computes something else"
                fault = self._joint(earlier, compilation, step) or self._made_of(
                    earlier, Stage.FORWARD, compilation, Stage.FORWARD, step
                )
            if fault is not None:
                return fault
        return None

    def in_backend(self, run: StageRecorder) -> Optional[Fault]:
        """Return the fault of the backend itself."""
        # In the order of the program: forwards as they ran, then backwards, the last forward's first. The first fault
        # is the cause of the others.
        for each in run.compilations:
            fault = self._passes(each) or self._code(
                each, Stage.FORWARD if each.graph(Stage.FORWARD) else Stage.CAPTURED
            )
            if fault is not None:
                return fault
        for each in reversed(run.compilations):
            fault = self._code(each, Stage.BACKWARD)
            if fault is not None:
                return fault
        return self._inside(run)

    def _inside(self, run: StageRecorder) -> Optional[Fault]:
        """Return the fault of a graph whose outputs are right, but whose values lead to wrong gradients."""
        forward = [each.graph(Stage.FORWARD) or each.graph(Stage.CAPTURED) for each in run.compilations]
        backward = [each.graph(Stage.BACKWARD) for each in reversed(run.compilations)]
        owners = [*run.compilations, *reversed(run.compilations)]
        for compilation, graph in zip(owners, [*forward, *backward]):
            if graph is None or not graph.calls:
                continue
            call = graph.calls[0]
            found = self._isolated(graph, call)
            if found:
                return self._alone(found, compilation, graph, call)
        return None

    def _alone(
        self, found: List[WrongNode], compilation: RecordedCompilation, graph: RecordedGraph, call: GraphCall
    ) -> Fault:
        step = f"the code that {self._name} made of it is wrong"
        fault = Fault(found[0], compilation, graph, call.inputs, call.rng_state, step, found[1:], COMPILED_ALONE)
        return replace(fault, left_out=self._left_out)

    def _passes(self, compilation: RecordedCompilation) -> Optional[Fault]:
        """Find a fault of the passes over the graphs, before code generation."""
        step = f"changed by {self._name}'s passes over the captured graph"
        fault = self._made_of(compilation, Stage.CAPTURED, compilation, Stage.AFTER_PRE_GRAD, step)
        return fault or self._joint(compilation, None, f"changed by {self._name}'s passes over the joint graph")

    def _made_of(
        self, one: RecordedCompilation, kind: Stage, other: RecordedCompilation, made: Stage, step: str
    ) -> Optional[Fault]:
        """Find where a graph differs from the one that it was made from."""
        graph, changed = one.graph(kind), other.graph(made)
        if graph is None or changed is None or not graph.calls:
            return None
        call = graph.calls[0]
        its_call = changed.calls[0] if changed.calls else call
        good = interpreted(graph.module, call.inputs, call.rng_state)
        bad = interpreted(changed.module, its_call.inputs, its_call.rng_state)
        count = len(good.outputs)
        written = {
            number: value for number, (_, value, _) in enumerate(bad.inputs) if len(bad.inputs) == len(good.inputs)
        }
        wrong = wrong_outputs(good, [value for _, value, _ in bad.outputs[:count]], self._judge, written)
        return self._first_missing(one, graph, call.inputs, call.rng_state, good, [bad], wrong, step)

    def _joint(self, one: RecordedCompilation, other: Optional[RecordedCompilation], step: str) -> Optional[Fault]:
        """Find where the forward and backward graphs (or another compilation's joint graph) differ from the joint
        graph.
        """
        # The joint graph is never called. Its inputs are put together from the calls of the two graphs that it was
        # split into: primals from the forward, tangents from the backward.
        joint, forward, backward = one.graph(Stage.JOINT), one.graph(Stage.FORWARD), one.graph(Stage.BACKWARD)
        if joint is None or forward is None or backward is None or not forward.calls or not backward.calls:
            return None
        inputs = _inputs_of_joint(joint, forward, backward)
        if inputs is None:
            return None
        state = forward.calls[0].rng_state
        good = interpreted(joint.module, inputs, state)
        # Compare with the joint graph of another stage (decompositions), or with forward and backward together. The
        # outputs of the forward begin with those of the joint graph; the values that it saves come after them.
        if other is not None:
            changed = other.graph(Stage.JOINT)
            if changed is None or len(placeholders(changed.module.graph)) != len(inputs):
                return None
            bad = [interpreted(changed.module, inputs, state)]
            results = [value for _, value, _ in bad[0].outputs]
        else:
            first = interpreted(forward.module, forward.calls[0].inputs, state)
            second = interpreted(backward.module, _inputs_of_backward(backward, first), backward.calls[0].rng_state)
            bad = [first, second]
            count = len(good.outputs) - len(second.outputs)
            results = [value for _, value, _ in [*first.outputs[:count], *second.outputs]]
        wrong = wrong_outputs(good, results, self._judge)
        return self._first_missing(one, joint, inputs, state, good, bad, wrong, step)

    def _first_missing(
        self,
        compilation: RecordedCompilation,
        graph: RecordedGraph,
        inputs: Sequence[object],
        rng_state: Optional[torch.Tensor],
        good: NodeValues,
        bad: Sequence[NodeValues],
        wrong: Sequence[Tuple[torch.fx.Node, Measured]],
        step: str,
    ) -> Optional[Fault]:
        if not wrong:
            return None
        found = missing(good, bad, [node for node, _ in wrong], self._judge)
        found = found or [WrongNode(*wrong[0])]
        left_out = max(each.left_out for each in (good, *bad))
        return Fault(found[0], compilation, graph, inputs, rng_state, step, found[1:], INTERPRETED, left_out=left_out)

    def _code(self, compilation: RecordedCompilation, kind: Stage) -> Optional[Fault]:
        """Find where the code generated for a graph differs from the graph."""
        graph = compilation.graph(kind)
        if graph is None:
            return None
        for call in graph.calls:
            good = interpreted(graph.module, call.inputs, call.rng_state)
            wrong = wrong_outputs(good, call.outputs, self._judge, {**dict(enumerate(call.inputs)), **call.written})
            if not wrong:
                continue
            # The recorded run shows only which output is wrong. The node is found in another compilation of the graph
            # alone, which may be right, or impossible: then the output is all that can be reported.
            found = self._isolated(graph, call)
            if found:
                return self._alone(found, compilation, graph, call)
            why = f"the graph compiled by itself {self._by_itself}"
            # AOTAutograd has made this graph, and may make a harmless one of it. So look in Dynamo's graph.
            captured = compilation.graph(Stage.CAPTURED)
            if captured is not None and captured is not graph and captured.calls and kind is not Stage.BACKWARD:
                found = self._isolated(captured, captured.calls[0])
                if found:
                    return self._alone(found, compilation, captured, captured.calls[0])
            step = f"the code that {self._name} made of it is wrong"
            return Fault(WrongNode(*wrong[0]), compilation, graph, call.inputs, call.rng_state, step, why_not=why)
        return None

    def _isolated(self, graph: RecordedGraph, call: GraphCall) -> List[WrongNode]:
        self._by_itself = "is right"
        try:
            search = Isolated(graph.module, call.inputs, call.rng_state, self.compiler(graph), self._judge)
            self._left_out = search.left_out
            return search.wrong()
        except synchronous() as error:  # a graph that the backend takes only as part of what it was made for
            self._by_itself = f"does not run: {describe(error)[:200]}"
            return []

    def compiler(self, graph: RecordedGraph) -> Compile:
        """Return the function that compiles a graph as this one was compiled."""
        compiler = graph.compiler
        if compiler is None or _is_inductor_compiler(compiler):
            compiler = self._backend

        def compile_graph(module: torch.fx.GraphModule, inputs: List[object]) -> Callable[[List[object]], object]:
            compiled = compiler(module, inputs)
            # The result of a whole backend has the mark, too, but takes its arguments unboxed.
            if compiler is graph.compiler and private_names.BOXED_CALL.of(compiled, False):
                return lambda given: _flat(compiled(list(given)))
            return lambda given: _flat(compiled(*given))

        return compile_graph


def _flat(outputs: object) -> List[object]:
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def _is_inductor_compiler(compiler: object) -> bool:
    """Return whether a compiler is one of Inductor's. Inductor's compilers need state that only exists while
    AOTAutograd calls them; Inductor as a whole does not."""
    for part in _wrapped(compiler):
        module = str(getattr(part, "__module__", ""))
        if module.startswith(private_names.INDUCTOR.whole) or type(part).__name__ == "SerializableAOTDispatchCompiler":
            return True
    return False


def _wrapped(function: object) -> Iterator[object]:
    """Yield a callable and those that it wraps, by closures and partials, a few levels deep."""
    todo, seen = [(function, 0)], 0
    while todo and seen < 50:
        part, depth = todo.pop()
        seen += 1
        yield part
        if depth < 5:
            inner = [
                getattr(part, name, None)
                for name in ("func", "__wrapped__", "compiler_fn", private_names.ORIGINAL_CALLABLE.name)
            ]
            inner += [cell.cell_contents for cell in getattr(part, "__closure__", None) or () if _is_full(cell)]
            todo += [(each, depth + 1) for each in inner if callable(each)]


def _is_full(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except synchronous(ValueError):
        return False


def _by_name(graph: RecordedGraph) -> Dict[str, object]:
    return {node.name: value for node, value in zip(placeholders(graph.module.graph), graph.calls[0].inputs)}


def _inputs_of_joint(joint: RecordedGraph, forward: RecordedGraph, backward: RecordedGraph) -> Optional[List[object]]:
    """Return the inputs of the joint graph: the inputs of the forward, and the gradients that the backward starts
    with."""
    values = {**_by_name(backward), **_by_name(forward)}
    names = [node.name for node in placeholders(joint.module.graph)]
    return [values[name] for name in names] if all(name in values for name in names) else None


def _inputs_of_backward(backward: RecordedGraph, forward: NodeValues) -> List[object]:
    """Return the inputs of the backward, with the saved values as the forward graph computes them."""
    computed = {node.name: value for node, value in forward.nodes.items()}
    given = _by_name(backward)
    return [computed.get(name, value) for name, value in given.items()]
