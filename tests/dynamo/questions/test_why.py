"""``why`` names the guard that PyTorch names when it actually recompiles, and changes nothing."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, Iterator, List, Tuple

import pytest

torch = pytest.importorskip("torch")

from cost import lines_run  # noqa: E402
from torch_versions import HAS_GUARD_TREES  # noqa: E402

import depyf  # noqa: E402
from depyf.answers.why import GuardFailure  # noqa: E402
from depyf.diagnosis.guard import Guard, GuardKind  # noqa: E402
from depyf.diagnosis.guard_advice import GuardCause  # noqa: E402
from depyf.diagnosis.guard_explanations import explain  # noqa: E402
from depyf.diagnosis.guard_text import read, read_failed  # noqa: E402
from depyf.dynamo.capture.recompile_facts import with_live_facts  # noqa: E402
from depyf.dynamo.capture.trace_by_hooks import supplement  # noqa: E402
from depyf.dynamo.guards import failing as failing_guards  # noqa: E402
from depyf.dynamo.guards.current_values import as_known_here  # noqa: E402
from depyf.dynamo.guards.entry_guards import GuardLine  # noqa: E402
from depyf.dynamo.guards.live_values import LiveGuard  # noqa: E402
from depyf.dynamo.hooks import cache_entries, run_callback, torch_names, torch_settings  # noqa: E402
from depyf.dynamo.hooks.structured_trace_listener import listen  # noqa: E402
from depyf.torch_trace.recompiles import failed_guards  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[1]))
from guarded_inputs import CASES, GuardCase, attempts  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]


@pytest.fixture
def reasons() -> Iterator[List[Guard]]:
    """What PyTorch says of each recompilation."""
    found: List[Guard] = []

    def note(event: Any) -> None:
        if event.name == "recompile_reasons":
            found.extend(
                as_known_here(read_failed(each)) for each in failed_guards(with_live_facts(event))
            )  # modes are still those of the call

    undo = [listen(note), *supplement(note)]
    yield found
    for each in undo:
        each()


def state_of(code: Any) -> Tuple[List[int], Dict[str, Dict[str, int]]]:
    """What ``why`` must not change: the entries in their order, and Dynamo's counters."""
    counters = {name: dict(values) for name, values in torch._dynamo.utils.counters.items()}
    return [id(entry.guard_manager) for entry in cache_entries.cache_entries(code)], counters


def told_otherwise(name: str, case: GuardCase, reasons: List[Guard]) -> Tuple[int, List[str]]:
    """How many attempts of the case miss, and where ``why`` and PyTorch say different things."""
    wrong: List[str] = []
    misses = 0
    for setting in case.config:
        if not hasattr(torch._dynamo.config, setting):
            pytest.skip(f"this PyTorch has no setting {setting}")
    for what, arguments, context in list(attempts(case))[1:]:
        torch._dynamo.reset()
        compiled = torch.compile(case.function, backend=case.backend, dynamic=case.dynamic)
        with case.compile_under(), torch._dynamo.config.patch(case.config):
            try:
                compiled(*case.arguments())
            except torch._dynamo.exc.BackendCompilerFailed:
                pytest.skip("this PyTorch does not compile it")
        with context, torch._dynamo.config.patch(case.config):
            given = arguments()
            before = state_of(case.function.__code__)
            answer = depyf.why(compiled, *given)
            assert state_of(case.function.__code__) == before, f"{name}, {what}: something changed"
            reasons.clear()
            try:
                compiled(*given)
            except Exception:  # not every argument can be computed with; the lookup came before
                if not reasons:
                    continue
        if answer.hit is not None and answer.resumes:
            continue  # what compiled again may be what it goes on with
        if answer.hit is not None:
            wrong += [f"{what}: {answer} but PyTorch: {text}" for text in reasons]
            continue
        if not reasons:
            continue  # it did not compile again for another reason: PyTorch does not say which guard failed
        misses += 1
        told, really = answer.entries[0].failed[0].explanation, explain(reasons[0])
        is_unnamed = really.words.endswith("is of another class")  # up to PyTorch 2.9 its text has the class's id alone
        # Of objects compared by identity, such as members of enums, its text has the id alone.
        # A guard on a value may check the class, too (up to PyTorch 2.4): only the live value says which of both fails.
        same = told.cause is GuardCause.CLASS and told.guard.operands == really.guard.operands
        differs = really.before is not None and told.before != really.before and not (is_unnamed or same)
        if told.subject != really.subject or differs:
            wrong.append(f"{what}: {told} but PyTorch: {reasons[0]}")
    return misses, wrong


@pytest.mark.parametrize("name", CASES)
def test_the_first_guard_that_fails_is_the_one_that_pytorch_names(name: str, reasons: List[Guard]) -> None:
    if name == "booleans" and not HAS_GUARD_TREES:
        pytest.skip("PyTorch 2.2 compares an int with True, without a guard on its class: why names the class")
    misses, wrong = told_otherwise(name, CASES[name](), reasons)
    assert wrong == []
    if not misses and not hasattr(torch._dynamo.guards.GuardBuilder, "SET_NOT_CONTAINS"):
        pytest.skip("this older PyTorch has no such guard, or breaks the graph before it")
    assert misses


def two_arguments(x: Any, n: int = 3, flag: bool = True) -> Any:
    y = x * n
    return y + 1 if flag else y


def test_every_guard_that_fails_is_told_with_its_line_and_values() -> None:
    compiled = torch.compile(two_arguments, backend="eager")
    compiled(torch.ones(2, 3))
    answer = depyf.why(compiled, torch.ones(2, 3, dtype=torch.float64), 4, flag=False)
    assert answer.would_compile
    failed = {guard.explanation.subject: guard for guard in answer.entries[0].failed}
    assert {name: (guard.explanation.before, guard.explanation.now) for name, guard in failed.items()} == {
        "x": ("float32", "float64"),
        "n": ("3", "4"),
        "flag": ("True", "False"),
    }
    assert "n is 4, and was compiled for 3" in str(answer)
    if not hasattr(torch._dynamo.guards.GuardBuilder, "SET_CONTAINS"):
        pytest.skip("PyTorch before 2.8 does not report the lines of these guards")
    first = two_arguments.__code__.co_firstlineno
    assert failed["n"].location == (__file__, first + 1)
    assert failed["flag"].location == (__file__, first + 2)
    assert failed["n"].user_code == "y = x * n"
    assert "n is 4, and was compiled for 3" in answer._repr_html_()


def test_entries_are_told_in_the_order_in_which_they_are_tried() -> None:
    compiled = torch.compile(two_arguments, backend="eager")
    for flag in (True, False):
        compiled(torch.ones(2), 3, flag=flag)
    answer = depyf.why(compiled, torch.ones(2), 3, flag=True)
    assert [entry.hit for entry in answer.entries] == [False, True]
    assert answer.hit is not None
    assert answer.hit.compile_id is None or answer.hit.compile_id.endswith("/0")
    assert answer.outcome.startswith("runs what was compiled as")


def test_before_the_first_call_there_is_nothing_to_hit() -> None:
    answer = depyf.why(torch.compile(two_arguments, backend="eager"), torch.ones(2))
    assert (answer.entries, answer.outcome) == ((), "would be compiled for the first time")


def test_the_limit_is_told_when_it_is_reached() -> None:
    compiled = torch.compile(two_arguments, backend="eager", dynamic=False)
    name = "recompile_limit" if hasattr(torch._dynamo.config, "recompile_limit") else "cache_size_limit"
    with torch._dynamo.config.patch({name: 2}):
        for n in (1, 2):
            compiled(torch.ones(2), n)
        answer = depyf.why(compiled, torch.ones(2), 3)
        ran: List[Any] = []
        handle = run_callback.watch_runs(ran.append)
        compiled(torch.ones(2), 3)
        if handle is not None:
            handle()
            assert ran == []  # it is as told: plain Python runs
    assert answer.limit == (name, 2)
    assert "plain Python" in answer.outcome
    assert not answer.would_compile


def test_another_backend_callable_is_told() -> None:
    def backend(graph: Any, _: Any) -> Any:
        return graph.forward

    torch.compile(two_arguments, backend="eager")(torch.ones(2))
    if cache_entries.cache_entries(two_arguments.__code__)[0].backend is None:
        pytest.skip("cache entries of this PyTorch do not report their backend")
    answer = depyf.why(torch.compile(two_arguments, backend=backend), torch.ones(2))
    assert answer.hit is None
    assert "another backend callable" in str(answer)


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)
        self.factor = 2

    def forward(self, x: Any) -> Any:
        return self.inner(x) * self.factor

    def twice(self, x: Any) -> Any:
        return x * self.factor


def test_modules_and_methods() -> None:
    module = Scaled()
    compiled, method = torch.compile(module, backend="eager"), torch.compile(module.twice, backend="eager")
    x = torch.ones(2, 3)
    before = compiled(x)
    method(x)
    assert depyf.why(compiled, x).hit is not None
    assert depyf.why(method, x).hit is not None
    module.factor = 5
    if depyf.why(compiled, x).hit is not None:
        assert torch.equal(compiled(x), before)
        pytest.skip("this PyTorch does not guard attributes of modules, and goes on with the old value")
    for each in (compiled, method):
        answer = depyf.why(each, x)
        assert [guard.explanation.subject for guard in answer.entries[0].failed] == ["self.factor"]


def test_a_module_with_hooks_is_looked_up_where_it_was_compiled() -> None:
    module = Scaled()
    module.register_forward_pre_hook(lambda *_: None)
    compiled = torch.compile(module, backend="eager")
    compiled(torch.ones(2, 3))
    assert depyf.why(compiled, torch.ones(2, 3)).hit is not None


class Hostile:
    def __init__(self, value: int) -> None:
        self.value = value

    def __repr__(self) -> str:
        raise RuntimeError("no")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = None  # type: ignore[assignment]


def test_hostile_values_do_no_harm() -> None:
    compiled = torch.compile(lambda x, o: x * o.value, backend="eager")
    compiled(torch.ones(2), Hostile(2))
    answer = depyf.why(compiled, torch.ones(2), Hostile(3))
    assert "o.value is 3, and was compiled for 2" in str(answer)
    assert depyf.why(compiled, torch.ones(2), 4).hit is None


def test_arguments_that_do_not_fit_are_said() -> None:
    compiled = torch.compile(two_arguments, backend="eager")
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        depyf.why(compiled)
    with pytest.raises(TypeError, match="runs no Python function"):
        depyf.why(print, 1)


def with_a_break(x: Any, n: int) -> Any:
    x = x + 1
    torch._dynamo.graph_break()
    return x * n


def test_the_resume_functions_behind_a_hit_are_named() -> None:
    compiled = torch.compile(with_a_break, backend="eager")
    compiled(torch.ones(2), 3)
    answer = depyf.why(compiled, torch.ones(2), 3)
    assert len(answer.resumes) == 1
    assert answer.resumes[0] in str(answer)
    with depyf.watch(stream=io.StringIO()) as watched:
        compiled(torch.ones(2), 4)
    assert answer.resumes[0] in [each.function for each in watched.happened]  # both call it the same
    assert len(depyf.why(compiled, torch.ones(2), 4).resumes) == 1


def test_autocast_is_named_with_what_to_do() -> None:
    compiled = torch.compile(two_arguments, backend="eager")
    compiled(torch.ones(2), 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        answer = depyf.why(compiled, torch.ones(2), 2)
        with depyf.watch(stream=io.StringIO()) as watched:
            compiled(torch.ones(2), 2)
    words = answer.entries[0].failed[0].explanation.words
    older = "(autocast)" in words or "(AutocastCPU)" in words  # PyTorch does not say which device's
    assert (
        words.startswith("autocast for the CPU is on; this entry was compiled with autocast for the CPU off") or older
    )
    assert watched.happened[0].words.startswith(words)
    assert all("autocast" in guard.explanation.words for guard in answer.entries[0].failed)
    assert len(answer.advice) == 1
    assert "enter torch.autocast in the same way" in answer.advice[0]


def test_a_frame_can_be_asked_for() -> None:
    compiled = torch.compile(two_arguments, backend="eager")
    compiled(torch.ones(2), 2)
    seen: List[Any] = []

    def tracer(frame: Any, *_: Any) -> None:
        if frame.f_code is two_arguments.__code__:
            seen.append(depyf.why(frame))

    sys.settrace(tracer)
    try:
        two_arguments(torch.ones(2), 5)
    finally:
        sys.settrace(None)
    assert [guard.explanation.subject for guard in seen[0].entries[0].failed] == ["n"]


def test_modules_of_torchs_own_have_entries_of_their_own() -> None:
    x = torch.ones(2, 3)
    modules = [torch.nn.Sequential(torch.nn.Linear(3, 3)), torch.nn.Linear(3, 3)]
    compiled = [torch.compile(module, backend="eager") for module in modules]
    for each in compiled:
        each(x)
    for each, name in zip(compiled, ("Sequential.forward", "Linear.forward")):
        answer = depyf.why(each, x)
        assert answer.hit is not None
        assert len(answer.entries) == 1
        assert name in answer.function
        other = depyf.why(each, x.double())
        assert other.would_compile
        assert "has dtype float64, and was compiled for float32" in str(other)


class Decorated:
    @torch.compile(backend="eager")
    def method(self, x: Any) -> Any:
        return x + 1

    @classmethod
    @torch.compile(backend="eager")
    def of_class(cls, x: Any) -> Any:
        return x + 2


def test_methods_that_are_decorated_in_their_class() -> None:
    each, x = Decorated(), torch.ones(2)
    each.method(x)
    each.of_class(x)
    for method in (each.method, each.of_class):
        assert depyf.why(method, x).hit is not None
        assert depyf.why(method, x.double()).would_compile


class Blocks(torch.nn.Module):
    def __init__(self, depth: int = 2) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(depth)])

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


class Settings:
    def __init__(self) -> None:
        self.scale = 2
        self.inner = Scaled()


def uses_a_dict(x: Any, d: Any) -> Any:
    return x * d["a"]["b"]["c"] + d["a"]["l"][0] + d["a"]["l"][1] + d["z"]


def uses_all_of_a_dict(x: Any, d: Any) -> Any:
    for value in d.values():
        x = x * value
    return x


def uses_an_object(x: Any, o: Any) -> Any:
    return x * o.scale + o.inner.factor


def calls_a_module(x: Any, module: Any) -> Any:
    return module(x)


def without(o: Any, name: str) -> Any:
    delattr(o, name)
    return o


WHOLE = {"a": {"b": {"c": 2.0}, "l": [1, 2]}, "z": 3}
SIMPLE = (
    (uses_a_dict, WHOLE, lambda: {"a": WHOLE["a"]}, "d['z'] is missing"),
    (uses_a_dict, WHOLE, lambda: {"b": 1, "z": 3}, "d['a'] is missing"),
    (uses_a_dict, WHOLE, lambda: {"a": {"b": {}, "l": [1, 2]}, "z": 3}, "d['a']['b']['c'] is missing"),
    (uses_a_dict, WHOLE, lambda: {"a": {"b": {"c": 2.0}, "l": [1]}, "z": 3}, "d['a']['l'] has 1 item"),
    (uses_a_dict, WHOLE, lambda: {"a": None, "z": 3}, "d['a'] is None"),
    (uses_a_dict, WHOLE, lambda: None, "d is None"),
    (uses_all_of_a_dict, {"a": 1, "b": 2}, lambda: {"a": 1}, "d lacks 'b', which it had"),
    (uses_an_object, Settings(), lambda: without(Settings(), "inner"), "o.inner is missing"),
    (uses_an_object, Settings(), lambda: 3, "o is not a "),
    (
        calls_a_module,
        Blocks(),
        lambda: Blocks(1),
        "module.layers._modules has a different number of keys; it was compiled for 2",
    ),
    (calls_a_module, Blocks(), lambda: torch.nn.Linear(3, 3), "module is not a "),
)
WHEN_OLD = {
    "d['z'] is missing": ("d lacks 'z', which it had", "d has 1 item, and was compiled for 2"),
    "d['a'] is missing": ("d has 'b', which it lacked and lacks 'a', which it had",),
    "d['a']['b']['c'] is missing": (
        "d['a']['b'] lacks 'c', which it had",
        "d['a']['b'] is empty, and was compiled for",
    ),
    "d['a'] is None": ("d['a'] is of another class",),
    "d is None": ("d is of another class",),
    "o is not a ": ("o is of another class",),
}
"""Before 2.4 PyTorch guards all keys at once, before 2.8 their number first; classes are known by their ids only."""

needs_guards_apart = pytest.mark.skipif(
    not hasattr(torch_names.find("torch._C._dynamo.guards", "RootGuardManager"), "clone_manager"),
    reason="this PyTorch can only be asked about all of its guards, and names the first that fails",
)
needs_a_tree_of_guards = pytest.mark.skipif(
    not HAS_GUARD_TREES, reason="PyTorch before 2.4 has one guard for all tensors, and one for the global state"
)


@pytest.mark.parametrize("number", range(len(SIMPLE)))
def test_one_cause_is_told_and_what_follows_from_it_is_folded(number: int, reasons: List[Guard]) -> None:
    function, before, now, words = SIMPLE[number]
    x = torch.ones(2, 3)
    compiled = torch.compile(function, backend="eager")
    compiled(x, before)
    if isinstance(before, torch.nn.Module) and not hasattr(torch._dynamo.guards.GuardBuilder, "SET_CONTAINS"):
        pytest.skip("this PyTorch does not guard modules by what they hold")
    value = now()
    answer = depyf.why(compiled, x, value)
    (entry,) = answer.entries
    (told,) = [guard.explanation.words for guard in entry.failed]
    is_old = not hasattr(torch._dynamo.guards.GuardBuilder, "SET_CONTAINS")
    assert told.startswith((words, *WHEN_OLD.get(words, ())) if is_old else words)
    assert len(answer.advice) == 1
    assert "this does not hold" not in str(answer)
    shown = str(answer)
    assert not any(
        each.explanation.words in shown
        for each in entry.follow
        if each.explanation.words != entry.failed[0].explanation.words
    )
    try:
        compiled(x, value)
    except Exception:  # it can't be computed with; the lookup came before
        assert reasons or not HAS_GUARD_TREES  # one of whose guards raises the exception itself
    if not reasons:
        return
    assert explain(reasons[0]).subject == entry.failed[0].explanation.subject


@needs_a_tree_of_guards
def test_grad_mode_alone_is_told_of_a_module_whose_children_only_pytorch_can_check() -> None:
    compiled = torch.compile(Blocks(), backend="eager")
    compiled(torch.ones(2, 3))
    with torch.no_grad():
        answer = depyf.why(compiled, torch.ones(2, 3))
    (entry,) = answer.entries
    assert [guard.explanation.words for guard in entry.failed] == [
        "grad mode is off; this entry was compiled with grad mode on"
    ]
    assert entry.follow == ()


@pytest.mark.parametrize("name", CASES)
def test_what_is_told_beside_the_cause_does_not_follow_from_it(name: str) -> None:
    """The cases change one thing at a time, but for a few that change two."""
    case = CASES[name]()
    if any(not hasattr(torch._dynamo.config, setting) for setting in case.config):
        pytest.skip("this PyTorch has no such setting")
    if not hasattr(torch._dynamo.guards.GuardBuilder, "SET_CONTAINS"):
        pytest.skip("guards before PyTorch 2.8 do not all say what they look at")
    for what, arguments, context in list(attempts(case))[1:]:
        torch._dynamo.reset()
        compiled = torch.compile(case.function, backend=case.backend, dynamic=case.dynamic)
        with case.compile_under(), torch._dynamo.config.patch(case.config):
            compiled(*case.arguments())
        with context, torch._dynamo.config.patch(case.config):
            entries = depyf.why(compiled, *arguments()).entries
        if not entries and not case.compiles_everywhere:
            pytest.skip("this PyTorch does not compile this")
        told = [guard.explanation.words for guard in entries[0].failed]
        assert len(told) <= CHANGED_AT_ONCE.get((name, what), 1), f"{what}: {told}"


CHANGED_AT_ONCE = {
    ("dict_with_odd_keys", "arguments 2"): 3,
    ("deques", "arguments 1"): 2,
    ("torch_sizes", "arguments 1"): 2,
    ("closures", "context 1"): 2,
    ("global_state", "context 1"): 2,
    ("global_state", "context 4"): 2,
    ("overlapping_views", "arguments 2"): 2,
}


def test_the_entry_that_is_missed_by_the_least_comes_first() -> None:
    compiled = torch.compile(two_arguments, backend="eager", dynamic=False)
    compiled(torch.ones(2), 3, flag=True)
    compiled(torch.ones(2), 4, flag=False)
    answer = depyf.why(compiled, torch.ones(2), 5, flag=True)
    shown = [line for line in str(answer).splitlines() if "was compiled for" in line and "also:" not in line]
    assert "n is 5, and was compiled for 3" in shown[0]
    assert "n is 5, and was compiled for 4" in shown[1]
    assert "also: flag is True, and was compiled for False" in str(answer)


def with_keywords(x: Any, **more: Any) -> Any:
    for each in more.values():
        x = x + each
    return x * 2


def test_the_keyword_argument_that_is_new_is_named() -> None:
    compiled = torch.compile(with_keywords, backend="eager")
    compiled(torch.ones(2))
    compiled(torch.ones(2), a=1.0)
    answer = depyf.why(compiled, torch.ones(2), a=1.0, b=2.0)
    assert "it is called with b (**more), and was compiled for a call without" in str(answer)
    assert "it is called with a, b (**more), and was compiled for a call without" in str(answer)
    assert "the same set in each call" in "".join(answer.advice)
    assert not any(word in str(answer) for word in ("pad", "torch.stack", "does not hold"))
    other = str(depyf.why(compiled, torch.ones(2), b=2.0))
    gone = "it is called without a (**more), and was compiled for a call with"
    both = "it is called with b and without a (**more), and was compiled for a call without b and with a"
    assert (gone if HAS_GUARD_TREES else both) in other  # one function of guards has all keys in its text


def with_intermediate(x: Any) -> Any:
    between = x.relu()
    torch._dynamo.graph_break()
    return between * 2


def test_nothing_is_to_be_marked_that_only_a_resume_function_takes() -> None:
    compiled = torch.compile(with_intermediate, backend="eager")
    with depyf.watch(stream=io.StringIO()) as watched:
        compiled(torch.ones(2))
        compiled(torch.ones(3))
    own, resumed = (each.advice for each in watched.happened if each.kind == "recompile")
    assert "mark_dynamic(x, 0)" in own
    assert "the arguments that it comes from" in resumed
    assert "mark_dynamic(between" not in resumed


class SumsItsScales(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)
        self.scales = {"a": 1.0}

    def forward(self, x: Any) -> Any:
        return self.inner(x) * sum(self.scales.values())


@needs_guards_apart
def test_another_grad_mode_does_not_hide_what_else_differs() -> None:
    module = SumsItsScales()
    compiled = torch.compile(module, backend="eager")
    with torch.no_grad():
        compiled(torch.ones(2, 3))
    module.scales["b"] = 2.0
    with torch.no_grad():
        (one,) = [guard.explanation.words for guard in depyf.why(compiled, torch.ones(2, 3)).entries[0].failed]
    told = [guard.explanation.words for guard in depyf.why(compiled, torch.ones(2, 3)).entries[0].failed]
    assert told == ["grad mode is on; this entry was compiled with grad mode off", one]
    assert torch.is_grad_enabled()


@needs_guards_apart
def test_a_dict_argument_is_checked_under_another_grad_mode() -> None:
    compiled = torch.compile(uses_all_of_a_dict, backend="eager")
    with torch.no_grad():
        compiled(torch.ones(2), {"a": 1})
    (entry,) = depyf.why(compiled, torch.ones(2), {"a": 1, "b": 2}).entries
    assert [guard.explanation.subject for guard in entry.failed] == ["", "d"]
    (found,) = cache_entries.cache_entries(uses_all_of_a_dict.__code__)
    live, path = LiveGuard(found.guard_manager), frozenset({"L['d']"})
    for d, holds in (({"a": 1, "b": 2}, False), ({"a": 1}, True)):
        assert live.check_path({"x": torch.ones(2), "d": d}, path, "L['d']") is holds


@needs_a_tree_of_guards
def test_an_advice_for_all_parameters_is_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    module = torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(20)))
    compiled = torch.compile(module, backend="eager")
    compiled(torch.ones(2, 3))
    module.double()
    looked_for: List[Any] = []
    whole = failing_guards.with_whole_path
    monkeypatch.setattr(failing_guards, "with_whole_path", lambda *place: looked_for.append(place) or whole(*place))
    answer = depyf.why(compiled, torch.ones(2, 3).double())
    if torch_settings.dynamo_setting("inline_inbuilt_nn_modules") is not True:
        pytest.skip("this PyTorch guards no parameters of modules")
    assert len(answer.entries[0].failed) == 41
    assert len(answer.advice) == 2
    assert any("and 37 more: each dtype" in each for each in answer.advice)  # PyTorch 2.7 checks them before the input
    assert len(looked_for) < 5


def test_the_files_of_modules_are_listed_once_for_a_line_in_another_file(monkeypatch: pytest.MonkeyPatch) -> None:
    lists: List[str] = []
    listed = failing_guards.loaded_namespaces
    monkeypatch.setattr(failing_guards, "loaded_namespaces", lambda: lists.append("") or listed())
    monkeypatch.setattr(failing_guards, "_MODULES", {})
    ending = __file__.lstrip("/")
    assert failing_guards.with_whole_path((ending, 3), __file__) == (__file__, 3)
    assert failing_guards.with_whole_path(("<string>", 3), "other.py") == ("<string>", 3)
    assert not lists
    for line in range(3):
        assert failing_guards.with_whole_path((ending, line), "other.py") == (__file__, line)
    assert len(lists) == 1


def test_the_file_of_a_module_is_that_of_the_one_loaded_now(monkeypatch: pytest.MonkeyPatch) -> None:
    before, location = len(sys.modules), ("of_guards/helpers.py", 3)
    for name, folder in (
        ("of_guards_a", "/one/else"),
        ("of_guards_b", "/one/of_guards"),
        ("of_guards_b", "/two/of_guards"),
    ):
        module = ModuleType(name)
        module.__file__ = f"{folder}/helpers.py"
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, name, module)
            assert len(sys.modules) == before + 1
            found = failing_guards.with_whole_path(location, "other.py")
            assert found == (location if folder == "/one/else" else (module.__file__, 3))
    assert failing_guards.with_whole_path(location, "other.py") == location


def test_a_pair_of_causes_is_compared_in_a_few_lines() -> None:
    def found(number: int) -> Any:
        source = f"L['self']._modules['layers']._modules['{number}']._parameters['weight']"
        words = explain(Guard(GuardKind.DTYPE, source, "float32", "float64"))
        line = GuardLine("TENSOR_MATCH", source, "", "", "")
        return failing_guards._Found(line, GuardFailure("TENSOR_MATCH", "", source, words), source, "", False)

    some = [found(number) for number in range(200)]
    pairs = 200 * 199 / 2  # each cause is compared with those before it
    assert len(failing_guards._causes(some).causes) == 200
    assert lines_run(lambda: failing_guards._causes(some)) < 25 * pairs


def test_the_part_of_a_number_follows_from_the_number() -> None:
    def found(source: str, code: str) -> Any:
        line = GuardLine("IS_NAN", source, code, "", "")
        return failing_guards._Found(line, GuardFailure("IS_NAN", code, source, explain(read(code))), source, "", False)

    whole, part = found("L['z']", "__numpy_isnan(L['z'])"), found("L['z'].real", "__math_isnan(L['z'].real)")
    other = found("L['zz']", "__math_isnan(L['zz'])")
    failing = failing_guards._causes([whole, part, other])  # PyTorch 2.15 guards both
    assert (failing.causes, failing.follow) == ((whole.guard, other.guard), (part.guard,))


def of_three(x: Any, n: int, how: str) -> Any:
    y = x * n if how == "times" else x + n
    torch._dynamo.graph_break()
    return y.sin()


def test_one_entry_is_asked_for_by_every_id_that_is_shown(tmp_path: Path) -> None:
    compiled = torch.compile(of_three, backend="eager")
    with depyf.prepare_debug(tmp_path):
        compiled(torch.ones(3), 1, "times")
        compiled(torch.ones(3), 1, "plus")
    answer = depyf.why(compiled, torch.ones(3, dtype=torch.float64), 1, "none")
    for entry in answer.entries:
        (graph,) = entry.graphs
        (file,) = tmp_path.glob(f"{graph}.Captured_Graph.0.py")
        ids: List[Any] = [graph, int(graph.rpartition("_")[2]), file.name, str(file), f"Captured_Graph of {graph}"]
        if entry.compile_id is not None:
            at = f"compile id {entry.compile_id}"
            codes = [str(each) for each in tmp_path.glob("__transformed*_for_of_three.py") if at in each.read_text()]
            assert len(codes) == 1
            lines = [f"of_three [{entry.compile_id}]", f"recompile of_three [{entry.compile_id}] a.py:1: how is 'no'"]
            ids += [entry.compile_id, *lines, *codes]
        assert [answer.entry(each) for each in ids] == [entry] * len(ids)
    there = "there are: .*__compiled_fn_.*; for entries of .*resume_in_of_three"
    with pytest.raises(LookupError, match=f"called '7/7'; {there}"):
        answer.entry("7/7")
    with pytest.raises(LookupError, match="there are none: this call would be compiled for the first time"):
        depyf.why(torch.compile(lambda x: x), 1).entry("0/0")


def test_an_entry_prints_all_that_does_not_hold() -> None:
    compiled = torch.compile(of_three, backend="eager")
    compiled(torch.ones(3), 1, "times")
    answer = depyf.why(compiled, torch.ones(4, 4, dtype=torch.float64), 2, "none")
    (entry,) = answer.entries
    head, *lines = str(entry).splitlines()
    assert head.endswith(f": {len(entry.failed)} guards do not hold")
    told = [line.strip() for line in lines if not line.startswith("    ")]
    assert told == [each.explanation.words for each in entry.failed]
    assert "how is 'none', and was compiled for 'times'" in str(entry)
    assert "how is" in entry._repr_html_()
    (entry,) = depyf.why(compiled, torch.ones(3), 1, "times").entries
    assert str(entry).endswith(": runs; all its guards hold")


def test_a_compilation_of_why_is_not_in_the_counters_of_pytorch() -> None:
    if not HAS_GUARD_TREES:
        pytest.skip("PyTorch 2.2 runs a function as plain Python after a compilation that failed")

    class Options:
        breaks = True

    options = Options()

    def step(x: Any) -> Any:
        if options.breaks:
            torch._dynamo.graph_break()
        return x + 1

    compiled = torch.compile(step, backend="eager", fullgraph=True)
    with pytest.raises(torch._dynamo.exc.Unsupported):
        compiled(torch.ones(2))
    options.breaks = False
    before = state_of(step.__code__)
    assert "would be compiled" in str(depyf.why(compiled, torch.ones(2)))
    assert state_of(step.__code__) == before


def test_a_dimension_that_was_marked_dynamic_and_is_specialised_is_named(tmp_path: Path) -> None:
    def seven(x: Any) -> Any:
        return x + 1 if x.shape[0] == 7 else x * 2

    def other(x: Any) -> Any:
        return x

    torch._dynamo.reset()
    compiled = torch.compile(seven, backend="eager")
    x = torch.ones(7, 3)
    torch._dynamo.mark_dynamic(x, 0)
    with depyf.prepare_debug(tmp_path):
        with pytest.raises(Exception, match="Constraints violated"):
            compiled(x)
        (note,) = depyf.why(compiled, x).notes
        assert "dimension 0 of x is marked dynamic, and is specialised to 7" in note
        line = f" ({seven.__code__.co_filename}:{seven.__code__.co_firstlineno + 1})"
        assert note.endswith(line) or "by `" not in note  # PyTorch 2.13 and later have the line
        assert depyf.why(torch.compile(other, backend="eager"), x).notes == ()
    assert depyf.why(compiled, x).notes == ()  # nothing has seen it
