"""Mend a graph at one operation, and see whether that makes its compiled code right: then the operation is the cause.

The value of an operation can't always be asked for: a graph with one more output is compiled otherwise. It may be right
then, or have a fault of its own. So the graph keeps its outputs, and gets right values as further inputs: in place of
an operation, or of what an operation reads. The latter finds operations whose code reads memory too late, after
something later in the graph has written to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Mapping, Optional, Sequence, Tuple

from depyf.answers.compared import Measured
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.observe.graph_facts import copy_of, placeholders
from depyf.dynamo.questions.compare.judging import Judge
from depyf.dynamo.questions.compare.locate import Compile, wrong_outputs
from depyf.dynamo.questions.compare.node_values import interpreted
from depyf.dynamo.questions.compare.recorded import kept

if TYPE_CHECKING:
    import torch

TOO_LATE = "its code reads memory that is written later, after that: with a copy of what it reads, the graph is right"

_Wrong = List[Tuple["torch.fx.Node", Measured]]
_Given = Mapping["torch.fx.Node", Sequence["torch.fx.Node"]]
"""For nodes, those of their operands that are given as inputs."""


@dataclass
class LateReader:
    """A node that reads too late, an output of the graph that is wrong for that reason, and its error."""

    node: torch.fx.Node
    output: torch.fx.Node
    measured: Measured


class Mending:
    """One graph with the inputs of a call, compiled with right values for some of its nodes."""

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
        self._as_it_is: Optional[_Wrong] = None

    def as_it_is(self) -> _Wrong:
        """Return the outputs that are wrong when the graph is compiled as it is."""
        if self._as_it_is is None:
            self._as_it_is = self._wrong({})
        return self._as_it_is

    def heals(self, node: torch.fx.Node) -> bool:
        """Return whether the graph is wrong as it is, and right with the right value of this node."""
        users = {user: [node] for user in node.users if user.op != "output"}
        return bool(users) and bool(self.as_it_is()) and not self._wrong(users)

    def late_reader(self) -> Optional[LateReader]:
        """Return the operation that reads memory too late, None if there is none, or more than one."""
        late = interpreted(self._module, self._inputs, self._rng_state, set()).late
        readers = sorted(late, key=list(self._module.graph.nodes).index)

        def wrong(mended: Sequence[torch.fx.Node]) -> bool:
            return bool(self._wrong({node: late[node] for node in mended}))

        if not readers or not self.as_it_is() or wrong(readers):
            return None
        # The shortest beginning of the readers that has to be mended. Invariant: the graph is wrong with the readers
        # before ``low`` mended, and right with those up to ``high``.
        low, high = 0, len(readers) - 1
        while low < high:
            middle = (low + high) // 2
            if wrong(readers[: middle + 1]):
                low = middle + 1
            else:
                high = middle
        if low and wrong(readers[low : low + 1]):
            return None
        return LateReader(readers[low], *self.as_it_is()[0])

    def _wrong(self, operands: _Given) -> _Wrong:
        """Return the outputs that are wrong when these operands are given as inputs."""
        import torch

        added = [each for given in operands.values() for each in given]
        good = interpreted(self._module, self._inputs, self._rng_state, set(added))
        changed = _given_from_outside(self._module, operands)
        inputs = [*self._inputs, *(good.nodes[each] for each in added)]
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            compiled = self._compile(changed, kept(inputs))
            if self._rng_state is not None:
                torch.set_rng_state(self._rng_state)
            return wrong_outputs(good, compiled(kept(inputs)), self._judge)


def _given_from_outside(module: torch.fx.GraphModule, operands: _Given) -> torch.fx.GraphModule:
    """Return the graph with more inputs at the end, in place of these operands of these nodes. (Clones in the graph
    would not do: compilers remove some, and make others too late.)"""
    changed = copy_of(module)
    same = dict(zip(module.graph.nodes, changed.graph.nodes))
    inputs = placeholders(changed.graph)
    for node, given in operands.items():
        for each in given:
            place = changed.graph.inserting_after(inputs[-1]) if inputs else changed.graph.inserting_before()
            with place:
                inputs.append(changed.graph.placeholder(f"copy_of_{each.name}_{len(inputs)}"))
            inputs[-1].meta = dict(each.meta)
            same[node].replace_input_with(same[each], inputs[-1])
    changed.recompile()
    return changed
