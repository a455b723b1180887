"""What was read of guards is read once, and never shown for other guards than those that it was read from."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any, Dict, Iterator, List

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from torch_versions import IS_OLD, needs_guard_trees  # noqa: E402

import depyf  # noqa: E402
from depyf.dynamo.guards import entry_guards  # noqa: E402
from depyf.dynamo.guards.entry_guards import EntryGuards  # noqa: E402
from depyf.dynamo.guards.kept_readings import OfGuards  # noqa: E402
from depyf.dynamo.guards.stable_expressions import Naming  # noqa: E402
from depyf.dynamo.hooks.cache_entries import cache_entries  # noqa: E402


@pytest.fixture(autouse=True)
def fresh_torch() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def scaled(x: torch.Tensor, factor: int, options: Dict[str, float]) -> torch.Tensor:
    return x * factor + options["shift"]


def compiled_for(*factors: int) -> Any:
    compiled = torch.compile(scaled, backend="eager", dynamic=False)
    for factor in factors:
        compiled(torch.ones(2), factor, {"shift": 1.0})
    return compiled


def manager_of(function: Any) -> Any:
    return cache_entries(function.__code__)[0].guard_manager


def lines_read_now(manager: Any) -> List[str]:
    """Return the lines without what is kept."""
    return [line.expression for line in EntryGuards.of(manager, "guard", Naming(str)).lines]


def lines_of(manager: Any) -> List[str]:
    return [line.expression for line in EntryGuards.of(manager, "guard").lines]


def test_the_guards_of_an_entry_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compiled_for(2, 3)
    read: List[object] = []
    original = entry_guards.checks_of
    monkeypatch.setattr(entry_guards, "checks_of", lambda manager: read.append(manager) or original(manager))
    first = str(depyf.why(compiled, torch.ones(2), 4, {"shift": 1.0}))
    assert str(depyf.why(compiled, torch.ones(2), 4, {"shift": 1.0})) == first
    assert str(depyf.why(compiled, torch.ones(3), 4, {"shift": 1.0})) != first
    assert len(read) == 2  # an entry each


@needs_guard_trees
def test_guards_on_the_same_values_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compiled_for(2, 3, 4)
    depyf.why(compiled, torch.ones(2), 9, {"shift": 1.0})
    evaluated: List[object] = []
    original = entry_guards._holds
    monkeypatch.setattr(entry_guards, "_holds", lambda *given: evaluated.append(given) or original(*given))
    answer = depyf.why(compiled, torch.ones(2), 9, {"shift": 1.0})
    lines = [len(lines_of(entry.guard_manager)) for entry in cache_entries(scaled.__code__)]
    assert len(answer.entries) == 3
    if IS_OLD:  # more lines of the entries differ
        assert len(evaluated) < sum(lines)
    else:
        assert len(evaluated) == lines[0] + 2  # the factor, of the two other entries


@pytest.mark.skipif(IS_OLD, reason="guards are added to the tree in another way")
def test_a_guard_that_is_added_is_seen() -> None:
    compiled = compiled_for(2)
    manager = manager_of(scaled)
    assert depyf.why(compiled, torch.ones(2), 2, {"shift": 1.0}).hit
    before = lines_of(manager)
    manager.root.add_epilogue_lambda_guard(lambda values: False, ["L['factor'] > 2"], None)
    assert lines_of(manager) == lines_read_now(manager) == [*before, "L['factor'] > 2"]
    answer = depyf.why(compiled, torch.ones(2), 2, {"shift": 1.0})
    assert not answer.hit
    assert "factor > 2" in answer.entries[0].failed[0].code.replace("L['factor']", "factor")


def test_entries_that_are_removed_and_made_anew_have_their_own_guards() -> None:
    for factor in (2, 3, 4):
        compiled = compiled_for(factor)
        assert f"was compiled for {factor}" in str(depyf.why(compiled, torch.ones(2), 9, {"shift": 1.0}))
        torch._dynamo.reset_code(scaled.__code__)
        assert not depyf.why(compiled, torch.ones(2), 9, {"shift": 1.0}).entries


def test_nothing_is_kept_of_entries_that_are_gone() -> None:
    """Some versions of PyTorch keep a class that was guarded, or the guards themselves, also if nothing was asked."""

    def kept(*, asked: bool) -> List[str]:
        class Own:
            factor = 2

        def of_own(x: torch.Tensor, own: Any) -> torch.Tensor:
            return x * own.factor  # type: ignore[no-any-return]

        compiled = torch.compile(of_own, backend="eager")
        compiled(torch.ones(2), Own())
        if asked:
            before = len(entry_guards._read)
            depyf.why(compiled, torch.ones(3), 3)
            assert len(entry_guards._read) == before + 1
        alive = {"class": Own, "function": of_own, "guards": manager_of(of_own)}
        known = {name: weakref.ref(each) for name, each in alive.items()}
        torch._dynamo.reset()
        del compiled, of_own, Own, alive
        gc.collect()
        return [name for name, each in known.items() if each() is not None]

    gc.collect()
    before = len(entry_guards._read)
    plain = kept(asked=False)
    assert kept(asked=True) == plain
    assert len(entry_guards._read) == before + ("guards" in plain)


def test_an_id_that_is_used_again_is_no_other_guards() -> None:
    class Manager:
        pass

    kept: OfGuards[str] = OfGuards()
    first: Any = Manager()
    kept.keep(first, "form", "of the first")
    assert kept.of(first, "form") == "of the first"
    assert kept.of(first, "another form") is None
    second: Any = Manager()
    kept._known[id(second)] = kept._known[id(first)]  # as where the first had died, and nobody had said so
    assert kept.of(second, "form") is None
    number = id(first)
    del first
    assert number not in kept._known
    kept.keep(second, None, "of a form that is not known")
    assert kept.of(second, None) is None


def test_functions_of_one_code_have_values_of_their_own() -> None:
    def made(factor: int) -> Any:
        def times(x: torch.Tensor) -> torch.Tensor:
            return x * factor

        return times

    functions = [made(factor) for factor in (2, 3)]
    compiled = [torch.compile(each, backend="eager", dynamic=False) for each in functions]
    for each in compiled:
        each(torch.ones(2))
    assert functions[0].__code__ is functions[1].__code__
    for each, other in zip(compiled, (3, 2)):
        answer = depyf.why(each, torch.ones(2))
        assert answer.hit
        (missed,) = (entry for entry in answer.entries if not entry.hit)
        assert f"was compiled for {other}" in missed.failed[0].explanation.words


def test_classes_of_one_name_are_told_apart() -> None:
    def made(factor: int) -> Any:
        class Own:
            def __init__(self) -> None:
                self.factor = factor

        return Own

    def of_own(x: torch.Tensor, own: Any) -> torch.Tensor:
        return x * own.factor

    first, second = made(2)(), made(2)()
    compiled = torch.compile(of_own, backend="eager", dynamic=False)
    compiled(torch.ones(2), first)
    compiled(torch.ones(2), second)
    entries = cache_entries(of_own.__code__)
    assert len(entries) == 2
    known: Dict[str, bool] = {}
    for own in (first, second):
        known.clear()
        values = {"x": torch.ones(2), "own": own}
        failing = [EntryGuards.of(each.guard_manager, "guard").failing(values, None, known) for each in entries]
        assert sorted(map(bool, failing)) == [False, True]
        assert failing == [EntryGuards.of(each.guard_manager, "guard").failing(values) for each in entries]


@needs_guard_trees
def test_guards_that_were_read_in_another_state_are_read_again() -> None:
    """PyTorch gives the length of a dict only where its guards on the global state hold."""
    compiled_for(2)
    manager = manager_of(scaled)
    torch.set_default_dtype(torch.float64)
    try:
        elsewhere = lines_of(manager)
    finally:
        torch.set_default_dtype(torch.float32)
    assert lines_of(manager) == lines_read_now(manager)
    torch.set_default_dtype(torch.float64)
    try:
        assert lines_read_now(manager) == elsewhere
    finally:
        torch.set_default_dtype(torch.float32)


def test_threads_get_the_same_answer() -> None:
    compiled = compiled_for(*range(2, 7))
    expected = str(depyf.why(compiled, torch.ones(2), 9, {"shift": 1.0}))
    entry_guards._read._known.clear()
    found: List[str] = []

    def ask() -> None:
        for _ in range(5):
            found.append(str(depyf.why(compiled, torch.ones(2), 9, {"shift": 1.0})))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 20
