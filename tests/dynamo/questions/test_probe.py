"""``probe`` records the values of the user's names in compiled code, and changes none of them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
from torch_versions import needs_stances

torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.dump.pausing import Debug  # noqa: E402
from depyf.dynamo.hooks import cache_entries  # noqa: E402
from depyf.dynamo.questions.probe.queries import query_of  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.usefixtures("fresh_dynamo"),
    needs_stances,
]

SEEN: Dict[str, List[Any]] = {}


def seen(name: str, value: Any) -> Any:
    """What eager code has bound to the name, in order."""
    if not torch.compiler.is_compiling():
        SEEN.setdefault(name, []).append(value.detach().clone())
    return value


class Model(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.outer = torch.nn.Linear(4, 2)

    def forward(self, x: Any, scale: float = 2.0) -> Any:
        factor = scale * 3
        hidden = seen("hidden", self.norm(self.inner(x)).relu())
        for _ in range(3):
            hidden = seen("hidden", hidden * factor)
        first, (second, third) = hidden.chunk(2)[0], hidden.chunk(2)[:2]
        seen("second", second)
        total = first.sum() + third.sum()
        torch._dynamo.graph_break()
        hidden = seen("hidden", hidden.clone())
        hidden += 1
        seen("hidden", hidden)
        return seen("result", helper(self.outer(hidden)) + total + second.sum())


def helper(x: Any) -> Any:
    hidden = seen("helper.hidden", x.sigmoid())
    return hidden.sum()


def model() -> Tuple[Any, Any]:
    torch.manual_seed(0)
    SEEN.clear()
    return Model(), torch.randn(6, 4)


def values(found: Any) -> List[Any]:
    return [each.value for each in found]


def same(found: Any, expected: Any) -> bool:
    return len(found) == len(expected) and all(torch.allclose(a.value, b) for a, b in zip(found, expected))


def test_names_are_what_eager_code_binds_to_them() -> None:
    network, x = model()
    compiled = torch.compile(network, backend="aot_eager")
    compiled(x)
    state = {name: value.clone() for name, value in network.state_dict().items()}
    network(x)
    eager = dict(SEEN)
    network.load_state_dict(state)
    with depyf.probe("forward.hidden", "helper.hidden", "second", "Model.forward.return") as probed:
        compiled(x)
    assert same(probed["forward.hidden"], eager["hidden"])
    assert same(probed["helper.hidden"], eager["helper.hidden"])
    assert same(probed["second"], eager["second"])
    returned = probed["Model.forward.return"]
    if not hasattr(helper.__code__, "co_qualname"):  # then ``forward`` of other modules is meant, too
        returned = returned[-1:]
    assert same(returned, eager["result"])
    assert probed.problems == {}
    lines = [each.line.line - Model.forward.__code__.co_firstlineno for each in probed["forward.hidden"]]
    assert lines == [2, 4, 4, 4, 9, 10]
    assert {Path(each.line.file).name for each in probed["forward.hidden"]} == {Path(__file__).name}
    assert probed["forward.hidden"][0].operation == "Tensor.relu"
    assert probed["second"][0].line.code.startswith("first, (second, third)")


def test_a_name_alone_is_that_name_in_all_functions() -> None:
    network, x = model()
    with depyf.probe("hidden") as probed:
        torch.compile(network, backend="eager")(x)
    assert [each.function for each in probed["hidden"]] == ["Model.forward"] * 6 + ["helper"] or not hasattr(
        helper.__code__, "co_qualname"
    )
    assert len(probed["hidden"]) == 7


def test_lines_are_recorded_with_and_without_a_name() -> None:
    network, x = model()
    begin = Model.forward.__code__.co_firstlineno
    returned = helper.__code__.co_firstlineno + 2
    asked = [f"{Path(__file__).name}:{begin + 4}", begin + 2]
    with depyf.probe(lines=[*asked, f"{Path(__file__).name}:{returned}"]) as probed:
        torch.compile(network, backend="eager")(x)
    assert [each.name for each in probed[asked[0]]] == ["hidden"] * 3
    assert [each.name for each in probed[begin + 2]] == ["hidden"]
    assert [each.name for each in probed[f"{Path(__file__).name}:{returned}"]] == ["return"]


def test_nothing_changes_for_the_program() -> None:
    def run(network: Any, compiled: Any, x: Any) -> List[Any]:
        network.zero_grad()
        result = compiled(x)
        result.backward()
        return [result.detach(), *(p.grad.clone() for p in network.parameters()), *network.buffers()]

    network, x = model()
    compiled = torch.compile(network, backend="inductor")
    run(network, compiled, x)
    start = {name: value.clone() for name, value in network.state_dict().items()}
    expected = [each.clone() for each in run(network, compiled, x)]
    entries = [e.code for e in cache_entries.cache_entries(Model.forward.__code__)]
    network.load_state_dict(start)
    counter = torch._dynamo.testing.CompileCounter()
    with depyf.probe("hidden", gradients=True) as probed:
        got = [each.clone() for each in run(network, compiled, x)]
    assert len(probed["hidden"]) == 7
    assert all(torch.equal(a, b) for a, b in zip(expected, got))
    again = [e.code for e in cache_entries.cache_entries(Model.forward.__code__)]
    assert all(code in again for code in entries)
    counts = dict(torch._dynamo.utils.counters["stats"])
    network.load_state_dict(start)
    assert all(torch.equal(a, b) for a, b in zip(expected, run(network, compiled, x)))
    assert dict(torch._dynamo.utils.counters["stats"]) == counts  # and nothing is compiled afterwards
    assert len(probed["hidden"]) == 7
    assert counter.frame_count == 0


def test_the_graphs_are_those_without_a_probe() -> None:
    texts: List[str] = []

    def backend(module: Any, inputs: Any) -> Any:
        texts.append(module.print_readable(print_output=False))
        return module.forward

    network, x = model()
    compiled = torch.compile(network, backend=backend)
    compiled(x)
    without = list(texts)
    texts.clear()
    with depyf.probe("hidden", lines=[12]):
        compiled(x)
    assert texts == without
    assert len(texts) >= 2


def test_gradients_are_those_of_eager_code() -> None:
    def function(x: Any, w: Any) -> Any:
        a = x @ w
        b = a.relu()
        torch._dynamo.graph_break()
        c = b * 2
        return c.sin().sum() + a.sum()

    x, w = torch.randn(3, 3), torch.randn(3, 3, requires_grad=True)
    compiled = torch.compile(function, backend="aot_eager")
    with depyf.probe("a", "b", "c", gradients=True) as probed:
        compiled(x, w).backward()
    a = (x @ w).detach().requires_grad_()
    b = a.relu()
    c = b * 2
    b.retain_grad()
    c.retain_grad()
    (c.sin().sum() + a.sum()).backward()
    for name, expected in (("a", a), ("b", b), ("c", c)):
        assert torch.allclose(probed[name][0].grad, expected.grad), name


def test_a_result_without_a_gradient_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    class Ends(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return None

    def function(x: Any) -> Any:
        a = x * 2
        return a + 1, a * 3

    with depyf.probe("a", gradients=True) as probed:
        first, second = torch.compile(function, backend="aot_eager")(torch.ones(3, requires_grad=True))
        (first.sum() + Ends.apply(second).sum()).backward()
    assert torch.equal(probed["a"][0].grad, torch.ones(3))
    assert "failed at" not in caplog.text


def test_what_the_compiled_graph_gives_out_is_taken_from_there() -> None:
    def wrong(module: Any, inputs: Any) -> Any:
        def run(*arguments: Any) -> Any:
            return tuple(value + 100 for value in module(*arguments))

        return run

    def function(x: Any) -> Any:
        inside = x * 2
        outside = inside + 1
        return outside

    with depyf.probe("inside", "outside") as probed:
        torch.compile(function, backend=wrong)(torch.zeros(2))
    assert (probed["inside"][0].source, probed["outside"][0].source) == ("replayed", "compiled")
    assert torch.equal(probed["inside"][0].value, torch.zeros(2))
    assert torch.equal(probed["outside"][0].value, torch.full((2,), 101.0))


def test_a_value_is_that_before_it_is_written_to() -> None:
    def function(x: Any) -> Any:
        value = x * 2
        view = value[0]
        view.add_(10)
        return value

    with depyf.probe("value", "return") as probed:
        torch.compile(function, backend="eager")(torch.ones(2))
    assert torch.equal(probed["value"][0].value, torch.full((2,), 2.0))
    assert torch.equal(probed["return"][0].value, torch.tensor([12.0, 2.0]))


def test_each_call_is_recorded_up_to_the_limit() -> None:
    compiled = torch.compile(helper, backend="eager")
    with depyf.probe("hidden", keep="stats", limit=3) as probed:
        for number in range(5):
            compiled(torch.full((2,), float(number)))
    assert [each.call for each in probed["hidden"]] == [1, 2, 3]
    assert values(probed["hidden"]) == [None] * 3
    assert probed["hidden"][0].facts is not None
    assert probed["hidden"][0].facts.mean == 0.5
    assert "2 more values were not kept" in str(probed)


def test_what_follows_random_numbers_says_so() -> None:
    def function(x: Any) -> Any:
        before = x + 1
        after = torch.nn.functional.dropout(before, 0.5, True) * 2
        calm = torch.nn.functional.dropout(before, 0.5, False) * 2
        return after + calm

    with depyf.probe("before", "after", "calm") as probed:
        torch.compile(function, backend="eager")(torch.ones(4))
    assert "random" in probed["after"][0].note
    assert probed["before"][0].note == probed["calm"][0].note == ""


GLOBAL = torch.full((2,), 5.0)


def test_what_goes_in_is_recorded() -> None:
    class Scaled(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.full((2,), 3.0))
            self.inner = torch.nn.Linear(2, 2)

        def forward(self, x: Any, batch: Any, unused: Any, number: float = 2.0) -> Any:
            x.add_(1)
            y = doubled(x) * self.scale + batch["more"] + GLOBAL
            torch._dynamo.graph_break()
            z = self.inner(y) + batch["later"] * number
            return z + x

    def doubled(given: Any) -> Any:
        return given * 2

    names = ("x", "batch", "given", "self.scale", "self.inner.weight", "GLOBAL", "unused", "number", "y")
    more, later = torch.zeros(2), torch.ones(2)
    network = Scaled()
    with depyf.probe(*names, stream=io.StringIO()) as probed:
        torch.compile(network, backend="eager")(torch.ones(2), {"more": more, "later": later}, torch.ones(1))
    found = {name: [(each.name + each.part, each.value.tolist()) for each in probed[name]] for name in names}
    weight = network.inner.weight.tolist()
    assert found == {
        "x": [("x", [1.0, 1.0])],  # before it is written to, and not once more behind the graph break
        "batch": [("batch['more']", [0.0, 0.0]), ("batch['later']", [1.0, 1.0])],
        "given": [("given", [2.0, 2.0])],
        "self.scale": [(".scale", [3.0, 3.0])],
        "self.inner.weight": [(".weight", weight)],
        "GLOBAL": [("GLOBAL", [5.0, 5.0])],
        "unused": [],
        "number": [],
        "y": [("y", [17.0, 17.0])],
    }
    assert probed["x"][0].operation == probed["self.scale"][0].operation == "an input"
    assert probed["self.scale"][0].line.code.startswith("y = doubled(x) * self.scale")
    assert "has not looked at" in probed.problems["unused"]


def test_what_is_checkpointed_counts_for_random_numbers_and_is_told() -> None:
    from torch.utils.checkpoint import checkpoint

    def block(x: Any) -> Any:
        hidden = torch.nn.functional.dropout(x, 0.5)
        return hidden * 2

    def function(x: Any) -> Any:
        hidden = x + 1
        y = checkpoint(block, hidden, use_reentrant=False)
        return y + 1

    with depyf.probe("hidden", "y", gradients=True) as probed:
        x = torch.ones(4, requires_grad=True)
        torch.manual_seed(0)
        torch.compile(function, backend="aot_eager")(x).sum().backward()
        drawn = torch.rand(1)
    torch.manual_seed(0)
    function(torch.ones(4, requires_grad=True)).sum().backward()
    assert torch.equal(torch.rand(1), drawn)  # the program draws what it would without
    assert torch.equal(probed["hidden"][0].grad, x.grad)
    assert "random" in probed["y"][0].note
    assert [each.value.tolist() for each in probed["hidden"]] == [[2.0] * 4]
    assert "checkpointed" in str(probed)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("hiden", "there are: hidden"),
        ("factor", "the constant 6.0"),
        ("helper.factor", "it is bound in"),
        ("nowhere.py:3", "it has code of test_probe.py"),
    ],
)
def test_what_can_not_be_recorded_is_told_with_the_reason(asked: str, words: str) -> None:
    network, x = model()
    stream = io.StringIO()
    with depyf.probe(asked, stream=stream) as probed:
        torch.compile(network, backend="eager")(x)
    assert probed[asked] == []
    if "constant" in words and "no tensor" in probed.problems[asked]:
        words = "no tensor"  # some versions know only that
    if "bound in" in words:
        words = "no compiled code that ran binds a tensor"
    assert words in probed.problems[asked]
    assert f"depyf: {asked}: " in stream.getvalue()
    with pytest.raises(KeyError):
        probed["something else"]


def test_a_line_with_nothing_on_it_names_those_near_it() -> None:
    network, x = model()
    begin = Model.forward.__code__.co_firstlineno
    with depyf.probe(begin + 1, stream=io.StringIO()) as probed:
        torch.compile(network, backend="eager")(x)
    assert "it is" in probed.problems[str(begin + 1)] or str(begin + 2) in probed.problems[str(begin + 1)]


def test_without_compiled_code_it_says_so() -> None:
    with depyf.probe("hidden", stream=io.StringIO()) as probed:
        helper(torch.ones(2))
    assert probed.problems["hidden"].startswith("nothing was observed: no compiled function was called inside")


def test_a_graph_that_can_not_be_compiled_is_not_taken_for_one_that_ran() -> None:
    def fails(*_: object) -> Any:
        raise ZeroDivisionError

    # Not monkeypatch: what it restores in PyTorch's settings is hidden afterwards.
    suppressed = torch._dynamo.config.patch(suppress_errors=True)
    with suppressed, depyf.probe("hidden", stream=io.StringIO()) as probed:
        torch.compile(helper, backend=fails)(torch.ones(2))
    assert probed.problems["hidden"].startswith("nothing was observed")


def test_it_must_be_entered_before_debug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.breakpoint", lambda: None)
    compiled = torch.compile(helper, backend="eager")
    with depyf.probe("hidden") as probed:
        compiled(torch.ones(2))
        with Debug():
            compiled(torch.zeros(2))
    assert [each.value[0].item() for each in probed["hidden"]] == [pytest.approx(0.7310585), 0.5]
    with Debug(), pytest.raises(RuntimeError, match="enter probe first"):
        depyf.probe("hidden").__enter__()


def test_wrong_questions_are_refused() -> None:
    with pytest.raises(ValueError, match="names of variables"):
        depyf.probe()
    with pytest.raises(ValueError, match="tensors"):
        depyf.probe("x", keep="everything")


def test_exceptions_of_the_program_pass() -> None:
    def fails() -> None:
        with depyf.probe("hidden"):
            compiled(torch.ones(2))
            raise ZeroDivisionError

    compiled = torch.compile(helper, backend="eager")
    with pytest.raises(ZeroDivisionError):
        fails()


def test_queries_are_read() -> None:
    assert (query_of("Model.forward.x").function, query_of("Model.forward.x").name) == ("Model.forward", "x")
    assert (query_of("a/b.py:41").file, query_of("a/b.py:41").line) == ("a/b.py", 41)
    assert (query_of(41).file, query_of(41).line) == ("", 41)


def test_it_shows_in_a_notebook() -> None:
    compiled = torch.compile(helper, backend="eager")
    with depyf.probe("hidden", "other", stream=io.StringIO()) as probed:
        compiled(torch.ones(2))
    assert "<table>" in probed._repr_html_()
    assert "no compiled code that ran binds" in probed._repr_html_()
    assert "hidden: 1 value" in str(probed)
