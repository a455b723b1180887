"""Ten numerical bugs, each planted at one operation, and ten healthy models, for ``depyf.compare``.

A bug is installed by a context manager, which answers the backend to compile with. What has to be found is the line
with the comment ``# wrong`` and the operation named there.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, Tuple

import torch
from torch import Tensor, nn
from torch._dynamo.backends.common import aot_autograd
from torch.nn import functional

aten = torch.ops.aten


@dataclass(frozen=True)
class Planted:
    """``operation`` is a part of what the wrong operation is called, ``stage`` of the stage that makes it wrong."""

    function: Callable[..., Any]
    arguments: Callable[[], Tuple[Any, ...]]
    install: Callable[[], Any]
    operation: str
    stage: str
    backward: bool = False
    inductor: bool = True


PLANTED: Dict[str, Planted] = {}


def retarget(graph: Any, old: Any, new: Any) -> None:
    """Make the first call of ``old`` in the graph one of ``new``."""
    for node in graph.nodes:
        if node.target == old:
            node.target = new
            return


def scale_first(graph: Any, target: Any, factor: float) -> None:
    """Multiply what the first call of ``target`` in the graph gives."""
    for node in graph.nodes:
        if node.target == target:
            scale_result(graph, node, factor)
            return


def scale_result(graph: Any, node: Any, factor: float) -> None:
    with graph.inserting_after(node):
        scaled = graph.call_function(aten.mul.Tensor, (node, factor))
    scaled.meta = dict(node.meta)
    node.replace_all_uses_with(scaled)
    scaled.args = (node, factor)


def boxed(module: Any) -> Any:
    def call(arguments: Any) -> Any:
        given = list(arguments)
        arguments.clear()
        return module(*given)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


# A backend of one's own that changes a node of Dynamo's graph


def network(x: Tensor, w: Tensor) -> Tensor:
    y = x @ w
    z = torch.sigmoid(y)
    s = z.sin()  # wrong
    return (s * 2 + y).mean(dim=0)


def two_matrices() -> Tuple[Any, ...]:
    return torch.randn(8, 16), torch.randn(16, 12, requires_grad=True)


def cosine_backend(module: Any, inputs: Any) -> Any:
    """Says cos where the graph says sin."""
    retarget(module.graph, "sin", "cos")
    module.recompile()
    return module


@contextlib.contextmanager
def opaque() -> Iterator[Any]:
    yield cosine_backend


PLANTED["backend that changes a node"] = Planted(network, two_matrices, opaque, "sin", "cosine_backend", inductor=False)


# One that uses AOTAutograd: the compiler of the forward, and that of the backward


def forward_compiler(module: Any, inputs: Any) -> Any:
    scale_first(module.graph, aten.sigmoid.default, 1.001)
    module.recompile()
    return boxed(module)


def plain_compiler(module: Any, inputs: Any) -> Any:
    return boxed(module)


def backward_compiler(module: Any, inputs: Any) -> Any:
    scale_first(module.graph, aten.mul.Tensor, 1.01)
    module.recompile()
    return boxed(module)


def gated(x: Tensor, w: Tensor) -> Tensor:
    y = functional.linear(x, w)
    z = torch.sigmoid(y)  # wrong
    return z * y.sin()


def waves(x: Tensor, w: Tensor) -> Tensor:
    y = functional.linear(x, w)
    z = y.sin()  # wrong
    return z + y


def two_weights() -> Tuple[Any, ...]:
    return torch.randn(8, 16), torch.randn(12, 16, requires_grad=True)


@contextlib.contextmanager
def wrong_forward_compiler() -> Iterator[Any]:
    backend = aot_autograd(fw_compiler=forward_compiler, bw_compiler=plain_compiler)
    backend.__name__ = "wrong_forward"
    yield backend


@contextlib.contextmanager
def wrong_backward_compiler() -> Iterator[Any]:
    backend = aot_autograd(fw_compiler=plain_compiler, bw_compiler=backward_compiler)
    backend.__name__ = "wrong_backward"
    yield backend


PLANTED["compiler of the forward"] = Planted(
    gated, two_weights, wrong_forward_compiler, "sigmoid", "wrong_forward", inductor=False
)
PLANTED["compiler of the backward"] = Planted(
    waves, two_weights, wrong_backward_compiler, "mul", "wrong_backward", backward=True, inductor=False
)


# Inductor's passes


@contextlib.contextmanager
def inductor_pass(name: str, change: Callable[[Any], None]) -> Iterator[Any]:
    import torch._inductor.config as config

    before = getattr(config, name)
    setattr(config, name, change)
    try:
        yield "inductor"
    finally:
        setattr(config, name, before)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(16, 32)
        self.down = nn.Linear(32, 16)
        self.norm = nn.LayerNorm(16)

    def forward(self, x: Tensor) -> Tensor:
        h = self.up(self.norm(x))
        h = torch.tanh(h)  # wrong
        return x + self.down(h)


def one_batch() -> Tuple[Any, ...]:
    return (torch.randn(4, 16),)


def block() -> Any:
    torch.manual_seed(0)
    return Block()


def pre_grad(graph: Any) -> None:
    retarget(graph, torch.tanh, torch.sigmoid)


def post_grad(graph: Any) -> None:
    scale_first(graph, aten.tanh.default, 0.999)


def joint(graph: Any) -> None:
    """Changes a node of the backward part: what is multiplied with the derivative of tanh."""
    for node in graph.nodes:
        if node.target == aten.mul.Tensor and getattr(node.args[1], "target", None) == aten.sub.Tensor:
            scale_result(graph, node, 1.02)
            return


def post_grad_in_backward(graph: Any) -> None:
    scale_first(graph, aten.where.self, 1.05)


def one_multiplication(x: Tensor, w: Tensor) -> Tensor:
    y = x.exp()
    z = torch.relu(y @ w)  # wrong
    return z.sum(dim=1)


def fused_only(graph: Any) -> None:
    """Changes the square of what has no other use: with the value as an output of the graph, nothing is wrong."""
    for node in list(graph.nodes):
        if node.target == aten.sin.default and len(node.users) == 1:
            node.target = aten.cos.default


def fused(x: Tensor) -> Tensor:
    y = x * 2
    z = torch.exp(y - 3)
    s = torch.sin(z)  # wrong
    t = s + y
    return torch.tanh(t)


PLANTED["pre_grad_custom_pass"] = Planted(
    block(), one_batch, lambda: inductor_pass("pre_grad_custom_pass", pre_grad), "tanh", "inductor"
)
PLANTED["post_grad_custom_pre_pass"] = Planted(
    block(), one_batch, lambda: inductor_pass("post_grad_custom_pre_pass", post_grad), "tanh", "inductor"
)
PLANTED["joint_custom_pre_pass"] = Planted(
    block(), one_batch, lambda: inductor_pass("joint_custom_pre_pass", joint), "mul", "inductor", backward=True
)
PLANTED["post_grad_custom_post_pass, backward"] = Planted(
    one_multiplication,
    lambda: (torch.randn(6, 5, requires_grad=True), torch.randn(5, 7)),
    lambda: inductor_pass("post_grad_custom_post_pass", post_grad_in_backward),
    "where",
    "inductor",
    backward=True,
)
PLANTED["only where it is fused"] = Planted(
    fused, lambda: (torch.randn(32),), lambda: inductor_pass("post_grad_custom_pre_pass", fused_only), "sin", "inductor"
)


# A decomposition, and a lowering


@contextlib.contextmanager
def wrong_decomposition() -> Iterator[Any]:
    from torch._inductor import decomposition

    operator = aten.hardtanh.default
    decompositions = decomposition.decompositions
    before = decompositions[operator]
    decompositions[operator] = lambda x, low=-1.0, high=1.0: torch.clamp(x, low * 0.9, high * 0.9)
    decomposition.fast_random_decomps.cache_clear()
    try:
        yield "inductor"
    finally:
        decompositions[operator] = before
        decomposition.fast_random_decomps.cache_clear()


def clipped(x: Tensor, w: Tensor) -> Tensor:
    y = x @ w
    z = functional.hardtanh(y)  # wrong
    return z * y


@contextlib.contextmanager
def wrong_lowering() -> Iterator[Any]:
    from torch._inductor import lowering

    operator = aten.erf.default
    before = lowering.lowerings[operator]
    lowering.lowerings[operator] = lambda x: lowering.lowerings[aten.mul.Tensor](before(x), 1.003)
    try:
        yield "inductor"
    finally:
        lowering.lowerings[operator] = before


def error_function(x: Tensor, w: Tensor) -> Tensor:
    y = torch.exp(x @ w * 0.1)
    torch._dynamo.graph_break()
    z = torch.erf(y)  # wrong
    return z * y


PLANTED["decomposition"] = Planted(clipped, two_matrices, wrong_decomposition, "hardtanh", "decompositions")
PLANTED["lowering, after a graph break"] = Planted(error_function, two_matrices, wrong_lowering, "erf", "inductor")


HEALTHY: Dict[str, Callable[[], Tuple[Any, Tuple[Any, ...]]]] = {}


def healthy(make: Callable[[], Tuple[Any, Tuple[Any, ...]]]) -> Callable[[], Tuple[Any, Tuple[Any, ...]]]:
    """Register a maker of a function (or module) and its arguments."""
    HEALTHY[make.__name__] = make
    return make


@healthy
def attention_in_bfloat16() -> Any:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).bfloat16()
    return layer.eval(), (torch.randn(2, 7, 32).bfloat16(),)


@healthy
def dropout_while_training() -> Any:
    torch.manual_seed(0)
    return nn.TransformerEncoderLayer(32, 4, 64, 0.2, batch_first=True), (torch.randn(2, 7, 32),)


@healthy
def batch_norm_and_convolutions() -> Any:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.Flatten(), nn.Linear(256, 5)
    )
    return model, (torch.randn(4, 3, 12, 12),)


@healthy
def under_autocast() -> Any:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 8), nn.Softmax(dim=-1))

    def function(x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(x).float()  # type: ignore[no-any-return]

    return function, (torch.randn(16, 32),)


@healthy
def long_sums() -> Any:
    torch.manual_seed(0)

    def function(x: Tensor) -> Tensor:
        y = x.cumsum(dim=0)
        return torch.stack([y.mean(), y.var(), (y * 1e-3).exp().sum(), x.logsumexp(dim=0).sum()])

    return function, (torch.randn(4000, 3, requires_grad=True),)


@healthy
def sums_that_cancel() -> Any:
    torch.manual_seed(0)

    def function(x: Tensor) -> Tensor:
        y = x - x.mean(dim=-1, keepdim=True)
        return y.sum(dim=-1) + (x.softmax(dim=-1).sum(dim=-1) - 1)

    return function, (torch.randn(16, 100, requires_grad=True),)


@healthy
def half_precision_overflow() -> Any:
    torch.manual_seed(0)

    def function(x: Tensor) -> Tensor:
        y = x * 300
        z = y * y
        return (z / 1000).sqrt().clamp(max=1000.0)

    return function, (torch.randn(64).half(),)


@healthy
def graph_breaks_and_branches() -> Any:
    torch.manual_seed(0)
    linear = nn.Linear(16, 16)

    def function(x: Tensor, mode: str) -> Dict[str, Tensor]:
        y = linear(x)
        if y.sum() > 1e9:
            y = y * 2
        print(end="")
        z = y.relu() if mode == "relu" else y.tanh()
        return {"z": z, "norm": z.norm(dim=-1)}

    return function, (torch.randn(4, 16, requires_grad=True), "relu")


@healthy
def updates_in_place() -> Any:
    torch.manual_seed(0)

    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(8, 8)
            self.register_buffer("mean", torch.zeros(8))

        def forward(self, x: Tensor, out: Tensor) -> Tensor:
            y = self.linear(x)
            self.mean.mul_(0.9).add_(y.detach().mean(dim=0), alpha=0.1)
            out[:2] = y[:2].detach()
            return y - self.mean

    return Counter(), (torch.randn(4, 8), torch.zeros(4, 8))


@healthy
def integers_and_sorting() -> Any:
    torch.manual_seed(0)

    def function(x: Tensor, index: Tensor) -> Tuple[Tensor, ...]:
        values, order = x.sort(dim=-1)
        best = x.argmax(dim=-1)
        return values[index], order.sum(dim=0), best, torch.bincount(index, minlength=4), x > 0

    return function, (torch.randn(6, 5, requires_grad=True), torch.tensor([0, 2, 2, 5]))
