"""Graph breaks inside functions that Dynamo inlines, one to four levels deep."""

from __future__ import annotations

from typing import Any, Callable, List, Tuple

from breaking_case import break_graph, module_programs, unary
from case import Case
from torch import Tensor

PROGRAMS, program = module_programs()


def breaks(x: Tensor) -> Tensor:
    y = x.sin()
    break_graph()
    return y + x


def two_deep(x: Tensor, scale: float = 2.0) -> Tensor:
    y = breaks(x * scale)
    return y - scale


def three_deep(x: Tensor, *, shift: float = 1.0) -> Tensor:
    return two_deep(x) + shift


@program
def one_deep() -> Case:
    def f(x: Tensor) -> Tensor:
        return breaks(x) * 2

    return unary(f)


@program
def two_levels() -> Case:
    def f(x: Tensor) -> Tensor:
        y = x.cos()
        return two_deep(y) * y

    return unary(f)


@program
def three_levels() -> Case:
    def f(x: Tensor) -> Tensor:
        y = x.cos()
        z = three_deep(y, shift=3.0)
        return z * y + x

    return unary(f)


@program
def a_call_inside_of_an_expression() -> Case:
    def f(x: Tensor) -> Tensor:
        return (x + 1) * breaks(x.abs()) - two_deep(x)

    return unary(f)


@program
def calls_as_arguments() -> Case:
    def f(x: Tensor) -> Tensor:
        return two_deep(breaks(breaks(x)), scale=3.0)

    return unary(f)


@program
def a_list_on_the_stack() -> Case:
    def f(x: Tensor) -> List[Tensor]:
        return [x, breaks(x), x + 1, two_deep(x)]

    return unary(f)


@program
def a_dict_on_the_stack() -> Case:
    def f(x: Tensor) -> Any:
        return {"a": x + 1, "b": breaks(x), **{"c": three_deep(x)}}

    return unary(f)


@program
def a_tuple_unpacked() -> Case:
    def pair(x: Tensor) -> Tuple[Tensor, Tensor]:
        break_graph()
        return x + 1, x - 1

    def f(x: Tensor) -> Tensor:
        a, b = pair(x)
        c, d = pair(a * b)
        return a + b + c + d

    return unary(f)


@program
def a_tail_call() -> Case:
    def inner(x: Tensor) -> Tensor:
        return breaks(x)

    def f(x: Tensor) -> Tensor:
        return inner(x)

    return unary(f)


@program
def breaks_at_each_level() -> Case:
    def inner(x: Tensor) -> Tensor:
        x = x + 1
        break_graph()
        return x * 2

    def middle(x: Tensor) -> Tensor:
        y = inner(x)
        break_graph()
        return y + x

    def f(x: Tensor) -> Tensor:
        y = middle(x)
        break_graph()
        return y - x

    return unary(f)


@program
def an_inner_result_is_not_used() -> Case:
    def note(x: Tensor, seen: List[int]) -> None:
        break_graph()
        seen.append(x.shape[0])

    def f(x: Tensor) -> Any:
        seen: List[int] = []
        note(x, seen)
        y = x + 1
        note(y, seen)
        return y, seen

    return unary(f)


@program
def a_branch_in_an_inlined_function() -> Case:
    def clamp(x: Tensor, limit: float) -> Tensor:
        if x.sum() > limit:
            return x - limit
        return x + limit

    def f(x: Tensor) -> Tensor:
        return clamp(x * 2, 1.0) + clamp(x, 2.0)

    return unary(f)


@program
def a_branch_two_levels_down() -> Case:
    def clamp(x: Tensor) -> Tensor:
        return x - 1 if x.mean() > 0 else x + 1

    def around(x: Tensor, times: int) -> Tensor:
        y = x * times
        z = clamp(y)
        return z + y * times

    def f(x: Tensor, times: int) -> Tensor:
        return around(x, times) + around(x + 1, times)

    return unary(f, 3)


@program
def a_function_in_a_list() -> Case:
    steps: List[Callable[[Tensor], Tensor]] = [breaks, two_deep, three_deep]

    def f(x: Tensor) -> Tensor:
        return steps[1](steps[0](x)) + steps[2](x)

    return unary(f)


@program
def varying_arguments() -> Case:
    def total(*xs: Tensor, start: float = 0.0, **named: Tensor) -> Tensor:
        result = xs[0] + start
        break_graph()
        for each in xs[1:]:
            result = result + each
        return result + named["last"]

    def f(x: Tensor) -> Tensor:
        return total(x, x + 1, *[x + 2, x + 3], start=2.0, last=x * 4)

    return unary(f)


@program
def many_values_live() -> Case:
    def f(x: Tensor) -> Tensor:
        a, b, c, d = x + 1, x + 2, x + 3, x + 4
        e = two_deep(a)
        g, h = b * e, c * e
        i = three_deep(g)
        return a + b + c + d + e + g + h + i

    return unary(f)


@program
def values_that_are_no_tensors() -> Case:
    def inner(x: Tensor, name: str, sizes: Tuple[int, ...], flags: Any) -> Tensor:
        y = x + len(name)
        break_graph()
        return y.reshape(sizes) if flags["flat"] else y

    def f(x: Tensor) -> Tensor:
        flags = {"flat": True, "names": ["a", "b"]}
        y = inner(x, "four", (4, 3), flags)
        return y.reshape(3, 4) + len(flags["names"])

    return unary(f)


@program
def recursion() -> Case:
    def down(x: Tensor, depth: int) -> Tensor:
        if depth == 0:
            break_graph()
            return x.sin()
        return down(x + 1, depth - 1) * depth

    def f(x: Tensor) -> Tensor:
        return down(x, 3) + x

    return unary(f)


@program
def a_variable_without_a_value() -> Case:
    def inner(x: Tensor, wanted: bool) -> Tensor:
        if wanted:
            extra = x + 1
        break_graph()
        return extra if wanted else x

    def f(x: Tensor) -> Tensor:
        y = inner(x, False)
        z = inner(x, True)
        return y + z

    return unary(f)


@program
def the_same_function_twice_in_one_call() -> Case:
    def f(x: Tensor) -> Tensor:
        return two_deep(two_deep(x, 3.0), 4.0).add(two_deep(x))

    return unary(f)


@program
def a_comparison_of_inlined_results() -> Case:
    def f(x: Tensor) -> Tensor:
        if breaks(x).sum() > two_deep(x).sum():
            return x + 1
        return x - 1

    return unary(f)


@program
def an_attribute_of_the_result() -> Case:
    def f(x: Tensor) -> Tensor:
        return breaks(x).T @ two_deep(x)[0:3] * breaks(x).shape[0]

    return unary(f)


@program
def mutated_arguments() -> Case:
    def inner(values: List[Tensor], named: Any) -> Tensor:
        values.append(values[0] + 1)
        named["new"] = values[-1]
        break_graph()
        named["newer"] = values[-1] * 2
        return values.pop()

    def f(x: Tensor) -> Any:
        values, named = [x], {"x": x}
        y = inner(values, named)
        return y, values, named

    return unary(f)


@program
def a_call_of_print_two_levels_down() -> Case:
    def inner(x: Tensor) -> Tensor:
        y = x + 1
        print("inner", tuple(y.shape))
        return y * 2

    def middle(x: Tensor) -> Tensor:
        return inner(x.cos()) + inner(x.sin())

    def f(x: Tensor) -> Tensor:
        return middle(x) * middle(x + 1)

    return unary(f)
