"""What ``depyf fix`` records of a run: outermost calls only, and all that they compute and leave."""

from __future__ import annotations

import sys
import types
from typing import Dict, Iterator, List, Tuple

import pytest

torch = pytest.importorskip("torch", minversion="2.2")

from torch_versions import HAS_GUARD_TREES  # noqa: E402

from depyf.answers.recorded import Event, _event  # noqa: E402
from depyf.dynamo.hooks.hooked_context import install, uninstall  # noqa: E402
from depyf.dynamo.questions.shadow import outer_calls  # noqa: E402
from depyf.dynamo.questions.shadow.outer_calls import OuterCalls  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(sys.getprofile() is not None, reason="a profiler runs already"),
    pytest.mark.usefixtures("fresh_dynamo"),
]


class Recorded:
    """A recorder that runs, and what it has written."""

    def __init__(self) -> None:
        self.lines: List[str] = []
        self.recorder = OuterCalls(self.lines.append)

    def events(self) -> List[Event]:
        found = [_event(line) for line in self.lines]
        assert None not in found
        return [each for each in found if each is not None]

    def kinds(self) -> List[Tuple[str, str]]:
        return [(each.kind, each.where) for each in self.events()]

    def named(self, kind: str, where: str) -> Dict[str, Tuple[int, ...]]:
        (event,) = (each for each in self.events() if (each.kind, each.where) == (kind, where))
        return {each.name: each.shape for each in event.values}


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    found, undo = Recorded(), []  # type: Tuple[Recorded, List[Undo]]
    install(undo, "recording in a test", found.recorder.install)
    found.recorder.install_compiler()
    yield found
    uninstall(undo, "recording in a test")


def test_inner_modules_are_left_out_and_numbers_and_changed_arguments_are_recorded(recorded: Recorded) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Linear(2, 2)

        def forward(self, x: torch.Tensor, scale: float) -> Tuple[torch.Tensor, float, str]:
            y = self.inner(x) * scale
            x.add_(1)
            return y, scale * 2, "done"

    with torch.no_grad():
        Net()(torch.zeros(3, 2), 0.5)
    assert recorded.kinds() == [
        ("start", "Net"),
        ("input", "Net"),
        ("output", "Net"),
        ("input", "Net when it has returned"),
    ]
    assert recorded.named("output", "Net") == {"[0]": (3, 2), "[1]:float": (), "[2]:str": ()}
    before, after = (each.values[0] for each in recorded.events() if each.kind == "input")
    assert before.name == after.name == "args[0]"
    assert before.bits != after.bits


def test_the_gradients_of_all_leaves_are_recorded_without_an_optimizer(recorded: Recorded) -> None:
    @torch.compile(backend="eager")
    def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x * y).sum()

    x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    loss(x, y).backward()
    torch.autograd.grad(loss(x, y), [x])
    kinds = recorded.kinds()
    name = test_the_gradients_of_all_leaves_are_recorded_without_an_optimizer.__name__
    assert kinds[0][0] == "input"
    assert [each for each in kinds if each[0] in ("loss", "gradient")] == [
        ("loss", "backward()"),
        ("gradient", "backward()"),
    ]
    assert recorded.named("gradient", "backward()") == {f"{name} {each}": (3,) for each in "xy"}
    assert recorded.named("output", "autograd.grad()") == {"[0]": (3,)}
    assert [where for where, _ in recorded.recorder.times].count("backward") == 1
    assert all(seconds >= 0 for _, seconds in recorded.recorder.times)


def test_leaves_have_names_that_do_not_depend_on_the_graph(recorded: Recorded) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = (torch.nn.Parameter(torch.ones(size)) for size in (2, 3))
            self.unused.grad = torch.ones(3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.used.sum() * x.sum()

    # Variables hold neither the module nor the leaf that has no name.
    known = types.SimpleNamespace(net=Net(), weight=torch.ones(4, requires_grad=True))

    def step(given: torch.Tensor) -> None:
        known.net(given).mul(known.weight.sum()).backward()

    step(torch.ones(5, requires_grad=True))
    assert recorded.named("gradient", "backward()") == {
        "Net.unused": (3,),
        "Net.used": (2,),
        "a leaf": (4,),
        "step given": (5,),
    }


def test_a_leaf_that_a_call_was_given_has_a_name(recorded: Recorded) -> None:
    net = torch.nn.Flatten(0)
    net(torch.ones(3, requires_grad=True)).sum().backward()
    assert recorded.named("gradient", "backward()") == {"Flatten (call 1) args[0]^": (3,)}


@pytest.mark.skipif(
    not HAS_GUARD_TREES, reason="PyTorch before 2.4 wraps Optimizer.add_param_group as compiled code, which is recorded"
)
def test_calls_of_inner_modules_name_nothing(recorded: Recorded) -> None:
    class Inner(torch.nn.Linear):
        pass

    class Outer(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return kept.inner(x)  # type: ignore[no-any-return]

    kept = types.SimpleNamespace(inner=Inner(2, 1), other=Inner(2, 1))
    optimizer = torch.optim.SGD(kept.inner.parameters(), lr=0.1)
    Outer()(torch.ones(2)).sum().backward()
    optimizer.step()
    assert set(recorded.named("gradient", "SGD")) == {"0.0 ", "0.1 "}
    assert set(recorded.named("parameter", "SGD")) == {"0.0 ", "0.0* ", "0.1 ", "0.1* "}
    kept.other(torch.ones(2))
    kept.inner(torch.ones(2))
    assert [where for kind, where in recorded.kinds() if kind == "start"] == ["SGD", "Inner", "Inner#2"]


def test_what_can_not_be_recorded_is_noted(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> None:
        raise ValueError("no leaves")

    x = torch.ones(3, requires_grad=True)
    monkeypatch.setattr(outer_calls, "_leaves_of", fails)
    (x * 2).sum().backward()
    assert list(recorded.recorder.skipped) == ["finding the leaves of a backward() failed"]


def test_globals_are_recorded_at_the_end(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    main = types.ModuleType("__main__")
    weight = torch.ones(2, requires_grad=True)
    (weight * 2).sum().backward()
    main.__dict__.update(weight=weight, total=3.0, net=torch.nn.Linear(2, 1), torch=torch, text=["a"])
    monkeypatch.setitem(sys.modules, "__main__", main)
    recorded.recorder.note_end()
    found = {where: recorded.named("start", where) for kind, where in recorded.kinds() if kind == "start"}
    assert found == {
        "global net": {"weight": (1, 2), "bias": (1,)},
        "global text": {"[0]:str": ()},
        "global total": {":float": ()},
        "global weight": {"^": (2,), "^.grad": (2,)},
    }
