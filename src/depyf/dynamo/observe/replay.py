"""Replay a call of a graph without the compiler, node by node, with the same random numbers. The program's state does
not change: random generators are restored, and inputs that the graph writes to are copied first.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Optional

from depyf.dynamo.observe.inductor_random import draw, draws
from depyf.dynamo.observe.observation import ATEN, GraphCall

if TYPE_CHECKING:
    import torch

Values = Callable[["torch.fx.Node"], Any]
Look = Callable[["torch.fx.Node", Values, Any], None]
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
        before: Callable[[torch.fx.Node, Values], None] = lambda *_: None,
    ) -> None:
        """Interpret the graph up to the node ``until`` (default: all of it)."""
        from torch import fx

        class Replaying(fx.Interpreter):
            def run_node(self, node: torch.fx.Node) -> object:
                if node.op == "output":
                    return super().run_node(node)
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


def run_node(node: torch.fx.Node, values: Values) -> Any:
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
