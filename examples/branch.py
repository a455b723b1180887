"""A function that torch.compile can't capture in one piece: which way it goes depends on the data.

    depyf run branch.py

Dynamo captures what comes before the ``if`` as one graph, rewrites the function's bytecode so that Python decides, and
makes a resume function for each branch. depyf writes all of it into the folder ``depyf_branch``, as source.
"""

from __future__ import annotations

import torch


def mean_or_flip(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


if __name__ == "__main__":
    compiled = torch.compile(mean_or_flip)
    torch.manual_seed(0)
    for _ in range(100):
        compiled(torch.randn(10), torch.randn(10))
