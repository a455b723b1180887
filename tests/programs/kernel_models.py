"""Ten small models, forward and backward, for the question which kernel belongs to which line. ``MODELS`` makes them.

Each maker answers a function of no arguments that runs one compiled step and its backward.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional

MODELS: Dict[str, Callable[[], Callable[[], None]]] = {}


def model(make: Callable[[], Tuple[Any, Tuple[Any, ...]]]) -> Callable[[], Tuple[Any, Tuple[Any, ...]]]:
    """Register a maker of a function (or module) and its arguments."""

    def step() -> Callable[[], None]:
        torch.manual_seed(0)
        function, arguments = make()
        compiled = torch.compile(function)

        def run() -> None:
            result = compiled(*arguments)
            result.float().square().mean().backward()

        return run

    MODELS[make.__name__] = step
    return make


@model
def mlp() -> Any:
    class Mlp(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up = nn.Linear(16, 32)
            self.down = nn.Linear(32, 8)

        def forward(self, x: Tensor) -> Tensor:
            h = self.up(x)
            h = torch.relu(h)
            return self.down(h)

    return Mlp(), (torch.randn(4, 16),)


@model
def convolutions() -> Any:
    class Convolutions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(3, 8, 3, padding=1)
            self.norm = nn.BatchNorm2d(8)
            self.second = nn.Conv2d(8, 4, 3)

        def forward(self, x: Tensor) -> Tensor:
            x = self.first(x)
            x = self.norm(x)
            x = functional.max_pool2d(x.relu(), 2)
            x = self.second(x)
            return x.mean(dim=(2, 3))

    return Convolutions(), (torch.randn(2, 3, 12, 12),)


@model
def attention() -> Any:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(16, 48)
            self.out = nn.Linear(16, 16)

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = self.qkv(x).chunk(3, dim=-1)
            scores = q @ k.transpose(-2, -1)
            weights = (scores / 4.0).softmax(dim=-1)
            mixed = weights @ v
            return self.out(mixed) + x

    return Attention(), (torch.randn(2, 6, 16),)


@model
def layer_norm() -> Any:
    class Norm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(16)
            self.scale = nn.Parameter(torch.ones(16))

        def forward(self, x: Tensor) -> Tensor:
            y = self.norm(x)
            y = y * self.scale
            return y + x.mean(dim=-1, keepdim=True)

    return Norm(), (torch.randn(4, 16),)


@model
def embedding() -> Any:
    class Embedded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(32, 16)
            self.out = nn.Linear(16, 32)

        def forward(self, tokens: Tensor) -> Tensor:
            x = self.table(tokens)
            x = x.sum(dim=1)
            return self.out(x).log_softmax(dim=-1)

    return Embedded(), (torch.randint(0, 32, (4, 6)),)


@model
def rnn_cell_in_a_loop() -> Any:
    class Unrolled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inputs = nn.Linear(8, 16)
            self.states = nn.Linear(16, 16)

        def forward(self, x: Tensor) -> Tensor:
            state = x.new_zeros(x.shape[0], 16)
            for step in range(x.shape[1]):
                state = torch.tanh(self.inputs(x[:, step]) + self.states(state))
            return state

    return Unrolled(), (torch.randn(4, 3, 8),)


@model
def gelu_and_softmax() -> Any:
    def function(x: Tensor, w: Tensor) -> Tensor:
        y = functional.gelu(x * w)
        z = torch.softmax(y, dim=-1)
        return (z * x).sum(dim=0)

    return function, (torch.randn(4, 16, requires_grad=True), torch.randn(16, requires_grad=True))


class Clamped(torch.autograd.Function):
    """The identity between -1 and 1, with a gradient everywhere."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return gradient * torch.where(x.abs() > 1, 0.1, 1.0)


@model
def custom_autograd_function() -> Any:
    def function(x: Tensor) -> Tensor:
        y = x * 2
        z = Clamped.apply(y)
        return z.exp()

    return function, (torch.randn(4, 16, requires_grad=True),)


@model
def indexing_and_scatter() -> Any:
    def function(x: Tensor, index: Tensor) -> Tensor:
        picked = x[index]
        out = torch.zeros(8, 16).index_add(0, index % 8, picked)
        best = out.gather(1, out.argmax(dim=1, keepdim=True))
        return out.cumsum(dim=0) + best

    return function, (torch.randn(12, 16, requires_grad=True), torch.randint(0, 12, (6,)))


@model
def mixed_precision() -> Any:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(16, 32)
            self.second = nn.Linear(32, 8)

        def forward(self, x: Tensor) -> Tensor:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                h = functional.silu(self.first(x))
                y = self.second(h)
            return y.float() * 3

    return Mixed(), (torch.randn(4, 16),)
