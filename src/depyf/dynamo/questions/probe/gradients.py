"""Gradients of values inside a compiled graph. The graph is run again with gradients on, and kept. When the backward
provides the gradients of the compiled graph's results, autograd computes the gradients of the values inside. These are
the gradients of eager code, for the same gradients of the results.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.answers.probed import Probed
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.observe.observation import GraphCall
from depyf.dynamo.observe.random_state import RandomState

if TYPE_CHECKING:
    import torch


def follow_gradients(
    call: GraphCall, recorded: Mapping[str, Sequence[Probed]], *, keep: Callable[[object], object]
) -> None:
    """Fill in ``grad`` of what was recorded (by the names of nodes), once the gradients of the results are known."""
    import torch

    outputs = {at: value for at, value in enumerate(call.outputs) if isinstance(value, torch.Tensor)}
    outputs = {at: value for at, value in outputs.items() if value.requires_grad}
    if not outputs or not recorded:
        return
    # One more run of the graph, with autograd recording. The compiled graph's results get hooks: the gradient that
    # arrives at a result is passed through the second run, to the values inside.
    values, results = _run_with_gradients(call, set(recorded))
    values = {name: value for name, value in values.items() if value.requires_grad}

    @safely("computing the gradient of a probed value")
    def arrived(result: torch.Tensor, gradient: torch.Tensor) -> None:
        with RandomState([gradient]).restored():  # a backward of the user's own may draw
            found = torch.autograd.grad(
                [result], list(values.values()), [gradient.detach()], retain_graph=True, allow_unused=True
            )
        for name, part in zip(values, found):
            for probed in recorded[name] if part is not None else ():
                probed.gradient[:] = [sum((keep(part), *probed.gradient))]

    for at, output in outputs.items():  # what comes in by one result is added to what came in by the others
        if values and results[at].requires_grad:
            output.register_hook(functools.partial(_pass_on, arrived, results[at]))


def _pass_on(arrived: Callable[[object, object], object], result: object, gradient: Optional[object]) -> None:
    if gradient is not None:  # of a result that has part in nothing that was differentiated
        arrived(result, gradient)


def _run_with_gradients(call: GraphCall, names: Set[str]) -> Tuple[Dict[str, torch.Tensor], List[Any]]:
    """Return the values of these nodes and the results, with their autograd history."""
    import torch
    from torch import fx

    values: Dict[str, torch.Tensor] = {}

    class Keeping(fx.Interpreter):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> object:
            if "activation_checkpoint" in str(getattr(target, "__name__", target)):
                # As it is meant for compilers, its backward would draw other random numbers than its forward.
                return fx.Interpreter(args[0]).run(*args[1:])
            return super().call_function(target, args, kwargs)

        def run_node(self, node: torch.fx.Node) -> object:
            value = super().run_node(node)
            if node.name in names and isinstance(value, torch.Tensor):
                values[node.name] = value
            return value

    with torch.enable_grad(), contextlib.ExitStack() as stack:
        inputs = [_with_history(call, number, value) for number, value in enumerate(call.inputs)]
        if call.random_state is not None:
            stack.enter_context(call.random_state.restored())
        results = Keeping(call.graph.module).run(*inputs)
    return values, list(results) if isinstance(results, (list, tuple)) else [results]


def _with_history(call: GraphCall, number: int, value: object) -> object:
    """Return the input of a call with a gradient, if it had one, as a tensor that may be written to."""
    import torch

    if not isinstance(value, torch.Tensor):
        return value
    leaf = value.detach().clone()
    given = call.given(number)
    if not (isinstance(given, torch.Tensor) and given.requires_grad):
        return leaf
    return leaf.requires_grad_().clone()
