"""Twelve events that ``watch`` must tell, each at the line that a comment marks with its number and kind.

The numbers are the order in which they happen.
"""

from __future__ import annotations

import torch


def prints(x):
    y = x.sin()
    print("y", flush=True)  # 1: graph break
    return y + 1


def breaks(x):
    y = x.cos()
    torch._dynamo.graph_break()  # 2: graph break
    return y.exp()


def branches(x):
    if x.sum() > 0:  # 3: graph break
        return x * 2
    return x - 1


def reads(x):
    scale = x.max().item()  # 4: graph break
    return x / (scale + 1)


@torch.compiler.disable
def stays_out(x):
    return x


def calls_out(x):
    y = x.tanh()
    stays_out(y)  # 5: graph break
    return y * y


def scaled(x, how="a"):
    y = x + 1  # 7: recompile, 8: recompile, 9: recompile
    if how == "a":  # 6: recompile
        y = y * 2
    return y.relu()


def takes_words(x, words):
    return x * len(words)  # 10: recompile, 11: recompile


takes_words.limit_is_reached = takes_words.__code__.co_firstlineno  # 12: fallback


def main(limit):
    """``limit(n)`` is a context manager under which Dynamo compiles a function ``n`` times at most."""
    x = torch.ones(4)
    for function in (prints, breaks, branches, reads, calls_out):
        torch.compile(function, backend="eager")(x)
    compiled = torch.compile(scaled, backend="eager", dynamic=False)
    compiled(x)
    compiled(x, how="b")
    compiled(x.double(), how="b")
    compiled(torch.ones(2, 2), how="b")
    compiled(x.clone().requires_grad_(), how="b")
    with limit(3):
        compiled = torch.compile(takes_words, backend="eager", dynamic=False)
        for words in ("a", "bb", "ccc", "dddd", "eeeee"):
            compiled(x, words)
