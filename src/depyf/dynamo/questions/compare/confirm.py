"""Confirm a fault: find the smallest part of its graph that differs when it is compiled alone, and run that part as a
script in a process of its own. Only what differs there is named as the first wrong operation.

The parts grow: the operation alone, on the values that it had; the graph up to it; that, with all that the graph
writes to memory; the whole graph. A view computes nothing. So it is tried alone only: where its value is wrong in a
larger part, something has written to its memory too early, and the operation that reads it is the wrong one.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.answers.compared import Culprit, Measured
from depyf.base.asynchronous import synchronous
from depyf.base.messages import describe
from depyf.base.quick_dataclass import dataclass, replace
from depyf.dynamo.hooks import private_names
from depyf.dynamo.observe.graph_facts import output_nodes, placeholders
from depyf.dynamo.questions.compare.culprit import Fault
from depyf.dynamo.questions.compare.custom_operators import name_of_operator
from depyf.dynamo.questions.compare.fault_report import described, kernels_of
from depyf.dynamo.questions.compare.judging import Judge
from depyf.dynamo.questions.compare.locate import Compile, WrongNode, needed_by, part_of, wrong_when_compiled
from depyf.dynamo.questions.compare.mending import TOO_LATE, Mending
from depyf.dynamo.questions.compare.node_values import NodeValues, interpreted, writes
from depyf.dynamo.scripts.backend import BackendInScript
from depyf.dynamo.scripts.imports import Imports
from depyf.dynamo.scripts.program_objects import expression
from depyf.dynamo.scripts.running import differs
from depyf.dynamo.scripts.tensors import is_tensor
from depyf.dynamo.scripts.whole import HowItRuns, RecordedCall, Script, write_script
from depyf.torch_trace.stages import Stage

if TYPE_CHECKING:
    import torch

ALONE, UP_TO_IT, WITH_WRITES, WHOLE = (
    "the operation alone",
    "the graph up to it",
    "the graph up to it, and what the graph writes to memory",
    "the whole graph",
)
_SIZES = (ALONE, UP_TO_IT, WITH_WRITES, WHOLE)
_NOTHING_ALONE = "no part of the graph that was compiled by itself differs"


@dataclass
class Part:
    """A part of a fault's graph as a graph of its own; ``nodes`` are its outputs there, the last one is looked at."""

    words: str
    module: torch.fx.GraphModule
    nodes: Sequence[torch.fx.Node]
    inputs: Sequence[object]


@dataclass
class Confirmed:
    """A culprit, and what its script lacks."""

    culprit: Culprit
    gaps: Tuple[str, ...] = ()


class Confirmation:
    """Confirms faults for one backend. ``hidden`` says of custom operators what their schema does not say of them."""

    def __init__(
        self,
        judge: Judge,
        backend: object,
        name: str,
        named: BackendInScript,
        directory: str,
        hidden: Mapping[str, str],
    ) -> None:
        self._judge = judge
        self._backend = backend
        self._name = name
        self._named = named
        self._directory = directory
        self._hidden = hidden
        self._problem = ""

    def of(self, fault: Fault, compile_graph: Compile) -> Confirmed:
        """Return the culprit: confirmed, or with the reason why it is not."""
        if not fault.seen:
            return Confirmed(replace(described(fault, ()), doubt=fault.why_not))
        try:
            candidates = [fault.found, *fault.others]
            values = self._values(fault, candidates)
            parts = [(found, part) for found in candidates for part in self._parts(fault, found.node, values)]
            mending = Mending(fault.graph.module, fault.inputs, fault.rng_state, compile_graph, self._judge)
            # A larger part is another graph than the program's, and may have a fault of its own. So all candidates are
            # tried alone first, and a node that differs in a larger part only has to be the cause in the whole graph.
            for found, part in sorted(parts, key=lambda each: _SIZES.index(each[1].words)):
                measured = self._wrong_here(part, fault, compile_graph)
                if measured is not None and (part.words == ALONE or mending.heals(found.node)):
                    return self._in_another_process(replace(fault, found=found), part, measured)
            late = mending.late_reader()
            if late is not None:
                part = Part(WHOLE, fault.graph.module, [late.output], fault.inputs)
                found = WrongNode(late.node, fault.found.measured)
                return self._in_another_process(replace(fault, found=found, step=TOO_LATE), part, late.measured)
        except synchronous() as error:
            self._problem = describe(error)[:200]
        reason = _NOTHING_ALONE + (f" ({self._problem})" if self._problem else "")
        return Confirmed(replace(described(fault, ()), doubt=reason, seen=fault.seen))

    def _values(self, fault: Fault, candidates: Sequence[WrongNode]) -> NodeValues:
        """Return the values that go into the candidates."""
        wanted: Set[torch.fx.Node] = set()
        for found in candidates:
            wanted |= {found.node, *needed_by([found.node])} if len(candidates) == 1 else set(_near(found.node))
        return interpreted(fault.graph.module, fault.inputs, fault.rng_state, wanted)

    def _parts(self, fault: Fault, node: torch.fx.Node, values: NodeValues) -> Iterator[Part]:
        """Yield the parts of the graph that may show the fault in a node, the smallest first."""
        module = fault.graph.module
        if node not in values.nodes:
            return
        entering = _operands(node, values)
        alone = needed_by_until(node, set(entering))
        if entering is not None and all(each in values.nodes for each in entering):
            part = part_of(module, alone, [node], entering, values.rewritten)
            yield Part(ALONE, part, [node], [values.nodes[each] for each in entering])
        if node in values.views:
            return
        graph, seen = module.graph, [alone | set(entering)]
        written = [each for each in graph.nodes if writes(each)]
        outputs = [each for each in graph.nodes if each in output_nodes(graph)]
        for words, wanted, nodes in (
            (UP_TO_IT, needed_by([node]), [node]),
            (WITH_WRITES, needed_by([node, *written]), [node]),
            (WHOLE, set(graph.nodes), [*outputs, node]),
        ):
            if wanted not in seen:
                seen.append(wanted)
                kept = [each for each in placeholders(graph) if each in wanted]
                pairs = dict(zip(placeholders(graph), fault.inputs))
                yield Part(
                    words, part_of(module, wanted, nodes, (), values.rewritten), nodes, [pairs[each] for each in kept]
                )

    def _wrong_here(self, part: Part, fault: Fault, compile_graph: Compile) -> Optional[Measured]:
        """Return the error of the node in a part that is compiled in this process, None where it is right."""
        try:
            found = wrong_when_compiled(
                part.module, part.nodes, part.inputs, fault.rng_state, compile_graph, self._judge
            )
        except synchronous() as error:  # a part that the backend can't compile
            self._problem = f"{part.words}: {describe(error)[:200]}"
            return None
        return next((each.measured for each in reversed(found) if each.node is part.nodes[-1]), None)

    def _in_another_process(self, fault: Fault, part: Part, measured: Measured) -> Confirmed:
        fault = self._with_cause(fault, part)
        culprit = described(fault, kernels_of(fault))
        try:
            script, gaps = self._script(fault, part, measured)
        except synchronous() as error:
            doubt = f"no script was written: {describe(error)[:200]}"
            return Confirmed(replace(culprit, doubt=doubt, seen=fault.seen, region=part.words))
        shown, doubt = (
            (False, "its script lacks what is noted below") if self._lacks_backend(fault) else differs(script.path)
        )
        if fault.left_out and part.words != ALONE:
            shown, doubt = False, f"the values of {fault.left_out} nodes take more memory than is used for this"
        return Confirmed(
            replace(culprit, script=script.path, confirmed=shown, doubt=doubt, seen=fault.seen, region=part.words),
            gaps,
        )

    def _with_cause(self, fault: Fault, part: Part) -> Fault:
        """Return the fault with the custom operator in a part whose schema hides something, where there is one."""
        if part.words == ALONE and name_of_operator(fault.found.node.target) not in self._hidden:
            return fault
        names = {node.name for node in part.module.graph.nodes}
        for node in fault.graph.module.graph.nodes:
            if node.name not in names:
                continue
            hidden = self._hidden.get(name_of_operator(node.target))
            if hidden is not None:
                return replace(fault, found=WrongNode(node, fault.found.measured), step=hidden)
        return fault

    def _lacks_backend(self, fault: Fault) -> bool:
        """Return whether no script can have the backend: neither by a name, nor by its source."""
        imports = Imports()
        text = expression(self._backend_for(fault), "backend", imports) if self._named.gap else ""
        return text is None or bool(imports.notes)

    def _backend_for(self, fault: Fault) -> object:
        """Return the backend that compiles the fault's graph alone as the program's backend compiles it: a backward is
        a forward there."""
        kind, given = type(self._backend), getattr(self._backend, "kwargs", {})
        if fault.graph.kind is not Stage.BACKWARD or kind is not private_names.AOT_BACKEND.find():
            return self._backend
        compiler = given.get("bw_compiler") or given.get("fw_compiler")
        return kind(**{**given, "fw_compiler": compiler, "inference_compiler": compiler})

    def _script(self, fault: Fault, part: Part, measured: Measured) -> Tuple[Script, Tuple[str, ...]]:
        """Write the part with its inputs as a script; return it, and what is not in it."""
        node = fault.found.node
        expected = interpreted(part.module, part.inputs, fault.rng_state)
        how = HowItRuns(self._named.name, gradients=False, tolerance=_tolerance(measured, expected.results[-1][0]))
        gaps: List[str] = [self._named.gap] if self._named.gap else []
        if gaps and not self._lacks_backend(fault):
            how, gaps = replace(how, backend=_identifier(self._name), define=self._backend_for(fault)), []
        script = write_script(
            os.path.join(self._directory, f"wrong_{node.name}.py"),
            part.module,
            part.inputs,
            title=f"{node.name} in the {fault.graph.kind.facts.phrase} of {fault.compilation.name or 'a graph'}",
            recorded=RecordedCall([value for value, _ in expected.results], fault.rng_state),
            how=how,
        )
        return script, (*gaps, *script.notes)


def needed_by_until(node: torch.fx.Node, entering: Set[torch.fx.Node]) -> Set[torch.fx.Node]:
    """Return the node and what it is computed from, up to the nodes that are ``entering``."""
    found, todo = set(), [node]
    while todo:
        each = todo.pop()
        if each not in found and each not in entering:
            found.add(each)
            todo += each.all_input_nodes
    return found


def _near(node: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """Yield the node and its operands; of operands that are several values, theirs as well."""
    yield node
    for each in node.all_input_nodes:
        yield each
        if each.op == "call_function":
            yield from each.all_input_nodes


def _operands(node: torch.fx.Node, values: NodeValues) -> Dict[torch.fx.Node, None]:
    """Return the operands with values that can be given to a script, over parts of results and the like."""
    found: Dict[torch.fx.Node, None] = {}
    todo = list(node.all_input_nodes)
    while todo:
        each = todo.pop(0)
        value = values.nodes.get(each)
        if each.op == "get_attr":
            continue
        if is_tensor(value) or isinstance(value, (bool, int, float)) or each.op == "placeholder":
            found[each] = None
        else:
            todo += each.all_input_nodes
    return found


def _identifier(name: str) -> str:
    made = "".join(letter if letter.isalnum() else "_" for letter in name)
    return made if made.isidentifier() else f"backend_{made}"


def _tolerance(measured: Measured, expected: object) -> Optional[float]:
    """Return a tolerance below the error, relative to the largest value."""
    errors = measured.compiled
    largest = float(expected.detach().abs().max()) if is_tensor(expected) and expected.numel() else 0.0
    if errors is None or not errors.largest or not 0 < largest < float("inf"):
        return None
    return float(f"{errors.largest / largest / 4:.1g}")
