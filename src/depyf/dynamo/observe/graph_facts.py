"""Facts about a graph that are read while it is compiled: a copy of it, what it writes to, what it draws at random."""

from __future__ import annotations

import copy
from typing import Any, Dict, Iterator, List, Tuple

from depyf.dynamo.hooks import torch_names

_RANDOM = ("inductor_seed", "inductor_random", "inductor_randint", "philox", "run_and_save_rng", "run_with_rng")
"""Parts of the names of what draws random numbers and has no tag that says so."""


class GraphCopy:
    """A graph as it is now, with the objects that its nodes refer to; backends change theirs in place.

    The ``GraphModule`` is made when it is asked for: most are never looked at, and making one generates its code.
    """

    def __init__(self, module: Any) -> None:
        graph_class: Any = torch_names.find("torch.fx", "Graph")
        self.graph = graph_class()
        known: Dict[Any, Any] = {}
        self._attributes: Dict[str, Any] = {}
        for node in module.graph.nodes:
            known[node] = self.graph.node_copy(node, known.__getitem__)
            if node.op in ("get_attr", "call_module"):
                self._attributes[node.target] = attribute_at(module, node.target)
        self.graph._codegen = copy.copy(module.graph._codegen)
        self._module: Any = None

    def attribute(self, target: str) -> Any:
        """What a node of kind ``get_attr`` or ``call_module`` refers to."""
        return self._attributes[target]

    def module(self) -> Any:
        if self._module is None:
            graph_module: Any = torch_names.find("torch.fx", "GraphModule")
            self._module = graph_module(self._attributes, self.graph)
        return self._module


def attribute_at(module: Any, target: str) -> Any:
    """The object at a dotted path of attributes."""
    for name in target.split("."):
        module = getattr(module, name)
    return module


def placeholders(graph: Any) -> List[Any]:
    return [node for node in graph.nodes if node.op == "placeholder"]


def output_nodes(graph: Any) -> List[Any]:
    """What the graph returns, one for each of its outputs: a node, or a constant."""
    flat: Any = torch_names.find("torch.utils._pytree", "tree_flatten")
    output = next(node for node in reversed(list(graph.nodes)) if node.op == "output")
    leaves: List[Any] = flat(output.args[0])[0]
    return leaves


def is_random(module: Any) -> bool:
    """Whether the graph, or one that it calls, draws random numbers."""
    graph_module: Any = torch_names.find("torch.fx", "GraphModule")
    tag = getattr(torch_names.find("torch", "Tag"), "nondeterministic_seeded", None)
    for part in module.modules():
        if isinstance(part, graph_module):
            for node in part.graph.nodes:
                if tag in getattr(node.target, "tags", ()) or any(each in str(node.target) for each in _RANDOM):
                    return True
    return False


def written_inputs(graph: Any) -> Tuple[int, ...]:
    """The numbers of the placeholders that an ATen graph writes to."""
    inputs = {node: number for number, node in enumerate(placeholders(graph))}
    found = {inputs[node] for node in _written(graph) if node in inputs}
    return tuple(sorted(found))


def writes_of(graph: Any) -> Iterator[Tuple[Any, Any]]:
    """Each node that writes, with a node that it writes to, looked at through views."""
    for node in graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if node.op != "call_function" or schema is None or not schema.is_mutable:
            continue
        for position, argument in enumerate(schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                value = node.args[position] if position < len(node.args) else node.kwargs.get(argument.name)
                for each in value if isinstance(value, (list, tuple)) else [value]:
                    if hasattr(each, "op"):
                        yield node, _base(each)


def _written(graph: Any) -> Iterator[Any]:
    for _, base in writes_of(graph):
        yield base


def _base(node: Any) -> Any:
    """What a view is of; the node itself when it is none."""
    while node.op == "call_function":
        schema = getattr(node.target, "_schema", None)
        aliases = [] if schema is None else [each for each in schema.arguments[:1] if each.alias_info is not None]
        if not aliases or not node.args or not hasattr(node.args[0], "op"):
            break
        node = node.args[0]
    return node


def names_of_inputs(module: Any) -> Tuple[str, ...]:
    """What the user calls the inputs of a graph of Dynamo's, in its terms: ``L['x']``, ``L['self'].weight``."""
    return tuple(_source_of(node) for node in placeholders(module.graph))


def _source_of(node: Any) -> str:
    source = getattr(node, "_dynamo_source", None) or getattr(node.meta.get("grapharg"), "source", None)
    name = getattr(source, "name", "")
    return str(name() if callable(name) else name)
