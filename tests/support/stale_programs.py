"""Programs that change something after they were compiled: ``STALE`` ones change what Dynamo (2.13) does not guard, or
what a filter has dropped the guard on (``DROPPED``). What ``HEALTHY`` ones change is guarded, or makes no difference.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, NamedTuple, Tuple

import torch

nn = torch.nn
X = torch.ones(2)


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

GUARDED_LATER = ("attribute_of_subclass",)
"""Programs whose entries PyTorch 2.15 checks: they are not stale there."""
