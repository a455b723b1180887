"""Describe findings as plain data with the user's names and lines, and write their files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from depyf.answers.nonfinite import COMPILED, EAGER, INPUT, OPERATION, RESULT, NonFinite, Step, TensorFacts
from depyf.base.asynchronous import synchronous
from depyf.base.messages import describe as describe_error
from depyf.base.quick_dataclass import replace
from depyf.diagnosis.guard_sources import as_written
from depyf.dynamo.hooks.pytree import tensors
from depyf.dynamo.observe import graph_facts
from depyf.dynamo.observe.finite import Bad, facts
from depyf.dynamo.observe.node_words import (
    by_name,
    called_of,
    line_of,
    module_of,
    operation_of,
    running_line,
    value_name,
)
from depyf.dynamo.observe.observation import GraphCall, ObservedGraph
from depyf.dynamo.questions.nonfinite.eager_operations import Birth
from depyf.dynamo.questions.nonfinite.inner_graphs import inside
from depyf.dynamo.questions.nonfinite.origin import Chain, capture, is_written_down
from depyf.dynamo.questions.nonfinite.verdict import ReportedNode
from depyf.dynamo.scripts.replay_script import write_graph_replay, write_replay
from depyf.dynamo.scripts.whole import Script

if TYPE_CHECKING:
    import torch

_IN_FORWARD = "the forward graph computes it and saves it for the backward; no result of the forward shows it"


class Describer:
    """Turns verdicts into results. It stores the forward graphs, as they have the names of a backward's saved
    values.
    """

    def __init__(self, directory: str, births: Optional[Callable[[torch.Tensor], Optional[Birth]]] = None) -> None:
        self._directory = directory
        self._births = births
        self._forwards: Dict[Tuple[Optional[str], str], ObservedGraph] = {}
        self._last: Optional[ObservedGraph] = None

    def has_run(self, graph: ObservedGraph) -> None:
        if not graph.backward:
            self._forwards[graph.compile_id, graph.function] = graph
        self._last = graph

    def describe(self, shown_in: GraphCall, verdict: ReportedNode) -> NonFinite:
        """Return the finding; ``shown_in`` is the call whose result was not finite."""
        call, node = verdict.call, verdict.node
        if verdict.entered:
            return self._entered(call, verdict)
        in_forward = shown_in.graph.backward and not call.graph.backward
        args, kwargs, value = capture(call, node)
        inner = inside(call, node, args, kwargs)
        if inner is not None:
            return self.describe(shown_in, inner)
        steps = []
        if verdict.source is not None:
            steps.append(self._source(call, verdict.source))
        steps += _becomes_nan(verdict)
        found = NonFinite(
            kind=verdict.kind,
            source=OPERATION,
            operation=operation_of(node),
            called=called_of(node),
            line=line_of(node),
            module=module_of(node),
            backward=shown_in.graph.backward,
            graph=call.graph.function,
            compile_id=call.graph.compile_id,
            inputs=tuple(self._inputs(call, node, args, kwargs)),
            output=_facts_of(_in_module(node), value),
            steps=tuple(steps),
            called_from=running_line(),
            notes=(_IN_FORWARD,) if in_forward else (),
        )
        return self._saved(found, lambda directory, report: write_replay(directory, node, args, kwargs, report))

    def result(self, call: GraphCall, position: Tuple[str, int], bad: Bad, error: Optional[Exception]) -> NonFinite:
        """Return the finding for a result that is bad only in the compiled code, or, with an error, that can't be
        replayed."""
        from torch import fx

        kind, number = position
        graph = call.graph.graph
        if kind == "output":
            output, value = graph_facts.output_nodes(graph)[number], call.outputs[number]
            assert isinstance(output, fx.Node)  # constants are finite
            node = output
        else:
            node, value = graph_facts.placeholders(graph)[number], call.written[number]
        notes = [f"backend: {call.graph.backend}"]
        if error is None:
            notes.append("depyf.compare(fn, *args) finds the operation that the compiled code computes otherwise")
        if call.graph.generated:
            notes.append(f"the compiled code is in {call.graph.generated}")
        if error is not None:
            notes.append(f"why it could not be replayed: {describe_error(error)}")
        found = NonFinite(
            kind=bad.kind,
            source=COMPILED if error is None else RESULT,
            operation=operation_of(node),
            called=called_of(node),
            line=line_of(node),
            module=module_of(node),
            backward=call.graph.backward,
            graph=call.graph.function,
            compile_id=call.graph.compile_id,
            output=_facts_of(_in_module(node), value),
            called_from=running_line(),
            notes=tuple(notes),
        )
        return self._saved(found, lambda directory, report: write_graph_replay(directory, call, report))

    def born(self, birth: Birth, notes: Tuple[str, ...] = (), steps: Tuple[Step, ...] = ()) -> NonFinite:
        """Return the finding for an operation outside of compiled graphs."""
        found = NonFinite(
            kind=birth.kind,
            source=EAGER,
            operation=birth.operation,
            called=birth.node,
            line=birth.line,
            backward=birth.backward,
            inputs=birth.inputs,
            output=birth.output,
            steps=steps,
            called_from=running_line(),
            notes=notes,
        )
        return self._saved(found)

    def _entered(self, call: GraphCall, verdict: ReportedNode) -> NonFinite:
        placeholders = graph_facts.placeholders(call.graph.module.graph)
        number = placeholders.index(verdict.node)
        steps = tuple(_becomes_nan(verdict))
        birth = None if self._births is None else self._births(call.given(number))
        if birth is not None:
            direction = "backward" if call.graph.backward else "forward"
            note = f"it comes into the {direction} of {call.graph.function} and reaches a result"
            return self.born(birth, (note,), steps)
        name = self._name(call, verdict.node)
        found = NonFinite(
            kind=verdict.kind,
            source=INPUT,
            name="the gradient of a result" if call.graph.backward else name,
            line=line_of(next(iter(verdict.node.users), verdict.node)),
            backward=call.graph.backward,
            graph=call.graph.function,
            compile_id=call.graph.compile_id,
            inputs=(facts(name, call.inputs[number]),),
            steps=steps,
            called_from=running_line(),
            notes=self._before_it(),
        )
        return self._saved(found)

    def meant(self, call: GraphCall, chain: Chain) -> str:
        """Describe the bad values in a call's results that the call did not produce."""
        words = []
        for node in chain.nodes:
            if chain.causes[node]:
                continue
            if node.op == "placeholder":
                find = " (eager=True finds where it was made)" if self._births is None else ""
                words.append(f"that came in as {self._name(call, node)}{find}")
            else:
                line = line_of(node)
                words.append(f"that is written down in {operation_of(node)}" + ("" if line is None else f" at {line}"))
        return "Inf " + ", ".join(dict.fromkeys(words))

    def _before_it(self) -> Tuple[str, ...]:
        if self._last is None:
            return ("it was there before the first compiled graph ran",)
        number = "" if self._last.compile_id is None else f" [{self._last.compile_id}]"
        direction = "backward" if self._last.backward else "forward"
        last = f"the {direction} of {self._last.function}{number}"
        return (f"made after {last} and before this graph, by code that is not compiled (eager=True finds where)",)

    def _source(self, call: GraphCall, node: torch.fx.Node) -> Step:
        """Return the origin of an Inf, or of a NaN that the forward hid."""
        from torch import fx

        if node.op != "placeholder":
            words = "the Inf is written there" if is_written_down(node) else "the Inf comes from there"
            return Step(words, operation_of(node), line_of(node))
        forward = self._forward(call)
        saved: object = None if forward is None else by_name(forward.graph).get(node.name)
        while isinstance(saved, fx.Node) and operation_of(saved).startswith(("aten.detach", "aten.alias")):
            saved = saved.args[0]
        if isinstance(saved, fx.Node) and saved.op != "placeholder":
            return Step("the forward has made it, where it reaches no result", operation_of(saved), line_of(saved))
        return Step(f"the Inf comes in from outside as {self._name(call, node)}")

    def _forward(self, call: GraphCall) -> Optional[ObservedGraph]:
        return self._forwards.get((call.graph.compile_id, call.graph.function)) if call.graph.backward else None

    def _name(self, call: GraphCall, node: torch.fx.Node) -> str:
        """Return the user's name of an input of a graph, else the name of the node."""
        forward = self._forward(call)
        graph = call.graph if forward is None else forward
        searched = node if forward is None else by_name(forward.graph).get(node.name)
        inputs = graph_facts.placeholders(graph.graph)
        if searched is not None and searched in inputs and graph.input_names[inputs.index(searched)]:
            return as_written(graph.input_names[inputs.index(searched)])
        return value_name(node)

    def _inputs(
        self, call: GraphCall, node: torch.fx.Node, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> List[TensorFacts]:

        names: List[Optional[torch.fx.Node]] = []
        from torch.fx.node import map_arg

        map_arg((node.args, node.kwargs), names.append)
        values = tensors((args, kwargs))
        if len(values) != len(names):  # an input that is itself a list
            names = [None] * len(values)
        found = []
        for each, value in zip(names, values):
            name = "input" if each is None else self._name(call, each) if each.op == "placeholder" else _in_module(each)
            found.append(facts(name, value))
        return found

    def _saved(self, found: NonFinite, write: Optional[Callable[[str, NonFinite], Script]] = None) -> NonFinite:
        """Return the finding with its directory: the words as a file, and the script that ``write`` writes there."""
        try:
            found = replace(found, directory=_new_directory(self._directory))
            if write is not None:
                try:
                    script = write(str(found.directory), found)
                    notes = tuple(f"not in the script: {note}" for note in script.notes)
                    found = replace(found, replay=script.path, notes=(*found.notes, *notes))
                except synchronous() as error:
                    note = f"no script to replay it could be written: {describe_error(error)}"
                    found = replace(found, notes=(*found.notes, note))
            with open(os.path.join(str(found.directory), "finding.txt"), "w", encoding="utf-8") as file:
                file.write(f"{found}\n")
        except synchronous(OSError) as error:
            note = f"nothing could be saved: {describe_error(error)}"
            return replace(found, notes=(*found.notes, note))
        return found


def _becomes_nan(verdict: ReportedNode) -> List[Step]:
    """Return the steps at which the Inf of a verdict becomes NaN."""
    node = verdict.becomes_nan
    return [] if node is None else [Step("it becomes NaN", operation_of(node), line_of(node))]


def _in_module(node: torch.fx.Node) -> str:
    """Return the name of a value with the module that computes it."""
    module = module_of(node)
    return f"{value_name(node)} in {module}" if module else value_name(node)


def _facts_of(name: str, value: object) -> Optional[TensorFacts]:
    found = tensors(value)
    return facts(name, found[0]) if found else None


def _new_directory(parent: str) -> str:
    """Return a new directory ``nonfinite_<n>``, also when other processes make some at the same time."""
    number = 0
    while True:
        path = os.path.join(parent, f"nonfinite_{number}")
        try:
            os.makedirs(path)
            return path
        except FileExistsError:
            number += 1
