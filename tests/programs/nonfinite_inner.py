"""Programs with a value that is not finite inside of a graph that a higher-order operator calls (``INNER``), and some
where it does not matter (``CLEAN_INNER``). The marks are those of ``nonfinite_programs.py``; each takes ``compiled``.
"""

from __future__ import annotations

import importlib
from typing import Any, Callable, Dict

import torch
from nonfinite_programs import Planted, Program, leaf
from torch.utils.checkpoint import checkpoint

INNER: Dict[str, Planted] = {}
CLEAN_INNER: Dict[str, Program] = {}

region: Any = getattr(torch.compiler, "nested_compile_region", None)
"""What makes a region, in PyTorch 2.8 and later."""


def operator(module: str, name: str) -> Any:
    """Return a higher-order operator of PyTorch's, None where this one lacks it."""
    try:
        return getattr(importlib.import_module(f"torch._higher_order_ops.{module}"), name, None)
    except ImportError:
        return None


while_loop, scan, mapped = operator("while_loop", "while_loop"), operator("scan", "scan"), operator("map", "map")


def inner(
    operation: str, needs: Any = True, *, backward: bool = False, kind: str = "NaN"
) -> Callable[[Program], Program]:
    """Register a program, if this PyTorch has the operator that it ``needs``."""

    def add(program: Program) -> Program:
        if needs:
            INNER[program.__name__] = Planted(program, operation, backward, kind)
        return program

    return add


def clean(program: Program) -> Program:
    if region:
        CLEAN_INNER[program.__name__] = program
    return program


@inner("sqrt", region)
def second_call_of_a_region(compiled: Any) -> None:
    @region  # type: ignore[untyped-decorator]
    def block(x: Any) -> Any:
        y = x - 1
        return y.sqrt()  # HERE

    compiled(lambda x: block(block(x)).sum())(torch.tensor([1.5, 5.0]))


@inner("log", region)
def region_in_a_region(compiled: Any) -> None:
    @region  # type: ignore[untyped-decorator]
    def innermost(x: Any) -> Any:
        return (x - 3).log()  # HERE

    @region  # type: ignore[untyped-decorator]
    def block(x: Any) -> Any:
        return innermost(x * 2) + innermost(x * 3)

    compiled(lambda x: block(x) + block(x + 1))(torch.tensor([0.5, 5.0]))


@inner("div|sqrt", region, backward=True, kind="Inf")
def backward_of_a_region(compiled: Any) -> None:
    @region  # type: ignore[untyped-decorator]
    def block(x: Any) -> Any:
        return (x * x).sqrt()  # HERE

    compiled(lambda x: (block(x) + block(x + 0)).sum())(leaf(0.0, 2.0)).backward()


@inner("sub", region)
def written_inf_becomes_nan_in_a_region(compiled: Any) -> None:
    @region  # type: ignore[untyped-decorator]
    def block(x: Any) -> Any:
        masked = torch.where(x > 0, x, float("-inf"))
        return masked - masked.amax()  # HERE

    compiled(lambda x: block(x) + block(x * 2))(-torch.ones(3))


@inner("log", region)
def branch_in_a_region(compiled: Any) -> None:
    def positive(x: Any) -> Any:
        return (x - 2).log()  # HERE

    @region  # type: ignore[untyped-decorator]
    def block(x: Any) -> Any:
        return torch.cond(x.sum() > 0, positive, torch.cos, (x,))

    compiled(lambda x: block(x) + block(x * 2))(torch.ones(3) * 0.5)


@inner("log", while_loop)
def second_iteration_of_a_loop(compiled: Any) -> None:
    def body(i: Any, x: Any) -> Any:
        return i + 1, (x - 1).log() + 0.5  # HERE

    compiled(lambda x: while_loop(lambda i, x: i < 4, body, (torch.tensor(0), x)))(torch.tensor([1.2, 9.0]))


@inner("sqrt", scan)
def later_step_of_a_scan(compiled: Any) -> None:
    def step(carry: Any, x: Any) -> Any:
        new = carry - x
        return new, new.sqrt()  # HERE

    compiled(lambda start, x: scan(step, start, x))(torch.tensor([2.0]), torch.ones(4, 1))


@inner("log", mapped)
def one_of_a_map(compiled: Any) -> None:
    def each(x: Any, shift: Any) -> Any:
        return (x - shift).log()  # HERE

    compiled(lambda x, shift: mapped(each, x, shift))(torch.arange(1, 5.0).view(4, 1), torch.tensor([2.5]))


@inner("log")
def checkpointed_part(compiled: Any) -> None:
    def part(x: Any) -> Any:
        return (x.sin() - 1).log()  # HERE

    compiled(lambda x: checkpoint(part, x, use_reentrant=False).sum())(leaf(1.0, 1.0))


@clean
def mask_in_a_region(compiled: Any) -> None:
    @region  # type: ignore[untyped-decorator]
    def block(x: Any) -> Any:
        return torch.where(x > 0, x, float("-inf")).softmax(-1)

    compiled(lambda x: block(x) + block(x * 2))(torch.tensor([1.0, -1.0]))


@clean
def nan_of_a_region_that_is_dropped(compiled: Any) -> None:
    @region  # type: ignore[untyped-decorator]
    def block(x: Any) -> Any:
        return x.log()

    compiled(lambda x: torch.where(x > 0, block(x) + block(x * 2), 0.0))(torch.tensor([1.0, -0.5]))
