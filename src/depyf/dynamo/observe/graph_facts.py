"""Facts about a graph, read during its compilation: a copy, the inputs that it writes to, whether it draws random
numbers."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Dict, Iterator, List, Optional, Tuple

from depyf.dynamo.hooks import private_names, torch_names
from depyf.dynamo.hooks.pytree import leaves

if TYPE_CHECKING:
    import torch

_RANDOM = ("inductor_seed", "inductor_random", "inductor_randint", "philox", "run_and_save_rng", "run_with_rng")
"""Parts of the names of operators that draw random numbers and have no tag for it."""


class GraphCopy:
    """A graph as it is now, with the objects that its nodes refer to; backends change theirs in place. The
    ``GraphModule`` is made on first use: most are never used, and making one generates its code."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        from torch import fx

        self.graph = fx.Graph(tracer_cls=private_names.TRACER_OF_GRAPH.of(module.graph))
        known: Dict[fx.Node, fx.Node] = {}
        self._attributes: Dict[str, object] = {}
        for node in module.graph.nodes:
            known[node] = self.graph.node_copy(node, known.__getitem__)
            if node.op in ("get_attr", "call_module"):
                self._attributes[node.target] = _own_graph(attribute_at(module, node.target))
        self.graph._codegen = copy.copy(module.graph._codegen)
        self._training = module.training
        self._module: Optional[fx.GraphModule] = None

    def attribute(self, target: str) -> object:
        """Return the object that a node of kind ``get_attr`` or ``call_module`` refers to."""
        return self._attributes[target]

    def module(self) -> torch.fx.GraphModule:
        if self._module is None:
            from torch import fx

            self._module = fx.GraphModule(self._attributes, self.graph)
            self._module.training = self._training
        return self._module


def copy_of(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Return a graph module with a graph of its own."""
    return GraphCopy(module).module()


def _own_graph(value: object) -> object:
    """Return a copy of the graph of a branch or a checkpointed part, which passes change as well; else the value."""
    from torch import fx

    if not isinstance(value, fx.GraphModule):
        return value
    made = copy_of(value)
    made.meta.update(value.meta)  # selective checkpointing finds its policy there
    return made


def attribute_at(module: object, target: str) -> object:
    """Return the object at a dotted path of attributes."""
    for name in target.split("."):
        module = getattr(module, name)
    return module


def placeholders(graph: torch.fx.Graph) -> List[torch.fx.Node]:
    return [node for node in graph.nodes if node.op == "placeholder"]


def output_nodes(graph: torch.fx.Graph) -> List[object]:
    """Return the outputs of the graph: a node or a constant each."""
    output = next(node for node in reversed(list(graph.nodes)) if node.op == "output")
    return leaves(output.args[0])


def is_random(module: torch.fx.GraphModule) -> bool:
    """Return whether the graph, or one that it calls, draws random numbers."""
    from torch import fx

    parts = (part for part in module.modules() if isinstance(part, fx.GraphModule))
    return any(draws_random_numbers(node) for part in parts for node in part.graph.nodes)


def draws_random_numbers(node: torch.fx.Node) -> bool:
    """Return whether an operator of ATen's or Inductor's draws random numbers, by its tag or its name."""
    tag = getattr(torch_names.find("torch", "Tag"), "nondeterministic_seeded", None)
    return tag in getattr(node.target, "tags", ()) or any(each in str(node.target) for each in _RANDOM)


def written_inputs(graph: torch.fx.Graph) -> Tuple[int, ...]:
    """Return the numbers of the placeholders that an ATen graph writes to."""
    inputs = {node: number for number, node in enumerate(placeholders(graph))}
    return tuple(sorted({inputs[base] for _, base in writes_of(graph) if base in inputs}))


def writes_of(graph: torch.fx.Graph) -> Iterator[Tuple[torch.fx.Node, torch.fx.Node]]:
    """Yield each node that writes, with a node that it writes to; views are resolved."""
    for node in graph.nodes:
        schema = private_names.SCHEMA.of(node.target)
        if node.op != "call_function" or schema is None or not schema.is_mutable:
            continue
        for position, argument in enumerate(schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                value = node.args[position] if position < len(node.args) else node.kwargs.get(argument.name)
                for each in value if isinstance(value, (list, tuple)) else [value]:
                    if hasattr(each, "op"):
                        yield node, _base(each)


def _base(node: torch.fx.Node) -> torch.fx.Node:
    """Return the base of a view; any other node itself."""
    from torch import fx

    # In ATen's schemas a view or an in-place operator aliases its first argument:
    #     view(Tensor(a) self, SymInt[] size) -> Tensor(a)
    while node.op == "call_function":
        schema = private_names.SCHEMA.of(node.target)
        aliases = [] if schema is None else [each for each in schema.arguments[:1] if each.alias_info is not None]
        viewed = node.args[0] if aliases and node.args else None
        if not isinstance(viewed, fx.Node):
            break
        node = viewed
    return node


def names_of_inputs(module: torch.fx.GraphModule) -> Tuple[str, ...]:
    """Return the user's names of the inputs of Dynamo's graph, in its terms: ``L['x']``, ``L['self'].weight``."""
    return tuple(_source_of(node) for node in placeholders(module.graph))


def _source_of(node: torch.fx.Node) -> str:
    source = private_names.SOURCE_OF_INPUT.of(node) or getattr(node.meta.get("grapharg"), "source", None)
    name = getattr(source, "name", "")
    return str(name() if callable(name) else name)
