"""Measure what ``depyf.trace`` costs a call of compiled code, and a training step: on and off in alternation.

    python benchmarks/trace_overhead.py [--backend inductor] [--rounds 40]

Each number is the median over the rounds of the ratio of a round with it to the rounds without it before and after, in
CPU time, so that the load of the machine has little influence. All rounds run in one process.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Callable, List, Tuple

import torch

import depyf


def tiny(backend: str) -> Callable[[], object]:
    """Return one addition: the worst case, since there is little else than Dynamo's own work."""
    compiled = torch.compile(lambda x: x + 1, backend=backend)
    x = torch.ones(8)
    return lambda: compiled(x)


def broken(backend: str) -> Callable[[], object]:
    """Return three graphs with two graph breaks between them, backward included."""

    def function(x: torch.Tensor) -> torch.Tensor:
        x = x.sin()
        torch._dynamo.graph_break()
        x = x.cos()
        torch._dynamo.graph_break()
        return x.sum()

    compiled = torch.compile(function, backend=backend)
    x = torch.ones(64, 64, requires_grad=True)
    return lambda: compiled(x).backward()


def training(backend: str) -> Callable[[], object]:
    """Return a step of training: a small transformer layer, its loss, backward and optimizer."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dropout=0.0)
    optimizer = torch.optim.SGD(layer.parameters(), lr=1e-3)
    compiled = torch.compile(layer, backend=backend)
    x = torch.randn(8, 32, 128)

    def step() -> None:
        optimizer.zero_grad()
        compiled(x).square().mean().backward()
        optimizer.step()

    return step


def seconds(call: Callable[[], object], calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        call()
    return (time.process_time() - start) / calls


def measure(call: Callable[[], object], rounds: int) -> Tuple[float, float, float]:
    """Return seconds a call without it, its ratio with it, and the same for two rounds without it: the noise."""
    for _ in range(5):
        call()
    calls = max(3, int(0.05 / seconds(call, 5)))
    off: List[float] = [seconds(call, calls)]
    on: List[float] = []
    for _ in range(rounds):
        with depyf.trace():
            call()  # the first call finds the graphs
            on.append(seconds(call, calls))
        off.append(seconds(call, calls))
    ratios = [2 * each / (off[at] + off[at + 1]) for at, each in enumerate(on)]
    noise = [after / before for before, after in zip(off, off[1:])]
    return statistics.median(off), statistics.median(ratios), statistics.median(noise)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'program':<12} {'a call':>12} {'with trace':>11} {'more':>10} {'noise':>8}")
    for make in (tiny, broken, training):
        base, ratio, noise = measure(make(options.backend), options.rounds)
        more = base * (ratio - 1)
        print(
            f"{make.__name__:<12} {base * 1e6:>9.1f} us {100 * (ratio - 1):>+10.1f} % {more * 1e6:>7.1f} us"
            f" {100 * (noise - 1):>+6.1f} %"
        )


if __name__ == "__main__":
    main()
