"""Calls depyf and PyTorch's compiler the way vLLM's public sources do: ``python like_vllm.py DIRECTORY [ahead]``.

The session is entered and left by hand. A backend splits the graph, shows it before and after, and compiles the pieces
with ``standalone_compile``: the first while Dynamo is at work, the last when it is first called. A pass manager after
Inductor's own passes shows the graph around each pass. With ``ahead``, it all happens in ``aot_compile``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Callable, Optional

import torch
from torch._dynamo.utils import lazy_format_graph_code
from torch._inductor import standalone_compile
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch._logging._internal import trace_structured
from torch.fx.passes.split_module import split_module

import depyf


class NoOpElimination:
    def __call__(self, graph: Any) -> None:
        self.dump_graph(graph, "before")
        graph.eliminate_dead_code()
        self.dump_graph(graph, "after")

    def dump_graph(self, graph: Any, stage: str) -> None:
        lazy_format_graph_code(f"post_grad.0.{type(self).__name__}.{stage}", graph.owning_module)


class PostGradPasses(CustomGraphPass):
    def __call__(self, graph: Any) -> None:
        lazy_format_graph_code("graph_pre_pass", graph.owning_module)
        NoOpElimination()(graph)

    def uuid(self) -> str:
        return "the passes of tests/programs/like_vllm.py"


class Piece(torch.nn.Module):
    """Compiles its graph at once, or when it is first called."""

    def __init__(self, graph: Any, inputs: Optional[Any]) -> None:
        super().__init__()
        self.graph = graph
        self.compiled: Optional[Callable[..., Any]] = None if inputs is None else self.compile_for(inputs)

    def compile_for(self, inputs: Any) -> Callable[..., Any]:
        options = {"config_patches": {"post_grad_custom_post_pass": PostGradPasses()}}
        return standalone_compile(self.graph, list(inputs), dynamic_shapes="from_example_inputs", options=options)  # type: ignore[no-any-return]

    def forward(self, *args: Any) -> Any:
        if self.compiled is None:
            self.compiled = self.compile_for(args)
        return self.compiled(*args)


class Backend:
    def __call__(self, graph: Any, inputs: Any) -> Any:
        part = 0
        parts = {}
        for node in graph.graph.nodes:
            if node.op not in ("placeholder", "output"):
                part += "sigmoid" in str(node.target)
                parts[node] = part
                part += "sigmoid" in str(node.target)
        split = split_module(graph, None, lambda node: parts[node], keep_original_order=True)
        lazy_format_graph_code("before split", graph)
        lazy_format_graph_code("after split", split)
        trace_structured(
            "graph_dump",
            metadata_fn=lambda: {"name": "vllm_piecewise_split_graph"},
            payload_fn=lambda: split.print_readable(print_output=False),
        )
        split.submod_0 = Piece(split.submod_0, [torch.ones(4), torch.ones(4)])
        split.submod_2 = Piece(split.submod_2, None)
        return split


class Model(torch.nn.Module):
    def forward(self, x: Any, y: Any) -> Any:
        queries = x.relu() + y
        attention = queries.sigmoid()
        return attention * y, attention


def main(directory: str, ahead: bool) -> None:
    path = Path(directory)
    path.mkdir(parents=True, exist_ok=True)
    monitor = depyf.prepare_debug(path.as_posix())
    monitor.__enter__()
    x, y, model = torch.linspace(-1.0, 1.0, 4), torch.arange(4.0), Model()
    if ahead:
        with torch._dynamo.config.patch(enable_aot_compile=True):
            compiled = torch.compile(model.forward, fullgraph=True).aot_compile(((x, y), {}))
        result = compiled(model, x, y)
    else:
        result = torch.compile(model, fullgraph=True, backend=Backend())(x, y)
    monitor.__exit__(None, None, None)
    expected = model(x, y)
    assert all(torch.allclose(*each) for each in zip(result, expected)), (result, expected)
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1], "ahead" in sys.argv[2:])
