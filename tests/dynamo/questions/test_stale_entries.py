"""``compare`` runs the cache entry that the call hits: stale entries are told from healthy ones, and the value that no
guard checks is named. The programs change something that Dynamo (2.13) does not guard."""

from __future__ import annotations

import contextlib
import functools
import types
from typing import Any, Callable, Dict, NamedTuple, Tuple

import pytest
from torch_versions import IS_OLD, needs_stances

pytestmark = [pytest.mark.torch, needs_stances, pytest.mark.skipif(IS_OLD, reason="older guards check other values")]
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.hooks import cache_entries  # noqa: E402

nn = torch.nn
X = torch.ones(2)


@pytest.fixture(autouse=True)
def fresh_torch() -> Any:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Case(NamedTuple):
    """A program: what is compiled, the arguments before and after ``change``, what is named, and options."""

    function: Any
    before: Tuple[Any, ...]
    change: Callable[[], Any]
    named: str
    proof: str = ""
    after: Tuple[Any, ...] = (X,)
    options: Dict[str, Any] = {}  # noqa: RUF012 - never changed


class Box:
    pass


def switch() -> Any:
    box = Box()
    box.a = object()  # type: ignore[attr-defined]
    box.now = box.a  # type: ignore[attr-defined]
    return box


def linear(value: float) -> Any:
    made = nn.Linear(2, 2, bias=False)
    nn.init.constant_(made.weight, value)
    return made


class Holder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = linear(1.0)
        self.register_buffer("scale", torch.full((2,), 2.0))
        self.factor = 2.0

    def forward(self, x: Any) -> Any:
        return self.part(x) * self.scale * self.factor


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Holder()

    def forward(self, x: Any) -> Any:
        return self.inner(x)


GLOBAL = switch()


def through_global(x: Any) -> Any:
    return x + 1 if GLOBAL.now is GLOBAL.a else x - 1


def sentinel_of_global() -> Case:
    GLOBAL.now = GLOBAL.a
    return Case(through_global, (X,), lambda: setattr(GLOBAL, "now", object()), "GLOBAL.now", "GLOBAL.now = GLOBAL.a")


def sentinel_of_argument() -> Case:
    box = switch()

    def function(x: Any, box: Any) -> Any:
        return x + 1 if box.now is box.a else x - 1

    change = functools.partial(setattr, box, "now", object())
    return Case(function, (X, box), change, "box.now", "box.now = box.a", (X, box))


def sentinel_in_closure() -> Case:
    a = object()
    now = a

    def function(x: Any) -> Any:
        return x + 1 if now is a else x - 1

    def change() -> None:
        nonlocal now
        now = object()

    return Case(function, (X,), change, "now", "now = a")


def sentinel_in_list() -> Case:
    a = object()
    known = [a]

    def function(x: Any) -> Any:
        return x + 1 if known[0] is a else x - 1

    return Case(function, (X,), lambda: list.__setitem__(known, 0, object()), "known[0]", "known[0] = a")


def sentinel_in_dict() -> Case:
    a = object()
    known = {"now": a}

    def function(x: Any) -> Any:
        return x + 1 if known["now"] is a else x - 1

    return Case(function, (X,), lambda: dict.update(known, now=object()), "known['now']", "known['now'] = a")


def sentinel_of_helper() -> Case:
    box = switch()

    def helper(x: Any) -> Any:
        return x + 1 if box.now is box.a else x - 1

    def function(x: Any) -> Any:
        return helper(x) * 2

    return Case(function, (X,), lambda: setattr(box, "now", object()), "box.now", "box.now = box.a")


def sentinel_of_method() -> Case:
    class Owner:
        def __init__(self) -> None:
            self.a = object()
            self.now = self.a

        def go(self, x: Any) -> Any:
            return x + 1 if self.now is self.a else x - 1

    owner = Owner()
    return Case(owner.go, (X,), lambda: setattr(owner, "now", object()), "self.now", "self.now = self.a")


def hidden_submodule() -> Case:
    model = Holder()
    return Case(model, (X,), lambda: object.__setattr__(model, "part", linear(5.0)), "self.part", "without 'part'")


def hidden_in_inner_module() -> Case:
    model = Outer()
    change = functools.partial(model.inner.__dict__.update, part=linear(5.0))
    return Case(model, (X,), change, "self.part", "without 'part' in self.__dict__")


def hidden_in_sequential() -> Case:
    model = nn.Sequential(Holder(), nn.ReLU())
    return Case(model, (X,), lambda: model[0].__dict__.update(part=linear(5.0)), "self.part", "without 'part'")


def hidden_buffer() -> Case:
    model = Holder()
    change = functools.partial(object.__setattr__, model, "scale", torch.full((2,), 7.0))
    return Case(model, (X,), change, "self.scale", "without 'scale' in self.__dict__")


def hidden_parameter() -> Case:
    model = Holder()
    change = functools.partial(model.part.__dict__.update, weight=nn.Parameter(torch.full((2, 2), 5.0)))
    return Case(model, (X,), change, "self.weight", "without 'weight' in self.__dict__")


def hidden_behind_a_break() -> Case:
    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = linear(1.0)

        def forward(self, x: Any) -> Any:
            y = x + 1
            torch._dynamo.graph_break()
            return self.part(y)

    model = Broken()
    return Case(model, (X,), lambda: model.__dict__.update(part=linear(5.0)), "self.part", "without 'part'")


def hidden_behind_a_decorator() -> Case:
    def decorated(inner: Any) -> Any:
        @functools.wraps(inner)
        def wrapper(*args: Any) -> Any:
            return inner(*args)

        return wrapper

    class Decorated(Holder):
        forward = decorated(Holder.forward)

    model = Decorated()
    return Case(model, (X,), lambda: model.__dict__.update(part=linear(5.0)), "self.part", "without 'part'")


def hook_added_later() -> Case:
    model = Outer()
    change = functools.partial(model.inner.register_forward_hook, lambda module, given, result: result * 5)
    return Case(model, (X,), change, "the forward hooks of Holder", "without them")


def forward_of_class_replaced() -> Case:
    class Own(Holder):
        def forward(self, x: Any) -> Any:
            return x * 2

    own, before = Own(), Own.forward
    model = nn.Sequential(own, nn.ReLU())
    model.kept = before
    name = "forward_of_class_replaced.<locals>.Own.forward"
    return Case(model, (X,), lambda: setattr(Own, "forward", lambda self, x: x * 5), name, f"as {name}")


def method_of_class_replaced() -> Case:
    class Scale:
        def k(self, x: Any) -> Any:
            return x * 2

    scale = Scale()

    def function(x: Any) -> Any:
        return scale.k(x)

    return Case(function, (X,), lambda: setattr(Scale, "k", lambda self, x: x * 5), "scale.k")  # the old one is gone


def attribute_of_subclass() -> Case:
    class Base:
        k = 2

    class Derived(Base):
        pass

    known = Derived()

    def function(x: Any) -> Any:
        return x * known.k

    return Case(function, (X,), lambda: setattr(Derived, "k", 5), "known.k", "without k in")


def attribute_of_metaclass() -> Case:
    class Meta(type):
        k = 2

    class Known(metaclass=Meta):
        pass

    def function(x: Any) -> Any:
        return x * Known.k

    return Case(function, (X,), lambda: setattr(Meta, "k", 5), "Known.k")


def attribute_before_getattr() -> Case:
    class Known:
        def __getattr__(self, name: str) -> Any:
            return 2

    known = Known()

    def function(x: Any) -> Any:
        return x * known.k

    return Case(function, (X,), lambda: setattr(known, "k", 5), "known.k", "without 'k' in known.__dict__")


def dropping(*names: str) -> Dict[str, Any]:
    return {"guard_filter_fn": lambda guards: [not any(name in guard.name for name in names) for guard in guards]}


def dropped_number() -> Case:
    def function(x: Any, k: int) -> Any:
        return x * k

    return Case(function, (X, 2), lambda: None, "k", "k = 2", (X, 3), dropping("k"))


def dropped_flag() -> Case:
    def function(x: Any, flag: bool) -> Any:
        return x + 1 if flag else x - 1

    return Case(function, (X, True), lambda: None, "flag", "flag = True", (X, False), dropping("flag"))


def dropped_attribute() -> Case:
    model = Holder()
    options = {"guard_filter_fn": torch.compiler.skip_guard_on_all_nn_modules_unsafe}
    return Case(model, (X,), lambda: setattr(model, "factor", 9.0), "self.factor", "self.factor = 2.0", options=options)


def dropped_item() -> Case:
    settings = {"k": 2, "other": 7}

    def function(x: Any) -> Any:
        return x * settings["k"]

    return Case(function, (X,), lambda: settings.update(k=3), "settings['k']", "= 2", options=dropping("settings"))


def dropped_in_helper() -> Case:
    settings = {"gain": 2}

    def helper(x: Any) -> Any:
        return x * settings["gain"]

    def function(x: Any) -> Any:
        return helper(x)

    return Case(function, (X,), lambda: settings.update(gain=3), "settings['gain']", "= 2", options=dropping("helper"))


STALE = (
    sentinel_of_global,
    sentinel_of_argument,
    sentinel_in_closure,
    sentinel_in_list,
    sentinel_in_dict,
    sentinel_of_helper,
    sentinel_of_method,
    hidden_submodule,
    hidden_in_inner_module,
    hidden_in_sequential,
    hidden_buffer,
    hidden_parameter,
    hidden_behind_a_break,
    hidden_behind_a_decorator,
    hook_added_later,
    forward_of_class_replaced,
    method_of_class_replaced,
    attribute_of_subclass,
    attribute_of_metaclass,
    attribute_before_getattr,
    dropped_number,
    dropped_flag,
    dropped_attribute,
    dropped_item,
    dropped_in_helper,
)


DROPPED = (dropped_number, dropped_flag, dropped_attribute, dropped_item, dropped_in_helper)


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


def exchanged_submodule() -> Case:
    model = Outer()
    return Case(model, (X,), lambda: setattr(model.inner, "part", linear(5.0)), "")


def swapped_data() -> Case:
    model = Holder()
    return Case(model, (X,), lambda: setattr(model.part.weight, "data", torch.full((2, 2), 5.0)), "")


def registered_again() -> Case:
    model = Holder()
    return Case(model, (X,), lambda: model.register_buffer("scale", torch.full((2,), 7.0)), "")


def static_address() -> Case:
    model = Holder()
    torch._dynamo.mark_static_address(model.scale)
    return Case(model, (X,), lambda: setattr(model, "scale", torch.full((2,), 7.0)), "")


def hook_around_the_whole() -> Case:
    model = Holder()
    return Case(model, (X,), lambda: model.register_forward_hook(lambda module, given, result: result * 5), "")


def random_numbers() -> Case:
    return Case(nn.Dropout(0.5), (X,), lambda: None, "")


HEALTHY = (
    exchanged_submodule,
    swapped_data,
    registered_again,
    static_address,
    hook_around_the_whole,
    random_numbers,
)


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
