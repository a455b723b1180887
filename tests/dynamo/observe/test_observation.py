"""Calls of compiled graphs are observed, also of those compiled before, and nothing else changes."""

from __future__ import annotations

import contextlib
from typing import Any, List

import pytest
from torch_versions import needs_stances

torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.hooks import cache_entries, private_names, torch_names  # noqa: E402
from depyf.dynamo.hooks.hooked_context import HookedContext  # noqa: E402
from depyf.dynamo.observe.observation import GraphCall, Observer, observation  # noqa: E402
from depyf.dynamo.observe.recorder import begin  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo"), needs_stances]


class observe_graphs(HookedContext[object]):  # noqa: N801 - used like a function
    """While it is open, ``observer`` is called with a ``GraphCall`` after each call of a compiled graph."""

    _name = "observe_graphs()"

    def __init__(self, observer: Observer) -> None:
        super().__init__()
        self._observer = observer

    def _start(self, entry: object) -> None:
        observation.add(self._observer, begin)

    def _drop(self, entry: object) -> None:
        observation.remove(self._observer)


INDUCTOR = pytest.param("inductor", marks=pytest.mark.inductor)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, x: Any) -> Any:
        h = torch.nn.functional.dropout(self.norm(self.layer(x)).relu(), 0.3)
        torch._dynamo.graph_break()
        return (h * h).sum()


def step(compiled: Any, model: Any, x: Any) -> List[Any]:
    """What one step computes: loss, gradients, statistics, and what the generator gives then."""
    torch.manual_seed(3)
    model.norm.reset_running_stats()
    loss = compiled(x)
    loss.backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    return [loss.detach(), *gradients, model.norm.running_mean.clone(), torch.rand(2)]


def entries(code: Any) -> List[Any]:
    return [(str(entry.compile_id), id(entry.code)) for entry in cache_entries.cache_entries(code)]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", INDUCTOR])
def test_results_are_the_same_and_entries_are_left(backend: str) -> None:
    model, x = Model(), torch.randn(5, 4)
    compiled = torch.compile(model, backend=backend)
    before = step(compiled, model, x)
    known = entries(Model.forward.__code__)
    calls: List[GraphCall] = []
    with observe_graphs(calls.append):
        inside = [step(compiled, model, x), step(compiled, model, x)]
    after = step(compiled, model, x)
    assert all(torch.equal(a, b) for each in (*inside, after) for a, b in zip(before, each))
    assert entries(Model.forward.__code__) == known
    count = len(calls)
    assert count == (4 if backend == "eager" else 8)  # two graphs, twice, forward and backward
    step(compiled, model, x)
    assert len(calls) == count


@pytest.mark.parametrize("backend", ["eager", "aot_eager", INDUCTOR])
def test_the_graph_computes_the_same_with_the_kept_inputs(backend: str) -> None:
    def function(x: Any, running: Any) -> Any:
        running.mul_(0.9).add_(x.detach().mean())
        return torch.sin(x * running).sum()

    compiled = torch.compile(function, backend=backend)
    calls: List[GraphCall] = []
    running, x = torch.ones(()), torch.randn(6, requires_grad=True)
    with observe_graphs(calls.append):
        compiled(x, running).backward()
    assert [call.graph.backward for call in calls] == ([False] if backend == "eager" else [False, True])
    assert calls[0].graph.function.startswith("__compiled_fn_")
    assert calls[0].graph.compile_id == "0/0"
    assert "L['running']" in calls[0].graph.input_names
    assert any(torch.equal(value, running) for value in calls[0].written.values())
    for call in calls:
        with torch.no_grad():
            again = torch.fx.Interpreter(call.graph.module).run(*call.inputs)
        for mine, real in zip(again, call.outputs):
            torch.testing.assert_close(mine, real)


def test_random_numbers_are_drawn_again() -> None:
    calls: List[GraphCall] = []
    compiled = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.5), backend="aot_eager")
    with observe_graphs(calls.append):
        compiled(torch.ones(100))
    (call,) = calls
    assert call.random_state is not None
    following = torch.get_rng_state()
    with call.random_state.restored():
        again = torch.fx.Interpreter(call.graph.module).run(*call.inputs)
    assert torch.equal(again[0], call.outputs[0])
    assert torch.equal(torch.get_rng_state(), following)


def test_the_recompile_limit_is_as_before() -> None:
    def function(x: Any, number: int) -> Any:
        return x * number

    name = "recompile_limit" if hasattr(torch._dynamo.config, "recompile_limit") else "cache_size_limit"
    runs: List[str] = []

    def backend(module: Any, _: Any) -> Any:
        runs.append("compiled")
        return module.forward

    with torch._dynamo.config.patch({name: 3, "automatic_dynamic_shapes": False, "specialize_int": True}):
        compiled = torch.compile(function, backend=backend)
        compiled(torch.ones(2), 1)
        compiled(torch.ones(2), 2)
        known = entries(function.__code__)
        seen: List[GraphCall] = []
        with observe_graphs(seen.append):
            for number in (1, 2, 3, 1, 2, 3):
                assert compiled(torch.ones(2), number)[0] == number
        assert len(seen) == 6
        assert entries(function.__code__) == known
        runs.clear()
        for number in (3, 1, 2):
            compiled(torch.ones(2), number)
        assert runs == ["compiled"]  # the third, which the limit allows
        compiled(torch.ones(2), 4)
        assert runs == ["compiled"]
        assert depyf.why(compiled, torch.ones(2), 1).hit is not None


def test_observers_may_be_nested_and_their_failures_stay_inside(caplog: pytest.LogCaptureFixture) -> None:
    outer: List[GraphCall] = []

    def fails(_: GraphCall) -> None:
        raise ValueError("of an observer")

    compiled = torch.compile(lambda x: x + 1, backend="aot_eager")
    with observe_graphs(outer.append):
        compiled(torch.ones(2))
        with observe_graphs(fails):
            assert compiled(torch.ones(2))[0] == 2
        compiled(torch.ones(2))
    assert len(outer) == 3
    assert "of an observer" in caplog.text


def test_an_exception_that_is_returned_is_raised_in_the_program() -> None:
    compiled = torch.compile(lambda x: x + 1, backend="aot_eager")
    with pytest.raises(FloatingPointError, match="found"), observe_graphs(lambda _: FloatingPointError("found")):
        compiled(torch.ones(2))
    assert compiled(torch.ones(2))[0] == 2


def test_an_exception_of_the_program_passes_and_all_is_undone() -> None:
    lookup = torch._dynamo.eval_frame._callback_from_stance

    def program() -> None:
        assert torch._dynamo.eval_frame._callback_from_stance is not lookup
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
        raise KeyError("of the program")

    with pytest.raises(KeyError), observe_graphs(lambda _: None):
        program()
    assert torch._dynamo.eval_frame._callback_from_stance is lookup


def test_nothing_is_read_while_a_cuda_graph_is_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    calls: List[GraphCall] = []
    with observe_graphs(calls.append):
        torch.compile(lambda x: x + 1, backend="aot_eager")(torch.ones(2))
    assert calls == []


def test_stances_hold_inside() -> None:
    calls: List[GraphCall] = []
    compiled = torch.compile(lambda x: x + 1, backend="aot_eager")
    with observe_graphs(calls.append):
        with torch.compiler.set_stance("force_eager"):
            compiled(torch.ones(2))
        assert calls == []
        compiled(torch.ones(2))
    assert len(calls) == 1


def test_a_torch_that_cannot_be_observed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = torch_names.PrivateName("torch._dynamo.eval_frame", "no_such_name", "nothing")
    monkeypatch.setattr(private_names, "CALLBACK_FROM_STANCE", absent)
    with pytest.raises(RuntimeError, match=r"2\.6 and later"), contextlib.ExitStack() as stack:
        stack.enter_context(observe_graphs(lambda _: None))
