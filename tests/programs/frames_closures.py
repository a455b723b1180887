"""Graph breaks in closures, in what makes closures, and around cells that are written."""

from __future__ import annotations

import functools
from typing import Any, Callable, List

from breaking_case import break_graph, module_programs, unary
from case import Case
from torch import Tensor

PROGRAMS, program = module_programs()


@program
def an_inner_function_reads_a_variable() -> Case:
    def f(x: Tensor) -> Tensor:
        scale = x + 1

        def inner(y: Tensor) -> Tensor:
            break_graph()
            return y * scale

        return inner(x) + inner(scale)

    return unary(f)


@program
def an_inner_function_writes_a_variable() -> Case:
    def f(x: Tensor) -> Any:
        count = 0

        def inner(y: Tensor) -> Tensor:
            nonlocal count
            count += 1
            break_graph()
            count += 2
            return y * count

        return inner(x) + inner(x + 1), count

    return unary(f)


@program
def a_cell_is_written_after_the_break() -> Case:
    def f(x: Tensor) -> Tensor:
        value = x + 1

        def get() -> Tensor:
            return value

        break_graph()
        value = value * 2
        return get() + value

    return unary(f)


@program
def a_cell_is_first_written_after_the_break() -> Case:
    def f(x: Tensor) -> Tensor:
        def get() -> Tensor:
            return value

        break_graph()
        value = x * 2
        return get() + x

    return unary(f)


@program
def an_argument_is_a_cell() -> Case:
    def f(x: Tensor, scale: float) -> Tensor:
        def scaled(y: Tensor) -> Tensor:
            return y * scale + x

        y = scaled(x)
        break_graph()
        scale += 1.0
        return scaled(y)

    return unary(f, 2.0)


@program
def closures_two_levels_deep() -> Case:
    def f(x: Tensor) -> Tensor:
        a = x + 1

        def outer(y: Tensor) -> Tensor:
            b = y + a

            def inner(z: Tensor) -> Tensor:
                break_graph()
                return z + a + b

            return inner(b) * b

        return outer(x) + a

    return unary(f)


@program
def closures_three_levels_deep() -> Case:
    def f(x: Tensor) -> Tensor:
        a = x + 1

        def first(y: Tensor) -> Tensor:
            b = y + a

            def second(z: Tensor) -> Tensor:
                c = z + b

                def third() -> Tensor:
                    break_graph()
                    return a + b + c

                return third() + c

            return second(b) + b

        return first(a) + a

    return unary(f)


@program
def a_free_variable_of_the_compiled_function() -> Case:
    scale = 3.0

    def f(x: Tensor) -> Tensor:
        y = x * scale
        break_graph()
        return y + scale

    return unary(f)


@program
def a_free_variable_is_written_by_the_compiled_function() -> Case:
    count = 0

    def f(x: Tensor) -> Tensor:
        nonlocal count
        count += 1
        y = x * count
        break_graph()
        count += 1
        return y + count

    return unary(f, state=lambda: count)


@program
def a_free_variable_is_written_two_levels_down() -> Case:
    count = 0

    def step(x: Tensor) -> Tensor:
        nonlocal count
        count += 1
        break_graph()
        count += 1
        return x * count

    def around(x: Tensor) -> Tensor:
        return step(x) + step(x + 1)

    def f(x: Tensor) -> Tensor:
        return around(x) + count

    return unary(f, state=lambda: count)


@program
def a_free_function_breaks() -> Case:
    def helper(x: Tensor) -> Tensor:
        y = x.sin()
        break_graph()
        return y.cos()

    def f(x: Tensor) -> Tensor:
        return helper(x) + helper(x * 2)

    return unary(f)


@program
def a_free_closure_breaks() -> Case:
    def make(scale: float) -> Callable[[Tensor], Tensor]:
        def scaled(x: Tensor) -> Tensor:
            y = x * scale
            break_graph()
            return y + scale

        return scaled

    double, triple = make(2.0), make(3.0)

    def f(x: Tensor) -> Tensor:
        return double(x) + triple(double(x))

    return unary(f)


@program
def a_closure_made_inside_and_called() -> Case:
    def make(scale: Tensor) -> Callable[[Tensor], Tensor]:
        def scaled(x: Tensor) -> Tensor:
            y = x * scale
            break_graph()
            return y + scale

        return scaled

    def f(x: Tensor) -> Tensor:
        double, triple = make(x + 2), make(x + 3)
        return double(x) + triple(x)

    return unary(f)


@program
def a_closure_made_inside_and_returned() -> Case:
    def f(x: Tensor) -> Tensor:
        y = x + 1

        def later(z: Tensor) -> Tensor:
            return y + z

        break_graph()
        functions = [later]
        break_graph()
        return functions[0](x)

    return unary(f)


@program
def a_closure_lives_over_two_breaks() -> Case:
    def f(x: Tensor) -> Tensor:
        total = x

        def add(y: Tensor) -> None:
            nonlocal total
            total = total + y

        add(x)
        break_graph()
        add(x + 1)
        break_graph()
        add(total)
        return total

    return unary(f)


@program
def two_closures_share_a_cell() -> Case:
    def f(x: Tensor) -> Any:
        count = 1

        def up() -> None:
            nonlocal count
            count += 1
            break_graph()

        def down() -> None:
            nonlocal count
            break_graph()
            count -= 2

        up()
        y = x * count
        down()
        return y, count

    return unary(f)


@program
def a_decorated_function() -> Case:
    def logged(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Tensor:
            break_graph()
            result = function(*args, **kwargs)
            break_graph()
            return result + 1

        return wrapper

    @logged
    def step(x: Tensor, scale: float = 2.0) -> Tensor:
        return x * scale

    def f(x: Tensor) -> Tensor:
        return step(x, scale=3.0) + step(x)

    return unary(f)


@program
def a_function_twice_decorated() -> Case:
    def twice(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        def wrapper(x: Tensor) -> Tensor:
            return function(function(x))

        return wrapper

    @twice
    @twice
    def step(x: Tensor) -> Tensor:
        y = x + 1
        break_graph()
        return y * 2

    def f(x: Tensor) -> Tensor:
        return step(x)

    return unary(f)


@program
def partials() -> Case:
    def step(scale: float, x: Tensor, shift: float) -> Tensor:
        y = x * scale
        break_graph()
        return y + shift

    def f(x: Tensor) -> Tensor:
        bound = functools.partial(step, 2.0, shift=1.0)
        return bound(x) + functools.partial(bound, shift=3.0)(x)

    return unary(f)


@program
def a_callback() -> Case:
    def apply(function: Callable[[Tensor], Tensor], xs: List[Tensor]) -> List[Tensor]:
        return [function(x) for x in xs]

    def f(x: Tensor) -> Any:
        seen: List[int] = []

        def record(y: Tensor) -> Tensor:
            break_graph()
            seen.append(len(seen))
            return y + len(seen)

        return apply(record, [x, x + 1]), seen

    return unary(f)


@program
def defaults_and_closure() -> Case:
    def f(x: Tensor) -> Tensor:
        y = x + 1

        def inner(a: Tensor, b: Tensor = y, *, c: Tensor = x) -> Tensor:
            break_graph()
            return a + b + c + y

        return inner(x) + inner(x, c=y)

    return unary(f)


@program
def a_recursive_closure() -> Case:
    def f(x: Tensor) -> Tensor:
        def down(y: Tensor, depth: int) -> Tensor:
            if depth:
                return down(y + x, depth - 1)
            break_graph()
            return y

        return down(x, 2) * 2

    return unary(f)


@program
def a_cell_without_a_value() -> Case:
    def f(x: Tensor, wanted: bool) -> Tensor:
        if wanted:
            extra = x + 1

        def inner() -> Tensor:
            return extra if wanted else x

        break_graph()
        return inner() + x

    return unary(f, False)


@program
def a_deleted_cell() -> Case:
    def f(x: Tensor) -> Tensor:
        value = x + 1

        def inner() -> Tensor:
            return value  # noqa: F821

        y = inner()
        break_graph()
        del value
        return y * 2

    return unary(f)
