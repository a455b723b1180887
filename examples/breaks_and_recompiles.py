"""Five graph breaks, each of another kind, and six recompilations, each for another reason.

    python examples/breaks_and_recompiles.py [DUMP_FOLDER]

With a folder, it runs under ``prepare_debug``; without one it is an ordinary program, for ``depyf run`` or with
``TORCH_LOGS=graph_breaks,recompiles``, which prints PyTorch's own words about the same.
"""

from __future__ import annotations

import contextlib
import sys
from typing import List

import torch

import depyf

SEEN: List[str] = []


def prints(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    print("sum so far", tuple(y.shape))
    return y + 1


def branches_on_data(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        return x * 2
    return x - 1


def reads_a_number(x: torch.Tensor) -> torch.Tensor:
    scale = x.abs().max().item()
    return x / (scale + 1)


def breaks_on_purpose(x: torch.Tensor) -> torch.Tensor:
    y = x.cos()
    torch._dynamo.graph_break()
    return y.exp()


def asks_the_compiler_to_stay_out(x: torch.Tensor) -> torch.Tensor:
    y = x.tanh()
    note(y)
    return y * y


@torch.compiler.disable
def note(y: torch.Tensor) -> None:
    SEEN.append(str(y.dtype))


class Scaled:
    """Something with a number in it that is no tensor."""

    def __init__(self, factor: float) -> None:
        self.factor = factor


def recompiles(x: torch.Tensor, times: int, how: str, scaled: Scaled, parts: List[torch.Tensor]) -> torch.Tensor:
    y = x * scaled.factor + times
    if how == "relu":
        y = y.relu()
    for part in parts:
        y = y + part.sum()
    return y


def main() -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 8)
    broken = [prints, branches_on_data, reads_a_number, breaks_on_purpose, asks_the_compiler_to_stay_out]
    for function in broken:
        torch.compile(function)(x)
    compiled = torch.compile(recompiles)
    half, one, two = Scaled(0.5), [x], [x, x]
    compiled(x, 1, "relu", half, one)
    compiled(x, 2, "relu", half, one)  # the number
    compiled(x, 2, "none", half, one)  # the text
    compiled(x.double(), 2, "none", half, one)  # the dtype
    compiled(torch.randn(6, 8), 2, "none", half, [torch.randn(6, 8)])  # the shape
    compiled(x, 2, "none", half, two)  # the length of the list
    compiled(x, 2, "none", Scaled(0.25), one)  # the attribute


if __name__ == "__main__":
    with depyf.prepare_debug(sys.argv[1]) if len(sys.argv) > 1 else contextlib.nullcontext():
        main()
