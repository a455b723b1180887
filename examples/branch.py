"""A function that torch.compile can't capture in one piece: which way it goes depends on the data.

    python examples/branch.py DUMP_FOLDER

Dynamo captures what comes before the ``if`` as one graph, rewrites the function's bytecode so that Python decides, and
makes a resume function for each branch. ``prepare_debug`` writes all of it into the folder, as source.
"""

from __future__ import annotations

import sys

import torch

import depyf


def mean_or_flip(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def main(folder: str) -> None:
    compiled = torch.compile(mean_or_flip)
    torch.manual_seed(0)
    with depyf.prepare_debug(folder):
        for _ in range(100):
            compiled(torch.randn(10), torch.randn(10))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "demo_dump")
