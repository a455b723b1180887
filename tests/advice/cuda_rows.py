"""Rows for CUDA graphs that are not used, or recorded again. They need a GPU: elsewhere they are skipped.

``plain`` counts PyTorch's own counter of graphs for which it gave CUDA graphs up.
"""

from __future__ import annotations

from typing import Optional

import torch
from harness import Remedy, Row, fewer

from depyf.diagnosis import break_advice

RULES = {
    **{f"not used: {pattern}": advice for pattern, advice in break_advice._FOR_CUDAGRAPHS},
    **{f"recorded again: {reason}": advice for reason, advice in break_advice._FOR_RERECORDS},
}

COUNTED = """
for number in range(3):
    torch.compiler.cudagraph_mark_step_begin()
    out(c(x.clone()).cpu())
for number in range(torch._dynamo.utils.counters["inductor"]["cudagraph_skips"]):
    plain()
"""


def _without_gpu() -> Optional[str]:
    return None if torch.cuda.is_available() else "CUDA graphs need a GPU"


def _row(name: str, rule: str, program: str, *remedies: Remedy) -> Row:
    return Row(name, (rule,), program.lstrip("\n") + COUNTED, {"plain": 1}, remedies, skip=_without_gpu)


def _not_followed(rule: str) -> Row:
    # Memory that PyTorch frees or moves between the steps of a training decides what is recorded again, and no counter
    # of PyTorch's own counts recordings. ``tests/dynamo/test_on_a_gpu.py`` tests the reasons of some.
    return Row(rule, (rule,), "", {}, (), skip=lambda: "following this advice can't be counted in a small program")


FOLLOWED = [
    _row(
        "CUDA graph that changes its input",
        "not used: mutated inputs",
        """
def f(x):
    x.add_(1)
    return x * 2
c = compile(f, backend="inductor", mode="reduce-overhead")
x = torch.ones(3, device="cuda")
""",
        fewer("Return the new value instead of changing", ("x.add_(1)", "x = x + 1"), plain=0),
    ),
    _row(
        "CUDA graph with a tensor on the CPU",
        "not used: cpu device|multiple devices|cpu tensor",
        """
y = torch.ones(3, 3)
def f(x):
    return x + (y @ y).sum().cuda()
c = compile(f, backend="inductor", mode="reduce-overhead")
x = torch.ones(3, device="cuda")
""",
        fewer("Make this one there", ("torch.ones(3, 3)", 'torch.ones(3, 3, device="cuda")'), plain=0),
    ),
]
ROWS = [*FOLLOWED, *(_not_followed(rule) for rule in RULES if all(rule not in each.rules for each in FOLLOWED))]
