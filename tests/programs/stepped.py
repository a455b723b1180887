"""Compile a function with a branch under ``prepare_debug``, then call it again under ``debug``.

The debugger's commands come from standard input, or from an editor.
"""

from __future__ import annotations

import argparse
from typing import Any, Callable

import torch

import depyf
from depyf.decompiler.errors import DecompilationError
from depyf.dynamo.capture import rendering


def toy(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


class Nested(torch.autograd.Function):
    """Its backward runs another one, and so on, ``depth`` deep, and ``innermost()`` in the last of them."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, depth: int, innermost: Callable[[], object]) -> torch.Tensor:
        ctx.depth, ctx.innermost = depth, innermost
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        with torch.enable_grad():
            if ctx.depth == 0:
                ctx.innermost()
            else:
                nested(ctx.depth - 1, ctx.innermost)
        return gradient, None, None


def nested(depth: int, innermost: Callable[[], object]) -> None:
    Nested.apply(torch.ones(1, requires_grad=True), depth, innermost).sum().backward()


def in_autograds_thread(loss: torch.Tensor) -> None:
    """Without a GPU, autograd takes a thread of its own for a backward that is nested at least sixty deep."""
    nested(60, loss.backward)


def refuse(*args: Any, **kwargs: Any) -> Any:
    raise DecompilationError("nothing is decompiled here")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backend")
    parser.add_argument("directory")
    parser.add_argument("--autograds-thread", action="store_true", help="the second backward runs in such a thread")
    parser.add_argument("--listing", action="store_true", help="nothing can be decompiled")
    options = parser.parse_args()
    if options.listing:
        rendering.decompile_code = refuse
    compiled = torch.compile(toy, backend=options.backend)
    a, b = torch.ones(3, requires_grad=True), torch.ones(3)
    with depyf.prepare_debug(options.directory):
        compiled(a, b).sum().backward()
    with depyf.debug():
        loss = compiled(a, b).sum()
        if options.autograds_thread:
            in_autograds_thread(loss)
        else:
            loss.backward()
    print("GRADIENT", a.grad.tolist())


if __name__ == "__main__":
    main()
