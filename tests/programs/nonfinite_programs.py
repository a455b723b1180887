"""Small programs with a value that is not finite (``PLANTED``), and others with none that matters (``CLEAN``).

Each takes ``compiled``, which compiles a function, and runs what it compiles. In the planted ones the comment ``HERE``
marks the line that is to be found; the decorator says in which operation (a regular expression for the operator and
what the user called), and whether it is the backward of that line.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it

Program = Callable[[Callable[..., Any]], object]


class Planted(NamedTuple):
    program: Program
    operation: str
    backward: bool
    kind: str


PLANTED: Dict[str, Planted] = {}
CLEAN: Dict[str, Program] = {}


def planted(operation: str, *, backward: bool = False, kind: str = "NaN") -> Callable[[Program], Program]:
    def add(program: Program) -> Program:
        PLANTED[program.__name__] = Planted(program, operation, backward, kind)
        return program

    return add


def clean(program: Program) -> Program:
    CLEAN[program.__name__] = program
    return program


def leaf(*values: float) -> Any:
    return torch.tensor(values, requires_grad=True)


@planted("log")
def log_of_a_negative_number(compiled: Any) -> None:
    def loss(x: Any) -> Any:
        doubled = x * 2
        return (torch.log(doubled - 1) * doubled).sum()  # HERE

    compiled(loss)(leaf(1.0, 0.2, 3.0)).backward()


@planted("div")
def inside_a_fused_kernel(compiled: Any) -> None:
    def pointwise(x: Any, y: Any) -> Any:
        a = torch.sin(x) + torch.cos(y)
        b = torch.relu(a - 5)
        c = b / (b + b)  # HERE
        return torch.tanh(c) * x

    compiled(pointwise)(torch.randn(64), torch.randn(64))


@planted("exp", kind="Inf")
def exp_overflows(compiled: Any) -> None:
    def softplus(x: Any) -> Any:
        grown = torch.exp(x * 10)  # HERE
        return torch.log(1 + grown).mean()

    compiled(softplus)(torch.tensor([1.0, 20.0, 3.0]))


@planted("sqrt|div", backward=True, kind="Inf")
def gradient_of_a_root_at_zero(compiled: Any) -> None:
    def length(x: Any) -> Any:
        squares = (x * x).sum()
        return torch.sqrt(squares)  # HERE

    compiled(length)(leaf(0.0, 0.0)).backward()


@planted("log|div", backward=True, kind="NaN|Inf")
def gradient_behind_where(compiled: Any) -> None:
    def entropy(x: Any) -> Any:
        logs = torch.log(x)  # HERE
        return torch.where(x > 0, x * logs, torch.zeros_like(x)).sum()

    compiled(entropy)(leaf(0.0, 0.5, 0.5)).backward()


@planted("acos|rsqrt|reciprocal", backward=True, kind="Inf")
def gradient_of_an_angle(compiled: Any) -> None:
    def angle(x: Any, y: Any) -> Any:
        cosine = (x * y).sum(-1)
        return torch.acos(cosine).mean()  # HERE

    compiled(angle)(torch.tensor([[1.0, 0.0]], requires_grad=True), torch.tensor([[1.0, 0.0]])).backward()


@planted("mul", kind="Inf")
def in_a_loop(compiled: Any) -> None:
    def power(x: Any) -> Any:
        for _ in range(9):
            x = x * x  # HERE
        return x.sum()

    compiled(power)(torch.tensor([1.5, 0.5, 1.0]))


class Normalized(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(3)])

    def normalize(self, x: Any) -> Any:
        centered = x - x.mean(-1, keepdim=True)
        return centered / centered.pow(2).mean(-1, keepdim=True).sqrt()  # HERE

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.normalize(x)


@planted("div")
def in_a_method_of_a_module(compiled: Any) -> None:
    torch.manual_seed(0)
    model = Normalized()
    with torch.no_grad():
        model.layers[2].bias.fill_(-100)
    compiled(model)(torch.randn(2, 4))


class Inverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (x,) = ctx.saved_tensors
        scaled = gradient / (x - x)  # HERE
        return scaled * 2


@planted("div", backward=True, kind="Inf")
def in_a_custom_autograd_function(compiled: Any) -> None:
    def use(x: Any) -> Any:
        return Inverse.apply(torch.sin(x)).sum()

    compiled(use)(leaf(1.0, 2.0)).backward()


@planted("log", kind="Inf")
def in_the_second_graph(compiled: Any) -> None:
    def broken(x: Any) -> Any:
        x = torch.relu(x)
        torch._dynamo.graph_break()
        return torch.log(x) + 1  # HERE

    compiled(broken)(torch.tensor([-1.0, 2.0]))


@planted("addmm|mm|linear", kind="Inf")
def only_under_mixed_precision(compiled: Any) -> None:
    layer = torch.nn.Linear(8, 4)

    def run(x: Any) -> Any:
        h = x * 300
        return F.linear(h, layer.weight, layer.bias).sum()  # HERE

    with torch.no_grad():
        layer.weight.fill_(300.0)
    with torch.autocast("cpu", dtype=torch.float16):
        compiled(run)(torch.ones(2, 8))


@planted("div")
def for_one_of_many_inputs(compiled: Any) -> None:
    def share(x: Any) -> Any:
        return x / x.sum(-1, keepdim=True)  # HERE

    run = compiled(share)
    for number in range(6):
        run(torch.zeros(3, 4) if number == 4 else torch.ones(3, 4))


@planted("softmax|sub")
def a_row_that_is_masked_altogether(compiled: Any) -> None:
    def attend(x: Any, mask: Any) -> Any:
        scores = (x @ x.T).masked_fill(mask, float("-inf"))
        return torch.softmax(scores, -1) @ x  # HERE

    mask = torch.zeros(3, 3, dtype=torch.bool)
    mask[1] = True
    compiled(attend)(torch.randn(3, 3), mask)


@planted("pow", backward=True, kind="Inf")
def while_gradients_are_accumulated(compiled: Any) -> None:
    weight = leaf(1.0, 2.0)

    def loss(x: Any) -> Any:
        return (x * weight).abs().pow(0.5).sum()  # HERE

    run = compiled(loss)
    for batch in ([1.0, 2.0], [3.0, 1.0], [0.0, 1.0]):
        run(torch.tensor(batch)).backward()


@planted("div")
def in_a_compiled_optimizer_step(compiled: Any) -> None:
    parameters = [leaf(1.0, 2.0), leaf(3.0)]

    @torch.no_grad()
    def step() -> None:
        for parameter in parameters:
            direction = parameter.grad / parameter.grad.norm()  # HERE
            parameter.sub_(0.1 * direction)

    run = compiled(step)
    for scale in (1.0, 0.0):
        for parameter in parameters:
            parameter.grad = torch.ones_like(parameter) * scale
        run()


@planted("std|var|sqrt")
def spread_of_one_value(compiled: Any) -> None:
    def standardize(x: Any) -> Any:
        spread = x.std(-1, keepdim=True)  # HERE
        return (x - x.mean(-1, keepdim=True)) / (spread + 1e-5)

    compiled(standardize)(torch.randn(4, 1))


@planted("log", kind="Inf")
def log_of_a_softmax(compiled: Any) -> None:
    def nll(x: Any, target: Any) -> Any:
        probabilities = torch.softmax(x, -1)
        return -torch.log(probabilities)[torch.arange(2), target].mean()  # HERE

    compiled(nll)(torch.tensor([[1000.0, 0.0], [0.0, 1.0]]), torch.tensor([1, 0]))


@planted("mean|div|sum")
def mean_of_nothing(compiled: Any) -> None:
    def tail(x: Any) -> Any:
        rest = x[8:]
        return x.sum() + rest.mean()  # HERE

    compiled(tail)(torch.ones(8))


@planted("log", kind="Inf")
def log_of_a_dropout(compiled: Any) -> None:
    def noisy(x: Any) -> Any:
        kept = F.dropout(x, 0.5)
        return torch.log(kept) * 2  # HERE

    torch.manual_seed(1)
    compiled(noisy)(torch.ones(50))


@planted("div", kind="NaN")
def with_dynamic_shapes(compiled: Any) -> None:
    def unit(x: Any) -> Any:
        return x / x.norm(dim=-1, keepdim=True)  # HERE

    run = compiled(unit, dynamic=True)
    for size in (3, 5, 7):
        x = torch.ones(size, 2)
        x[-1] = 0 if size == 7 else 1
        run(x)


@planted("mul", backward=True, kind="Inf")
def half_precision_overflows_backward(compiled: Any) -> None:
    def scaled(x: Any) -> Any:
        large = x * 300.0  # HERE
        return large.sum()

    x = torch.ones(4, dtype=torch.float16, requires_grad=True)
    (compiled(scaled)(x).float() * 1000).backward()


@planted("log|div|mul", backward=True, kind="NaN|Inf")
def gradient_behind_clamp(compiled: Any) -> None:
    def bounded(x: Any) -> Any:
        values = torch.log(x)  # HERE
        return torch.clamp(values, min=-100).sum()

    compiled(bounded)(leaf(0.0, 1.0)).backward()


@clean
def masked_attention(compiled: Any) -> None:
    def attend(q: Any, k: Any, v: Any) -> Any:
        causal = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
        scores = (q @ k.transpose(-1, -2)).masked_fill(causal, float("-inf"))
        return torch.softmax(scores, -1) @ v

    q, k, v = (torch.randn(2, 5, 4, requires_grad=True) for _ in range(3))
    compiled(attend)(q, k, v).sum().backward()


@clean
def mask_as_an_input(compiled: Any) -> None:
    def attend(q: Any, mask: Any) -> Any:
        return torch.softmax(q @ q.transpose(-1, -2) + mask, -1) @ q

    mask = torch.full((5, 5), float("-inf")).triu(1)
    compiled(attend)(torch.randn(5, 4, requires_grad=True), mask).sum().backward()


@clean
def mask_across_a_graph_break(compiled: Any) -> None:
    def attend(x: Any) -> Any:
        scores = torch.where(x > 0, x, float("-inf"))
        torch._dynamo.graph_break()
        scaled = scores / 2
        torch._dynamo.graph_break()
        return torch.softmax(scaled, -1)

    compiled(attend)(torch.tensor([[1.0, -1.0], [2.0, 3.0]]))


@clean
def guarded_log(compiled: Any) -> None:
    compiled(lambda x: torch.where(x > 0, torch.log(x), torch.zeros_like(x)).sum())(torch.tensor([0.0, -1.0, 2.0]))


@clean
def doubly_guarded_log(compiled: Any) -> None:
    def safe(x: Any) -> Any:
        positive = torch.where(x > 0, x, torch.ones_like(x))
        return torch.where(x > 0, torch.log(positive), torch.zeros_like(x)).sum()

    compiled(safe)(leaf(0.0, -1.0, 2.0)).backward()


@clean
def nan_to_num(compiled: Any) -> None:
    compiled(lambda x: torch.nan_to_num(x / x, nan=0.0).sum())(torch.tensor([0.0, 1.0]))


@clean
def logsumexp(compiled: Any) -> None:
    def reduce(x: Any) -> Any:
        return torch.logsumexp(x.masked_fill(x < 0, float("-inf")), -1).sum()

    compiled(reduce)(torch.tensor([[1.0, -1.0], [2.0, 1000.0]], requires_grad=True)).backward()


@clean
def dropout_and_layer_norm(compiled: Any) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.LayerNorm(8), torch.nn.Dropout(0.5), torch.nn.GELU())
    compiled(model)(torch.randn(3, 4)).sum().backward()


@clean
def mixed_precision(compiled: Any) -> None:
    layer = torch.nn.Linear(8, 4)
    run = compiled(lambda x: F.softmax(layer(x), -1).sum())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = run(torch.randn(2, 8) * 100)
    loss.backward()


@clean
def scaled_dot_product_attention(compiled: Any) -> None:
    q = torch.randn(1, 2, 6, 8, requires_grad=True)
    compiled(lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True).sum())(q).backward()


@clean
def cross_entropy_with_ignored_targets(compiled: Any) -> None:
    x = torch.randn(4, 5, requires_grad=True)
    run = compiled(lambda logits, target: F.cross_entropy(logits, target, ignore_index=-1))
    run(x, torch.tensor([1, -1, 2, -1])).backward()


@clean
def batch_norm_and_max_pool(compiled: Any) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 3, 3, padding=1), torch.nn.BatchNorm2d(3), torch.nn.ReLU(), torch.nn.MaxPool2d(2, padding=1)
    )
    compiled(model)(torch.randn(2, 1, 7, 7)).sum().backward()


@clean
def training_with_adam(compiled: Any) -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    run = compiled(lambda x: model(x).pow(2).mean())
    step = compiled(lambda: optimizer.step())
    for _ in range(2):
        optimizer.zero_grad()
        run(torch.randn(3, 4)).backward()
        step()


@clean
def running_minimum(compiled: Any) -> None:
    def smallest(x: Any) -> Any:
        best = torch.full((3,), float("inf"))
        for row in x:
            best = torch.minimum(best, row)
        return best

    compiled(smallest)(torch.randn(4, 3))


@clean
def running_minimum_that_comes_in(compiled: Any) -> None:
    run = compiled(lambda best, x: torch.minimum(best, x))
    best = torch.full((3,), float("inf"))
    for _ in range(3):
        best = run(best, torch.tensor([1.0, 2.0, float("inf")]))


@clean
def an_infinite_result_that_is_meant(compiled: Any) -> None:
    compiled(lambda x: torch.full_like(x, float("-inf")).masked_fill(x > 0, 0.0))(torch.tensor([1.0, -1.0]))


@clean
def masked_mean(compiled: Any) -> None:
    def mean(x: Any) -> Any:
        known = ~torch.isnan(x)
        return torch.where(known, x, torch.zeros_like(x)).sum() / known.sum()

    compiled(mean)(torch.tensor([1.0, float("nan"), 3.0]))


@clean
def root_with_epsilon(compiled: Any) -> None:
    compiled(lambda x: torch.sqrt((x * x).sum() + 1e-12))(leaf(0.0, 0.0)).backward()


@clean
def integers_and_booleans(compiled: Any) -> None:
    compiled(lambda x, n: (x * n, n // 2, x > 0))(torch.randn(4), torch.arange(4))


@clean
def softmax_in_half_precision(compiled: Any) -> None:
    compiled(lambda x: torch.softmax(x.half() * 100, -1))(torch.randn(4, 4) * 10)


def lines_of(program: Program) -> List[int]:
    """The lines marked HERE that a program runs: in itself, or in what stands above it for it."""
    import inspect

    lines, first = inspect.getsourcelines(program)
    marked = [first + number for number, line in enumerate(lines) if line.rstrip().endswith("# HERE")]
    if marked:
        return marked
    owner = {"in_a_method_of_a_module": Normalized, "in_a_custom_autograd_function": Inverse}[program.__name__]
    lines, first = inspect.getsourcelines(owner)
    return [first + number for number, line in enumerate(lines) if line.rstrip().endswith("# HERE")]
