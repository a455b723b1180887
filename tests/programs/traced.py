"""A training step with a graph break, and a function that is compiled again: what the logs in tests/report/logs hold.

Each was recorded with ``TORCH_TRACE=<directory> TORCHINDUCTOR_FORCE_DISABLE_CACHES=1 python traced.py``.
"""

from __future__ import annotations

import torch


@torch.compile(backend="aot_eager")
def loss(x: torch.Tensor, scale: float) -> torch.Tensor:
    y = torch.sin(x) * scale
    print("between two graphs")
    return (y * y).sum()


@torch.compile
def scaled(x: torch.Tensor, flag: bool) -> torch.Tensor:
    return x * 2 if flag else x + 1


def main() -> None:
    x = torch.ones(4, requires_grad=True)
    loss(x, 2.0).backward()
    for size, flag in [(3, True), (4, True)]:
        scaled(torch.ones(size), flag)


if __name__ == "__main__":
    main()
