"""``why`` says what a call does in each state of Dynamo; then the call is made, and has to do that."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable, ContextManager, Dict, List, Optional, Tuple

import pytest
import warm_python
from torch_versions import IS_OLD, needs_stances

pytestmark = [pytest.mark.torch, needs_stances]
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.answers.why import Why  # noqa: E402
from depyf.dynamo.hooks import cache_entries, private_names  # noqa: E402

HIT, PYTHON, COMPILES = "runs its entry", "runs as plain Python", "compiles"
COUNTED = {"compiled": 0, "run": 0, "plain": 0}


@pytest.fixture(autouse=True)
def fresh_torch() -> Any:
    def forget() -> None:
        torch._dynamo.reset()
        (private_names.EXAMPLE_INPUTS.find() or {}).clear()

    forget()
    yield
    forget()


def counting(module: Any, inputs: Any) -> Callable[..., Any]:
    COUNTED["compiled"] += 1

    def run(*arguments: Any) -> Any:
        COUNTED["run"] += 1
        return module.forward(*arguments)

    return run


def failing(module: Any, inputs: Any) -> Callable[..., Any]:
    raise RuntimeError("boom")


def claimed(answer: Why) -> Tuple[str, str]:
    """Return what ``why`` says, as one of the words above or the name of an exception, and which may be raised."""
    if answer.hit is not None:
        return HIT, ""
    may = next((part.split(":")[0] for part in answer.outcome.split("raised: ")[1:]), "")
    may = may or ("Unsupported" if "or raises Unsupported" in answer.outcome else "")
    if answer.would_compile:
        return COMPILES, may
    return answer.raises or PYTHON, may


def done(function: Any, code: Any, *arguments: Any) -> str:
    """Make the call; return what it did."""
    before, entries = dict(COUNTED), len(cache_entries.cache_entries(code))
    try:
        function(*arguments)
    except Exception as error:
        return type(error).__name__
    if COUNTED["compiled"] > before["compiled"] or len(cache_entries.cache_entries(code)) > entries:
        return COMPILES
    ran = COUNTED["plain"] == before["plain"] if code is times.__code__ else COUNTED["run"] > before["run"]
    return HIT if ran else PYTHON


def times(x: Any, k: int = 2) -> Any:
    if not torch.compiler.is_compiling():  # with a backend that is not counted, only this shows what ran
        COUNTED["plain"] += 1
    return x * k


def printing(x: Any, k: int = 2) -> Any:
    if k > 2:
        print("", end="")
    return x + 1


def raising(x: Any, k: int = 2) -> Any:
    y = x + 1
    if k > 2:
        raise ValueError(k)
    return y


def fixed(x: Any, k: int = 2) -> Any:
    return x + torch.ones(2)


def empty(x: Any, k: int = 2) -> Any:
    return k


def marked() -> Any:
    x = torch.ones(2)
    torch._dynamo.mark_dynamic(x, 0)
    return x


def stance(*names: str, **options: Any) -> Callable[[], ContextManager[Any]]:
    return lambda: torch.compiler.set_stance(*names, **options)


def setting(**values: Any) -> Callable[[], ContextManager[Any]]:
    known = {name: value for name, value in values.items() if hasattr(torch._dynamo.config, name)}
    return lambda: torch._dynamo.config.patch(**known)


STATES: Dict[str, Callable[[], ContextManager[Any]]] = {
    "default": contextlib.nullcontext,
    "force_eager": stance("force_eager"),
    "eager_on_recompile": stance("eager_on_recompile"),
    "fail_on_recompile": stance("fail_on_recompile"),
    "eager_then_compile": stance("eager_then_compile"),
    "aot_eager_then_compile": stance("aot_eager_then_compile"),
    "skipped guards": stance("default", skip_guard_eval_unsafe=True),
    "eager_on_recompile, skipped guards": stance("eager_on_recompile", skip_guard_eval_unsafe=True),
    "force_backend": stance(force_backend="eager"),
    # With fullgraph=True and dynamic=False PyTorch raises before it restores the second: the patch does.
    "disable": setting(disable=True, automatic_dynamic_shapes=True),
    "limit": setting(recompile_limit=1),
    "limit that raises": setting(recompile_limit=1, fail_on_recompile_limit_hit=True),
}
"""What is in force for the call."""

CALLS: Dict[str, Tuple[List[int], int]] = {
    "first": ([], 2),
    "again": ([2], 2),
    "another k": ([2], 3),
    "a third k": ([2, 3], 4),
}
"""The values of ``k`` that were compiled before, and that of the call."""

EXPECTED = {
    ("default", "first", False): COMPILES,
    ("default", "again", False): HIT,
    ("force_eager", "again", False): PYTHON,
    ("eager_on_recompile", "first", False): PYTHON,
    ("eager_on_recompile", "again", False): HIT,
    ("eager_on_recompile", "another k", True): PYTHON,
    ("fail_on_recompile", "again", False): HIT,
    ("fail_on_recompile", "another k", False): "RuntimeError",
    ("eager_then_compile", "first", False): PYTHON,
    ("skipped guards", "first", False): "RuntimeError",
    ("skipped guards", "another k", False): HIT,
    ("disable", "first", False): PYTHON,
    ("limit", "another k", False): PYTHON,
    ("limit", "another k", True): "FailOnRecompileLimitHit",
    ("limit that raises", "another k", False): "FailOnRecompileLimitHit",
}
"""What PyTorch 2.13 does, for some: a row that always agrees with itself proves nothing."""


@pytest.mark.skipif(IS_OLD, reason="some states are newer")
@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("state", STATES)
def test_what_is_said_is_what_happens(state: str, call: str, fullgraph: bool) -> None:
    uncertain = (state, call) == ("eager_on_recompile, skipped guards", "first")
    function = torch.compile(times, backend=counting, fullgraph=fullgraph, dynamic=False)
    compiled, k = CALLS[call]
    for each in compiled:
        function(torch.ones(2), each)
    with STATES[state]():
        entries = len(cache_entries.cache_entries(times.__code__))
        said, _ = claimed(depyf.why(function, torch.ones(2), k))
        assert len(cache_entries.cache_entries(times.__code__)) == entries
        happened = done(function, times.__code__, torch.ones(2), k)
        if uncertain:  # what happens depends on the past of the process, as the test below shows
            assert said == PYTHON
            assert happened in (PYTHON, "RuntimeError")
            assert "may raise RuntimeError" in depyf.why(function, torch.ones(2), k).outcome
            return
        assert said == happened == EXPECTED.get((state, call, fullgraph), happened)
        # The second call finds what the first has left.
        said, _ = claimed(depyf.why(function, torch.ones(2), k))
        assert said == done(function, times.__code__, torch.ones(2), k)


FIRST_CALL_WITH_SKIPPED_GUARDS = """
import sys, torch, depyf

def f(x):
    return x if torch.compiler.is_compiling() else x + 1

x = torch.zeros(1)
if sys.argv[1] == "met":
    with torch.compiler.set_stance("default", skip_guard_eval_unsafe=True):
        try:
            torch.compile(f, backend="eager")(x)
        except RuntimeError:
            pass
    torch._dynamo.reset()
compiled = torch.compile(f, backend="eager")
with torch.compiler.set_stance("eager_on_recompile", skip_guard_eval_unsafe=True):
    print(depyf.why(compiled, x).outcome)
    try:
        print(compiled(x).item())
    except RuntimeError:
        print("raised")
"""


@pytest.mark.skipif(IS_OLD, reason="some states are newer")
@pytest.mark.parametrize(("past", "happens"), [("new", "1.0"), ("met", "raised")])
def test_a_first_call_with_skipped_guards_may_raise(past: str, happens: str) -> None:
    code = FIRST_CALL_WITH_SKIPPED_GUARDS
    run = warm_python.run([sys.executable, "-c", code, past], check=True)
    said, happened = run.stdout.splitlines()
    assert "runs as plain Python, or may raise RuntimeError" in said
    assert happened == happens


ATTEMPTS: Dict[str, Tuple[Any, Any, bool, Optional[int], int, str, str]] = {
    # function, backend, fullgraph, k of an earlier call, k of this one, what is said, what happens
    "a graph break": (printing, counting, True, 3, 3, "Unsupported", "Unsupported"),
    "a graph break on another path": (printing, counting, True, 3, 2, COMPILES, COMPILES),
    "a graph break beside an entry": (printing, counting, True, 2, 3, COMPILES, "Unsupported"),
    "a graph break that is allowed": (printing, counting, False, 3, 3, HIT, HIT),
    "an exception of the program": (raising, counting, True, 3, 3, "Unsupported", "Unsupported"),
    "an exception of the program, allowed": (raising, counting, False, 3, 3, PYTHON, "ValueError"),
    "the same on another path": (raising, counting, False, 3, 2, PYTHON, PYTHON),
    "a mark that is violated": (fixed, counting, False, 2, 2, "ConstraintViolationError", "ConstraintViolationError"),
    "the same with fullgraph": (fixed, counting, True, 2, 2, "ConstraintViolationError", "ConstraintViolationError"),
    "a backend that fails": (times, failing, False, 2, 2, COMPILES, "BackendCompilerFailed"),
    "no graph": (empty, counting, False, 2, 2, PYTHON, PYTHON),
    "never called": (printing, counting, True, None, 3, COMPILES, "Unsupported"),
}


@pytest.mark.skipif(IS_OLD, reason="some exceptions are other ones")
@pytest.mark.parametrize("name", ATTEMPTS)
def test_a_call_that_raises_is_said_to(name: str) -> None:
    function, backend, fullgraph, before, k, says, does = ATTEMPTS[name]
    compiled = torch.compile(function, backend=backend, fullgraph=fullgraph, dynamic=None)
    x = marked() if function is fixed else torch.ones(2)
    if before is not None:
        with contextlib.suppress(Exception):
            compiled(x, before)
    answer = depyf.why(compiled, x, k)
    said, may_raise = claimed(answer)
    assert said == says, answer.outcome
    if says == "Unsupported":
        assert f"{__file__}:" in answer.outcome
    happened = done(compiled, function.__code__, x, k)
    assert happened == does
    # What is raised and not said for sure is named as possible; an exception of the program's own code is not known.
    assert says == does or may_raise == does or does == "ValueError"


def test_code_that_is_disabled_runs_as_python() -> None:
    disabled = torch.compiler.disable(torch.compile(times, backend=counting))
    assert claimed(depyf.why(disabled, torch.ones(2)))[0] == done(disabled, times.__code__, torch.ones(2)) == PYTHON


def test_the_trial_runs_nothing_and_leaves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    ran: List[int] = []

    def noting(x: Any) -> Any:
        ran.append(1)
        print("")
        return x + 1

    function = torch.compile(noting, backend="eager", fullgraph=True)
    with contextlib.suppress(Exception):
        function(torch.ones(2))
    state = torch.random.get_rng_state()
    assert depyf.why(function, torch.ones(2)).raises == "Unsupported"
    assert not ran
    assert capsys.readouterr().out == ""
    assert torch.equal(torch.random.get_rng_state(), state)
    assert cache_entries.cache_entries(noting.__code__) == []


@pytest.mark.skipif(IS_OLD, reason="the stance does not skip guards")
def test_the_guards_that_the_stance_skips_are_shown() -> None:
    function = torch.compile(times, backend=counting, dynamic=False)
    function(torch.ones(2), 2)
    with torch.compiler.set_stance("default", skip_guard_eval_unsafe=True):
        answer = depyf.why(function, torch.ones(2), 3)
    assert answer.hit is not None
    assert "skip_guard_eval_unsafe=True" in answer.outcome
    assert "k is 3, and was compiled for 2" in str(answer)
    assert "k is 3, and was compiled for 2" in str(answer.hit)
    assert "k is 3, and was compiled for 2" in answer._repr_html_()


@pytest.mark.skipif(IS_OLD, reason="PyTorch has no record of failed compilations")
def test_a_trial_leaves_no_record_that_the_next_answer_takes_for_the_programs() -> None:
    def add(x: Any, holder: List[Any]) -> Any:
        return x + holder[0]

    compiled, x = torch.compile(add, backend="eager"), torch.ones(2)
    with pytest.raises(Exception, match="NoneType"):
        compiled(x, [None])
    before = list(private_names.COMPILATION_METRICS.find())
    answers = [depyf.why(compiled, x, [1]).outcome for _ in range(3)]
    assert answers == ["would be compiled for the first time"] * 3
    assert list(private_names.COMPILATION_METRICS.find()) == before
