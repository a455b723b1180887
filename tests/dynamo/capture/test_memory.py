"""The memory of graphs, beside what is alive when they run: tensors counted at each operation, and CPU allocations."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence, Tuple

import pytest
import torch
from torch._dynamo.backends.common import aot_autograd
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

import depyf
from depyf.dynamo.hooks.readable_graphs import readable_text
from depyf.report.analysis.graph_memory import VIEWS, read_graph
from depyf.report.model.memory import Memory
from depyf.report.read.reading import load

HAS_BOXED_CODE = hasattr(torch.fx.graph, "_BoxedCodeGen")

Found = List[Tuple[str, bool, Dict[str, int], List[int]]]


class Alive(TorchDispatchMode):
    """Counts the bytes of all tensors that are alive after each operation; views of one memory count once."""

    def __init__(self, inputs: Sequence[object], owned: Sequence[torch.Tensor]) -> None:
        super().__init__()
        tensors = [each for each in inputs if isinstance(each, torch.Tensor)]
        storages = {each.untyped_storage()._cdata for each in tensors}
        # An input may be a view of what the program has: that lives on.
        tensors += [each for each in owned if each.untyped_storage()._cdata in storages]
        self._known = [weakref.ref(each) for each in tensors]
        self.bytes: List[int] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self._known += [weakref.ref(each) for each in tree_flatten(result)[0] if isinstance(each, torch.Tensor)]
        storages: Dict[int, int] = {}
        for tensor in (each() for each in self._known):
            if tensor is not None:
                storage = tensor.untyped_storage()
                storages[storage._cdata] = storage.nbytes()
        self.bytes.append(sum(storages.values()))
        return result


def counting(found: Found, owned: Sequence[torch.Tensor], *, backward: bool) -> Callable[..., Any]:
    """Return a compiler whose graphs run as they are, boxed as those of ``aot_eager``, and are counted."""

    def compiler(graph: torch.fx.GraphModule, _: object) -> Any:
        text, sizes = readable_text(graph), sizes_of_symbols(graph)
        graph.graph.set_codegen(torch.fx.graph._BoxedCodeGen())
        graph.recompile()

        def run(boxed: List[Any]) -> Any:
            with Alive(boxed, owned) as alive:
                result = graph(boxed)
            found.append((text, backward, sizes, alive.bytes))
            return result

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    return compiler


def sizes_of_symbols(graph: torch.fx.GraphModule) -> Dict[str, int]:
    """Return the values of the symbols in the shapes of a graph's inputs."""
    found = {}
    for node in graph.graph.nodes:
        value = node.meta.get("val") if node.op == "placeholder" else None
        for size in value.shape if isinstance(value, torch.Tensor) else [value]:
            if isinstance(size, torch.SymInt):
                found[str(size)] = size.node.hint
    return found


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(16, 64), torch.nn.Linear(64, 16)
        self.norm = torch.nn.LayerNorm(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.nn.functional.dropout(torch.nn.functional.gelu(self.up(x)), 0.5)
        mixed = hidden.view(-1, 4, 16).transpose(0, 1).softmax(-1)
        one, other = self.down(hidden).chunk(2, -1)
        value, mean = torch.var_mean(one, -1, keepdim=True)
        return self.norm(torch.cat([one * value, other + mean], -1)) + mixed.sum()


class Image(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolve, self.norm = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled = torch.nn.functional.max_pool2d(torch.relu(self.norm(self.convolve(x))), 2)
        return pooled.flatten(1)[:, ::2].contiguous()


def attention(x: torch.Tensor) -> torch.Tensor:
    heads = x.view(2, -1, 4, 8).transpose(1, 2)
    return torch.nn.functional.scaled_dot_product_attention(heads, heads, heads).double().mean(0)


def in_place(x: torch.Tensor, table: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    table.mul_(2)
    rows = torch.nn.functional.embedding(at, table).expand(3, -1, -1)
    rows = rows.masked_fill(rows > 0, 0.5)
    return (rows * x).unbind(0)[1].to(torch.bfloat16)


PROGRAMS: List[Tuple[Any, Callable[[int], Tuple[torch.Tensor, ...]]]] = [
    (Block(), lambda size: (torch.randn(size, 16, requires_grad=True),)),
    (Image(), lambda size: (torch.randn(size, 3, 8, 8),)),
    (attention, lambda size: (torch.randn(2, size, 32, requires_grad=True),)),
    (in_place, lambda size: (torch.randn(size, 4, requires_grad=True), torch.randn(9, 4), torch.arange(size))),
]


@pytest.mark.skipif(not HAS_BOXED_CODE, reason="this PyTorch does not generate boxed code")
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_what_is_alive_at_each_operation_is_what_was_counted(number: int, dynamic: bool) -> None:
    function, inputs = PROGRAMS[number]
    torch._dynamo.reset()
    found: Found = []
    arguments = inputs(6)
    owned = [*arguments, *(function.parameters() if isinstance(function, torch.nn.Module) else ())]
    forward, backward = counting(found, owned, backward=False), counting(found, owned, backward=True)
    backend = aot_autograd(fw_compiler=forward, bw_compiler=backward, inference_compiler=forward)
    compiled = torch.compile(function, backend=backend, dynamic=dynamic)
    result = compiled(*arguments)
    result.sum().backward()
    del result
    with torch.no_grad():
        compiled(*arguments)
    assert [is_backward for _, is_backward, _, _ in found] == [False, True, False]
    last = None
    for text, is_backward, sizes, counted in found:
        read = read_graph(text, sizes, last, backward=is_backward)
        assert read is not None
        alive = [moment.bytes for moment in read.ledger.moments[:-1]]
        if last is None or is_backward or not read.ledger.uncounted:
            assert alive == counted
        else:  # of several results, some are not used: their sizes are not printed
            assert len(alive) == len(counted)
            assert all(one <= other for one, other in zip(alive, counted))
        last = read


ALSO_COPIES = {"coalesce", "contiguous", "cpu", "cuda", "flatten", "pin_memory", "positive", "ravel", "reshape"} | {
    "reshape_as", "resolve_conj", "resolve_neg", "to", "_autocast_to_full_precision", "_autocast_to_reduced_precision",
    "_grad_sum_to_size", "_sparse_broadcast_to", "as_tensor", "slice_inverse", "to_here", "local_value", "_ncf_view",
    "_ncf_unsqueeze", "_unpack_dual", "_unwrap_optional", "_test_autograd_multiple_dispatch_view", "_unsafe_view",
    "__getitem__", "get", "keys", "pop", "setdefault", "rename", "refine_names", "align_to",
}  # fmt: skip
"""May copy, or never are in a graph of AOTAutograd (those of named tensors, which 2.11 has as well); and those that
return a view without saying so."""


@pytest.mark.skipif(not HAS_BOXED_CODE, reason="schemas of older PyTorch call other operations views")
def test_the_operations_that_return_views_are_those_of_pytorchs_schemas() -> None:
    schemas = [schema for schema in torch._C._jit_get_all_schemas() if schema.name.startswith("aten::")]
    for name in dir(torch.ops.prims):
        packet = getattr(torch.ops.prims, name)
        schemas += [getattr(packet, each)._schema for each in getattr(packet, "overloads", list)()]
    views = {
        schema.name.replace("::", ".")
        for schema in schemas
        if any(result.alias_info is not None and not result.alias_info.is_write for result in schema.returns)
    }
    assert {name.partition(".")[2] for name in views ^ VIEWS} <= ALSO_COPIES


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(32, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (torch.relu(self.linear(x)).softmax(-1) @ self.linear.weight).sum(0)


def memory_of(directory: Path) -> Dict[str, Memory]:
    (loaded,) = load([str(directory)])
    return {each.id.partition(".")[2]: each.memory for each in loaded.run.artifacts if each.memory is not None}


def test_the_peak_of_generated_code_is_what_the_allocator_gave(tmp_path: Path) -> None:
    torch._dynamo.reset()
    x = torch.randn(48, 32)
    with depyf.prepare_debug(tmp_path), torch.no_grad():
        compiled = torch.compile(Net())
        compiled(x)
        compiled(x)
        with torch.profiler.profile(profile_memory=True) as profile:
            compiled(x)
    found = memory_of(tmp_path)
    alive = most = 0
    for event in profile.profiler.kineto_results.events():  # in order of time
        if event.name() == "[memory]" and event.device_type() == torch.autograd.DeviceType.CPU:
            alive += event.nbytes()
            most = max(most, alive)
    module, graph = found["kernel_0.py"], found["Forward_graph.0.py"]
    assert module.uncounted == 0
    assert module.peak - module.inputs == most
    assert module.inputs == graph.inputs
