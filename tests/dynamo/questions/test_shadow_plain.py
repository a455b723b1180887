"""Under ``shadow`` a program computes, prints, draws and raises what it does without. What can not be run twice is
skipped, with a reason. Healthy programs give no finding.
"""

from __future__ import annotations

import array
import collections
import functools
import io
import itertools
import random
import signal
import sys
import threading
import types
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest
from torch_versions import IS_OLD, needs_stances

pytestmark = [
    pytest.mark.torch,
    pytest.mark.usefixtures("fresh_dynamo"),
    needs_stances,
    pytest.mark.skipif(IS_OLD, reason="older ones compile other graphs"),
]
torch = pytest.importorskip("torch")

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
sys.path.append(str(PROGRAMS))
from breaking import PROGRAMS as BREAKING  # noqa: E402
from case import detached, run  # noqa: E402

import depyf  # noqa: E402
from depyf.dynamo.hooks import private_names  # noqa: E402
from depyf.dynamo.questions.shadow import runs  # noqa: E402

nn = torch.nn
X = torch.ones(2)


def shadowed(every: int = 1, **options: Any) -> Any:
    return depyf.shadow(every, stream=io.StringIO(), **options)


def twice(program: Callable[[], Any]) -> Tuple[Any, Any, Any]:
    """The results of a program without and with shadow runs, and these."""
    results = []
    for is_shadowed in (False, True):
        torch._dynamo.reset()
        torch.manual_seed(0)
        random.seed(0)
        seen = shadowed()
        if is_shadowed:
            with seen:
                results.append(program())
        else:
            results.append(program())
        results[-1] = (results[-1], detached(torch.get_rng_state()), random.getstate())
    return results[0], results[1], seen


@pytest.mark.parametrize("name", [name for number, name in enumerate(sorted(BREAKING)) if number % 5 == 0])
def test_programs_that_break_graphs_do_the_same(name: str) -> None:
    def program() -> Any:
        case = BREAKING[name]()
        compiled = torch.compile(case.function, backend="aot_eager", dynamic=False)
        return [run(case, compiled, training) for training in (False, True, True)]

    plain, ours, seen = twice(program)
    assert ours == plain
    assert seen.findings == []
    assert seen.counts.sampled == seen.counts.calls > 0


def network() -> Any:
    torch.manual_seed(1)
    layers = [nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2)]
    return nn.Sequential(*layers)


def training_loop(backend: str) -> Any:
    model = network()
    compiled = torch.compile(model, backend=backend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = compiled(torch.randn(5, 6)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    state = [detached(each) for each in model.state_dict().values()]
    return losses, state, [detached(each.grad) for each in model.parameters()]


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.inductor)])
def test_a_training_with_dropout_and_batch_norm_is_the_same_and_right(backend: str) -> None:
    plain, ours, seen = twice(lambda: training_loop(backend))
    assert ours == plain
    assert seen.findings == []
    reasons = {reason for reason in seen.not_checked if not reason.startswith("no compiled code fits")}
    assert all("random numbers" in reason for reason in reasons)  # Inductor draws its own


def test_compiled_steps_of_an_optimizer_are_the_same_and_right() -> None:
    def program() -> Any:
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        @torch.compile(backend="aot_eager")
        def step(x: Any) -> Any:
            optimizer.zero_grad()
            loss = model(x).sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return [detached(step(torch.randn(4, 3))) for _ in range(4)], [detached(each) for each in model.parameters()]

    plain, ours, seen = twice(program)
    assert ours == plain
    assert seen.findings == []


KNOWN: Dict[str, Any] = {"calls": 0, "seen": [], "generator": torch.Generator(), "random": random.Random(0)}


NUMBERS = itertools.count()


class Slots:
    __slots__ = ("count",)


SLOTS = Slots()


class Noted(dict):  # type: ignore[type-arg]
    pass


NOTED = Noted(calls=0)


def effects(x: Any) -> Any:
    KNOWN["calls"] += 1
    KNOWN["seen"].append(KNOWN["random"].random())
    SLOTS.count += 1
    NOTED["calls"] += 1
    torch._dynamo.graph_break()
    return x + torch.rand(2, generator=KNOWN["generator"]) * random.random()


def test_state_in_globals_and_generators_is_that_of_the_plain_run() -> None:
    def program() -> Any:
        KNOWN.update(calls=0, seen=[])
        KNOWN["generator"].manual_seed(3)
        KNOWN["random"].seed(3)
        SLOTS.count = NOTED["calls"] = 0
        compiled = torch.compile(effects, backend="eager")
        results = [detached(compiled(X)) for _ in range(4)]
        state = detached(KNOWN["generator"].get_state()), KNOWN["random"].getstate()
        return results, KNOWN["calls"], list(KNOWN["seen"]), SLOTS.count, dict(NOTED), state

    plain, ours, seen = twice(program)
    assert ours == plain
    assert seen.findings == []


def test_hooks_of_modules_run_once() -> None:
    def program() -> Any:
        calls: List[int] = []
        model = nn.Linear(2, 2)
        model.register_forward_hook(lambda *_: calls.append(1))
        compiled = torch.compile(model, backend="eager")
        with torch.no_grad():
            results = [detached(compiled(X)) for _ in range(3)]
        return results, calls

    plain, ours, _ = twice(program)
    assert ours == plain


class Counted:
    """A class to which a call adds an attribute."""


@torch._dynamo.disable  # type: ignore[untyped-decorator]
def change_much() -> None:
    Counted.more = getattr(Counted, "more", 0) + 1  # type: ignore[attr-defined]
    torch.set_grad_enabled(False)
    torch.set_default_dtype(torch.float64)


def test_attributes_that_are_added_and_modes_are_those_of_the_plain_run() -> None:
    def function(x: Any) -> Any:
        y = x + 1
        change_much()
        return y * 2

    compiled = torch.compile(function, backend="eager")
    try:
        with shadowed() as seen:
            for _ in range(3):
                torch.set_grad_enabled(True)
                torch.set_default_dtype(torch.float32)
                compiled(torch.ones(2))
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)
    assert Counted.more == 3  # type: ignore[attr-defined]
    assert seen.findings == []
    assert seen.counts.checked == 2


def test_an_iterator_that_only_a_hook_knows_is_not_used() -> None:
    numbers = iter(range(10))
    model = nn.Linear(2, 2)
    used: List[int] = []
    model.register_forward_hook(torch._dynamo.disable(lambda *_: used.append(next(numbers))))
    compiled = torch.compile(model, backend="eager")
    with shadowed() as seen:
        for _ in range(3):
            compiled(X)
    assert used == [0, 1, 2]
    assert any("iterator (range_iterator)" in reason for reason in seen.not_checked)


def write_a_line() -> None:
    with open(KNOWN["file"], "a", encoding="utf-8") as file:
        file.write("once\n")


def start_a_thread() -> None:
    thread = threading.Thread(target=KNOWN["seen"].append, args=(1,))
    thread.start()
    thread.join()


def take_long() -> None:
    for _ in range(KNOWN["loops"]):
        len(KNOWN["seen"])


def calling(helper: Callable[[], Any]) -> Any:
    helper = torch._dynamo.disable(helper)

    def function(x: Any) -> Any:
        y = x + 1
        helper()
        return y * 2

    return function


def printing(x: Any) -> Any:
    y = x + 1
    print("once")
    return y * 2


def counting(x: Any) -> Any:
    y = x + 1
    torch._dynamo.graph_break()
    return y * next(NUMBERS)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("print", "it calls print"),
        ("write", "it calls io.open"),
        ("start", "it calls thread.start"),
        ("slow", "it took longer than 0.05 s in eager mode"),
        ("count", "it may go on with an iterator (count)"),
    ],
)
def test_what_can_not_be_run_twice_is_said_once_and_skipped(
    name: str, reason: str, tmp_path: Path, capsys: Any
) -> None:
    helpers: Dict[str, Any] = {"write": write_a_line, "start": start_a_thread, "slow": take_long}
    KNOWN.update(file=str(tmp_path / "out"), seen=[], loops=300_000)
    function = calling(helpers[name]) if name in helpers else printing if name == "print" else counting
    stream = io.StringIO()
    compiled = torch.compile(function, backend="eager")
    with depyf.shadow(1, stream=stream, seconds=0.05 if name == "slow" else 60) as seen:
        for _ in range(3):
            compiled(X)
    assert seen.findings == []
    (found,) = [each for each in seen.not_checked if each.startswith(reason)]
    assert seen.not_checked[found] >= 2
    assert stream.getvalue().count(f"is not checked: {found}") == 1
    assert capsys.readouterr().out == ("once\n" * 3 if name == "print" else "")
    assert KNOWN["seen"] == ([1] * 3 if name == "start" else [])
    if name == "write":
        assert (tmp_path / "out").read_text() == "once\n" * 3
    if name == "count":
        assert next(NUMBERS) == 3


class EndOfTheProgram(BaseException):
    pass


@pytest.mark.parametrize("kind", [ValueError, EndOfTheProgram])
def test_exceptions_are_those_of_the_program(kind: Any) -> None:
    def raising(x: Any) -> Any:
        y = x + 1
        torch._dynamo.graph_break()
        if y.sum() > 100:
            calls.append(1)
            raise kind("too large")
        return y

    calls: List[int] = []
    compiled = torch.compile(raising, backend="eager")
    with shadowed() as seen:
        compiled(X)
        compiled(X)
        with pytest.raises(kind, match="too large"):
            compiled(X * 1000)
        compiled(X)
    assert calls == [1]
    assert seen.findings == []
    assert any(reason == f"eager mode on copies: {kind.__name__}: too large" for reason in seen.not_checked)


def test_a_failure_of_a_check_does_not_reach_the_program(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> Any:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(runs, "_bitwise_equal", fail)
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    with caplog.at_level("WARNING", "depyf"), shadowed() as seen:
        for _ in range(3):
            assert compiled(X).tolist() == [2.0, 2.0]
    assert seen.findings == []
    assert sum("checking a call of a compiled function failed" in each.message for each in caplog.records) == 1
    assert sys.getprofile() is None


def test_arguments_that_share_memory() -> None:
    compiled = torch.compile(lambda x, y: x.add_(1) + y, backend="aot_eager")
    read = torch.compile(lambda x, y: x + y, backend="aot_eager")
    memory = torch.zeros(6)
    with shadowed() as seen:
        for _ in range(3):
            compiled(memory[:4], memory[2:])
            read(memory[:4], memory[2:])
    assert memory.tolist() == [3, 3, 3, 3, 0, 0]
    assert seen.findings == []
    assert seen.not_checked["tensors that it is given share memory, and copies do not"] == 2
    assert seen.counts.checked == 2


def test_a_generator_as_argument_is_not_used_up() -> None:
    compiled = torch.compile(lambda x, numbers: x + next(numbers), backend="eager")
    plain = [compiled(X, iter(range(1, 5))) for _ in range(3)]
    with shadowed() as seen:
        assert all(map(torch.equal, [compiled(X, iter(range(1, 5))) for _ in range(3)], plain))

        numbers = (each for each in (1, 2, 3))
        compiled(X, numbers)
        assert list(numbers) == [2, 3]
    assert seen.findings == []


def test_copies_that_take_too_much_memory_are_not_made() -> None:
    compiled = torch.compile(nn.Linear(64, 64), backend="eager")
    with shadowed(memory=1000) as seen:
        for _ in range(2):
            compiled(torch.ones(1, 64))
    assert any(reason.startswith("copies take") for reason in seen.not_checked)
    assert seen.counts.checked == 0


def test_modes_of_the_program_see_no_run_of_ours() -> None:
    class Counting(private_names.DISPATCH_MODE.require()):  # type: ignore[misc]
        count = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            type(self).count += 1
            return func(*args, **(kwargs or {}))

    compiled = torch.compile(lambda x: x + 1, backend="eager")
    with shadowed() as seen:
        compiled(X)
        with Counting():
            compiled(X)
            before = Counting.count
            compiled(X)
    assert Counting.count - before == before
    assert any("sees each operation" in reason for reason in seen.not_checked)


def test_transforms_and_inference_mode() -> None:
    compiled = torch.compile(lambda x: (x * x).sum(), backend="eager")
    with shadowed() as seen:
        for _ in range(2):
            assert torch.func.grad(compiled)(X).tolist() == [2.0, 2.0]
        with torch.inference_mode():
            for _ in range(2):
                compiled(X)
        for _ in range(2):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                compiled(torch.ones(3))
    assert seen.findings == []
    assert any("torch.func" in reason for reason in seen.not_checked)
    assert seen.counts.checked >= 1


def test_it_may_be_entered_again() -> None:
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    seen = shadowed()
    for calls in (2, 4):
        with seen:
            compiled(X)
            compiled(X)
        compiled(X)
        assert seen.counts.calls == seen.counts.sampled == calls


def test_other_threads_of_the_program_keep_what_they_change() -> None:
    KNOWN.update(seen=[], loops=2)
    stop, ready = threading.Event(), threading.Event()

    def work() -> None:
        while not stop.is_set():
            KNOWN["seen"].append(1)
            ready.set()
            stop.wait(0.001)

    def function(x: Any) -> Any:
        return x + KNOWN["loops"]

    compiled = torch.compile(function, backend="eager")
    thread = threading.Thread(target=work)
    thread.start()
    try:
        ready.wait(10)
        with shadowed() as seen:
            for _ in range(3):
                compiled(X)
    finally:
        stop.set()
        thread.join()
    assert any("other threads" in reason for reason in seen.not_checked)
    assert seen.counts.checked == 0


def test_threads_in_which_inductor_builds_kernels_are_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    from concurrent.futures import ThreadPoolExecutor

    async_compile = pytest.importorskip("torch._inductor.async_compile")
    with ThreadPoolExecutor(1) as executor:
        executor.submit(len, ()).result()
        compiled = torch.compile(lambda x: x + 1, backend="eager")
        with shadowed() as seen:
            compiled(X)
            compiled(X)
            pool = functools.lru_cache(1)(lambda: executor)
            monkeypatch.setattr(async_compile.AsyncCompile, "pool", staticmethod(pool))
            compiled(X)  # nobody has asked for the pool, and so these are no threads of its
            assert seen.counts.checked == 0
            pool()
            compiled(X)
    assert seen.counts.checked == 1


def test_only_some_calls_are_sampled_and_nothing_stays_installed() -> None:
    before = private_names.CALLBACK_FROM_STANCE.find(), private_names.BUILD_GUARDS.find()
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    with shadowed(10) as seen:
        for _ in range(100):
            compiled(X)
    assert (private_names.CALLBACK_FROM_STANCE.find(), private_names.BUILD_GUARDS.find()) == before
    assert seen.counts.calls == 100
    assert 6 <= seen.counts.sampled <= 20
    assert seen.counts.checked == seen.counts.sampled


def test_the_cheap_mode_runs_nothing_twice() -> None:
    calls: List[int] = []

    def backend(graph: Any, inputs: Any) -> Any:
        def run_graph(*arguments: Any) -> Any:
            calls.append(1)
            return graph.forward(*arguments)

        return run_graph

    def function(x: Any, k: int) -> Any:
        return x * k

    compiled = torch._dynamo.optimize(backend, dynamic=False, guard_filter_fn=lambda guards: [False] * len(guards))(
        function
    )
    with shadowed(run=False) as seen:
        for k in (2, 2, 3, 3, 2):
            compiled(X, k)
    assert len(calls) == 5
    (found,) = seen.findings
    assert found.kind == "dropped guard"
    assert found.cause.startswith("k is 3, and was compiled for 2")
    assert "not compared" in found.difference


def test_dropped_guards_of_code_that_was_there_before_are_not_known() -> None:
    compiled = torch.compile(
        lambda x, k: x * k, backend="eager", options={"guard_filter_fn": lambda guards: [False] * len(guards)}
    )
    compiled(X, 2)
    with shadowed(run=False) as seen:
        compiled(X, 3)
    assert any("compiled before shadow() began" in reason for reason in seen.not_checked)


def test_findings_as_data_and_text() -> None:
    def function(x: Any, k: int) -> Any:
        return x * k

    found: List[Any] = []
    compiled = torch.compile(
        function, backend="eager", options={"guard_filter_fn": lambda guards: [False] * len(guards)}
    )
    stream = io.StringIO()
    with depyf.shadow(1, stream=stream, callback=found.append) as seen:
        compiled(X, 2)
        compiled(X, 3)
    assert seen.findings == found
    assert stream.getvalue() == ""
    (one,) = found
    data = one.to_dict()
    assert data["kind"] == "dropped guard"
    assert data["line"] == one.line == function.__code__.co_firstlineno + 1
    assert len(str(one).splitlines()) == 2
    assert str(one).startswith("dropped guard test_findings_as_data_and_text.<locals>.function [0/0] ")
    assert str(seen).splitlines()[-2] == (
        "depyf shadow: 1 of 2 calls of compiled functions checked: 1 dropped guard finding"
    )


@pytest.mark.parametrize("options", [{"every": 0}, {"memory": -1}, {"seconds": 0}])
def test_numbers_that_make_no_sense_are_refused(options: Any) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        depyf.shadow(**options)
    with pytest.raises(TypeError, match="is a number"):
        depyf.shadow(**dict.fromkeys(options, "1"))


def test_a_profiler_in_c_goes_on() -> None:
    import cProfile

    def work() -> None: ...

    compiled = torch.compile(lambda x: x + 1, backend="eager")
    profiler = cProfile.Profile()
    with depyf.shadow(every=1, callback=lambda _: None):
        compiled(X)
        profiler.enable()
        compiled(X)
        work()
        profiler.disable()
    assert any(each.code is work.__code__ for each in profiler.getstats())


class Held:
    """A pool of state kinds that a call changes after a graph break."""

    def __init__(self) -> None:
        self.plain = types.SimpleNamespace(n=[])
        self.user = collections.UserDict(n=0)
        self.array = array.array("i", [0])
        self.part = functools.partial(append_one, [])


def append_one(values: List[int]) -> int:
    values.append(1)
    return len(values)


@functools.lru_cache(maxsize=None)
def table(number: int) -> int:
    return number


STATE = Held()


def change_namespace() -> int:
    STATE.plain.n.append(1)
    return len(STATE.plain.n)


def change_user_dict() -> int:
    STATE.user["n"] += 1
    return int(STATE.user["n"])


def change_array() -> int:
    STATE.array[0] += 1
    return STATE.array[0]


def change_partial() -> int:
    return int(STATE.part())


def fill_table() -> int:
    table(1)
    return table.cache_info().hits


@pytest.mark.parametrize(
    "name", ["change_namespace", "change_user_dict", "change_array", "change_partial", "fill_table"]
)
def test_state_in_objects_of_libraries_is_that_of_the_plain_run(name: str) -> None:
    def program() -> Any:
        vars(STATE).update(vars(Held()))
        table.cache_clear()
        compiled = torch.compile(calling_for(name), backend="eager")
        return [detached(compiled(X)) for _ in range(3)]

    plain, ours, seen = twice(program)
    assert ours == plain
    assert seen.findings == []


def calling_for(name: str) -> Any:
    helper = torch._dynamo.disable(globals_of_this()[name])
    return lambda x: x + helper()


def globals_of_this() -> Dict[str, Any]:
    return vars(sys.modules[__name__])


def test_a_closure_in_an_argument_and_a_copy_that_is_none() -> None:
    class Config:
        def __init__(self) -> None:
            self.t = torch.zeros(1)

        def __deepcopy__(self, memo: Any) -> Any:
            return self

    def counter() -> Any:
        n = 0

        def count(x: Any) -> Any:
            nonlocal n
            n += 1
            return x + n

        return count

    def function(x: Any, known: Any) -> Any:
        torch._dynamo.graph_break()
        known["config"].t = known["config"].t + 1
        return known["f"](x) + known["config"].t

    def called(x: Any, known: Any) -> Any:
        torch._dynamo.graph_break()
        return known["f"](x)

    def program() -> Any:
        one = {"f": counter(), "config": Config()}
        other = {"f": counter()}
        first, second = (torch.compile(each, backend="eager") for each in (function, called))
        return [(detached(first(X, one)), detached(second(X, other))) for _ in range(3)]

    plain, ours, seen = twice(program)
    assert ours == plain
    assert seen.findings == []


LINEAR = nn.Linear(2, 2)


def after_a_break(x: Any) -> Any:
    y = x + 1
    torch._dynamo.graph_break()
    return LINEAR(y)


def test_a_global_module_after_a_graph_break_is_right() -> None:
    compiled = torch.compile(after_a_break, backend="eager")
    with shadowed() as seen:
        for _ in range(2):
            compiled(X)
    assert seen.findings == []
    assert seen.counts.checked == 1


def test_another_type_of_the_result_is_found() -> None:
    wanted = types.SimpleNamespace(dtype=torch.float64)
    options = {"guard_filter_fn": lambda guards: [False] * len(guards)}
    compiled = torch.compile(lambda x: x.to(wanted.dtype), backend="eager", options=options)
    with shadowed() as seen:
        compiled(X)
        wanted.dtype = torch.float32
        compiled(X)
    assert seen.findings


ARRIVED = {"signals": 0}


@torch._dynamo.disable  # type: ignore[untyped-decorator]
def with_a_signal() -> int:
    for _ in range(100_000):
        len("")
    return ARRIVED["signals"] * 0


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="it has no timers")
def test_what_a_signal_handler_writes_in_a_check_is_kept() -> None:
    calls: List[int] = []

    def handler(*_: Any) -> None:
        ARRIVED["signals"] += 1
        calls.append(1)

    before = signal.signal(signal.SIGALRM, handler)
    ARRIVED["signals"] = 0
    try:
        compiled = torch.compile(lambda x: x + with_a_signal(), backend="eager")
        compiled(X)
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
        with shadowed():
            for _ in range(3):
                compiled(X)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ARRIVED["signals"] == len(calls) > 0


def test_no_exception_of_the_entry_on_copies_reaches_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    class End(BaseException):
        """As ``SystemExit``: no ``Exception``."""

    def ends(*_: object, **__: object) -> Any:
        raise End

    compiled = torch.compile(lambda x: x + 1, backend="eager")
    compiled(X)
    monkeypatch.setattr(runs, "run_hit", ends)
    with shadowed() as seen:
        assert torch.equal(compiled(X), X + 1)
    assert seen.counts.checked == 0
    assert any("its entry on copies: End" in reason for reason in seen.not_checked)


WIDTH = torch.ones(4)


def test_guards_that_dynamo_writes_in_python_are_no_code_of_the_program() -> None:
    def function(x: Any) -> Any:
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2 if y.shape[0] * 2 != WIDTH.shape[0] * 5 else y * 4

    # The guard of the second part names the globals of this module as a whole, which has an iterator.
    torch._dynamo.mark_dynamic(WIDTH, 0)
    compiled = torch.compile(function, backend="eager", dynamic=True)
    with shadowed() as seen:
        for size in (6, 9, 12):
            compiled(torch.ones(size))
    assert seen.findings == []
    assert seen.counts.checked == 2
