"""``compare`` runs the cache entry that the call hits: stale entries are told from healthy ones, and the value that no
guard checks is named. The programs change something that Dynamo (2.13) does not guard."""

from __future__ import annotations

import contextlib
import types
from typing import Any, Callable

import pytest
from torch_versions import IS_OLD, needs_stances

pytestmark = [pytest.mark.torch, needs_stances, pytest.mark.skipif(IS_OLD, reason="older guards check other values")]
torch = pytest.importorskip("torch")

from stale_programs import DROPPED, GUARDED_LATER, HEALTHY, STALE, Case, Holder, hook_added_later, linear  # noqa: E402

import depyf  # noqa: E402
from depyf.dynamo.hooks import cache_entries  # noqa: E402

nn = torch.nn
X = torch.ones(2)


@pytest.fixture(autouse=True)
def fresh_torch() -> Any:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def values_of(given: Any) -> Any:
    """Return what a change by ``compare`` would show in."""
    if isinstance(given, nn.Module):
        return [(id(each), dict(vars(each))) for each in given.modules()]
    owner = getattr(given, "__self__", given)
    return [
        dict(getattr(owner, "__dict__", {})),
        [cell.cell_contents for cell in getattr(given, "__closure__", None) or ()],
    ]


@pytest.mark.parametrize("program", STALE, ids=lambda each: each.__name__)
def test_a_stale_entry_is_told_and_what_changed_is_named(program: Callable[[], Case]) -> None:
    case = program()
    with torch.no_grad():
        compiled = torch.compile(case.function, backend="eager", options=case.options or None)
        compiled(*case.before)
        case.change()
        eager, ran = case.function(*case.after), compiled(*case.after)
        if torch.equal(eager, ran) and program.__name__ in GUARDED_LATER:
            pytest.skip("this PyTorch checks it")
        assert not torch.equal(eager, ran)  # it is stale
        state, drawn = str(values_of(case.function)), torch.random.get_rng_state()
        answer = depyf.compare(compiled, *case.after)
        assert not answer
        assert answer.stage is None  # compiled anew it is right
        entry = answer.entry
        assert entry is not None
        assert entry.is_stale
        assert [read.name for read in entry.reads] == [case.named]
        assert case.proof in entry.reads[0].proof
        assert bool(case.proof) == bool(entry.reads[0].proof)
        assert entry.reads[0].dropped == (program in DROPPED)
        assert "0/0" in str(answer)
        assert ("may be what has changed" in str(answer)) == (not case.proof)
        assert ("skip_nnmodule_hook_guards = False" in str(answer)) == (program is hook_added_later)
        # Nothing has changed: the same entry runs, and computes the same.
        assert str(values_of(case.function)) == state
        assert torch.equal(torch.random.get_rng_state(), drawn)
        assert torch.equal(compiled(*case.after), ran)
        assert torch.equal(case.function(*case.after), eager)


def test_hooks_that_are_guarded_as_advised_make_no_stale_entry() -> None:
    with torch.no_grad(), torch._dynamo.config.patch(skip_nnmodule_hook_guards=False):
        case = hook_added_later()
        compiled = torch.compile(case.function, backend="eager")
        compiled(*case.before)
        case.change()
        assert torch.equal(case.function(*case.after), compiled(*case.after))


def asked_about(settings: Any, change: Callable[[], Any]) -> Any:
    """Compare after a change of settings whose guards are all dropped."""

    def function(x: Any) -> Any:
        return x * settings.scale + settings.bias + 0 * settings.unused + len(settings.names)

    compiled = torch.compile(function, backend="eager", options={"guard_filter_fn": lambda each: [False] * len(each)})
    compiled(X)
    change()
    entry = depyf.compare(compiled, X).entry
    assert entry is not None
    return entry


def test_two_values_that_changed_at_once_are_named_and_no_other() -> None:
    settings = types.SimpleNamespace(scale=2, bias=1, unused=3, names=["a", "b"])
    entry = asked_about(settings, lambda: vars(settings).update(scale=5, bias=4))
    assert sorted((read.name, read.alone) for read in entry.reads) == [
        ("settings.bias", True),
        ("settings.scale", True),
    ]
    assert "with settings.bias = 1 and settings.scale = 2, " in entry.reads[0].proof


def test_values_that_explain_a_difference_by_chance_are_named_as_possible_reasons_with_the_one_that_changed() -> None:
    settings = types.SimpleNamespace(scale=2, bias=3, unused=3, names=["a", "b"])
    entry = asked_about(settings, lambda: settings.names.append("c"))
    assert sorted((read.name, read.alone) for read in entry.reads) == [
        ("settings.bias", False),
        ("settings.names", False),
    ]


def test_values_without_effect_are_not_named() -> None:
    settings = types.SimpleNamespace(scale=2, bias=1.5, unused=3, names=["a", "b"])
    entry = asked_about(settings, lambda: vars(settings).update(scale=5, bias=4.25, names=[]))
    assert {"settings.scale", "settings.bias"} <= {read.name for read in entry.reads}
    assert "settings.unused" not in {read.name for read in entry.reads}
    assert not any(read.proof for read in entry.reads)


@pytest.mark.parametrize("program", HEALTHY, ids=lambda each: each.__name__)
def test_a_healthy_entry_is_run_and_right(program: Callable[[], Case]) -> None:
    case = program()
    compiled = torch.compile(case.function, backend="eager")
    compiled(*case.before)
    case.change()
    answer = depyf.compare(compiled, *case.after)
    assert answer
    assert answer.entry is not None
    assert answer.entry.right
    assert "which this call runs: as eager mode" in str(answer)


def test_guards_that_the_stance_skips() -> None:
    def function(x: Any, k: int) -> Any:
        return x * k

    compiled = torch.compile(function, backend="eager", dynamic=False)
    compiled(X, 2)
    with torch.compiler.set_stance("default", skip_guard_eval_unsafe=True):
        answer = depyf.compare(compiled, X, 3)
        assert not answer
        assert answer.entry is not None
        assert answer.entry.skipped == ("k is 3, and was compiled for 2",)
        assert "skips guards that do not hold" in str(answer)
        assert "its results are right" in str(answer)
        assert depyf.compare(compiled, X, 2)
    assert len(cache_entries.cache_entries(function.__code__)) == 1


def test_what_is_wrong_when_compiled_anew_is_no_stale_entry() -> None:
    def wrong(module: Any, inputs: Any) -> Callable[..., Any]:
        return lambda *arguments: tuple(each + 1 for each in module.forward(*arguments))

    compiled = torch.compile(lambda x: x * 2, backend=wrong)
    compiled(X)
    answer = depyf.compare(compiled, X)
    assert not answer
    assert answer.stage is not None
    assert answer.entry is not None
    assert not answer.entry.right
    assert not answer.entry.is_stale


def test_an_entry_that_was_not_run_is_no_all_clear() -> None:
    """CUDA graphs hold the results of the last call: ``mode`` alone says that an entry may run them."""
    model = Holder()
    compiled = torch.compile(model, backend="eager")
    compiled(X)
    with torch._inductor.config.patch({"triton.cudagraphs": True}):
        answer = depyf.compare(compiled, X)
    assert not answer
    assert answer.stage is None
    assert "was not run: it runs CUDA graphs" in str(answer)
    assert str(answer).startswith("Holder: compiled anew with eager, its results are right; the cache entry 0/0")


def test_the_entries_of_parts_are_run() -> None:
    model = nn.Sequential(Holder(), nn.ReLU())
    model[0].compile(backend="eager")
    model(X)
    answer = depyf.compare(model, X)
    assert answer
    assert answer.entry is not None
    assert answer.entry.name == "0/0 of 0"
    model[0].__dict__["part"] = linear(5.0)
    answer = depyf.compare(model, X)
    assert not answer
    assert answer.entry is not None
    assert answer.entry.is_stale


def test_a_call_that_hits_no_entry_has_none() -> None:
    compiled = torch.compile(lambda x: x * 2, backend="eager", dynamic=False)
    with contextlib.suppress(RuntimeError):
        compiled(X)
    answer = depyf.compare(compiled, torch.ones(3))
    assert answer
    assert answer.entry is None


def test_hooks_that_were_registered_after_the_compilation_are_noted() -> None:
    def seen(module: Any, arguments: Any, result: Any) -> None:
        module.seen = True

    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    model[1].register_forward_hook(seen)
    compiled, x = torch.compile(model, backend="eager"), torch.ones(1, 2)
    compiled(x)
    assert depyf.why(compiled, x).notes == ()
    handle = model[0].register_forward_hook(seen)
    (note,) = depyf.why(compiled, x).notes
    assert note.startswith("0/0 has no guard on the hooks of 0 (Linear): if they were registered after")
    assert note in depyf.compare(compiled, x).notes
    handle.remove()
    assert depyf.why(compiled, x).notes == ()


def test_dropped_guards_are_noted() -> None:
    compiled = torch.compile(
        torch.nn.Linear(2, 2),
        backend="eager",
        options={"guard_filter_fn": torch.compiler.skip_guard_on_all_nn_modules_unsafe},
    )
    compiled(torch.ones(1, 2))
    (note,) = depyf.why(compiled, torch.ones(1, 2)).notes
    assert note.startswith("a guard_filter_fn may have dropped guards of 0/0")
