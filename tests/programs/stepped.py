"""Compile a function with a branch under ``prepare_debug``, then call it again under ``debug``.

Arguments: backend, dump directory. The debugger's commands come from standard input.
"""

from __future__ import annotations

import sys

import torch

import depyf


def toy(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def main(backend: str, directory: str) -> None:
    compiled = torch.compile(toy, backend=backend)
    a, b = torch.ones(3, requires_grad=True), torch.ones(3)
    with depyf.prepare_debug(directory):
        compiled(a, b).sum().backward()
    with depyf.debug():
        compiled(a, b).sum().backward()
    print("GRADIENT", a.grad.tolist())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
