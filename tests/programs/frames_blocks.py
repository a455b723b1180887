"""Graph breaks inside ``with``, ``try``, loops, and functions that are called there."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, List

import torch
from breaking_case import break_graph, module_programs, unary
from case import Case
from torch import Tensor

PROGRAMS, program = module_programs()


class Scope:
    """A context manager that Dynamo can't trace through but can run."""

    def __init__(self, log: List[str], name: str) -> None:
        self.log, self.name = log, name

    def __enter__(self) -> str:
        self.log.append(f"enter {self.name}")
        return self.name

    def __exit__(self, *exc: object) -> None:
        self.log.append(f"exit {self.name}")


@contextlib.contextmanager
def doubled(x: Tensor) -> Iterator[Tensor]:
    yield x * 2


def breaks(x: Tensor) -> Tensor:
    y = x + 1
    break_graph()
    return y * 2


@program
def in_no_grad() -> Case:
    def f(x: Tensor) -> Tensor:
        with torch.no_grad():
            y = x + 1
            break_graph()
            z = y * 2
        return z + x

    return unary(f)


@program
def in_two_contexts() -> Case:
    def f(x: Tensor) -> Tensor:
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            y = x + 1
            break_graph()
            z = y * 2
        return z + x

    return unary(f)


@program
def in_three_contexts() -> Case:
    def f(x: Tensor) -> Tensor:
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            y = x + 1
            with torch.enable_grad():
                y = y * x
                break_graph()
                y = y + 1
            z = y * 2
        return z + x

    return unary(f)


@program
def in_no_grad_of_the_caller() -> Case:
    def f(x: Tensor) -> Tensor:
        with torch.no_grad():
            y = breaks(x)
        return y + x

    return unary(f)


@program
def in_no_grad_of_the_callee() -> Case:
    def inner(x: Tensor) -> Tensor:
        with torch.no_grad():
            y = x + 1
            break_graph()
            y = y * 2
        return y

    def f(x: Tensor) -> Tensor:
        return inner(x) + inner(x * 3)

    return unary(f)


@program
def contexts_at_two_levels() -> Case:
    def inner(x: Tensor) -> Tensor:
        with torch.enable_grad():
            y = x + 1
            break_graph()
            return y * 2

    def middle(x: Tensor) -> Tensor:
        with torch.no_grad():
            y = inner(x)
            return y + x

    def f(x: Tensor) -> Tensor:
        return middle(x) * 3

    return unary(f)


@program
def a_generator_as_context() -> Case:
    def f(x: Tensor) -> Tensor:
        with doubled(x) as y:
            break_graph()
            z = y + x
        return z

    return unary(f)


@program
def a_class_as_context() -> Case:
    log: List[str] = []

    def f(x: Tensor) -> Tensor:
        with Scope(log, "a") as name:
            y = x + len(name)
            break_graph()
            y = y * 2
        return y

    return unary(f, state=lambda: list(log))


@program
def two_classes_as_contexts() -> Case:
    log: List[str] = []

    def f(x: Tensor) -> Tensor:
        with Scope(log, "a"), Scope(log, "b") as name:
            y = x + len(name)
            break_graph()
            y = y * 2
        return y

    return unary(f, state=lambda: list(log))


@program
def a_dict_of_keywords_inside_a_context() -> Case:
    def named(x: Tensor, **options: float) -> Tensor:
        y = x * options["scale"]
        break_graph()
        return y + options["shift"]

    def f(x: Tensor) -> Tensor:
        options = {"scale": 2.0, "shift": 1.0}
        with torch.no_grad():
            y = named(x, **options)
        return y + named(x, **options)

    return unary(f)


@program
def a_return_out_of_a_context() -> Case:
    def f(x: Tensor) -> Tensor:
        with torch.no_grad():
            y = x + 1
            break_graph()
            if y.sum() > 0:
                return y
        return x

    return unary(f)


@program
def a_decorated_with_no_grad() -> Case:
    @torch.no_grad()
    def inner(x: Tensor) -> Tensor:
        y = x + 1
        break_graph()
        return y * 2

    def f(x: Tensor) -> Tensor:
        return inner(x) + x

    return unary(f)


@program
def in_autocast() -> Case:
    def f(x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x.T
            break_graph()
            y = y @ x
        return y.float() + x

    return unary(f)


@program
def in_a_for_loop() -> Case:
    def f(x: Tensor) -> Tensor:
        for step in range(3):
            x = x + step
            break_graph()
            x = x * 2
        return x

    return unary(f)


@program
def in_a_loop_of_the_caller() -> Case:
    def f(x: Tensor) -> Tensor:
        for step in range(3):
            x = breaks(x) + step
        return x

    return unary(f)


@program
def in_a_loop_of_the_callee() -> Case:
    def inner(xs: List[Tensor]) -> Tensor:
        total = xs[0]
        for each in xs:
            break_graph()
            total = total + each
        return total

    def f(x: Tensor) -> Tensor:
        return inner([x, x + 1]) * 2

    return unary(f)


@program
def in_nested_loops() -> Case:
    def f(x: Tensor) -> Tensor:
        for i, scale in enumerate([1.0, 2.0]):
            for name, shift in {"a": 1.0, "b": 2.0}.items():
                x = x * scale + shift + i + len(name)
                break_graph()
        return x

    return unary(f)


@program
def in_a_while_loop() -> Case:
    def f(x: Tensor) -> Tensor:
        steps = 0
        while steps < 2:
            steps += 1
            x = x + steps
            if x.sum() > 100:
                break
        return x

    return unary(f)


@program
def a_loop_in_a_context() -> Case:
    def f(x: Tensor) -> Tensor:
        with torch.no_grad():
            for step in range(2):
                x = breaks(x) + step
        return x

    return unary(f)


@program
def a_context_in_a_loop() -> Case:
    def f(x: Tensor) -> Tensor:
        for step in range(2):
            with torch.no_grad():
                x = x + step
                break_graph()
                x = x * 2
        return x

    return unary(f)


@program
def in_try_finally() -> Case:
    log: List[str] = []

    def f(x: Tensor) -> Tensor:
        try:
            y = x + 1
            break_graph()
            y = y * 2
        finally:
            log.append("left")
        return y

    return unary(f, state=lambda: list(log))


@program
def in_try_except() -> Case:
    def f(x: Tensor) -> Tensor:
        try:
            y = x + 1
            break_graph()
            raise ValueError("no")
        except ValueError:
            y = x - 1
        return y

    return unary(f)


@program
def in_an_except_clause() -> Case:
    def f(x: Tensor) -> Tensor:
        try:
            raise KeyError("no")
        except KeyError as error:
            y = x + len(error.args)
            break_graph()
            y = y * 2
        return y

    return unary(f)


@program
def in_try_of_the_caller() -> Case:
    def fails(x: Tensor) -> Tensor:
        y = x + 1
        break_graph()
        if y.shape[0] == 3:
            raise ValueError("three")
        return y

    def f(x: Tensor) -> Any:
        try:
            return fails(x)
        except ValueError as error:
            return x * 2, str(error)

    return unary(f)
