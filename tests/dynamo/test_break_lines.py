"""Each graph break is at the user's line in every view, and the costs of what is found add up."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import itertools
from pathlib import Path
from typing import Any, Callable, List

import pytest

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]

from torch_versions import IS_OLD  # noqa: E402

import depyf  # noqa: E402
from depyf.report.model.places import own_place, place_text  # noqa: E402
from depyf.report.read.reading import load  # noqa: E402


@torch.compiler.disable
def slow(a: Any, b: Any = 1) -> Any:
    return a + b


class Disabled:
    @torch.compiler.disable
    def __init__(self, value: Any) -> None:
        self.value = value


class Entered:
    def __enter__(self) -> Any:
        return slow(torch.ones(2))  # HERE in_enter

    def __exit__(self, *error: object) -> None:
        pass


@contextlib.contextmanager
def entered(x: Any) -> Any:
    slow(x)  # HERE in_generator_of_context
    yield x


def generated(x: Any) -> Any:
    for i in range(2):
        yield slow(x, i)  # HERE in_generator


def in_constructor(x: Any) -> Any:
    return Disabled(x + 1).value  # HERE in_constructor


def in_reduce(x: Any) -> Any:
    return functools.reduce(slow, [x + 1, x])  # HERE in_reduce


def in_filter(x: Any) -> Any:
    return sum(filter(lambda t: t.sum() > 0, [x + 1, x]))  # HERE in_filter


def in_map(x: Any) -> Any:
    return sum(map(slow, [x + 1, x]))  # HERE in_map


def in_list(x: Any) -> Any:
    return sum([slow(t) for t in [x + 1, x]])  # HERE in_list


def in_generator_expression(x: Any) -> Any:
    return sum(slow(t) for t in [x + 1, x])  # HERE in_generator_expression


def in_generator(x: Any) -> Any:
    return sum(generated(x + 1))


def in_enter(x: Any) -> Any:
    with Entered() as y:
        return x + y


def in_generator_of_context(x: Any) -> Any:
    with entered(x + 1) as y:
        return x + y


def in_accumulate(x: Any) -> Any:
    return list(itertools.accumulate([x + 1, x], slow))[-1]


def in_sort(x: Any) -> Any:
    return sorted([x + 1, x], key=lambda t: t.sum().item())[0]  # HERE in_sort


def in_module(x: Any) -> Any:
    return torch.nn.Sequential(torch.nn.Linear(2, 2))(x)  # HERE in_module


LINES = inspect.getsource(inspect.getmodule(in_map)).splitlines()  # type: ignore[arg-type]
FUNCTIONS: List[Callable[..., Any]] = [
    in_constructor,
    in_reduce,
    in_filter,
    in_map,
    in_list,
    in_generator_expression,
    in_generator,
    in_enter,
    in_generator_of_context,
    in_sort,
    in_module,
]


def line_of(function: Callable[..., Any]) -> int:
    (line,) = (number for number, text in enumerate(LINES, 1) if text.endswith(f"# HERE {function.__name__}"))
    return line


if IS_OLD:  # PyTorch before 2.13 names another line in these, or reports no break
    FUNCTIONS = [each for each in FUNCTIONS if each not in (in_list, in_generator, in_generator_of_context)]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_the_line_is_the_users_in_every_view(function: Callable[..., Any], tmp_path: Path) -> None:
    stream = io.StringIO()
    with depyf.watch(stream=stream), depyf.prepare_debug(str(tmp_path)):
        torch.compile(function, backend="eager")(torch.ones(2))
    here = f"test_break_lines.py:{line_of(function)}"
    (loaded,) = load([str(tmp_path)])
    run = loaded.run
    assert run.breaks
    places = [place_text(run, own_place(run, each.place, each.stack)) for each in run.breaks]
    assert here in places
    assert "an unknown line" not in (tmp_path / "index.md").read_text()
    assert here in (tmp_path / "index.md").read_text()
    assert here in stream.getvalue()
    assert all(place_text(run, each.place).startswith("test_break_lines.py") for each in run.findings if each.place)


def reduce(x: Any) -> Any:
    return functools.reduce(slow, [x + 1, x])


@pytest.mark.parametrize(
    "function", [reduce] if IS_OLD else [reduce, in_accumulate], ids=lambda function: function.__name__
)
def test_a_function_that_pytorch_leaves_out_of_the_stack_has_its_first_line(
    function: Callable[..., Any], tmp_path: Path
) -> None:
    """PyTorch may take it for the function that Dynamo traces for a function of C, as both have one name."""
    with depyf.prepare_debug(str(tmp_path)):
        torch.compile(function, backend="eager")(torch.ones(2))
    (loaded,) = load([str(tmp_path)])
    first = function.__code__.co_firstlineno
    (broken,) = loaded.run.breaks
    assert place_text(loaded.run, broken.place) in {f"test_break_lines.py:{first}", f"test_break_lines.py:{first + 1}"}


def test_a_break_of_an_optimizer_is_at_the_line_that_calls_it(tmp_path: Path) -> None:
    module = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(module.parameters(), lr=torch.tensor(0.1))
    torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    def step() -> None:
        optimizer.step()

    module(torch.ones(2)).sum().backward()
    with depyf.prepare_debug(str(tmp_path)):
        torch.compile(step, backend="eager")()
    (loaded,) = load([str(tmp_path)])
    run, line = loaded.run, step.__code__.co_firstlineno + 1
    assert run.breaks
    for each in run.breaks:
        assert place_text(run, own_place(run, each.place, each.stack)) == f"test_break_lines.py:{line}"


def test_costs_of_findings_are_not_more_than_the_compile_time(tmp_path: Path) -> None:
    """A limit, recompilations, breaks in callers and callees, and what goes on after them."""

    def inner(x: Any, k: List[int]) -> Any:
        y = slow(x) * len(k)
        print(end="")
        return y + 1

    def outer(x: Any, k: List[int]) -> Any:
        z = inner(x, k)
        return slow(z).sum().item() + z

    limit = "recompile_limit" if hasattr(torch._dynamo.config, "recompile_limit") else "cache_size_limit"
    with torch._dynamo.config.patch(**{limit: 2}), depyf.prepare_debug(str(tmp_path)):
        compiled = torch.compile(outer, backend="aot_eager")
        for i in range(4):
            compiled(torch.ones(2), [0] * i)
    (loaded,) = load([str(tmp_path)])
    run = loaded.run
    assert len([each for each in run.findings if each.seconds]) > 2
    assert sum(each.seconds or 0.0 for each in run.findings) <= run.totals["compile_seconds"]
