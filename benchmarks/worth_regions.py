"""Ten regions for ``worth.py``: five that compiling makes slower on a CPU, and five that it makes faster.

Each is a function of tensors, or a step of a module, with its arguments. Sizes are for one thread: a call of a faster
region saves some milliseconds, so that compile time is paid back within a minute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Tuple

import torch
from torch import Tensor
from torch.nn import functional

Arguments = Tuple[Any, ...]


@dataclass(frozen=True)
class Region:
    """A function and what makes its arguments."""

    function: Callable[..., Any]
    arguments: Callable[[], Arguments]


def one_addition(x: Tensor) -> Tensor:
    return x + 1


class ManyGuards(torch.nn.Module):
    """Reads 300 Python numbers, each of which has a guard, for one small operation."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = {f"number {at}": float(at) for at in range(300)}

    def forward(self, x: Tensor) -> Tensor:
        total = 0.0
        for name in ("a", "b"):
            total += len(name)
        return x * (total + sum(self.numbers.values()))


def many_breaks(x: Tensor) -> Tensor:
    for _ in range(1):
        x = x + 1
    torch._dynamo.graph_break()
    x = x * 2
    torch._dynamo.graph_break()
    x = x - 3
    torch._dynamo.graph_break()
    x = x / 4
    torch._dynamo.graph_break()
    x = x + 5
    torch._dynamo.graph_break()
    return x * 6


def _small(x: Tensor) -> Tensor:
    return x * 0.5


def loop_of_small_calls(x: Tensor) -> Tensor:
    while x.sum().item() > 1.0:
        x = _small(x)
    return x


def small_product(a: Tensor, b: Tensor) -> Tensor:
    return a @ b


def pointwise_chain(x: Tensor) -> Tensor:
    h = torch.sin(x) + torch.cos(x)
    for _ in range(4):
        h = torch.sigmoid(h) * x + torch.exp(-h)
    return h


class NormAndGelu(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(1024)
        self.scale = torch.nn.Parameter(torch.ones(1024))

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(x) * self.scale + x
        for _ in range(4):
            h = (h * 0.5 + x).clamp(-3, 3) * self.scale
        return x + functional.gelu(h) * h


def training_step(module: torch.nn.Module, x: Tensor) -> Tensor:
    loss = module(x).square().mean()
    loss.backward()
    return loss.detach()


def masked_softmax(x: Tensor, mask: Tensor) -> Tensor:
    scores = (x * 0.125 + 1).clamp(-50, 50) * 2 - x.abs() / 16
    scores = torch.where(mask, scores, float("-inf"))
    weights = torch.softmax(scores, -1)
    return (weights * 1.25 + x.square() * 0.5).clamp(0, 1) - x * weights


def norm_statistics(x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    centred = x - x.mean(-1, keepdim=True)
    scaled = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    return scaled.abs().amax(-1), scaled.pow(3).mean(-1), scaled.pow(4).mean(-1), (scaled > 2).float().mean(-1)


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, bias: Tensor, keep: Tensor) -> Tensor:
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    for _ in range(3):
        scores = (scores + bias).clamp(-30, 30) * 0.99
    scores = 30 * scores / (30 + scores.abs())
    scores = torch.where(mask, scores, float("-inf"))
    return (torch.softmax(scores, -1) * keep * 1.25) @ v


def _square(rows: int) -> Tensor:
    return torch.randn(rows, rows)


def _triangle(rows: int) -> Tensor:
    return torch.ones(rows, rows, dtype=torch.bool).tril()


REGIONS: Dict[str, Region] = {
    "one addition": Region(one_addition, lambda: (torch.randn(4),)),
    "many guards": Region(ManyGuards(), lambda: (torch.randn(16),)),
    "many breaks": Region(many_breaks, lambda: (torch.randn(64),)),
    "loop of small calls": Region(loop_of_small_calls, lambda: (torch.full((64,), 1e6),)),
    "small product": Region(small_product, lambda: (_square(64), _square(64))),
    "pointwise chain": Region(pointwise_chain, lambda: (_square(1000),)),
    "norm and gelu, training": Region(
        training_step, lambda: (NormAndGelu(), torch.randn(1024, 1024))),
    "masked softmax": Region(masked_softmax, lambda: (_square(1024), _triangle(1024))),
    "norm statistics": Region(norm_statistics, lambda: (_square(1024),)),
    "attention": Region(
        attention,
        lambda: (*(torch.randn(8, 512, 64) for _ in range(3)), _triangle(512), _square(512), torch.ones(512, 512))),
}  # fmt: skip
