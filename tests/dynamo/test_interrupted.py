"""An exception from outside, at any point, reaches the program, and leaves no hook and no session behind."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import logging
import os
import signal
import sys
from pathlib import Path
from types import BuiltinFunctionType, ModuleType
from typing import Any, Callable, Dict, Iterator, List, Type

import pytest
import warm_python

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

from torch_versions import needs_stances  # noqa: E402

import depyf  # noqa: E402
from depyf.dynamo.capture.hub import capture  # noqa: E402
from depyf.dynamo.capture.records import TransformedCode  # noqa: E402
from depyf.dynamo.hooks import compiled_names, frame_evaluation, private_names, run_callback, torch_names  # noqa: E402
from depyf.dynamo.hooks.safely import safely  # noqa: E402
from depyf.dynamo.hooks.structured_trace_listener import TraceHandler  # noqa: E402
from depyf.dynamo.observe.observation import observation  # noqa: E402
from depyf.dynamo.questions.trace import question as run_trace  # noqa: E402

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check" / "interrupt_every_line.py"


class SoftTimeLimitExceeded(Exception):
    """As celery's."""


def function(x: Any) -> Any:
    return (x.sin() + 1) * 2


@pytest.fixture
def raising() -> Iterator[Callable[[Type[BaseException]], None]]:
    """Sets what the handler of SIGINT raises."""
    kinds: List[Type[BaseException]] = []

    def handler(number: int, frame: Any) -> None:
        raise kinds[-1]

    before = signal.signal(signal.SIGINT, handler)
    yield kinds.append
    signal.signal(signal.SIGINT, before)


def interrupted_in(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    """The signal comes when the function at ``module:name`` of ``depyf.dynamo`` is called for the first time."""
    module, _, name = target.partition(":")
    owner: Any = importlib.import_module(f"depyf.dynamo.{module}")
    original = getattr(owner, name)

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(owner, name, original)
        signal.raise_signal(signal.SIGINT)
        return original(*args, **kwargs)

    # As if it were depyf's own: the handler is called from a frame of it.
    interrupted.__code__ = interrupted.__code__.replace(co_filename=owner.__file__)
    monkeypatch.setattr(owner, name, interrupted)


def listening() -> bool:
    return any(isinstance(each, TraceHandler) for each in logging.getLogger("torch.__trace").handlers)


def wanted_or_made_of(error: BaseException, kind: Type[BaseException]) -> bool:
    while error is not None and not isinstance(error, kind):
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return error is not None


@pytest.mark.parametrize("kind", [SoftTimeLimitExceeded, TimeoutError, KeyboardInterrupt])
@pytest.mark.parametrize(
    "target",
    [
        "capture.hub:note_settings",  # entering
        "capture.hub:listen",
        "hooks.frame_evaluation:keep_dynamo_out",
        "capture.hub:dump_graph",  # hooks
        "capture.transformed:render",
        "capture.rendering:decompile_code",
        "dump.session_files:write_full_code",  # leaving
        "dump.manifest:build_run",
        "dump.manifest:render_page",
        "dump.session_files:end",
    ],
)
def test_what_a_signal_handler_raises_reaches_the_program(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    raising: Callable[[Type[BaseException]], None],
    target: str,
    kind: Type[BaseException],
) -> None:
    raising(kind)
    initialize = torch.fx.GraphModule.__init__
    interrupted_in(monkeypatch, target)
    with pytest.raises(BaseException) as caught:
        compile_inside(tmp_path)
    assert wanted_or_made_of(caught.value, kind)
    assert capture.current() is None
    assert capture._undo == []
    assert torch.fx.GraphModule.__init__ is initialize
    assert not listening()
    torch._dynamo.reset()
    compile_inside(tmp_path)
    assert json.loads((tmp_path / "manifest.json").read_text())
    assert list(tmp_path.glob("__transformed_code_*_for_function.py"))


def compile_inside(directory: Path) -> None:
    compiled = torch.compile(function, backend="eager")
    with depyf.prepare_debug(directory):
        assert compiled(torch.ones(3)).tolist() == function(torch.ones(3)).tolist()


@pytest.mark.parametrize(
    "target",
    [
        "questions.watch:listen",
        "questions.watch:summary",
        "questions.trace.question:listen",
        "questions.trace.question:Graphs",
    ],
)
def test_watch_and_trace_are_left_as_well(
    monkeypatch: pytest.MonkeyPatch, raising: Callable[[Type[BaseException]], None], target: str
) -> None:
    raising(SoftTimeLimitExceeded)
    interrupted_in(monkeypatch, target)
    is_watch = target.startswith("questions.watch")
    with pytest.raises(SoftTimeLimitExceeded), depyf.watch() if is_watch else depyf.trace():
        pass
    assert not listening()
    assert run_trace._runs._undo == []
    with depyf.trace() as record:
        torch.compile(function, backend="eager")(torch.ones(3))
    assert record.events


@pytest.mark.parametrize(
    ("make", "target"),
    [
        pytest.param(depyf.find_nonfinite, "observe.recorder:_watch_inductor", marks=needs_stances),
        pytest.param(lambda: depyf.probe("x"), "questions.probe.captured:watch_bindings", marks=needs_stances),
        (depyf.debug, "dump.pausing:watch_autograd_threads"),
        pytest.param(
            lambda: depyf.compare(function, torch.ones(3), backend="eager"),
            "questions.compare.question:StageRecorder",
            marks=needs_stances,
        ),
    ],
)
def test_the_others_are_left_as_well(
    monkeypatch: pytest.MonkeyPatch,
    raising: Callable[[Type[BaseException]], None],
    make: Callable[[], Any],
    target: str,
) -> None:
    raising(SoftTimeLimitExceeded)
    monkeypatch.setattr(sys, "breakpointhook", lambda: None)
    before = private_names.STANCE.find(), private_names.CALLBACK_FROM_STANCE.find(), compiled_names.maker_of_names()
    made = getattr(*before[2])
    interrupted_in(monkeypatch, target)
    with pytest.raises(SoftTimeLimitExceeded), make():
        pass
    stance, callback = private_names.STANCE.find(), private_names.CALLBACK_FROM_STANCE.find()
    assert (stance, callback, compiled_names.maker_of_names()) == before
    assert getattr(*before[2]) is made
    assert observation._observers == []


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("interrupt_every_line", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "every",
    [
        {"enter": 31, "hooks": 400, "leave": 400},
        {"watch-enter": 90, "watch-leave": 80},
        {"trace-enter": 180, "trace-leave": 130},
        pytest.param({"find_nonfinite-enter": 90, "find_nonfinite-leave": 70}, marks=needs_stances),
        pytest.param({"probe-enter": 80, "probe-leave": 70}, marks=needs_stances),
        pytest.param({"shadow-enter": 300, "shadow-leave": 300}, marks=[needs_stances, pytest.mark.slow]),
        {"debug-enter": 70, "debug-leave": 45},
        pytest.param({"compare": 200}, marks=needs_stances),
    ],
    ids="-".join,
)
def test_lines_that_are_interrupted_leave_nothing_behind(
    tool: ModuleType, tmp_path: Path, every: Dict[str, int]
) -> None:
    """A sample; ``tools/check/interrupt_every_line.py`` takes every line."""
    with contextlib.closing(tool.Interrupter(str(tmp_path), tool.PROGRAMS[tuple(every)])) as interrupter:
        sample = [line for phase in every for line in tool.chosen(interrupter.lines, [phase], every[phase], 3)]
        wrong = []
        for number, line in enumerate(sample):
            kind = tool.TYPES[number % len(tool.TYPES)]
            wrong += [f"{line}: {each}" for each in interrupter.left_behind(line, kind)]
        assert wrong + interrupter.next_session() == []


def test_a_time_limit_while_compiled_code_runs_does_not_end_the_process(
    tmp_path: Path, raising: Callable[[Type[BaseException]], None]
) -> None:
    """PyTorch calls what listens to runs from C++, which can't pass an exception on: no Python of ours is in it."""
    if not frame_evaluation.reports_runs():
        pytest.skip("this PyTorch does not report what runs")
    compiled = torch.compile(function, backend="eager")
    with depyf.prepare_debug(tmp_path) as dumped:
        compiled(torch.ones(3))
        assert isinstance(run_callback._read(), BuiltinFunctionType)
        for _ in range(4):
            compiled(torch.ones(3))
        with depyf.trace():  # a second listener
            assert not hasattr(run_callback._read(), "__code__")
            compiled(torch.ones(3))
        assert isinstance(run_callback._read(), BuiltinFunctionType)
    assert dumped.session is not None
    (record,) = dumped.session.records(TransformedCode)
    assert dumped.session.times_run(record) == 6
    assert run_callback._read() is None


INTERRUPTED = """
import contextlib, logging, random, signal, sys, time
import torch, depyf

class Limit(Exception):
    pass

def handler(number, frame):
    while frame is not None:
        if frame.f_code.co_filename == random.__file__:
            # PyTorch's C++ code calls random.setstate and goes on when that raises: SystemError, also without depyf.
            signal.setitimer(signal.ITIMER_REAL, 1e-5)
            return
        frame = frame.f_back
    raise kind()

@torch.compile(backend="eager")
def f(x):
    torch._dynamo.graph_break()
    y = x.sin()
    torch._dynamo.graph_break()
    return y + 1

logging.disable(logging.CRITICAL)
kind = Limit if sys.argv[1] == "Limit" else KeyboardInterrupt
context = depyf.prepare_debug(sys.argv[3]) if sys.argv[2] == "both" else contextlib.nullcontext()
signal.signal(signal.SIGALRM, handler)
x, chosen, interrupted, ran = torch.ones(3), random.Random(0), 0, 0
f(x)
with context, depyf.trace() as record:
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        f(x)
        times.append(time.perf_counter() - begin)
    took = sorted(times)[10]
    for _ in range(500):
        with contextlib.suppress(kind):
            signal.setitimer(signal.ITIMER_REAL, chosen.uniform(1e-5, 5 * took))  # in the first calls
            try:
                for _ in range(60):  # PyTorch loses some of the exceptions, also without depyf
                    f(x)
                    ran += 1
                signal.setitimer(signal.ITIMER_REAL, 0)
            except kind:
                interrupted += 1
                raise
            except AssertionError as error:  # PyTorch's own look-up was interrupted, lost that, and returned None
                if "lookup_inner returned None" not in str(error):
                    raise
    with contextlib.suppress(kind):
        f(x)
    assert f(x).tolist() == (x.sin() + 1).tolist()
print(interrupted, ran)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no such timer")
@pytest.mark.skipif(
    torch_names.find("torch._dynamo.eval_frame", "restore_guarded_dynamo_config") is not None,
    reason="this PyTorch asserts what an interruption of its own leaves behind, also without depyf",
)
@pytest.mark.parametrize("contexts", ["trace", "both"])
@pytest.mark.parametrize("kind", ["Limit", "KeyboardInterrupt"])
def test_500_signals_while_trace_records_do_not_end_the_process(tmp_path: Path, contexts: str, kind: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED, kind, contexts, str(tmp_path)]
    done = warm_python.run(command)
    assert done.returncode == 0, done.stderr[-2000:]
    interrupted, ran = map(int, done.stdout.splitlines()[-1].split())  # PyTorch may print guards that were interrupted
    assert interrupted > 100
    assert ran > 500


def test_what_cleaning_up_raises_in_the_place_of_an_interruption_is_no_failure_of_ours() -> None:
    @safely("testing")
    def interrupted() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            os.close(-1)

    with pytest.raises(OSError) as caught:
        interrupted()
    assert isinstance(caught.value.__context__, KeyboardInterrupt)
