"""A program with user functions of many kinds, dumped by ``python full_code_programs.py <directory>``.

Importing this file must be noticed: it is user code, which no file in the dump may run.
"""

from __future__ import annotations

import functools
import math
import os
import sys
from typing import Any, Callable, Dict, List, Tuple

import torch
from torch import Tensor, nn

import depyf

if os.environ.get("DEPYF_TEST_USER_CODE_RAN"):
    raise RuntimeError("user code ran")

SCALE = 2.5
TABLE = {"a": 1, "b": 2}


def helper(x: Tensor, factor: float = SCALE) -> Tensor:
    return x * factor


def loud(message: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    return decorate


def branch(a: Tensor, b: Tensor) -> Tensor:
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


# fmt: off
@loud("a decorator over several lines")
def decorated(x: Tensor, how: Any = helper, *, table: Dict[str, int] = TABLE, plain: int = 3) -> Tensor:
    """A docstring
  with a line that is indented less.
    """
    text = """
not indented
"""
    return how(x) * table["a"] + plain + len(text) + math.floor(2.5)
# fmt: on


def variadic(x: Tensor, *rest: Any, scale: int = 2, **named: Any) -> Tensor:
    return x * scale + sum(rest) + named.get("shift", 0)


def loops(x: Tensor) -> Tensor:
    for index in range(3):
        x = x + index
        print("step", index)
    return x


def specialised(x: Tensor, n: int, mode: str) -> Tensor:
    return x + n if mode == "add" else x - n


def closure_factory() -> Callable[[Tensor], Tensor]:
    count, parts = 5, [torch.ones(4)]

    def closure(x: Tensor) -> Tensor:
        nonlocal count
        y = x * count
        print("first")
        count += 1

        def inner() -> Tensor:
            return y

        print("second")
        return inner() + parts[0]

    return closure


def mutating(x: Tensor, out: List[Tensor]) -> Tensor:
    out.append(x + 1)
    TABLE["seen"] = len(out)
    return x * 2


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.__private = 3

    def forward(self, x: Tensor, *, scale: float = 1.0) -> Tensor:
        return self.linear(x) * scale + self.__private


class Child(Net):
    def forward(self, x: Tensor, *, scale: float = 2.0) -> Tensor:
        return super().forward(x, scale=scale) + 1

    def method(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            y = self.linear(x)
            torch._dynamo.graph_break()
            return y + 1


def made_at_run_time() -> Callable[[Tensor], Tensor]:
    names: Dict[str, Any] = {"torch": torch}
    exec("def no_source(x, n=2):\n    return torch.sin(x) * n\n", names)
    function: Callable[[Tensor], Tensor] = names["no_source"]
    return function


def oddly_named() -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        return x + 7

    function.__code__ = function.__code__.replace(co_name="class: <odd> name/\u00e9")
    return function


def called() -> List[Tuple[Any, List[Tuple[Any, ...]]]]:
    """What to compile, and the arguments of its calls."""
    x, y = torch.linspace(-1, 1, 4), torch.ones(4)
    return [
        (branch, [(x, y), (x, -y), (torch.ones(5), torch.ones(5)), (x, y)]),
        (decorated, [(x,), (x.double(),)]),
        (variadic, [(x, 1, 2)]),
        (functools.partial(variadic, shift=3), [(x, 1)]),
        (loops, [(x,)]),
        (specialised, [(x, 1, "add"), (x, 1, "sub"), (x, 2, "add"), (x, 3, "add")]),
        (closure_factory(), [(x,), (x,)]),
        (mutating, [(x, []), (x, [y])]),
        (Net(), [(torch.ones(2, 4),)]),
        (Child(), [(torch.ones(2, 4),)]),
        (Child().method, [(torch.ones(2, 4),)]),
        (lambda t, n=2: t + n, [(x,)]),
        (made_at_run_time(), [(x,)]),
        (oddly_named(), [(x,)]),
    ]


def main(directory: str) -> None:
    torch.manual_seed(0)
    with depyf.prepare_debug(directory):
        for function, calls in called():
            compiled = torch.compile(function, backend="eager")
            for arguments in calls:
                compiled(*arguments)


if __name__ == "__main__":
    main(sys.argv[1])
