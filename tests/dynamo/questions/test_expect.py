"""``expect`` counts what a block compiles, and fails with the stack and the advice."""

from __future__ import annotations

import asyncio
import json
import pickle
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict

import pytest
import warm_python

torch = pytest.importorskip("torch")

import depyf  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]


def reads(x: Any) -> Any:
    return x.sum().item()


def scaled(x: Any) -> Any:
    return x * reads(x)


def times(x: Any, n: int) -> Any:
    return x * n


def compiled(function: Any) -> Any:
    return torch.compile(function, backend="eager", dynamic=False)


def called_from_here(function: Any, *arguments: Any) -> Any:
    return function(*arguments)


def test_what_is_as_expected_raises_nothing() -> None:
    with depyf.expect(breaks=0, recompiles=0, graphs=1, fallbacks=0) as expected:
        compiled(times)(torch.ones(2), 2)
    assert expected.counts == {"breaks": 0, "recompiles": 0, "graphs": 1, "fallbacks": 0}
    assert str(expected).endswith("0 breaks, 0 recompiles, 1 graph, 0 fallbacks")


def test_a_graph_break_fails_with_the_whole_stack_and_the_advice() -> None:
    with pytest.raises(depyf.ExpectationError) as raised, depyf.expect(breaks=0):
        called_from_here(compiled(scaled), torch.ones(2))
    lines = str(raised.value).splitlines()
    assert lines[0] == "1 graph break, expected 0"
    functions = [line.rpartition(" in ")[2] for line in lines if line.startswith("  File ")]
    ours = ["test_a_graph_break_fails_with_the_whole_stack_and_the_advice", "called_from_here", "scaled", "reads"]
    begin = functions.index(ours[0])  # a worker of pytest-xdist is itself a program of python -c
    assert functions[begin : begin + len(ours)] == ours
    assert "    return x.sum().item()" in lines
    assert any(line.startswith("  What avoids it: A number is read out of a tensor.") for line in lines)
    assert raised.value.counts["breaks"] == 1
    assert raised.value.happened[0].stack[-1][2] == "reads"


def test_a_recompile_fails_with_what_has_changed() -> None:
    function = compiled(times)

    @depyf.expect(recompiles=0, breaks=0)
    def train() -> None:
        function(torch.ones(2), 2)
        called_from_here(function, torch.ones(2), 3)

    with pytest.raises(AssertionError, match="1 recompile, expected 0") as raised:
        train()
    text = str(raised.value)
    assert "n is not 2, which it was compiled for" in text
    assert ", in called_from_here\n" in text
    assert "What avoids it: " in text


def test_other_graphs_fail_with_what_made_them() -> None:
    with pytest.raises(depyf.ExpectationError) as raised, depyf.expect(graphs=1):
        compiled(scaled)(torch.ones(2))
    assert str(raised.value).count("graph break reads") == 1  # though each of both compilations met it
    assert re.match(r"2 graphs, expected 1\n\ngraph break reads \[\d+/0\] ", str(raised.value))


def test_a_fallback_fails() -> None:
    name = "recompile_limit" if hasattr(torch._dynamo.config, "recompile_limit") else "cache_size_limit"
    function = compiled(times)
    function(torch.ones(2), 2)
    with torch._dynamo.config.patch({name: 1}), pytest.raises(depyf.ExpectationError, match="1 fallback, expected 0"):
        depyf.expect(fallbacks=0)(function)(torch.ones(2), 3)


def test_what_was_compiled_before_is_not_counted_and_the_message_says_so() -> None:
    function = compiled(times)
    function(torch.ones(2), 2)
    with pytest.raises(depyf.ExpectationError, match=r"0 graphs, expected 1\n[^$]*torch\._dynamo\.reset\(\)"):
        depyf.expect(graphs=1)(function)(torch.ones(2), 2)


def test_what_fails_to_compile_is_no_graph() -> None:
    def broken(module: Any, inputs: Any) -> Any:
        raise RuntimeError("no")

    with pytest.raises(Exception, match="no"), depyf.expect(graphs=1):
        torch.compile(times, backend=broken)(torch.ones(2), 2)
    with depyf.expect(graphs=0) as expected, pytest.raises(Exception, match="no"):
        torch.compile(times, backend=broken)(torch.ones(2), 2)
    assert expected.counts["graphs"] == 0


def test_a_range_is_a_bound() -> None:
    with depyf.expect(breaks=range(3), graphs=range(1, 3)):
        compiled(scaled)(torch.ones(2))
    torch._dynamo.reset()
    with pytest.raises(depyf.ExpectationError, match="2 graphs, expected 3 to 4"), depyf.expect(graphs=range(3, 5)):
        compiled(scaled)(torch.ones(2))


def test_the_numbers_are_those_of_the_page(tmp_path: Path) -> None:
    with depyf.expect(graphs=range(100)) as expected, depyf.prepare_debug(str(tmp_path)):
        function = compiled(scaled)
        for size in (2, 3):
            function(torch.ones(size))
    totals = json.loads((tmp_path / "manifest.json").read_text())["totals"]
    names = {"breaks": "graph_breaks", "recompiles": "recompilations", "graphs": "graphs", "fallbacks": "fallbacks"}
    assert expected.counts == {ours: totals[theirs] for ours, theirs in names.items()}
    assert expected.counts["breaks"] == 1
    assert expected.counts["recompiles"] > 0


def test_an_exception_of_the_block_goes_on() -> None:
    with pytest.raises(ZeroDivisionError), depyf.expect(graphs=7):
        raise ZeroDivisionError


def test_it_decorates_functions_and_each_call_is_a_block() -> None:
    @depyf.expect(graphs=1)
    def once(x: Any, *, n: int = 2) -> Any:
        """Do it."""
        torch._dynamo.reset()
        return compiled(times)(x, n)

    assert once.__doc__ == "Do it."
    for _ in range(2):
        assert torch.equal(once(torch.ones(2), n=3), torch.full((2,), 3.0))

    @depyf.expect(graphs=0)
    def never(x: Any) -> Any:
        return once(x)

    with pytest.raises(depyf.ExpectationError, match="1 graph, expected 0"):
        never(torch.ones(2))


def test_a_coroutine_function_is_checked_when_it_has_run() -> None:
    @depyf.expect(graphs=0)
    async def compiles() -> None:
        await asyncio.sleep(0)
        compiled(times)(torch.ones(2), 2)

    with ThreadPoolExecutor(1) as pool:  # tests in a browser leave a running loop in this thread
        ran = pool.submit(lambda: asyncio.run(compiles()))
    with pytest.raises(depyf.ExpectationError, match="1 graph, expected 0"):
        ran.result()


def generator() -> Any:
    yield 1


@pytest.mark.parametrize("wrong", [property(generator), staticmethod(generator), classmethod(generator), 5])
def test_what_is_no_function_is_not_decorated(wrong: Any) -> None:
    with pytest.raises(TypeError, match="below @property, @staticmethod and @classmethod"):
        depyf.expect(breaks=0)(wrong)


@pytest.mark.parametrize("wrong", [generator, type("Anything", (), {})])
def test_what_is_no_block_is_not_decorated(wrong: Any) -> None:
    with pytest.raises(TypeError, match="decorates functions and coroutine functions"):
        depyf.expect(breaks=0)(wrong)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({}, ValueError),
        ({"breaks": -1}, ValueError),
        ({"graphs": range(0)}, ValueError),
        ({"breaks": True}, TypeError),
        ({"breaks": "0"}, TypeError),
    ],
)
def test_what_is_no_number_of_events_is_refused(given: Dict[str, Any], error: Any) -> None:
    with pytest.raises(error, match=r"depyf\.expect"):
        depyf.expect(**given)


def test_the_error_goes_through_pickle() -> None:
    with pytest.raises(depyf.ExpectationError) as raised, depyf.expect(breaks=0):
        compiled(scaled)(torch.ones(2))
    again = pickle.loads(pickle.dumps(raised.value))
    assert str(again) == str(raised.value)
    assert again.counts == raised.value.counts
    assert again.happened == raised.value.happened


def test_pytest_shows_the_lines_of_the_test_alone(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import depyf, torch\n"
        "@depyf.expect(graphs=0)\n"
        "def test_it():\n"
        "    torch.compile(lambda x: x + 1, backend='eager')(torch.ones(2))\n"
        "def test_block():\n"
        "    with depyf.expect(graphs=0):\n"
        "        torch.compile(lambda x: x + 2, backend='eager')(torch.ones(2))\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:logging", "test_it.py"]
    out = warm_python.run(command, cwd=tmp_path).stdout
    assert out.count("1 graph, expected 0") >= 2
    assert "expectation.py" not in out
    assert "questions/expect.py" not in out
