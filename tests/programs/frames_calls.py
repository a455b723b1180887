"""Graph breaks in lambdas, generators, comprehensions, and calls with all kinds of arguments."""

from __future__ import annotations

import copy
import dataclasses
import operator
import warnings
from typing import Any, Dict, Generator, Iterator, List

import torch
from breaking_case import break_graph, example, module_programs, unary
from case import Case
from torch import Tensor

PROGRAMS, program = module_programs()


def breaks(x: Tensor) -> Tensor:
    y = x + 1
    break_graph()
    return y * 2


def named(x: Tensor, *, scale: float = 1.0, **more: float) -> Tensor:
    y = x * scale
    break_graph()
    return y + sum(more.values())


@program
def a_lambda() -> Case:
    return unary(lambda x: breaks(x) + 1)


@program
def a_lambda_that_breaks_twice() -> Case:
    return unary(lambda x: breaks(x.sin()) + breaks(x.cos()) * x)


@program
def a_lambda_with_a_closure() -> Case:
    scale = 3.0
    return unary(lambda x: breaks(x * scale) + scale)


@program
def a_lambda_that_prints() -> Case:
    return unary(lambda x: (print(x.shape), x + 1)[1] * 2)


@program
def a_lambda_that_branches() -> Case:
    return unary(lambda x: x + 1 if x.sum() > 0 else breaks(x))


@program
def a_lambda_made_inside() -> Case:
    def f(x: Tensor) -> Tensor:
        shift = x + 1
        add = lambda y: breaks(y) + shift  # noqa: E731
        return add(x) * add(shift)

    return unary(f)


@program
def a_lambda_with_side_effects() -> Case:
    seen: List[Any] = []
    return unary(lambda x: seen.append(x.shape[0]) or breaks(x), state=lambda: list(seen))


@program
def a_list_comprehension() -> Case:
    def f(x: Tensor) -> List[Tensor]:
        return [breaks(x + i) for i in range(3)]

    return unary(f)


@program
def a_comprehension_with_a_free_variable() -> Case:
    def f(x: Tensor) -> List[Tensor]:
        y = x + 1
        first = [breaks(y) + i for i in range(2)]
        break_graph()
        return [each * y for each in first]

    return unary(f)


@program
def a_dict_comprehension() -> Case:
    def f(x: Tensor) -> Dict[str, Tensor]:
        made = {name: breaks(x) for name in ("a", "b")}
        return {name: value + 1 for name, value in made.items()}

    return unary(f)


@program
def a_generator_expression() -> Case:
    def f(x: Tensor) -> Any:
        return sum(breaks(x + i) for i in range(2))

    return unary(f)


@program
def a_generator() -> Case:
    def parts(x: Tensor) -> Iterator[Tensor]:
        yield x + 1
        break_graph()
        yield x + 2

    def f(x: Tensor) -> Tensor:
        total = x
        for part in parts(x):
            total = total + part
        return total

    return unary(f)


@program
def a_generator_that_lives_over_a_break() -> Case:
    def parts(x: Tensor) -> Generator[Tensor, None, None]:
        yield x + 1
        yield x + 2

    def f(x: Tensor) -> Tensor:
        made = parts(x)
        y = next(made)
        break_graph()
        return y + next(made)

    return unary(f)


@program
def keywords() -> Case:
    def f(x: Tensor) -> Tensor:
        return named(x, scale=2.0, shift=1.0) + named(x)

    return unary(f)


@program
def a_dict_of_keywords() -> Case:
    def f(x: Tensor, **options: float) -> Tensor:
        return named(x, **options) + named(x, scale=3.0, **{"more": 1.0})

    def g(x: Tensor) -> Tensor:
        options = {"scale": 2.0, "shift": 1.0}
        y = f(x, **options)
        break_graph()
        return f(y, **options)

    return unary(g)


@program
def many_arguments() -> Case:
    def f(x: Tensor, *rest: Tensor, scale: float = 1.0, **options: Any) -> Tensor:
        y = x * scale
        break_graph()
        return y + rest[0] + options["shift"]

    def g(x: Tensor) -> Tensor:
        return f(x, x + 1, x + 2, scale=2.0, shift=3.0)

    return unary(g)


@program
def keyword_only_and_star_arguments_of_the_frame() -> Case:
    def f(x: Tensor, *rest: float, scale: float = 2.0, **options: Any) -> Tensor:
        y = x * scale + rest[0]
        break_graph()
        return y + len(rest) + len(options)

    return unary(f, 1.0, 2.0)


@program
def a_method_with_a_tensor_argument() -> Case:
    def f(x: Tensor) -> Tensor:
        return x.add(breaks(x), alpha=2).mul(breaks(x))

    return unary(f)


@program
def a_slice_is_assigned() -> Case:
    def f(x: Tensor) -> Tensor:
        y = x.clone()
        y[0] = breaks(x)[1]
        y[1:, 0] += two(x)
        return y

    def two(x: Tensor) -> Tensor:
        break_graph()
        return x[1:, 1]

    return unary(f)


@program
def augmented_assignments() -> Case:
    def f(x: Tensor) -> Any:
        values = {"a": x + 0, "b": [x + 1]}
        values["a"] += breaks(x)
        values["b"] += [breaks(x)]
        values["b"][0] *= breaks(x)
        return values

    return unary(f)


@program
def a_formatted_string() -> Case:
    def f(x: Tensor) -> Any:
        text = f"{breaks(x).shape[0]}:{x.dim()!r:>{4}}"
        return text, x + len(text)

    return unary(f)


@program
def a_conditional_expression() -> Case:
    def f(x: Tensor, flag: bool) -> Tensor:
        y = breaks(x) if flag and x.shape[0] > 1 else x
        return (breaks(y) or x) if not flag else y + breaks(x)

    return unary(f, True)


@program
def an_assertion() -> Case:
    def f(x: Tensor) -> Tensor:
        y = breaks(x)
        assert y.sum() != 0, "zero"
        return y + 1

    return unary(f)


@program
def a_data_class() -> Case:
    @dataclasses.dataclass
    class Pair:
        first: Tensor
        second: Tensor

    def f(x: Tensor) -> Tensor:
        pair = Pair(x, breaks(x))
        pair.first = pair.first + 1
        break_graph()
        pair.second = breaks(pair.first)
        return pair.first + pair.second

    return unary(f)


@program
def values_of_numbers() -> Case:
    def f(x: Tensor) -> Tensor:
        biggest = x.max().item()
        smallest = x.min().item()
        return breaks(x) * biggest - smallest

    return unary(f)


@program
def warnings_and_imports() -> Case:
    def f(x: Tensor) -> Tensor:
        import math

        y = x * math.pi
        warnings.warn("seen", stacklevel=1)
        from math import tau

        return y + tau

    return unary(f)


@program
def copies() -> Case:
    def f(x: Tensor) -> Any:
        values = [x + 1, {"a": x}]
        break_graph()
        again = copy.copy(values)
        again.append(breaks(x))
        return again, values

    return unary(f)


@program
def operators_of_functions() -> Case:
    def f(x: Tensor) -> Tensor:
        return operator.add(breaks(x), operator.mul(breaks(x), x))

    return unary(f)


@program
def sets_and_dicts_change() -> Case:
    state: Dict[str, Any] = {"count": 0, "names": set()}

    def note(x: Tensor, name: str) -> Tensor:
        state["count"] += 1
        break_graph()
        state["names"].add(name)
        return x + state["count"]

    def f(x: Tensor) -> Tensor:
        return note(x, "a") * note(x, "b")

    return unary(f, state=lambda: state)


@program
def random_numbers() -> Case:
    def f(x: Tensor) -> Tensor:
        noise = torch.rand_like(x)
        break_graph()
        return breaks(x) + noise

    return Case(f, [(example(),)])
