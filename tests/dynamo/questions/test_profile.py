"""``profile`` attributes what it measures to lines and modules. No test says how long anything takes."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Iterator, List

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import depyf  # noqa: E402
from depyf.answers.nonfinite import Line  # noqa: E402
from depyf.answers.profiled import Cost, KernelTime, LineTime, MachineLimits, Parts, Profiled  # noqa: E402
from depyf.answers.worth import FASTER, NO_DIFFERENCE, SLOWER, beside, interval  # noqa: E402
from depyf.dynamo.capture import launches  # noqa: E402
from depyf.dynamo.capture.hub import capture  # noqa: E402
from depyf.dynamo.hooks import private_names  # noqa: E402
from depyf.dynamo.questions.profile import measuring, question  # noqa: E402
from depyf.dynamo.questions.profile.measuring import machine_limits  # noqa: E402

LISTS = private_names.MODES_IN_GUARDS.find() is not None
pytestmark = [
    pytest.mark.torch,
    pytest.mark.usefixtures("fresh_dynamo"),
    pytest.mark.skipif(not LISTS, reason="PyTorch before 2.13 compiles anew while operations are listed"),
]


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        y = self.first(x)  # the line of a layer
        return y.relu() * 2  # the line of two operations


def train(net: Any, x: Any) -> Any:
    loss = net(x).sum()  # the line of the sum
    loss.backward()  # the line of the backward
    return loss.detach()


def line(text: str) -> int:
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, each in enumerate(file, 1) if each.rstrip().endswith(f"# {text}"))


def by_line(profiled: Any) -> Any:
    return {each.line.line: each for each in profiled.lines if each.line.file == __file__}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_training_step(backend: str) -> None:
    net, x = Net(), torch.randn(4, 8)
    found = depyf.profile(train, net, x, backend=backend, steps=2, pairs=2)
    lines = by_line(found)
    assert found.attributed > 0.9
    assert sum(each.cost.seconds for each in found.lines) == pytest.approx(found.attributed * found.seconds)
    for text in ("the line of a layer", "the line of two operations", "the line of the sum"):
        cost = lines[line(text)].cost
        assert cost.forward > 0
        assert cost.backward > 0, text
        assert lines[line(text)].eager, text
    assert lines[line("the line of a layer")].cost.operations >= 2 * 4 * 8 * 8
    modules = {each.name: each for each in found.modules}
    assert modules["net.first"].type == "Linear"
    assert modules["net.first"].eager
    parts = found.parts
    assert found.limits is not None
    assert found.limits.bytes > 1e6
    assert found.limits.operations > 1e6
    whole = parts.graphs + parts.outside + parts.guards + parts.calling + parts.python
    assert whole == pytest.approx(parts.seconds)
    # On one thread gaps are all that no kernel and no operation takes.
    gaps = sum(each.seconds for each in found.gaps)
    assert gaps == pytest.approx(parts.guards + parts.calling + parts.python, rel=0.02)
    assert sum(each.guards for each in found.gaps) == pytest.approx(parts.guards, rel=0.02)
    ran = {each.what for each in found.timeline}
    assert {"guards", "calling", "operation"} <= ran
    assert any(line("the line of the sum") in [at.line for at in each.lines] for each in found.timeline)
    assert any(each.line and each.line.line == line("the line of the backward") for each in found.outside)
    assert net.first.weight.grad is None, "the program's own module was changed"


def test_what_was_compiled_is_not_touched() -> None:
    net = Net()
    compiled = torch.compile(net, backend="eager")
    x = torch.randn(4, 8)
    before = compiled(x)
    entries = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    found = depyf.profile(compiled, x, steps=1, pairs=1)
    assert {each.name for each in found.modules} == {"", "first"}
    assert found.compile_seconds > 0
    assert torch.equal(compiled(x), before)
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    compiled(x)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == graphs == entries


def steps_of(p: Any, net: Any, count: int) -> Iterator[int]:
    for number in range(count):
        yield number
        p.step()


def test_a_block_leaves_out_the_steps_that_compile() -> None:
    net = Net()
    compiled = torch.compile(net, backend="aot_eager")
    with depyf.profile(steps=2) as p:
        for _ in steps_of(p, net, 10):
            compiled(torch.randn(4, 8)).sum().backward()  # the line of a step
    assert p.answer.steps == 2
    assert p.attributed > 0.9
    lines = by_line(p)
    assert lines[line("the line of a layer")].cost.calls >= 2
    assert lines[line("the line of a step")].cost.forward > 0
    assert p.eager is None
    with pytest.raises(ValueError, match="eager mode was not measured"):
        p.answer.worth()
    assert "depyf profiled the block: 2 calls" in str(p)


def test_a_block_without_steps_says_what_its_times_include() -> None:
    net = Net()
    compiled = torch.compile(net, backend="eager")
    with depyf.profile() as p:
        compiled(torch.randn(4, 8))
        compiled(torch.randn(4, 8))
    assert line("the line of a layer") in by_line(p)
    assert p.answer.compile_seconds > 0
    assert any("operations were listed while they were profiled" in note for note in p.answer.notes)


def test_a_block_that_ends_too_early_says_so() -> None:
    with depyf.profile(steps=2) as p:
        pass
    assert p.lines == ()
    assert any("no step was profiled" in note for note in p.answer.notes)


def test_before_its_end_nothing_is_there() -> None:
    with pytest.raises(RuntimeError, match="has measured nothing yet"):
        depyf.profile().lines  # noqa: B018
    with pytest.raises(ValueError, match="at least one step"):
        depyf.profile(steps=0)


def test_as_data() -> None:
    found = depyf.profile(lambda x: x.sin() + 1, torch.ones(3), backend="eager", steps=1, pairs=6)
    data = json.loads(json.dumps(found.to_dict()))
    assert {"lines", "modules", "kernels", "attributed", "eager", "parts", "outside", "notes"} <= set(data)
    assert data["eager"]["pairs"] == 6
    assert "<table>" in found._repr_html_()
    assert str(found).count("\n") > 3


def test_calls_are_timed_as_they_are_without_depyf(monkeypatch: pytest.MonkeyPatch) -> None:
    """No session receives while they are timed, none of its hooks is left, and kernels are not marked."""
    open_sessions, timed_pairs = [], question.timed_pairs

    def noted(*args: Any) -> Any:
        open_sessions.append((capture.current(), bool(capture._undo), bool(launches._watchers)))
        return timed_pairs(*args)

    monkeypatch.setattr(question, "timed_pairs", noted)
    found = depyf.profile(train, Net(), torch.randn(4, 8), backend="eager", steps=2, pairs=2)
    assert open_sessions == [(None, False, False)]
    assert not [note for note in found.notes if "session" in note]


@pytest.mark.parametrize("directory", [None, "dump"])
def test_a_session_goes_on_after_calls_were_timed(
    directory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with depyf.prepare_debug("around"):
        found = depyf.profile(train, Net(), torch.randn(4, 8), backend="eager", steps=2, pairs=2, directory=directory)
        torch.compile(torch.sin, backend="eager")(torch.randn(3))
    assert found.eager is not None
    assert "a session is open around the profile: its hooks are in the times of the calls" in found.notes
    assert list(Path("around").glob("__compiled_fn_*"))
    assert directory is None or "timings" in Path("dump", "manifest.json").read_text()
    assert capture.current() is None
    assert not capture._undo


@pytest.mark.slow
def test_kernels_of_inductor() -> None:
    found = depyf.profile(train, Net(), torch.randn(4, 8), steps=2, pairs=2)
    kinds = {each.kind for each in found.kernels}
    assert kinds == {"kernel", "library call", "operation"}
    fused = next(each for each in found.kernels if each.kind == "kernel" and not each.cost.backward)
    assert fused.cost.bytes > 0
    assert line("the line of two operations") in {each.line for each in fused.lines}
    assert found.attributed > 0.95


def test_the_decision_needs_more_than_the_noise() -> None:
    slow, fast = [2.0, 2.1, 1.9, 2.2, 2.0, 2.1, 1.8, 2.0], [1.0, 1.1, 0.9, 1.0, 1.2, 1.0, 1.1, 1.0]
    found = beside(fast, slow, compile_seconds=10.0, overhead=0.1)
    assert (found.decision, found.break_even) == (FASTER, 10)
    found = beside(slow, fast, compile_seconds=10.0, overhead=0.1)
    assert (found.decision, found.break_even) == (SLOWER, None)
    found = beside(fast, fast[::-1], compile_seconds=10.0, overhead=0.1)
    assert (found.decision, found.break_even) == (NO_DIFFERENCE, None)
    assert (found.break_even_low, found.break_even_high) == (None, None)
    assert beside(fast[:5], slow[:5], compile_seconds=1.0, overhead=0.0).decision == NO_DIFFERENCE, "too few pairs"


def test_a_wide_interval_of_the_break_even_is_said() -> None:
    calm, fast = [2.0 + number / 1000 for number in range(8)], [1.0] * 8
    found = beside(fast, calm, compile_seconds=100.0, overhead=0.0)
    assert (found.break_even, found.break_even_low, found.break_even_high) == (100, 100, 100)
    assert found.paid_after == "100 calls pay"
    restless = [1.5, 1.6, 1.9, 2.0, 2.0, 2.1, 2.4, 3.0]
    found = beside(fast, restless, compile_seconds=100.0, overhead=0.0)
    assert (found.break_even_low, found.break_even_high) == (50, 200)
    assert found.paid_after == "100 calls pay (50 to 200)"


def test_the_interval_of_a_median() -> None:
    # Of 15 values the 4th and the 12th: 3.5 % of all medians are outside.
    assert interval([float(each) for each in range(1, 16)]) == (4.0, 12.0)
    assert interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == (1.0, 6.0)


def test_shares_of_what_the_machine_reaches() -> None:
    limits = MachineLimits(bytes=1e9, operations=1e10)
    slow, none = Cost(forward=2.0, bytes=10**9, operations=10**9), Cost()
    assert limits.shares(slow) == (0.5, 0.05)
    assert limits.shares(none) == (0, 0)
    kernel = KernelTime("k", "kernel", slow)
    text = str(Profiled("f", 1, 2.0, 1.0, Parts(), kernels=(kernel,), limits=limits))
    assert "k (kernel in no graph)  (50 % of memory, 5 % of arithmetic)" in text
    assert "% of memory" not in str(Profiled("f", 1, 2.0, 1.0, Parts(), kernels=(kernel,)))


class Seen(TorchDispatchMode):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.operations: List[str] = []

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.operations.append(str(operation))
        return operation(*args, **(kwargs or {}))


def test_modes_of_the_program_do_not_see_the_measurement_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "_known_limits", {})
    with Seen() as seen:
        assert machine_limits("cpu") is not None
    assert seen.operations == []


def test_three_sentences() -> None:
    row = LineTime(Line("/p/a.py", 3), Cost(forward=3e-3), eager=1e-3)
    times = [1e-3 + number * 1e-5 for number in range(8)]
    for slower, expected in (([row], "a.py:3 has lost most: 3.00 ms instead of 1.00 ms."), ([], "no line is slower.")):
        eager = beside(times, [2 * each for each in times], compile_seconds=2.0, overhead=2e-4)
        said = Profiled("f", 1, 3e-3, 1.0, Parts(), tuple(slower), eager=eager).worth()
        assert said.startswith("Compiling makes it faster, 2.00 times: a compiled call takes ")
        assert f"Compiling took 2.00 s, which {eager.paid_after} back. Guards and the calls" in said
        assert said.endswith(expected)
    same = beside(times, times[::-1], compile_seconds=2.0, overhead=0.0)
    said = Profiled("f", 1, 3e-3, 1.0, Parts(), eager=same).worth()
    assert said.startswith("No difference beyond the noise: a compiled call takes ")
    assert "no number of calls is known to pay back" in said


def test_the_machine_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "_known_limits", {})
    first = machine_limits("cpu")
    monkeypatch.setattr(torch, "mm", None)
    assert machine_limits("cpu") == first


def test_the_machine_is_measured_again_with_another_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """TF32 multiplies several times as fast. A program may set the precision of one backend alone."""
    monkeypatch.setattr(measuring, "_known_limits", {})
    machine_limits("cpu")
    monkeypatch.setattr(torch.backends.cuda, "matmul", SimpleNamespace(fp32_precision="tf32"))
    machine_limits("cpu")
    machine_limits("cpu")
    assert len(measuring._known_limits) == 2


class TwoLayers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        hidden = self.first(x).relu()
        return self.second(hidden)


def test_the_last_operation_of_a_call_has_its_line() -> None:
    """With gradients, ``relu`` saves a detached result, which the list of operations has, and the profiler has not."""
    found = depyf.profile(TwoLayers(), torch.ones(4, 8), backend="eager", steps=2, pairs=1)
    begin = TwoLayers.forward.__code__.co_firstlineno
    assert {each.line.line for each in found.lines} == {begin + 1, begin + 2}
    assert not found.outside
    assert all(each.eager for each in found.lines)


def test_a_profiler_of_the_program_keeps_its_events() -> None:
    with torch.profiler.profile() as own:
        with pytest.raises(RuntimeError, match="a profiler of PyTorch's is running"):
            depyf.profile(torch.relu, torch.ones(3), backend="eager")
        with depyf.profile() as block:
            torch.ones(3).cos()
    assert any(each.name == "aten::cos" for each in own.events())
    assert block.answer.seconds == 0
    assert any("another profiler" in note for note in block.answer.notes)


@pytest.mark.parametrize("options", [{"steps": -1}, {"pairs": 0}])
def test_numbers_are_positive(options: Any) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        depyf.profile(torch.relu, torch.ones(3), backend="eager", **options)
