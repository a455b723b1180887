"""A mixture of experts: a router sends each token to one of four experts, which depends on the data.

    python examples/mixture_of_experts.py [DUMP_FOLDER]

Which tokens an expert gets is known only when it runs, so the graph breaks where they are picked, and the experts see
another number of tokens each time. With a folder, it runs under ``prepare_debug``; without one it is an ordinary
program.
"""

from __future__ import annotations

import contextlib
import sys

import torch
from torch import nn

import depyf


class Expert(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(nn.functional.gelu(self.up(x)))


class MixtureOfExperts(nn.Module):
    """Each token goes to the expert that the router likes best, and the result is weighted by how much it does."""

    def __init__(self, width: int, experts: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(Expert(width) for _ in range(experts))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, chosen = self.router(x).softmax(dim=-1).max(dim=-1)
        result = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            tokens = torch.nonzero(chosen == number).squeeze(-1)
            if tokens.numel() > 0:
                result = result.index_add(0, tokens, expert(x[tokens]) * weights[tokens].unsqueeze(-1))
        return result


def main() -> None:
    torch.manual_seed(0)
    model = MixtureOfExperts(width=16, experts=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    compiled = torch.compile(model)
    for step in range(4):
        x = torch.randn(24 + 8 * (step // 2), 16)
        loss = (compiled(x) - x.roll(1, dims=-1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    with depyf.prepare_debug(sys.argv[1]) if len(sys.argv) > 1 else contextlib.nullcontext():
        main()
