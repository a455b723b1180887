"""Calls depyf and PyTorch's compiler the way SGLang's public sources do: ``python like_sglang.py DIRECTORY``.

A backend shows the graph before and after it is split, and hands copies of the pieces to Inductor's ``compile_fx``,
one of them when it is first called.
"""

from __future__ import annotations

import copy
import sys
from typing import Any

import torch
from torch._inductor.compile_fx import compile_fx
from torch.fx.passes.split_module import split_module

import depyf


def compiled(graph: Any, *inputs: Any) -> Any:
    return compile_fx(copy.deepcopy(graph), list(inputs), config_patches={"fx_graph_cache": True})


class Late(torch.nn.Module):
    def __init__(self, graph: Any) -> None:
        super().__init__()
        self.graph, self.run = graph, None

    def forward(self, *args: Any) -> Any:
        self.run = self.run or compiled(self.graph, *args)
        return self.run(*args)


def backend(graph: Any, inputs: Any) -> Any:
    from torch._dynamo.utils import lazy_format_graph_code

    split = split_module(graph, None, lambda node: int("sigmoid" in str(node.target)), keep_original_order=True)
    lazy_format_graph_code("before split", graph)
    lazy_format_graph_code("after split", split)
    for name in ("submod_0", "submod_1"):
        setattr(split, name, Late(getattr(split, name)))
    return split


def model(x: Any, y: Any) -> Any:
    return (x.cos() - y).sigmoid()


def main(directory: str) -> None:
    x, y = torch.linspace(-1.0, 1.0, 4), torch.arange(4.0)
    with depyf.prepare_debug(directory), torch.no_grad():
        result = torch.compile(model, fullgraph=True, backend=backend)(x, y)
    assert torch.allclose(result, model(x, y))
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
