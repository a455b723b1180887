"""Small programs that break graphs, each in a way of its own. ``PROGRAMS`` maps a name to a maker of fresh cases."""

from __future__ import annotations

import collections
import contextlib
import functools
import math
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List

import torch
from case import Case
from torch import Tensor

PROGRAMS: Dict[str, Callable[[], Case]] = {}

COUNTER = 0
LOG: List[str] = []


def program(make: Callable[[], Case]) -> Callable[[], Case]:
    PROGRAMS[make.__name__] = make
    return make


def tensors(*shapes: Any) -> List[Tensor]:
    generator = torch.Generator().manual_seed(7)
    return [torch.randn(shape, generator=generator) for shape in shapes]


def unary(function: Callable[..., Any], *extra: Any) -> Case:
    x, y = tensors((3, 4), (3, 4))
    return Case(function, [(x, *extra), (-x.abs(), *extra), (y, *extra)])


@program
def print_in_the_middle() -> Case:
    def f(x: Tensor) -> Tensor:
        y = x.sin()
        print("middle", tuple(y.shape))
        return y * 2

    return unary(f)


@program
def print_twice_with_values() -> Case:
    def f(x: Tensor) -> Tensor:
        y = x + 1
        print("sum", y.shape[0])
        z = y * x
        print("done")
        return z - y

    return unary(f)


@program
def item_as_scalar() -> Case:
    def f(x: Tensor) -> Tensor:
        scale = x.detach().abs().sum().item()
        return x / (scale + 1)

    return unary(f)


@program
def branch_on_data() -> Case:
    def f(a: Tensor) -> Tensor:
        x = a / (torch.abs(a) + 1)
        if a.sum() < 0:
            a = a * -1
        return x * a

    return unary(f)


@program
def branch_with_else_chain() -> Case:
    def f(x: Tensor) -> Tensor:
        total = x.sum()
        if total > 100:
            y = x + 1
        elif total > 0:
            y = x - 1
        else:
            y = x * 3
        return y.cos() + x

    return unary(f)


@program
def nested_branches() -> Case:
    def f(x: Tensor, flag: bool) -> Tensor:
        if x.mean() > 0:
            if flag:
                x = x + 2
            else:
                x = x - 2
        y = x.relu()
        if y.sum() > 1:
            return y
        return -y

    return unary(f, True)


@program
def loop_with_break_inside() -> Case:
    def f(x: Tensor) -> Tensor:
        for step in range(4):
            x = x * 1.5 + step
            torch._dynamo.graph_break()
        return x.sum()

    return unary(f)


@program
def loop_until_data_says_so() -> Case:
    def f(x: Tensor) -> Any:
        steps = 0
        while x.abs().sum() > 1:
            x = x / 2
            steps += 1
        return x, steps

    return unary(f)


@program
def loop_with_continue_and_break() -> Case:
    def f(x: Tensor) -> Tensor:
        total = x * 0
        for row in x:
            if row.sum() < -2:
                continue
            total = total + row
            if total.sum() > 5:
                break
        return total

    return unary(f)


@program
def with_no_grad() -> Case:
    def f(x: Tensor) -> Tensor:
        with torch.no_grad():
            y = x.sin()
            torch._dynamo.graph_break()
            y = y + 1
        return x * y

    return unary(f)


@program
def with_two_contexts() -> Case:
    def f(x: Tensor) -> Tensor:
        with torch.no_grad(), torch.autocast("cpu"):
            y = x @ x.T
            print("inside")
            y = y - 3
        return x.sum() + y.float()

    return unary(f)


@contextlib.contextmanager
def logged(name: str) -> Iterator[str]:
    LOG.append(f"enter {name}")
    try:
        yield name
    finally:
        LOG.append(f"leave {name}")


@program
def with_own_context() -> Case:
    def f(x: Tensor) -> Tensor:
        with logged("one") as name:
            y = x + len(name)
            print(name)
        return y * 2

    LOG.clear()
    return Case(f, unary(f).calls, lambda: list(LOG))


@program
def with_return_inside() -> Case:
    def f(x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x.T
            torch._dynamo.graph_break()
            return y + 1

    return unary(f)


@program
def try_and_recover() -> Case:
    def f(x: Tensor) -> Tensor:
        y = x + 1
        try:
            print("try")
            if y.sum() < 0:
                raise ValueError("negative")
            y = y * 2
        except ValueError as error:
            print("caught", error)
            y = y - 2
        finally:
            print("finally")
        return y.sin()

    return unary(f)


@program
def exception_passes_through() -> Case:
    def f(x: Tensor) -> Tensor:
        y = x * 2
        if y.sum() < 0:
            raise RuntimeError("sum is negative")
        return y

    return unary(f)


@program
def exception_from_torch() -> Case:
    def f(x: Tensor) -> Tensor:
        y = x + 1
        print("about to fail")
        return y @ y

    return unary(f)


@program
def closure_reads_cell() -> Case:
    scale = torch.ones(4) * 3

    def f(x: Tensor) -> Tensor:
        y = x * scale
        print("scaled")
        return y + scale

    return unary(f)


@program
def closure_writes_cell() -> Case:
    count = 0

    def f(x: Tensor) -> Tensor:
        nonlocal count
        count += 1
        y = x + count
        print("count", count)
        count += 1
        return y * count

    return Case(f, unary(f).calls, lambda: count)


@program
def inner_function_shares_cell() -> Case:
    def f(x: Tensor) -> Tensor:
        shift = x.mean()

        def inner(value: Tensor) -> Tensor:
            return value - shift

        y = inner(x)
        print("between")
        shift = shift + 1
        return inner(y)

    return unary(f)


@program
def nested_functions_that_break() -> Case:
    def deep(x: Tensor) -> Tensor:
        y = x.sin()
        torch._dynamo.graph_break()
        return y + 1

    def middle(x: Tensor, times: int) -> Tensor:
        return deep(x) * times

    def f(x: Tensor) -> Tensor:
        return middle(x, times=2) + middle(x, 3)

    return unary(f)


@program
def generator_consumed() -> Case:
    def pieces(x: Tensor) -> Iterator[Tensor]:
        for index in range(3):
            yield x[index] * index

    def f(x: Tensor) -> Tensor:
        total = x[0] * 0
        for piece in pieces(x):
            total = total + piece
            print("piece")
        return total

    return unary(f)


@program
def generator_returned() -> Case:
    def f(x: Tensor) -> List[Tensor]:
        y = x.cos()
        torch._dynamo.graph_break()
        return [row * 2 for row in y] + [row for row in y if row.sum() > 0]

    return unary(f)


@program
def list_is_changed() -> Case:
    seen: List[Any] = []

    def f(x: Tensor) -> Tensor:
        y = x * 2
        seen.append(y)
        print(len(seen))
        seen.append(1)
        return y + len(seen)

    return Case(f, unary(f).calls, lambda: seen)


@program
def dict_is_changed() -> Case:
    table: Dict[str, Any] = {"calls": 0}

    def f(x: Tensor) -> Tensor:
        table["calls"] += 1
        table["last"] = x.detach() + 1
        torch._dynamo.graph_break()
        table[f"call {table['calls']}"] = True
        return x * table["calls"]

    return Case(f, unary(f).calls, lambda: table)


@program
def argument_list_is_changed() -> Case:
    def f(x: Tensor, items: List[Any]) -> Tensor:
        items.append(x.shape[0])
        y = x + len(items)
        print(len(items))
        items[0] = y.detach()
        return y

    items: List[Any] = [0]
    return Case(f, unary(f, items).calls, lambda: items)


@program
def global_is_changed() -> Case:
    def f(x: Tensor) -> Tensor:
        global COUNTER
        COUNTER += 1
        y = x * COUNTER
        print("counter", COUNTER)
        COUNTER += 10
        return y

    global COUNTER
    COUNTER = 0
    return Case(f, unary(f).calls, lambda: COUNTER)


class Holder:
    def __init__(self) -> None:
        self.value = 1
        self.history: List[Any] = []


@program
def attribute_is_changed() -> Case:
    holder = Holder()

    def f(x: Tensor) -> Tensor:
        holder.value = holder.value + 1
        holder.history.append(holder.value)
        torch._dynamo.graph_break()
        holder.extra = x.detach().sum()
        return x * holder.value

    return Case(f, unary(f).calls, lambda: (holder.value, holder.history, holder.extra))


@program
def object_is_made_and_returned() -> Case:
    @dataclass
    class Pair:
        first: Tensor
        second: int

    def f(x: Tensor) -> Pair:
        pair = Pair(x + 1, 2)
        print("made")
        pair.second += 1
        return pair

    return unary(f)


@program
def inplace_on_argument() -> Case:
    def f(x: Tensor) -> Tensor:
        y = x.clone()
        y.add_(1)
        torch._dynamo.graph_break()
        y.mul_(x)
        return y

    return unary(f)


@program
def default_and_keyword_arguments() -> Case:
    def f(x: Tensor, *rest: Any, scale: float = 2.0, **options: Any) -> Tensor:
        y = x * scale
        print(len(rest), sorted(options))
        return y + sum(rest) + options.get("bias", 0)

    return Case(functools.partial(f, bias=3), unary(f, 1, 2).calls)


@program
def several_results() -> Case:
    def f(x: Tensor) -> Any:
        low, high = x.min(), x.max()
        print("minmax")
        return {"low": low, "pair": (high, [low + high, None]), "text": "t", "nan": math.nan}

    return unary(f)


@program
def numpy_in_the_middle() -> Case:
    def f(x: Tensor) -> Tensor:
        y = x.detach().numpy().sum(axis=0)
        print(y.shape)
        return x + torch.from_numpy(y)

    return unary(f)


@program
def random_numbers() -> Case:
    def f(x: Tensor) -> Tensor:
        y = x + torch.rand(4)
        torch._dynamo.graph_break()
        return y * torch.rand_like(x)

    return unary(f)


@program
def short_circuits() -> Case:
    def f(x: Tensor) -> Tensor:
        if (x.sum() > 0 and x.mean() < 10) or x.max() > 3:
            x = x + 1
        return x * 2 if x.min() > -1 else x

    return unary(f)


@program
def chained_comparison() -> Case:
    def f(x: Tensor) -> Tensor:
        if -1 < x.mean() < 1:
            return x.exp()
        return x

    return unary(f)


@program
def unpacking_and_swapping() -> Case:
    def f(x: Tensor) -> Tensor:
        a, *middle, b = x
        a, b = b, a
        print(len(middle))
        return a * 2 + b + middle[0]

    return unary(f)


@program
def format_a_string() -> Case:
    def f(x: Tensor) -> Any:
        y = x * 2
        text = f"{y.detach().sum().item():.3f} and {tuple(y.shape)!r}"
        return y + 1, text

    return unary(f)


@program
def lambda_and_partial() -> Case:
    def f(x: Tensor) -> Tensor:
        double = lambda value: value * 2  # noqa: E731 - the lambda is the point
        add = functools.partial(torch.add, double(x))
        print("between")
        return add(double(x))

    return unary(f)


@program
def ordered_dict_and_namedtuple() -> Case:
    Point = collections.namedtuple("Point", "x y")

    def f(x: Tensor) -> Any:
        table = collections.OrderedDict(a=x + 1)
        point = Point(x, x * 2)
        print("here")
        table["b"] = point.y
        return list(table.values()), tuple(point)

    return unary(f)


@program
def lambda_is_compiled() -> Case:
    return unary(lambda x: x.sin() if x.sum() > 0 else x.cos())


@program
def matrix_of_two_sizes() -> Case:
    def f(x: Tensor) -> Tensor:
        y = (x @ x.T).softmax(-1)
        torch._dynamo.graph_break()
        return y.sum() * 2

    return Case(f, [(each,) for each in tensors((4, 4), (6, 6), (7, 7))])


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.first = torch.nn.Linear(4, 8)
        self.second = torch.nn.Linear(8, 4)
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        hidden = torch.relu(self.first(x))
        if hidden.sum() > 1:
            hidden = hidden * 0.5
        return self.second(hidden) + x


@program
def module_with_a_branch() -> Case:
    block = Block()

    def state() -> Any:
        return block.calls, [parameter.grad for parameter in block.parameters()]

    return Case(block, unary(block).calls, state)


@program
def sequential_module_with_hook() -> Case:
    model = torch.nn.Sequential(Block(), torch.nn.Tanh(), Block())
    seen: List[int] = []
    model[1].register_forward_hook(lambda module, inputs, output: seen.append(len(inputs)))
    return Case(model, unary(model).calls, lambda: (seen, [parameter.grad for parameter in model.parameters()]))


class Extended(Block):
    def forward(self, x: Tensor) -> Tensor:
        below = super().forward(x * 2)
        print("between", below.shape)
        return below - super().forward(x)


@program
def module_that_calls_super() -> Case:
    block = Extended()
    return Case(block, unary(block).calls, lambda: [parameter.grad for parameter in block.parameters()])


@program
def argument_in_a_closure() -> Case:
    def f(x: Tensor) -> Tensor:
        def shifted(y: Tensor) -> Tensor:
            return x + y

        x = x + 1
        print("first", x.shape)
        x = x + 2
        print("second", x.shape)
        return shifted(x)

    return unary(f)


@program
def displays_of_constants() -> Case:
    def f(x: Tensor) -> Any:
        sizes, parts = {8, 0, 16}, {0: x, 1: x + 1}
        print(len(sizes), len(parts))
        sizes.add(x.shape[0])
        print(sizes)
        return parts[1] * len(sizes), parts, sizes

    return unary(f)
