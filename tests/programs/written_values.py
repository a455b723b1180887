"""Programs that write to memory which they have viewed, for ``depyf.compare``: with one wrong operation (``WRONG``, in
the line with the comment ``# wrong``), and custom operators whose schema hides something (``HIDING``).
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Tuple

import torch
from torch._dynamo.backends.common import aot_autograd

aten = torch.ops.aten

WRONG: Dict[str, Tuple[Callable[..., Any], Tuple[Any, ...], Any, str]] = {}
"""For each program the function, its arguments, the backend, and a part of the wrong operation."""

HIDING: Dict[str, Tuple[Callable[..., Any], str]] = {}
"""For each program the function of one tensor, and what is to be said ("": nothing)."""


def boxed(module: Any) -> Any:
    def call(arguments: Any) -> Any:
        given = list(arguments)
        arguments.clear()
        return module(*given)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def plain(module: Any, inputs: Any) -> Any:
    return boxed(module)


def scaled(graph: Any, target: Any, factor: float) -> None:
    """Multiply what the first call of ``target`` gives."""
    node = next((each for each in graph.nodes if each.target == target), None)
    if node is not None:
        with graph.inserting_after(node):
            made = graph.call_function(aten.mul.Tensor, (node, factor))
        made.meta = dict(node.meta)
        node.replace_all_uses_with(made)
        made.args = (node, factor)


def lossy_sigmoid(module: Any, inputs: Any) -> Any:
    scaled(module.graph, aten.sigmoid.default, 1.001)
    module.recompile()
    return boxed(module)


def lossy_product(module: Any, inputs: Any) -> Any:
    scaled(module.graph, aten.mul.Tensor, 1.01)
    module.recompile()
    return boxed(module)


def cosine(module: Any, inputs: Any) -> Any:
    """A backend that computes cos where Dynamo's graph says sin."""
    for node in module.graph.nodes:
        if node.target == "sin":
            node.target = "cos"
    module.recompile()
    return module


def lossy_division(graph: Any) -> None:
    """A pass for Inductor that divides with three digits."""
    for node in graph.nodes:
        if node.target == aten.div.Tensor:
            node.target, node.args = aten.mul.Tensor, (node.args[0], 0.27)


factor = 1.0
"""What ``by_a_factor`` multiplies with: a test changes it, as a program that patches its compiler."""


def by_a_factor(module: Any, inputs: Any) -> Any:
    def call(*arguments: Any) -> Any:
        return [each * factor for each in module(*arguments)]

    return call


def viewed(p: Any, g: Any) -> Any:
    w = p.unsqueeze(0).view(-1)
    y = torch.sigmoid(w * g)  # wrong
    p.sub_(g)
    return y.sum() + w.sum()


def chained(x: Any) -> Any:
    y = x.mul_(2).add_(1)
    v = y[1:]
    z = v.sin()  # wrong
    y.sub_(3)
    return z * 2, y


def cached(cache: Any, k: Any) -> Any:
    cache[:, 1] = k
    old = cache[:, :2]
    scores = torch.sigmoid(old.sum(1))  # wrong
    cache[:, 0].add_(1)
    return scores * 2


class Averages(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(-1, 1, 4))
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: Any) -> Any:
        self.mean.mul_(0.9).add_(x.detach().mean(0))
        return (x.sin() * self.weight).sum() + self.mean.sum()  # wrong


def scaled_in_place(x: Any, y: Any) -> Any:
    v = x.view(-1)
    z = v * y
    x.add_(1)
    return z


def divided(p: Any, g: Any) -> Any:
    w = p.unsqueeze(0)
    y = (w * g).sum() / 3.7
    p.sub_(g)
    return y


def some(*shape: int) -> Any:
    return torch.linspace(-1, 2, torch.Size(shape).numel()).reshape(shape)


WRONG["view of an argument"] = viewed, (some(6), some(6)), aot_autograd(fw_compiler=lossy_sigmoid), "sigmoid"
WRONG["chain in place"] = chained, (some(6),), cosine, "sin"
WRONG["cache"] = cached, (some(2, 4, 3), some(2, 3)), aot_autograd(fw_compiler=lossy_sigmoid), "sigmoid"
WRONG["gradient beside a buffer"] = (
    Averages(),
    (some(3, 4).requires_grad_(),),
    aot_autograd(fw_compiler=plain, bw_compiler=lossy_product),
    "mul",
)


# Custom operators


@torch.library.custom_op("written_values::hidden", mutates_args=())
def hidden(x: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return x * 2


@torch.library.custom_op("written_values::noisy", mutates_args=())
def noisy(x: torch.Tensor) -> torch.Tensor:
    return x + (time.perf_counter_ns() % 1000) * 0.01


@torch.library.custom_op("written_values::draws", mutates_args=())
def draws(x: torch.Tensor) -> torch.Tensor:
    return x + torch.rand(x.shape)


@torch.library.custom_op("written_values::honest", mutates_args=("x",))
def honest(x: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return x * 2


for each in (hidden, noisy, draws, honest):
    each.register_fake(torch.empty_like)

library = torch.library.Library("written_values", "FRAGMENT")
library.define("aliased(Tensor x) -> Tensor")
library.impl("aliased", lambda x: x.view(-1), "CompositeExplicitAutograd")
torch.library.register_fake("written_values::aliased", lambda x: x.new_empty(x.numel()), lib=library)

HIDING["writes"] = lambda x: hidden(x) + x.cos(), "written_values::hidden writes to its argument x, which its schema"
HIDING["noisy"] = lambda x: noisy(x).sin(), "written_values::noisy gives other results for the same arguments"
HIDING["draws"] = lambda x: draws(x).sin(), "written_values::draws draws random numbers, which its tags do not say"
HIDING["aliased"] = (
    lambda x: (torch.ops.written_values.aliased(x) + 1, x.sum()),
    "written_values::aliased returns memory of its argument x, which its schema",
)
HIDING["says what it writes"] = lambda x: honest(x).sin() + x, ""
