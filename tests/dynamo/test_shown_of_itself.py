"""What a program shows about itself (docs/shown-of-itself.md): tracebacks, stacks, log records, coverage, profiles.

With ``stepping=False`` it is what it is without depyf. Where code runs from the dump, it differs as the page says.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
import re
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any, Callable, ContextManager, Dict, List, Tuple

import pytest
import warm_python

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.capture.what_runs import RUNS, RUNS_ELSEWHERE  # noqa: E402
from depyf.dynamo.hooks import torch_names  # noqa: E402

HERE = os.path.basename(__file__)
RECORDS: List[logging.LogRecord] = []
STACKS: List[List[str]] = []

logger = logging.getLogger(__name__)


class Keeper(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        RECORDS.append(record)


def is_own(path: str) -> bool:
    """Whether it is a file of the test or of its dump, and not one of PyTorch or Python."""
    name = os.path.basename(path)
    return name == HERE or name.startswith("__")


@torch._dynamo.disable
def look_around(x: Any) -> None:
    """A part of the program that stays plain Python: it sees the compiled function that calls it."""
    STACKS.append([place(frame.filename, frame.lineno, frame.function) for frame in inspect.stack()])
    logger.warning("seen", stack_info=True)
    if x.numel() == 2:
        raise ValueError("two")


def place(path: str, line: int, function: str) -> str:
    return f"{os.path.basename(path)}:{line} {function}"


def user_function(x: Any) -> Any:
    x = x + 1
    look_around(x)
    return x.sin()


LOOKS = f"{HERE}:{inspect.getsourcelines(user_function)[1] + 2} user_function"
"""The place of the call of ``look_around``."""


def seen(debugging: ContextManager[Any], backend: str = "eager") -> Dict[str, Any]:
    """What a program sees of itself in which ``user_function`` is compiled and runs several times."""
    torch._dynamo.reset()
    STACKS.clear()
    RECORDS.clear()
    compiled = torch.compile(user_function, backend=backend, dynamic=False)
    keeper = Keeper()
    logger.addHandler(keeper)
    told = []
    try:
        with debugging:
            compiled(torch.ones(3))
            with pytest.raises(ValueError) as raised:
                compiled(torch.ones(2))
            called = calls(lambda: compiled(torch.ones(3)))
            lines = traced(lambda: compiled(torch.ones(3)))
    finally:
        logger.removeHandler(keeper)
    told = [frame for frame in traceback.extract_tb(raised.value.__traceback__) if is_own(frame.filename)]
    return {
        "traceback": [place(frame.filename, frame.lineno or 0, frame.name) for frame in told],
        "quoted": [frame.line for frame in told],
        "stack": [each for each in STACKS[0] if each.endswith("user_function")],
        "logged": "user_function" in str(RECORDS[0].stack_info) and HERE in str(RECORDS[0].stack_info),
        "record": place(RECORDS[0].pathname, RECORDS[0].lineno, RECORDS[0].funcName),
        "lines": lines,
        "calls": called,
    }


def traced(call: Callable[[], object]) -> List[str]:
    """The lines that a tracer (coverage, a debugger) sees in the user's and in dumped files."""
    found: List[str] = []

    def trace(frame: Any, event: str, argument: Any) -> Any:
        if not is_own(frame.f_code.co_filename):
            return None
        if event == "line":
            found.append(place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return found


def calls(call: Callable[[], object]) -> List[str]:
    """The functions of the program and of the dump that a profiler sees, with their files."""
    found: List[str] = []

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            found.append(place(frame.f_code.co_filename, frame.f_code.co_firstlineno, frame.f_code.co_name))

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return [each for each in found if each.startswith((HERE, "__")) and not each.endswith("<lambda>")]


@pytest.mark.parametrize(
    "backend", ["eager", "aot_eager", pytest.param("inductor", marks=[pytest.mark.inductor, pytest.mark.slow])]
)
def test_without_stepping_a_program_shows_the_same_of_itself(tmp_path: Path, backend: str) -> None:
    without = seen(contextlib.nullcontext(), backend)
    assert LOOKS in without["stack"]
    assert LOOKS in without["traceback"]
    assert LOOKS in without["lines"]
    with_depyf = seen(depyf.prepare_debug(tmp_path, stepping=False), backend)
    assert with_depyf == without


def test_with_stepping_the_files_of_the_dump_are_shown(tmp_path: Path) -> None:
    """What docs/shown-of-itself.md says that changes: each of these is the price of a breakpoint that stops."""
    without = seen(contextlib.nullcontext())
    with_depyf = seen(depyf.prepare_debug(tmp_path))
    file = "__transformed_code_0_for_user_function.py"
    assert [each for each in with_depyf["stack"] if each.startswith(file)]
    assert [each for each in with_depyf["traceback"] if each.startswith("__transformed_code_")]
    quoted = dict(zip((each.split(":")[0] for each in with_depyf["traceback"]), with_depyf["quoted"]))
    (dumped,) = (name for name in quoted if name.startswith("__transformed_code_"))
    assert quoted[dumped] in (tmp_path / dumped).read_text()  # tracebacks quote the dumped line
    assert quoted[dumped] not in Path(__file__).read_text()
    assert LOOKS not in with_depyf["lines"]
    assert LOOKS in without["lines"]
    assert [each for each in with_depyf["lines"] if each.startswith(file)]
    assert [each for each in with_depyf["calls"] if each.startswith(file)]
    # The names of functions, what the program logs itself, and code that is not compiled stay as they are.
    names = [[each.split()[1] for each in side["traceback"]] for side in (without, with_depyf)]
    assert names[0] == names[1]
    assert with_depyf["record"] == without["record"]


def test_a_dump_without_stepping_does_not_claim_that_it_runs(tmp_path: Path) -> None:
    for backend in ("eager", "aot_eager"):
        torch._dynamo.reset()
        folder = tmp_path / backend
        with depyf.prepare_debug(folder, stepping=False) as opened:
            torch.compile(user_function, backend=backend)(torch.ones(3))
        files = list(folder.glob("__*.py"))
        assert [path.name for path in files if RUNS in path.read_text()] == []
        assert [path.name for path in folder.glob("__compiled_fn*.py") if RUNS_ELSEWHERE in path.read_text()]
        for path in folder.glob("__transformed*.py"):
            assert "in whose place it runs" not in path.read_text()
            assert "a breakpoint here never stops" in path.read_text()
        assert not list(folder.glob("*.BACKEND*"))  # no second copy of a graph that has a file
        assert opened.session is not None
        if torch_names.find("torch._C._dynamo.eval_frame", "set_bytecode_debugger_callback") is not None:
            assert opened.session.codes_that_ran()


def test_the_files_of_a_dump_are_the_same_without_stepping(tmp_path: Path) -> None:
    names = []
    for stepping in (True, False):
        torch._dynamo.reset()
        folder = tmp_path / str(stepping)
        with depyf.prepare_debug(folder, clean_wild_fx_code=False, stepping=stepping):
            compiled = torch.compile(lambda x: (x.sin() * 2).sum(), backend="aot_eager")
            compiled(torch.ones(3, requires_grad=True)).backward()
        names.append(sorted(re.sub(r"fn_\d+", "fn", path.name) for path in folder.iterdir()))
    assert names[0] == names[1]


def test_of_nested_sessions_the_innermost_that_steps_has_the_code(tmp_path: Path) -> None:
    for outer, inner in ((True, False), (False, True)):
        torch._dynamo.reset()
        folders = [tmp_path / f"{outer}_outer", tmp_path / f"{outer}_inner"]
        with depyf.prepare_debug(folders[0], stepping=outer), depyf.prepare_debug(folders[1], stepping=inner):
            compiled = torch.compile(user_function, backend="eager")
            compiled(torch.ones(3))
        ran = traced_files(tmp_path, lambda compiled=compiled: compiled(torch.ones(3)))
        assert {os.path.dirname(path) for path in ran} == {str(folders[0] if outer else folders[1])}


def traced_files(below: Path, call: Callable[[], object]) -> List[str]:
    found: List[str] = []
    sys.settrace(lambda frame, event, argument: found.append(frame.f_code.co_filename))
    try:
        call()
    finally:
        sys.settrace(None)
    return [path for path in found if path.startswith(str(below))]


def speaking(x: Any) -> Any:
    x = x + 1
    logger.warning("hi")
    warnings.warn("careful", stacklevel=1)
    return x * 2


def files_of_speaking(debugging: ContextManager[Any]) -> Tuple[List[str], List[str]]:
    """Return the files that log records and shown warnings name, in one eager and two compiled calls."""
    shown: List[str] = []
    keeper = Keeper()
    logger.addHandler(keeper)
    RECORDS.clear()
    torch._dynamo.reset()
    try:
        with warnings.catch_warnings(), debugging:
            warnings.simplefilter("default")
            warnings.showwarning = lambda _, __, path, *___: shown.append(os.path.basename(path))  # type: ignore[assignment]
            speaking(torch.ones(2))
            compiled = torch.compile(speaking, backend="eager")
            compiled(torch.ones(3))
            compiled(torch.ones(3))
    finally:
        logger.removeHandler(keeper)
        sys.modules[__name__].__dict__.pop("__warningregistry__", None)
    assert {record.funcName for record in RECORDS} == {"speaking"}
    return [os.path.basename(record.pathname) for record in RECORDS], shown


def test_who_logs_and_warns_in_transformed_code(tmp_path: Path) -> None:
    """A call that a graph break leaves in transformed code stands where that stands, and a line there is a new one."""
    files, shown = files_of_speaking(contextlib.nullcontext())
    assert files == [HERE] * 3
    assert set(shown) == {HERE}  # Dynamo before 2.4 makes Python forget what it has shown
    assert files_of_speaking(depyf.prepare_debug(tmp_path / "a", stepping=False)) == (files, shown)
    files, of_the_dump = files_of_speaking(depyf.prepare_debug(tmp_path / "b"))
    assert files == [HERE, *["__transformed_code_0_for_speaking.py"] * 2]
    assert of_the_dump[0] == HERE
    assert len(of_the_dump) == max(len(shown), 2)
    assert all(each.startswith("__transformed_code_") for each in of_the_dump[1:])


@pytest.mark.parametrize("stepping", [True, False])
def test_a_warning_that_is_shown_once_is_shown_once(tmp_path: Path, stepping: bool) -> None:
    """Every function of ``warnings`` that changes a filter makes Python forget what it has shown."""
    before = list(warnings.filters)
    without = times_shown(contextlib.nullcontext)
    assert times_shown(lambda: depyf.prepare_debug(tmp_path, stepping=stepping)) == without
    if not hasattr(torch._dynamo.guards.GuardBuilder, "SET_CONTAINS"):
        return  # this PyTorch makes Python forget it itself
    assert without == 1
    assert list(warnings.filters) == before


def times_shown(debugging: Callable[[], ContextManager[Any]]) -> int:
    """Return how often a warning is shown that the program gives before and after each of three compilations."""
    shown: List[str] = []
    sys.modules[__name__].__dict__.pop("__warningregistry__", None)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda message, *_: shown.append(str(message))  # type: ignore[assignment]
        for number in range(3):
            torch._dynamo.reset()
            warn_of_something()
            with debugging():
                torch.compile(user_function, backend="eager")(torch.ones(3 + number))
            warn_of_something()
    return shown.count("careful")


def warn_of_something() -> None:
    warnings.warn("careful", stacklevel=1)


def test_warnings_as_errors_leave_the_dump_whole(program_environment: Any, tmp_path: Path) -> None:
    """What the compiler warns of in the user's source it has warned of before: here it would be an exception."""
    script = tmp_path / "strict.py"
    script.write_text(
        "import sys, warnings, torch, depyf\n"
        "def f(x, n):\n"
        "    if n is 5:\n"
        "        x = x * 2\n"
        "    torch._dynamo.graph_break()\n"
        "    return x.sin(), '\\d'\n"
        "compiled = torch.compile(f, backend='eager')\n"
        "warnings.simplefilter('error')\n"
        "with depyf.prepare_debug(sys.argv[1]):\n"
        "    print(compiled(torch.zeros(3), 6))\n"
    )
    command = [sys.executable, str(script), str(tmp_path / "dump")]
    done = warm_python.run(command, env=program_environment)
    assert done.returncode == 0, done.stderr
    assert "depyf" not in done.stderr
    assert "failed" not in done.stderr
    full_code = next((tmp_path / "dump").glob("full_code_for_f_0.py")).read_text()
    assert "does not compile" not in full_code
    assert "def f(x, n):" in full_code
    assert (tmp_path / "dump" / "index.html").exists()
