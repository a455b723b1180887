"""``shadow`` finds compiled code that is no longer what the program says, names why and where, and changes nothing."""

from __future__ import annotations

import inspect
import io
from pathlib import Path
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

import pytest
from torch_versions import IS_OLD, needs_stances

pytestmark = [
    pytest.mark.torch,
    pytest.mark.usefixtures("fresh_dynamo"),
    needs_stances,
    pytest.mark.skipif(IS_OLD, reason="older guards check other values"),
]
torch = pytest.importorskip("torch")

from stale_programs import DROPPED, GUARDED_LATER, HEALTHY, STALE, Case  # noqa: E402

import depyf  # noqa: E402
from depyf.report.model.manifest import from_json  # noqa: E402

nn = torch.nn
X = torch.ones(2)


def shadowed(**options: Any) -> Any:
    return depyf.shadow(1, stream=io.StringIO(), **options)


UNEXPLAINED = ("attribute_of_metaclass", "method_of_class_replaced")
"""Nothing on a copy can be changed to what it was: the value is named as a possible reason."""


@pytest.mark.parametrize("program", STALE, ids=lambda each: each.__name__)
def test_what_makes_an_entry_wrong_is_named(program: Callable[[], Case]) -> None:
    case = program()
    with torch.no_grad(), shadowed() as seen:
        compiled = torch.compile(case.function, backend="eager", options=case.options or None)
        compiled(*case.before)
        compiled(*case.before)
        assert seen.findings == []
        case.change()
        ran = compiled(*case.after)
        if torch.equal(case.function(*case.after), ran) and program.__name__ in GUARDED_LATER:
            pytest.skip("this PyTorch checks it")
        assert not torch.equal(case.function(*case.after), ran)
        (found,) = seen.findings
        assert torch.equal(compiled(*case.after), ran)
        assert seen.findings == [found]  # once
    kind = "dropped guard" if program in DROPPED else "wrong" if program.__name__ in UNEXPLAINED else "stale"
    assert found.kind == kind
    assert found.entry == "0/0"
    if program.__name__ != "method_of_class_replaced":  # its value is named in some runs only
        assert (case.named[case.named.find("[") :] if program in DROPPED else case.named) in found.cause
    assert found.line is not None
    assert seen.counts.checked == 3


@pytest.mark.parametrize("program", HEALTHY, ids=lambda each: each.__name__)
def test_a_healthy_entry_is_no_finding(program: Callable[[], Case]) -> None:
    case = program()
    with shadowed() as seen:
        compiled = torch.compile(case.function, backend="eager")
        for arguments in (case.before, case.before):
            compiled(*arguments)
        case.change()
        for arguments in (case.after, case.after):
            compiled(*arguments)
    assert seen.findings == []
    assert seen.counts.checked >= 1


class Plant(NamedTuple):
    """A program with a fault: ``call`` is made, then ``change``, and ``call`` again. The line of the finding has the
    comment ``# here``."""

    call: Callable[[], Any]
    change: Callable[[], Any]
    kind: str
    cause: str


def dropping_all(guards: Any) -> List[bool]:
    return [False] * len(guards)


def unguarded(function: Any, **options: Any) -> Any:
    return torch.compile(function, backend="eager", options={"guard_filter_fn": dropping_all}, **options)


class Now:
    """The arguments of the next call."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def be(self, *arguments: Any) -> None:
        self.arguments = arguments


def dropped(function: Any, before: Tuple[Any, ...], after: Tuple[Any, ...], cause: str) -> Plant:
    compiled, now = unguarded(function, dynamic=False), Now(*before)
    return Plant(lambda: compiled(*now.arguments), lambda: now.be(*after), "dropped guard", cause)


def size() -> Plant:
    def function(x: Any) -> Any:
        return x * x.shape[0]  # here

    return dropped(function, (torch.ones(3, 2),), (torch.ones(4, 2),), "x has size 4 in dimension 0")


def stride() -> Plant:
    def function(x: Any) -> Any:
        return x * x.stride()[0]  # here

    return dropped(function, (torch.ones(3, 3),), (torch.ones(3, 6)[:, ::2],), "stride")


def dtype() -> Plant:
    def function(x: Any) -> Any:
        return x + 1 if x.dtype is torch.float32 else x + 2  # here

    return dropped(function, (X,), (X.double(),), "x has dtype float64, and was compiled for float32")


def requires_grad() -> Plant:
    def function(x: Any) -> Any:
        return x + 1 if x.requires_grad else x + 2  # here

    return dropped(
        function, (X,), (torch.ones(2, requires_grad=True),), "x requires grad, and was compiled for one that does not"
    )


def identity() -> Plant:
    def one() -> None: ...

    def other() -> None: ...

    def function(x: Any, key: Any) -> Any:
        return x + 1 if key is one else x + 2  # here

    return dropped(function, (X, one), (X, other), "key")


def class_of_argument() -> Plant:
    def function(x: Any, key: Any) -> Any:
        return x + 1 if isinstance(key, list) else x + 2  # here

    return dropped(function, (X, [1]), (X, (1,)), "key")


def length() -> Plant:
    def function(x: Any, keys: Any) -> Any:
        return x * len(keys)  # here

    return dropped(function, (X, [1]), (X, [1, 2]), "keys")


def grad_mode() -> Plant:
    def function(x: Any) -> Any:
        return x + 1 if torch.is_grad_enabled() else x + 2

    compiled, on = unguarded(function), Now(True)

    def call() -> Any:
        with torch.set_grad_enabled(on.arguments[0]):
            return compiled(X)

    return Plant(call, lambda: on.be(False), "dropped guard", "grad mode is off")


def training() -> Plant:
    model = nn.Sequential(nn.BatchNorm1d(2, affine=False))
    compiled = unguarded(model)
    x = torch.tensor([[0.0, 1.0], [2.0, 5.0]])
    return Plant(lambda: compiled(x), model.eval, "dropped guard", "training")


def code_of_helper() -> Plant:
    def helper(x: Any) -> Any:
        return x * 2

    def other(x: Any) -> Any:
        return x * 5

    def function(x: Any) -> Any:
        return helper(x)  # here

    compiled = unguarded(function)
    return Plant(lambda: compiled(X), lambda: setattr(helper, "__code__", other.__code__), "dropped guard", "helper")


def variable_of_closure() -> Plant:
    factor = 2.0

    def function(x: Any) -> Any:
        return x * factor  # here

    def change() -> None:
        nonlocal factor
        factor = 5.0

    compiled = unguarded(function)
    return Plant(lambda: compiled(X), change, "dropped guard", "factor is 5.0, and was compiled for 2.0")


def baked_buffer() -> Plant:
    """A backend that keeps the values of buffers, as freezing does."""
    model = nn.Module()
    model.register_buffer("scale", torch.full((2,), 2.0))

    def forward(x: Any) -> Any:
        return x * model.scale  # here

    def freezing(graph: Any, inputs: Any) -> Any:
        kept = model.scale.clone()
        names = [each.name for each in graph.graph.nodes if each.op == "placeholder"]
        return lambda *given: graph.forward(*(kept if "scale" in name else each for name, each in zip(names, given)))

    compiled = torch.compile(forward, backend=freezing)
    return Plant(lambda: compiled(X), lambda: model.scale.fill_(7.0), "stale", "model.scale was a tensor [2.0, 2.0]")


def skipped_by_the_stance() -> Plant:
    def function(x: Any, k: int) -> Any:
        return x * k  # here

    compiled, now = torch.compile(function, backend="eager", dynamic=False), Now(2)

    def call() -> Any:
        with torch.compiler.set_stance("default", skip_guard_eval_unsafe=now.arguments[0] != 2):
            return compiled(X, now.arguments[0])

    return Plant(call, lambda: now.be(3), "dropped guard", "k is 3, and was compiled for 2, and the stance skips")


def wrong_pass() -> Plant:
    def function(x: Any) -> Any:  # here
        return torch.relu(x * 2)

    faulty = Now(False)

    def backend(graph: Any, inputs: Any) -> Any:
        return lambda *given: tuple(each * 1.5 if faulty.arguments[0] else each for each in graph.forward(*given))

    compiled = torch.compile(function, backend=backend)
    return Plant(lambda: compiled(X), lambda: faulty.be(True), "wrong", "no value was found that explains it")


def aot_backend(**compilers: Any) -> Any:
    from torch._dynamo.backends.common import aot_autograd

    return aot_autograd(fw_compiler=lambda graph, _: graph.forward, **compilers)


def wrong_gradient() -> Plant:
    def function(x: Any) -> Any:  # here
        return (x * x).sin()

    faulty = Now(False)

    def backward(graph: Any, inputs: Any) -> Any:
        def run(*arguments: Any) -> Any:
            return tuple(each * 2 if faulty.arguments[0] else each for each in graph.forward(*arguments))

        return run

    compiled = torch.compile(function, backend=aot_backend(bw_compiler=backward))
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    return Plant(lambda: compiled(x), lambda: faulty.be(True), "wrong", "no value was found")


def lost_write() -> Plant:
    def function(x: Any) -> Any:  # here
        x.add_(1)
        return x * 2

    faulty = Now(False)

    def backend(graph: Any, inputs: Any) -> Any:
        return lambda x: graph.forward(x.clone() if faulty.arguments[0] else x)

    compiled = torch.compile(function, backend=backend)
    return Plant(lambda: compiled(torch.ones(2)), lambda: faulty.be(True), "wrong", "no value was found")


def hidden_write() -> Plant:
    """A custom operator writes to its argument, which its schema does not say: a call is removed if nothing uses it."""

    @torch.library.custom_op("depyf_shadow::hidden", mutates_args=())
    def hidden(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x.sum()

    hidden.register_fake(lambda x: x.new_empty(()))

    def function(x: Any) -> Any:  # here
        y = x * 1
        torch.ops.depyf_shadow.hidden(y)
        return y * 2

    compiled = torch.compile(function, backend="aot_eager")
    return Plant(lambda: compiled(X), lambda: None, "wrong", "no value was found")


PLANTS = (
    size,
    stride,
    dtype,
    requires_grad,
    identity,
    class_of_argument,
    length,
    grad_mode,
    training,
    code_of_helper,
    variable_of_closure,
    baked_buffer,
    skipped_by_the_stance,
    wrong_pass,
    wrong_gradient,
    lost_write,
    hidden_write,
)


def line_here(plant: Callable[[], Plant]) -> Optional[int]:
    lines, first = inspect.getsourcelines(plant)
    return next((first + number for number, line in enumerate(lines) if line.rstrip().endswith("# here")), None)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda each: each.__name__)
def test_a_planted_fault_is_found_with_its_cause_and_line(plant: Callable[[], Plant]) -> None:
    planted = plant()
    with shadowed() as seen:
        planted.call()
        planted.call()
        assert seen.findings == [] or plant is hidden_write
        planted.change()
        planted.call()
    assert [each.kind for each in seen.findings] == [planted.kind]
    found = seen.findings[0]
    assert planted.cause in found.cause
    assert line_here(plant) in (found.line, None)
    assert found.difference


def test_what_was_found_is_in_the_dumps_that_are_open(tmp_path: Path) -> None:
    planted = variable_of_closure()
    with shadowed() as seen:
        planted.call()
        planted.change()
        with depyf.prepare_debug(tmp_path / "first"):
            planted.call()
            with depyf.prepare_debug(tmp_path / "second", values="types"), depyf.prepare_debug(tmp_path / "second"):
                planted.call()
    (found,) = seen.findings
    for name, calls, cause in (
        ("first", 2, found.cause),
        ("second", 1, found.cause.replace("5.0", "...").replace("2.0", "...")),
    ):
        run = from_json((tmp_path / name / "manifest.json").read_text())
        assert run.shadow is not None
        assert (run.shadow.calls, run.shadow.sampled, run.shadow.checked) == (calls, calls, calls)
        (entry,) = run.shadow.found
        assert (entry.kind, entry.compile_id, entry.cause) == ("dropped guard", "0/0", cause)
        assert entry.place is not None
        assert (run.sources[entry.place[0]].path, entry.place[1]) == found.place
        assert run.findings[0].title.endswith(cause)
        assert (run.findings[0].kind, run.findings[0].place) == ("dropped guard", entry.place)
        index = (tmp_path / name / "index.md").read_text()
        assert "has a dropped guard that fails: factor is" in index.partition("\n1. **")[2].partition("\n")[0]
        times = f"{calls} of {calls} call{'s' if calls > 1 else ''}"
        assert f"depyf shadow: {times} of compiled functions checked: 1 dropped guard finding" in index


def test_a_dropped_guard_is_found_once_whatever_its_value() -> None:
    compiled = unguarded(lambda x, k: x * k, dynamic=False)
    with shadowed() as seen:
        for k in range(4):
            compiled(X, k)
    assert [each.cause.partition(",")[0] for each in seen.findings] == ["k is 1"]
