"""What the programs of ``frames_*.py`` share: their registries, inputs, and the graph break."""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

import torch
from case import Case

Maker = Callable[[], Case]

break_graph = torch._dynamo.graph_break


def module_programs() -> Tuple[Dict[str, Maker], Callable[[Maker], Maker]]:
    """Return the programs of a module by name, and the decorator that adds one."""
    programs: Dict[str, Maker] = {}

    def program(make: Maker) -> Maker:
        programs[make.__name__] = make
        return make

    return programs, program


def example(*shape: int) -> torch.Tensor:
    return torch.randn(shape or (3, 4), generator=torch.Generator().manual_seed(7))


def unary(function: Callable[..., Any], *extra: Any, state: Callable[[], Any] = lambda: None) -> Case:
    """Return calls of ``function`` with a tensor of 3 by 4 and ``extra``: one as it is, one below zero."""
    x = example()
    return Case(function, [(x, *extra), (-x.abs(), *extra)], state)
