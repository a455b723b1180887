"""Find the node that made a value: the last that wrote into it, as Dynamo's graphs have in-place operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, List

from depyf.dynamo.hooks import private_names
from depyf.dynamo.observe.replay import Values

if TYPE_CHECKING:
    import torch


class Makers:
    """The makers of each node's inputs, recorded while a graph is interpreted."""

    def __init__(self) -> None:
        self.inputs: Dict[torch.fx.Node, Dict[torch.fx.Node, torch.fx.Node]] = {}
        """For each node, the nodes that it takes, each with the one that made its value."""
        self._last_writer: Dict[int, torch.fx.Node] = {}
        self._values: List[object] = []
        self._written: Dict[torch.fx.Node, torch.fx.Node] = {}

    def note_inputs(self, node: torch.fx.Node, values: Values) -> None:
        self.inputs[node] = {each: self._last_writer.get(id(values(each)), each) for each in node.all_input_nodes}

    def note(self, node: torch.fx.Node, values: Values, value: object) -> None:
        if not private_names.SCHEMA.is_on(node.target) and writes_in_place(node) and node.all_input_nodes:
            target = values(node.all_input_nodes[0])
            self._values.append(target)  # so that no other gets its id
            self._last_writer[id(target)] = node
            self._written[self.inputs[node][node.all_input_nodes[0]]] = node
            self._written[node.all_input_nodes[0]] = node

    def forget_values(self) -> None:
        self._values.clear()

    def of_output(self, node: object) -> object:
        """Return the node that made the value of the output ``node``."""
        seen = set()
        while node in self._written and node not in seen:
            seen.add(node)
            node = self._written[node]
        return node


def writes_in_place(node: torch.fx.Node) -> bool:
    """Return whether a node of Dynamo's graph changes the first of its arguments, by its name."""
    name = str(getattr(node.target, "__name__", node.target))
    if node.op == "call_method":
        return name.endswith("_") and not name.endswith("__")
    return name == "setitem" or (name[:1] == "i" and hasattr(int, f"__{name[1:]}__"))
