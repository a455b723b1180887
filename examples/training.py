"""A training loop: forward and backward graphs, and a step that logs in the middle of a compiled module.

python examples/training.py DUMP_FOLDER
"""

from __future__ import annotations

import sys
from typing import List

import torch
from torch import nn

import depyf


class Regressor(nn.Module):
    """Two layers; it notes how large its activations are, which breaks the graph at ``.item()``."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 16)
        self.out = nn.Linear(16, 1)
        self.scale_log: List[float] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.hidden(x))
        self.scale_log.append(h.abs().max().item())
        return self.out(h)


def main(folder: str) -> None:
    torch.manual_seed(0)
    model = Regressor()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    compiled = torch.compile(model)
    x = torch.randn(64, 8)
    y = x.sum(dim=1, keepdim=True)
    with depyf.prepare_debug(folder):
        for step in range(20):
            loss = nn.functional.mse_loss(compiled(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 5 == 0:
                print(f"step {step:2}: loss {loss.item():.4f}, largest activation {model.scale_log[-1]:.3f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "training_dump")
