"""Replay a call of a graph without the compiler, node by node, with the same random numbers. The program's state does
not change: random generators are restored, and inputs that the graph writes to are copied first.

Random numbers are drawn as Inductor's kernels draw them, because the eager versions of its operators draw others.
``Makers`` records which node made a value: the last one that wrote into it, as Dynamo's graphs have in-place
operations.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from depyf.dynamo.hooks import private_names
from depyf.dynamo.observe.observation import ATEN, GraphCall
from depyf.dynamo.observe.random_state import RandomState

if TYPE_CHECKING:
    import torch


ValueOf = Callable[["torch.fx.Node"], Any]
Look = Callable[["torch.fx.Node", ValueOf, Any], None]
"""Called with a node, the values of the nodes that it takes (``values(node)``), and what it gives."""


class Replay:
    """The nodes of a call, one after another. ``before`` is called like ``after``, without what the node gives."""

    def __init__(self, call: GraphCall) -> None:
        self._call = call

    def run(
        self,
        after: Look,
        *,
        until: Optional[torch.fx.Node] = None,
        before: Callable[[torch.fx.Node, ValueOf], None] = lambda *_: None,
    ) -> None:
        """Interpret the graph up to the node ``until`` (default: all of it)."""
        from torch import fx

        class Replaying(fx.Interpreter):
            def run_node(self, node: torch.fx.Node) -> object:
                if node.op == "output":
                    return super().run_node(node)
                # Inductor's operators that draw run as Inductor compiles them. All others run by the method that
                # ``Interpreter`` has for the kind of the node: ``call_function``, ``get_attr``, ``placeholder``, ...
                before(node, self.env.__getitem__)
                args, kwargs = self.fetch_args_kwargs_from_env(node)
                if node.op == "call_function" and draws(node.target):
                    value = draw(node.target, args, kwargs)
                else:
                    value = getattr(self, node.op)(node.target, args, kwargs)
                after(node, self.env.__getitem__, value)
                if node is until:
                    raise _Stopped
                return value

        with _as_it_ran(self._call), contextlib.suppress(_Stopped):
            Replaying(self._call.graph.module).run(*self._inputs())

    def node(self, name: str) -> torch.fx.Node:
        nodes: Iterable[torch.fx.Node] = self._call.graph.module.graph.nodes
        return next(node for node in nodes if node.name == name)

    def _inputs(self) -> Iterator[object]:
        import torch

        for number, value in enumerate(self._call.inputs):
            yield value.clone() if number in self._call.graph.written and isinstance(value, torch.Tensor) else value


def run_node(node: torch.fx.Node, values: ValueOf) -> Any:
    """Return the result of the node for these values of its operands. Raises what it raises."""
    from torch.fx.node import map_arg

    args, kwargs = map_arg(node.args, values), map_arg(node.kwargs, values)
    if isinstance(node.target, str):  # a method
        return getattr(args[0], node.target)(*args[1:], **kwargs)
    return node.target(*args, **kwargs)


class _Stopped(Exception):
    """The last node that is wanted has run."""


@contextlib.contextmanager
def _as_it_ran(call: GraphCall) -> Iterator[None]:
    import torch

    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        if call.random_state is not None:
            stack.enter_context(call.random_state.restored())
        if call.graph.level == ATEN:  # autocast is in the graph already, as conversions
            devices = {value.device.type for value in call.inputs if isinstance(value, torch.Tensor)}
            for device in devices & {"cpu", "cuda"}:
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


_DRAWS = ("prims.inductor_seeds.", "prims.inductor_seed.", "prims.inductor_random.", "prims.inductor_randint.")


def draws(operator: object) -> bool:
    """Return whether it is one of Inductor's that draw seeds from the default generator, or numbers from a seed."""
    return str(operator).startswith(_DRAWS)


def draw(operator: object, args: Tuple[object, ...], kwargs: Dict[str, object]) -> object:
    """Return what Inductor's code for this operator alone returns: a number depends on seed and position only."""
    import torch

    given = tuple(value for value in args if isinstance(value, torch.Tensor))
    pattern = tuple(_HERE if isinstance(value, torch.Tensor) else _hashable(value) for value in args)
    return _kernel(operator, pattern, tuple(sorted(kwargs.items())), tuple(str(each.device) for each in given))(*given)


_HERE = object()


def _hashable(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


@functools.lru_cache(maxsize=64)
def _kernel(
    operator: Any,
    pattern: Tuple[Any, ...],
    kwargs: Tuple[Tuple[str, Any], ...],
    devices: Tuple[str, ...],
) -> Callable[..., object]:
    import torch

    # A graph of this operator alone, compiled by Inductor: ``pattern`` are its arguments, with a placeholder for each
    # tensor (the seed). Compiled once for each pattern and device.
    graph = torch.fx.Graph()
    inputs = iter([graph.placeholder(f"seed_{number}") for number in range(len(devices))])
    arguments = tuple(next(inputs) if each is _HERE else each for each in pattern)
    graph.output((graph.call_function(operator, arguments, dict(kwargs)),))
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    examples = [torch.zeros((), dtype=torch.int64, device=device) for device in devices]
    with RandomState(examples).restored():  # compiling draws, too
        compiled = private_names.INDUCTOR.holder().compile(module, examples)
    return lambda *values: compiled(*values)[0]


class Makers:
    """The makers of each node's inputs, recorded while a graph is interpreted."""

    def __init__(self) -> None:
        self.inputs: Dict[torch.fx.Node, Dict[torch.fx.Node, torch.fx.Node]] = {}
        """For each node, the nodes that it takes, each with the one that made its value."""
        self._last_writer: Dict[int, torch.fx.Node] = {}
        self._values: List[object] = []
        self._written: Dict[torch.fx.Node, torch.fx.Node] = {}

    def note_inputs(self, node: torch.fx.Node, values: ValueOf) -> None:
        self.inputs[node] = {each: self._last_writer.get(id(values(each)), each) for each in node.all_input_nodes}

    def note(self, node: torch.fx.Node, values: ValueOf, value: object) -> None:
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
