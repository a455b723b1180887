"""``trace`` records what ran, in order, completely and once, and has no effect on the program."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import sys
import threading
import weakref
from pathlib import Path
from types import CodeType
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import pytest
import warm_python

torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.answers.trace import Event, Ran, Repeated  # noqa: E402
from depyf.dynamo.hooks import frame_evaluation, torch_names  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]

ENDS_ARE_REPORTED = hasattr(sys, "monitoring")
STARTS_ARE_REPORTED = frame_evaluation.reports_runs() or ENDS_ARE_REPORTED


def runs_of(events: Sequence[Event]) -> Iterator[Ran]:
    """Every ``Ran`` in these events, at any depth, in their order."""
    for event in events:
        if isinstance(event, Ran):
            yield event
            yield from runs_of(event.inside)
        else:
            yield from runs_of(event.events)


def broken(x: Any) -> Any:
    y = x.sin()
    torch._dynamo.graph_break()
    return (y * y).sum()


def names(events: Sequence[Event]) -> List[Any]:
    """The names in order, without numbers; what is inside as a list behind it, repetitions as ``(count, names)``."""
    found: List[Any] = []
    for event in events:
        if isinstance(event, Repeated):
            found.append((event.count, names(event.events)))
            continue
        name = event.thing.name.partition("_at_")[0].replace("torch_dynamo_", "").partition("fn_")[0]
        found.append({"graph": "graph", "backward": "backward"}.get(event.thing.kind, name))
        if event.inside:
            found.append(names(event.inside))
    return found


def graphs() -> Dict[str, Any]:
    """What Dynamo's compiled graphs are called in this module's globals, and what is there."""
    return {name: value for name, value in globals().items() if name.startswith("__compiled_fn")}


def test_steps_of_a_training_are_one_turn_of_a_loop() -> None:
    compiled = torch.compile(broken, backend="aot_eager")
    x = torch.randn(4, requires_grad=True)
    compiled(x).backward()
    with depyf.trace() as record:
        for _ in range(50):
            compiled(x).backward()
    assert names(record.events) == [(50, ["broken", ["graph", "resume_in_broken", ["graph"]], "backward", "backward"])]
    assert set(record.counts.values()) == {50}
    assert len(record.counts) == 6
    forward = [total for total in record.totals if total.thing.kind in ("graph", "backward")]
    assert all(total.seconds and total.fastest and total.slowest for total in forward)
    assert all(total.fastest <= total.mean <= total.slowest for total in forward if total.mean)  # type: ignore[operator]
    codes = [total for total in record.totals if total.thing.kind == "code"]
    assert all((total.seconds is not None) == ENDS_ARE_REPORTED for total in codes)


def test_what_is_compiled_inside_is_recorded_from_its_first_run_on() -> None:
    compiled = torch.compile(broken, backend="aot_eager")
    with depyf.trace() as record:
        for _ in range(2):
            compiled(torch.ones(3, requires_grad=True)).backward()
    kinds = [run.thing.kind for run in runs_of(record.events)]
    first = ["compilation", "code", "graph", "compilation", "code", "graph"]
    assert kinds[:6] == first
    lazily = [kind for kind in kinds[6:] if kind != "compilation"]
    assert lazily == ["backward", "backward", "code", "graph", "code", "graph", "backward", "backward"]
    place = next(run.thing for run in runs_of(record.events) if run.thing.kind == "code")
    assert (Path(place.filename).name, place.line) == (Path(__file__).name, broken.__code__.co_firstlineno)


def test_branches_and_recompilations_are_told_apart() -> None:
    def branch(x: Any, flag: bool) -> Any:
        return x + 1 if flag else x - 1

    compiled = torch.compile(branch, backend="eager")
    for flag in (True, False):
        compiled(torch.ones(2), flag)
    with depyf.trace() as record:
        for flag in (True, True, False, True):
            compiled(torch.ones(2), flag)
    runs = [run for run in runs_of(record.events) if run.thing.kind == "graph"]
    assert [run.count for run in runs] == [2, 1, 1]
    assert runs[0].thing == runs[2].thing != runs[1].thing


def test_nested_compiled_functions_are_inside_of_those_that_call_them() -> None:
    def inner(x: Any) -> Any:
        return x * 2

    def outer(x: Any) -> Any:
        y = x + 1
        torch._dynamo.graph_break()
        z = helper(y)
        return z - 1

    @torch.compiler.disable
    def helper(x: Any) -> Any:
        return compiled_inner(x)

    compiled_inner = torch.compile(inner, backend="eager")
    compiled = torch.compile(outer, backend="eager")
    for _ in range(2):
        compiled(torch.ones(2))
    with depyf.trace() as record:
        compiled(torch.ones(2))
        compiled_inner(torch.ones(2))
    runs = [run for run in record.events if isinstance(run, Ran)]
    assert [run.thing.name for run in runs] == ["outer", "inner"]
    assert "inner" in [run.thing.name for run in runs_of(runs[0].inside)]


@pytest.mark.skipif(not frame_evaluation.reports_runs(), reason="code without a graph is not seen")
def test_code_without_a_graph_is_inside_of_what_calls_it() -> None:
    def no_graph(x: Any) -> Any:
        torch._dynamo.graph_break()
        torch._dynamo.graph_break()
        return x.sin()

    def returns(x: Any) -> Any:
        torch._dynamo.graph_break()
        return x

    compiled, other = (torch.compile(each, backend="eager") for each in (no_graph, returns))
    for each in (compiled, other):
        each(torch.ones(2))
    step = ["returns", "no_graph", ["resume_in_no_graph", ["resume_in_no_graph", ["graph"]]]]

    def work() -> None:
        for _ in range(3):
            other(torch.ones(2))
            compiled(torch.ones(2))

    with depyf.trace() as record:
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()
        work()
        other(torch.ones(2))
    found = {each.name: names(each.events) for each in record.threads}
    assert found == {"MainThread": [(3, step), "returns"], "worker": [(3, step)]}


def test_a_function_that_runs_as_plain_python_is_told_with_the_reason() -> None:
    def scaled(x: Any, n: float) -> Any:
        return x * n

    name = "recompile_limit" if hasattr(torch._dynamo.config, "recompile_limit") else "cache_size_limit"
    compiled = torch.compile(scaled, backend="eager", dynamic=False)
    with torch._dynamo.config.patch({name: 2}), depyf.trace() as record:
        for n in range(5):
            compiled(torch.ones(2), float(n))
    plain = [run.thing for run in runs_of(record.events) if run.thing.kind == "plain Python"]
    if plain or frame_evaluation.reports_runs():  # some versions make a float dynamic, and never reach the limit
        assert {thing.note for thing in plain} == {"recompile limit reached"}
        assert record.counts["scaled as plain Python"] == (3 if ENDS_ARE_REPORTED else 1)


def test_nothing_is_left_behind_and_nothing_changes() -> None:
    def run() -> Tuple[Any, Any]:
        x = torch.linspace(0, 1, 4, requires_grad=True)
        y = compiled(x)
        y.backward()
        return y.detach(), x.grad

    compiled = torch.compile(broken, backend="aot_eager")
    expected = run()
    before, counters = graphs(), dict(torch._dynamo.utils.counters["stats"])
    classes = backward_methods()
    assert before
    assert classes
    with depyf.trace() as record:
        got = run()
        assert graphs() != before
    assert record.counts
    assert all(torch.equal(a, b) for a, b in zip(expected, got))
    after = graphs()
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
    assert backward_methods() == classes
    assert dict(torch._dynamo.utils.counters["stats"]) == counters
    counts = dict(record.counts)
    run()
    assert record.counts == counts


def backward_methods() -> Dict[int, Any]:
    # Other tests leave dead proxies, which isinstance asks, and classes whose metaclass raises for any attribute.
    members = type.__dict__["__dict__"].__get__
    classes = [(id(each), members(each)) for each in gc.get_objects() if issubclass(type(each), type)]
    return {cls: (of.get("_backward_impl"), of["backward"]) for cls, of in classes if "compiled_bw" in of}


def test_a_graph_that_dynamo_forgets_is_not_kept() -> None:
    def alive(context: Any) -> int:
        torch._dynamo.reset()
        compiled = torch.compile(broken, backend="aot_eager")
        with context:
            known = graphs()
            compiled(torch.ones(3, requires_grad=True)).backward()
            new = [innermost(value) for name, value in graphs().items() if name not in known]
            assert len(new) == 2
            held = [weakref.ref(each) for each in new]
            del new, known
            torch._dynamo.reset()
            gc.collect()
            return sum(each() is not None for each in held)

    assert alive(depyf.trace()) == alive(contextlib.nullcontext()) < 2


def innermost(function: Any) -> Any:
    return innermost(function.__wrapped__) if hasattr(function, "_depyf_timed") else function


def test_exceptions_pass_and_end_what_they_leave() -> None:
    @torch._dynamo.disable
    def check(flag: bool) -> None:
        if flag:
            raise KeyError("mine")

    def fails(x: Any, flag: bool) -> Any:
        y = x + 1
        check(flag)
        return y * 2

    compiled = torch.compile(fails, backend="eager")
    for flag in (False, True, False):
        with contextlib.suppress(KeyError):
            compiled(torch.ones(2), flag)
    with depyf.trace() as record:
        with pytest.raises(KeyError, match="mine"):
            compiled(torch.ones(2), True)
        for _ in range(3):
            compiled(torch.ones(2), False)
    assert names(record.events) == ["fails", ["graph"], (3, ["fails", ["graph", "resume_in_fails", ["graph"]]])]
    with pytest.raises(ZeroDivisionError), depyf.trace():
        raise ZeroDivisionError
    assert not any(hasattr(value, "_depyf_timed") for value in graphs().values())


def test_traces_nest_and_overlap() -> None:
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    compiled(torch.ones(2))
    first, second = depyf.trace(), depyf.trace()
    first.__enter__()
    compiled(torch.ones(2))
    second.__enter__()
    compiled(torch.ones(2))
    first.__exit__(None, None, None)
    compiled(torch.ones(2))
    second.__exit__(None, None, None)
    compiled(torch.ones(2))
    assert set(first.counts.values()) == {2}
    assert set(second.counts.values()) == {2}


def test_each_thread_has_an_order_of_its_own() -> None:
    compiled = torch.compile(broken, backend="aot_eager")
    x = torch.ones(3, requires_grad=True)
    compiled(x).backward()
    barrier = threading.Barrier(3)

    def work() -> None:
        mine = torch.ones(3, requires_grad=True)
        barrier.wait()
        for _ in range(30):
            compiled(mine).backward()

    with depyf.trace() as record:
        threads = [threading.Thread(target=work, name=f"worker {n}") for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    told = {thread.name: names(thread.events) for thread in record.threads}
    step = ["broken", ["graph", "resume_in_broken", ["graph"]], "backward", "backward"]
    assert told == {f"worker {n}": [(30, step)] for n in range(3)}
    assert set(record.counts.values()) == {90}


@pytest.mark.skipif(not frame_evaluation.reports_runs(), reason="this PyTorch has no such callback")
def test_a_callback_of_somebody_else_goes_on() -> None:
    module = torch_names.module("torch._C._dynamo.eval_frame")
    heard: List[Any] = []
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    compiled(torch.ones(2))

    class NeitherTrueNorFalse:
        def __bool__(self) -> bool:
            raise ValueError("what a callback returns is nobody's business")

    def callback(code: CodeType) -> object:
        heard.append(code)
        return NeitherTrueNorFalse()

    frame_evaluation.skip_code(callback.__code__)
    module.set_bytecode_debugger_callback(callback)
    try:
        with depyf.trace() as record:
            compiled(torch.ones(2))
        assert module.get_bytecode_debugger_callback() is callback
    finally:
        module.set_bytecode_debugger_callback(None)
    assert len(heard) == 1
    assert set(record.counts.values()) == {1}


def test_backwards_of_earlier_forwards_are_recorded() -> None:
    compiled = torch.compile(broken, backend="aot_eager")
    before, forgotten = (compiled(torch.ones(3, requires_grad=True)) for _ in range(2))
    with depyf.trace() as record:
        before.backward()
    assert len(record.counts) == 2
    assert all(name.startswith("__compiled_fn_") and name.endswith("backward") for name in record.counts)
    torch._dynamo.reset()
    with depyf.trace() as record:
        forgotten.backward()
    assert record.counts == {"forgotten graph backward": 2}
    with depyf.trace() as record:
        compiled(torch.ones(3, requires_grad=True)).backward()
    assert set(record.counts.values()) == {1}


def test_a_long_loop_takes_little_room() -> None:
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    x = torch.ones(2)
    compiled(x)
    with depyf.trace() as record:
        for _ in range(6000):
            compiled(x)
        assert len(list(runs_of(record.events))) == 2
    assert set(record.counts.values()) == {6000}


def test_it_prints_in_a_terminal_and_in_a_notebook() -> None:
    compiled = torch.compile(broken, backend="eager")
    compiled(torch.ones(2))
    with depyf.trace() as record:
        for _ in range(3):
            compiled(torch.ones(2))
    text = str(record)
    assert "3 times:" in text
    assert f"{Path(__file__).name}:{broken.__code__.co_firstlineno}" in text
    lines = [line for line in text.splitlines() if "broken" in line or "__compiled_fn" in line]
    assert len(lines) == 4
    resumed = lines[2].replace("torch_dynamo_", "").index("resume")
    assert lines[0].index("broken") < lines[1].index("__compiled_fn") == resumed
    assert "<table>" in record._repr_html_()
    assert "3 times" in record._repr_html_()


def test_a_session_learns_the_times(tmp_path: Path) -> None:
    compiled = torch.compile(broken, backend="aot_eager")
    x = torch.ones(3, requires_grad=True)
    with depyf.prepare_debug(tmp_path), depyf.trace():
        for _ in range(4):
            compiled(x).backward()
    told = json.loads((tmp_path / "manifest.json").read_text())["compilations"]
    for each in told:
        assert (each["runs"], each["graph_runs"], each["backward_runs"]) == (4, 4, 4)
        assert 0 < each["graph_run_seconds"] < 10
        assert 0 < each["backward_run_seconds"] < 60
    assert "a run" in (tmp_path / "index.html").read_text()


def test_the_command_line_traces(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import torch\nf = torch.compile(lambda x: x + 1, backend='eager')\nfor _ in range(9):\n    f(torch.ones(2))\n"
    )
    command = [sys.executable, "-m", "depyf", "run", "--trace", "-o", str(tmp_path / "dump"), str(script)]
    done = warm_python.run(command)
    assert done.returncode == 0, done.stderr
    assert "9 times:" in done.stderr
    told = json.loads((tmp_path / "dump" / "manifest.json").read_text())["compilations"]
    assert [each["graph_runs"] for each in told] == [9]


@pytest.fixture
def no_warnings(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert "failed at" not in caplog.text


@pytest.mark.usefixtures("no_warnings")
def test_no_failure_of_ours_is_reported() -> None:
    with contextlib.redirect_stderr(io.StringIO()) as errors, depyf.trace() as record:
        compiled = torch.compile(broken, backend="aot_eager")
        for size in (2, 3, 4):
            compiled(torch.ones(size, requires_grad=True)).backward()
        torch._dynamo.reset()
        compiled(torch.ones(2))
    assert "failed at" not in errors.getvalue()
    assert sum(record.counts.values()) > 10


def test_what_runs_backwards_is_put_back_in_any_order() -> None:
    from depyf.dynamo.hooks.backward_methods import replace_backward

    class Compiled:
        @staticmethod
        def backward(value: int) -> int:
            return value

    def adding(number: int) -> Any:
        return lambda method: lambda value: method(value) + number

    original = vars(Compiled)["backward"]
    lower, upper = replace_backward(Compiled, adding(1)), replace_backward(Compiled, adding(10))
    assert lower is not None
    assert upper is not None
    assert Compiled.backward(0) == 11
    lower()
    upper()
    assert vars(Compiled)["backward"] is original
