"""A training loop: forward and backward graphs, and a check in the middle of a compiled module that breaks the graph.

    python examples/training.py [DUMP_FOLDER]

With a folder, it runs under ``prepare_debug``; without one it is an ordinary program.
"""

from __future__ import annotations

import contextlib
import sys

import torch
from torch import nn

import depyf


class Regressor(nn.Module):
    """Two layers, with a check between them that only Python can make: whether the activations are finite."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 16)
        self.out = nn.Linear(16, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.hidden(x))
        if not torch.isfinite(h).all():
            raise FloatingPointError("activations are not finite")
        return self.out(h)


def main() -> None:
    torch.manual_seed(0)
    model = Regressor()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    compiled = torch.compile(model)
    x = torch.randn(64, 8)
    y = x.sum(dim=1, keepdim=True)
    for step in range(20):
        loss = nn.functional.mse_loss(compiled(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            print(f"step {step:2}: loss {loss.item():.4f}")


if __name__ == "__main__":
    with depyf.prepare_debug(sys.argv[1]) if len(sys.argv) > 1 else contextlib.nullcontext():
        main()
