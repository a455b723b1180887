"""Functions whose guards look at many kinds of values: what they are compiled for, and other arguments to try.

A case is data: the function, the arguments that it is compiled for, and more arguments, some of which match and at
least one of which does not. Arguments are made anew for every use, because iterators are consumed.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import functools
import itertools
import math
import types
from dataclasses import dataclass, field
from typing import Any, Callable, ContextManager, Dict, Iterator, List, NamedTuple, Tuple

import numpy as np
import torch
from torch import Tensor, nn

Arguments = Callable[[], Tuple[Any, ...]]


@dataclass(frozen=True)
class GuardCase:
    """``others`` are arguments to try; ``contexts`` are context managers under which to try the first arguments.

    ``config`` are settings of ``torch._dynamo.config`` while compiling. ``compiles_everywhere`` and
    ``guarded_everywhere`` are false for what older versions of PyTorch do not compile, or have no guard for.
    """

    function: Callable[..., Any]
    arguments: Arguments
    others: List[Arguments] = field(default_factory=list)
    contexts: List[Callable[[], ContextManager[Any]]] = field(default_factory=list)
    compile_under: Callable[[], ContextManager[Any]] = contextlib.nullcontext
    dynamic: Any = None
    backend: str = "eager"
    config: Dict[str, Any] = field(default_factory=dict)
    compiles_everywhere: bool = True
    guarded_everywhere: bool = True


def attempts(case: GuardCase) -> Iterator[Tuple[str, Any, ContextManager[Any]]]:
    """What to call with, and under which context; the first is what was compiled for."""
    yield "compiled for", case.arguments, case.compile_under()
    for index, arguments in enumerate(case.others):
        yield f"arguments {index}", arguments, case.compile_under()
    for index, context in enumerate(case.contexts):
        yield f"context {index}", case.arguments, context()


CASES: Dict[str, Callable[[], GuardCase]] = {}


def case(make: Callable[[], GuardCase]) -> Callable[[], GuardCase]:
    CASES[make.__name__] = make
    return make


def x34() -> Tensor:
    return torch.ones(3, 4)


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Config:
    width: int = 2
    bias: Any = None


@dataclasses.dataclass(frozen=True)
class Frozen:
    width: int = 2


class Point(NamedTuple):
    u: int
    v: int


class Plain:
    attribute = 3

    def method(self, x: Tensor) -> Tensor:
        return x * 2


class Slots:
    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value


class Subclass(torch.Tensor):
    pass


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.0), nn.BatchNorm1d(4))
        self.settings = {"a": [1, 2], "b": {"c": "x"}}
        self.extra = nn.ModuleList([nn.Linear(4, 4)])
        self.scale = 1.5

    def forward(self, x: Tensor) -> Tensor:
        x = self.layers(x)
        for layer in self.extra:
            x = layer(x)
        for value in self.settings.values():
            x = x + len(value)
        return x * self.scale


GLOBAL_LIST = [1, 2, 3]
GLOBAL_NUMBER = 4
GLOBAL_TENSOR = torch.ones(4)


def helper(x: Tensor, factor: int = 3) -> Tensor:
    return x * factor


def other_helper(x: Tensor, factor: int = 3) -> Tensor:
    return x + factor


@contextlib.contextmanager
def setting(place: Any, name: str, value: Any) -> Iterator[None]:
    """``place.name`` (or the global of that name in the dict ``place``) is ``value`` inside."""
    read, write = (place.__getitem__, place.__setitem__) if isinstance(place, dict) else _attribute(place)
    before = read(name)
    write(name, value)
    try:
        yield
    finally:
        write(name, before)


def _attribute(place: Any) -> Tuple[Callable[[str], Any], Callable[[str, Any], None]]:
    return functools.partial(getattr, place), functools.partial(setattr, place)


@case
def tensor_properties() -> GuardCase:
    return GuardCase(
        lambda x: x + 1,
        lambda: (x34(),),
        [
            lambda: (x34(),),
            lambda: (torch.ones(3, 5),),
            lambda: (torch.ones(4),),
            lambda: (x34().double(),),
            lambda: (x34().requires_grad_(),),
            lambda: (torch.ones(4, 3).t(),),
            lambda: (nn.Parameter(x34(), requires_grad=False),),
            lambda: (x34().as_subclass(Subclass),),
            lambda: (x34().to("meta"),),
            lambda: (x34().to_sparse(),),
            lambda: (None,),
            lambda: (3,),
        ],
    )


@case
def tensor_that_requires_grad() -> GuardCase:
    return GuardCase(
        lambda x: x * 2, lambda: (x34().requires_grad_(),), [lambda: (x34().requires_grad_(),), lambda: (x34(),)]
    )


@case
def conjugate_and_negative_views() -> GuardCase:
    def complex_tensor() -> Tensor:
        return torch.ones(3, dtype=torch.complex64)

    return GuardCase(lambda x: x * 2, lambda: (complex_tensor(),), [lambda: (complex_tensor().conj(),)])


@case
def dynamic_shapes() -> GuardCase:
    return GuardCase(
        lambda x, y: x + y if x.shape[0] * 2 > y.shape[0] else x - y,
        lambda: (torch.ones(6, 4), torch.ones(6, 4)),
        [
            lambda: (torch.ones(9, 4), torch.ones(9, 4)),
            lambda: (torch.ones(9, 7), torch.ones(9, 7)),
            lambda: (torch.ones(1, 4), torch.ones(1, 4)),
            lambda: (torch.ones(6, 4), torch.ones(1, 4)),
            lambda: (torch.ones(4, 6).t(), torch.ones(6, 4)),
        ],
        dynamic=True,
    )


@case
def shape_arithmetic() -> GuardCase:
    def function(x: Tensor) -> Tensor:
        if x.shape[0] % 3 == 0 and x.shape[0] // 2 < 10:
            return x.view(-1, 3)
        return x

    return GuardCase(
        function,
        lambda: (torch.ones(6),),
        [lambda: (torch.ones(9),), lambda: (torch.ones(7),), lambda: (torch.ones(30),)],
        dynamic=True,
    )


@case
def marked_dynamic() -> GuardCase:
    def marked(*dimensions: int) -> Tensor:
        tensor = torch.ones(5, 4)
        for dimension in dimensions:
            torch._dynamo.mark_dynamic(tensor, dimension)
        return tensor

    return GuardCase(
        lambda x: x.sin(),
        lambda: (marked(0),),
        [lambda: (marked(),), lambda: (marked(0),), lambda: (marked(0, 1),), lambda: (marked(1),)],
    )


@case
def marked_after_compiling() -> GuardCase:
    def marked() -> Tensor:
        tensor = x34()
        torch._dynamo.mark_static(tensor, 0)
        return tensor

    return GuardCase(lambda x: x.sin(), lambda: (x34(),), [lambda: (marked(),)], guarded_everywhere=False)


@case
def integers() -> GuardCase:
    return GuardCase(
        lambda x, n: x + n,
        lambda: (x34(), 2),
        [lambda: (x34(), 2), lambda: (x34(), 3), lambda: (x34(), 2.0), lambda: (x34(), True), lambda: (x34(), None)],
    )


@case
def one_is_not_true() -> GuardCase:
    return GuardCase(
        lambda x, n: x + n,
        lambda: (x34(), 1),
        [lambda: (x34(), True), lambda: (x34(), 1.0), lambda: (x34(), Level.LOW)],
    )


@case
def dynamic_integers() -> GuardCase:
    return GuardCase(
        lambda x, n: x + n,
        lambda: (x34(), 5),
        [lambda: (x34(), 7), lambda: (x34(), 5.0), lambda: (x34(), 0)],
        dynamic=True,
    )


@case
def floats() -> GuardCase:
    return GuardCase(
        lambda x, n: x * n,
        lambda: (x34(), 2.5),
        [lambda: (x34(), 2.5), lambda: (x34(), math.inf), lambda: (x34(), math.nan), lambda: (x34(), 2)],
    )


@case
def infinity() -> GuardCase:
    return GuardCase(lambda x, n: x * n, lambda: (x34(), math.inf), [lambda: (x34(), -math.inf), lambda: (x34(), 1.0)])


@case
def nan() -> GuardCase:
    return GuardCase(
        lambda x, n: x * n, lambda: (x34(), math.nan), [lambda: (x34(), float("nan")), lambda: (x34(), 1.0)]
    )


@case
def complex_numbers() -> GuardCase:
    def function(x: Tensor, z: complex) -> Tensor:
        return x * z.real

    return GuardCase(
        function, lambda: (x34(), 1 + 2j), [lambda: (x34(), 1 + 2j), lambda: (x34(), 1 + 3j)], compiles_everywhere=False
    )


@case
def complex_nan() -> GuardCase:
    return GuardCase(
        lambda x, z: x + 1 if z.real != z.real else x * 2,
        lambda: (x34(), complex(math.nan, 1)),
        [lambda: (x34(), complex(math.nan, 1)), lambda: (x34(), 1j), lambda: (x34(), math.nan)],
        compiles_everywhere=False,
    )


@case
def booleans() -> GuardCase:
    return GuardCase(
        lambda x, flag: x + 1 if flag else x - 1,
        lambda: (x34(), True),
        [lambda: (x34(), True), lambda: (x34(), False), lambda: (x34(), 1), lambda: (x34(), "yes")],
    )


@case
def none_or_tensor() -> GuardCase:
    return GuardCase(
        lambda x, bias=None: x * 2 if bias is None else x + bias,
        lambda: (x34(),),
        [lambda: (x34(), None), lambda: (x34(), x34()), lambda: (x34(), 0)],
    )


@case
def strings() -> GuardCase:
    return GuardCase(
        lambda x, mode: x + 1 if mode.startswith("a") else x,
        lambda: (x34(), "a  # b"),
        [
            lambda: (x34(), "a  # b"),
            lambda: (x34(), "a"),
            lambda: (x34(), b"a"),
            lambda: (x34(), 'it\'s \\ "quoted"\n'),
        ],
    )


@case
def awkward_string() -> GuardCase:
    text = 'it\'s \\ "quoted"\n  # not a comment\u2028\u00e9'
    return GuardCase(
        lambda x, mode: x + len(mode), lambda: (x34(), text), [lambda: (x34(), text + ""), lambda: (x34(), text + "!")]
    )


@case
def lists() -> GuardCase:
    def function(x: Tensor, items: List[Any]) -> Tensor:
        for item in items:
            x = x + item
        return x

    return GuardCase(
        function,
        lambda: (x34(), [1, 2.5]),
        [lambda: (x34(), [1, 2.5]), lambda: (x34(), [1]), lambda: (x34(), [1, 2]), lambda: (x34(), (1, 2.5))],
    )


@case
def empty_list() -> GuardCase:
    return GuardCase(
        lambda x, items: x * 2 if not items else x + 1, lambda: (x34(), []), [lambda: (x34(), []), lambda: (x34(), [0])]
    )


@case
def tuples_of_tensors() -> GuardCase:
    return GuardCase(
        lambda pair: pair[0] + pair[1],
        lambda: ((x34(), x34()),),
        [lambda: ((x34(), x34()),), lambda: ((x34(), x34().double()),), lambda: ((x34(), x34(), x34()),)],
    )


@case
def nested_containers() -> GuardCase:
    return GuardCase(
        lambda x, d: x + d["a"][0]["b"][1],
        lambda: (x34(), {"a": [{"b": (1, 2)}]}),
        [
            lambda: (x34(), {"a": [{"b": (9, 2)}]}),
            lambda: (x34(), {"a": [{"b": (1, 3)}]}),
            lambda: (x34(), {"a": []}),
            lambda: (x34(), {"a": None}),
            lambda: (x34(), {}),
        ],
    )


@case
def dict_values() -> GuardCase:
    def function(x: Tensor, d: Dict[str, Any]) -> Tensor:
        return x + d["a"] + (1 if "z" in d else 2)

    return GuardCase(
        function,
        lambda: (x34(), {"a": 1, "b": 2}),
        [
            lambda: (x34(), {"a": 1, "b": 2}),
            lambda: (x34(), {"b": 7, "a": 1}),
            lambda: (x34(), {"a": 2, "b": 2}),
            lambda: (x34(), {"a": 1, "z": 0}),
            lambda: (x34(), collections.OrderedDict(a=1, b=2)),
        ],
    )


@case
def dict_order() -> GuardCase:
    def function(x: Tensor, d: Dict[str, Any]) -> Tensor:
        for key in d:
            x = x * 2 + d[key]
        return x

    return GuardCase(
        function,
        lambda: (x34(), {"a": 1, "b": 2}),
        [
            lambda: (x34(), {"a": 1, "b": 2}),
            lambda: (x34(), {"b": 2, "a": 1}),
            lambda: (x34(), {"a": 1, "b": 2, "c": 3}),
            lambda: (x34(), {"a": 1}),
            lambda: (x34(), {}),
            lambda: (x34(), collections.OrderedDict(a=1, b=2)),
        ],
    )


@case
def dict_with_odd_keys() -> GuardCase:
    def function(x: Tensor, d: Dict[Any, Any]) -> Tensor:
        for value in d.values():
            x = x + value
        return x + d[torch.float32] + d[(1, 2)] + d[Color.RED]

    return GuardCase(
        function,
        lambda: (x34(), {torch.float32: 1, (1, 2): 2, Color.RED: 3, int: 4}),
        [
            lambda: (x34(), {torch.float32: 1, (1, 2): 2, Color.RED: 3, int: 4}),
            lambda: (x34(), {torch.float32: 1, (1, 2): 2, Color.RED: 3, float: 4}),
            lambda: (x34(), {(1, 2): 2, torch.float32: 1, Color.RED: 3, int: 4}),
        ],
        guarded_everywhere=False,
    )


@case
def ordered_dict() -> GuardCase:
    def function(x: Tensor, d: Any) -> Tensor:
        for key, value in d.items():
            x = x * value + len(key)
        return x

    return GuardCase(
        function,
        lambda: (x34(), collections.OrderedDict(p=1, q=2)),
        [
            lambda: (x34(), collections.OrderedDict(p=1, q=2)),
            lambda: (x34(), collections.OrderedDict(q=2, p=1)),
            lambda: (x34(), {"p": 1, "q": 2}),
        ],
    )


@case
def default_dict() -> GuardCase:
    def make(**items: int) -> Any:
        return collections.defaultdict(int, **items)

    return GuardCase(
        lambda x, d: x + d["q"], lambda: (x34(), make(q=2)), [lambda: (x34(), make(q=2)), lambda: (x34(), make(q=3))]
    )


@case
def mapping_proxy() -> GuardCase:
    return GuardCase(
        lambda x, m: x + m["a"] + len(m),
        lambda: (x34(), types.MappingProxyType({"a": 1})),
        [
            lambda: (x34(), types.MappingProxyType({"a": 1})),
            lambda: (x34(), types.MappingProxyType({"a": 1, "b": 2})),
            lambda: (x34(), types.MappingProxyType({"a": 2})),
        ],
        guarded_everywhere=False,
    )


@case
def sets() -> GuardCase:
    return GuardCase(
        lambda x, s: x + len(s) if 1 in s and "zz" not in s else x,
        lambda: (x34(), {1, "q", "r", "s"}),
        [
            lambda: (x34(), {"s", "r", "q", 1}),
            lambda: (x34(), {2, "q"}),
            lambda: (x34(), frozenset({1, "q", "r", "s"})),
        ],
    )


@case
def frozen_sets() -> GuardCase:
    return GuardCase(
        lambda x, s: x + 1 if "a" in s else x,
        lambda: (x34(), frozenset({"a", "b", "c"})),
        [lambda: (x34(), frozenset({"c", "b", "a"})), lambda: (x34(), frozenset({"a"})), lambda: (x34(), {"a"})],
    )


@case
def ranges() -> GuardCase:
    def function(x: Tensor, r: range) -> Tensor:
        for i in r:
            x = x + i
        return x

    return GuardCase(
        function,
        lambda: (x34(), range(3)),
        [lambda: (x34(), range(3)), lambda: (x34(), range(4)), lambda: (x34(), [0])],
    )


@case
def slices() -> GuardCase:
    return GuardCase(
        lambda x, s: x[s], lambda: (x34(), slice(0, 2)), [lambda: (x34(), slice(0, 2)), lambda: (x34(), slice(0, 3))]
    )


@case
def named_tuples() -> GuardCase:
    return GuardCase(
        lambda x, p: x + p.u,
        lambda: (x34(), Point(1, 2)),
        [lambda: (x34(), Point(1, 2)), lambda: (x34(), Point(2, 2)), lambda: (x34(), (1, 2))],
    )


@case
def deques() -> GuardCase:
    return GuardCase(
        lambda x, d: x + d[0],
        lambda: (x34(), collections.deque([1, 2])),
        [lambda: (x34(), collections.deque([1, 2])), lambda: (x34(), collections.deque([2, 2, 2]))],
    )


@case
def data_classes() -> GuardCase:
    return GuardCase(
        lambda x, c: x * c.width if c.bias is None else x + c.bias,
        lambda: (x34(), Config()),
        [
            lambda: (x34(), Config()),
            lambda: (x34(), Config(3)),
            lambda: (x34(), Config(2, x34())),
            lambda: (x34(), Frozen()),
        ],
    )


@case
def frozen_data_classes() -> GuardCase:
    return GuardCase(
        lambda x, c: x * c.width, lambda: (x34(), Frozen()), [lambda: (x34(), Frozen()), lambda: (x34(), Frozen(3))]
    )


@case
def enums() -> GuardCase:
    return GuardCase(
        lambda x, c: x + 1 if c is Color.RED else x - 1,
        lambda: (x34(), Color.RED),
        [lambda: (x34(), Color.RED), lambda: (x34(), Color.BLUE), lambda: (x34(), 1)],
    )


@case
def integer_enums() -> GuardCase:
    return GuardCase(
        lambda x, c: x + 1 if c == Level.LOW else x - 1,
        lambda: (x34(), Level.LOW),
        [lambda: (x34(), Level.LOW), lambda: (x34(), Level.HIGH), lambda: (x34(), 1)],
    )


@case
def objects_with_attributes() -> GuardCase:
    def made(**attributes: Any) -> Plain:
        plain = Plain()
        vars(plain).update(attributes)
        return plain

    def function(x: Tensor, o: Any) -> Tensor:
        x = x + 1 if hasattr(o, "attribute") else x
        return x * 2 if hasattr(o, "absent") else x

    return GuardCase(
        function,
        lambda: (x34(), made()),
        [
            lambda: (x34(), made()),
            lambda: (x34(), made(absent=1)),
            lambda: (x34(), made(attribute=1)),
            lambda: (x34(), object()),
        ],
    )


@case
def objects_with_slots() -> GuardCase:
    return GuardCase(
        lambda x, o: x + o.value, lambda: (x34(), Slots(2)), [lambda: (x34(), Slots(2)), lambda: (x34(), Slots(3))]
    )


@case
def methods_of_objects() -> GuardCase:
    class Other(Plain):
        pass

    return GuardCase(lambda x, o: o.method(x), lambda: (x34(), Plain()), [lambda: (x34(), Other())])


@case
def functions() -> GuardCase:
    return GuardCase(
        lambda x, f: f(x), lambda: (x34(), helper), [lambda: (x34(), helper), lambda: (x34(), other_helper)]
    )


@case
def builtin_functions() -> GuardCase:
    return GuardCase(
        lambda x, f: f(x), lambda: (x34(), torch.sin), [lambda: (x34(), torch.sin), lambda: (x34(), torch.cos)]
    )


@case
def partials() -> GuardCase:
    return GuardCase(
        lambda x, f: f(x),
        lambda: (x34(), functools.partial(helper, factor=2)),
        [
            lambda: (x34(), functools.partial(helper, factor=2)),
            lambda: (x34(), functools.partial(helper, factor=4)),
            lambda: (x34(), functools.partial(other_helper, factor=2)),
        ],
    )


@case
def classes() -> GuardCase:
    return GuardCase(
        lambda x, cls: x + 1 if cls is Plain else x,
        lambda: (x34(), Plain),
        [lambda: (x34(), Plain), lambda: (x34(), Config)],
    )


@case
def dtypes_and_devices() -> GuardCase:
    cpu = torch.device("cpu")
    return GuardCase(
        lambda x, dtype, device: x.to(device).to(dtype),
        lambda: (x34(), torch.float64, cpu),
        [
            lambda: (x34(), torch.float64, torch.device("cpu")),
            lambda: (x34(), torch.float32, cpu),
            lambda: (x34(), torch.float64, torch.device("meta")),
        ],
    )


@case
def torch_sizes() -> GuardCase:
    return GuardCase(
        lambda x, size: x.view(size),
        lambda: (x34(), torch.Size([4, 3])),
        [lambda: (x34(), torch.Size([4, 3])), lambda: (x34(), torch.Size([2, 6])), lambda: (x34(), (4, 3))],
    )


@case
def numpy_arrays() -> GuardCase:
    return GuardCase(
        lambda x, a: x + a.sum(),
        lambda: (x34(), np.ones(3)),
        [
            lambda: (x34(), np.ones(3)),
            lambda: (x34(), np.ones(4)),
            lambda: (x34(), np.ones(3, dtype=np.float32)),
            lambda: (x34(), [1.0]),
        ],
    )


@case
def numpy_scalars() -> GuardCase:
    return GuardCase(
        lambda x, n: x + n,
        lambda: (x34(), np.float64(2.0)),
        [lambda: (x34(), np.float64(2.0)), lambda: (x34(), np.float64(math.nan)), lambda: (x34(), np.float32(2.0))],
    )


@case
def iterators() -> GuardCase:
    return GuardCase(
        lambda x, it: x + next(it),
        lambda: (x34(), iter((1, 2, 3))),
        [
            lambda: (x34(), iter((1, 2, 3))),
            lambda: (x34(), iter((1, 2))),
            lambda: (x34(), iter((9, 2, 3))),
            lambda: (x34(), iter([1, 2, 3])),
        ],
    )


@case
def range_iterators() -> GuardCase:
    return GuardCase(
        lambda x, it: x + next(it),
        lambda: (x34(), iter(range(4))),
        [lambda: (x34(), iter(range(4))), lambda: (x34(), iter(range(1, 4))), lambda: (x34(), iter((0, 1)))],
    )


@case
def counters() -> GuardCase:
    return GuardCase(
        lambda x, it: x + next(it),
        lambda: (x34(), itertools.count(3)),
        [lambda: (x34(), itertools.count(3)), lambda: (x34(), itertools.count(4)), lambda: (x34(), iter((3,)))],
    )


@case
def variadic_arguments() -> GuardCase:
    return GuardCase(
        lambda x, *more: x + sum(more),
        lambda: (x34(), 1, 2),
        [lambda: (x34(), 1, 2), lambda: (x34(), 1, 3), lambda: (x34(), 1), lambda: (x34(),)],
    )


@case
def default_arguments() -> GuardCase:
    def function(x: Tensor, factor: int = 3, *, shift: float = 0.5) -> Tensor:
        return x * factor + shift

    return GuardCase(function, lambda: (x34(),), [lambda: (x34(), 3), lambda: (x34(), 4)])


@case
def closures() -> GuardCase:
    number, tensors = 5, [torch.ones(4)]

    def function(x: Tensor, *, late: Any = None) -> Tensor:
        return x * number + tensors[0]

    @contextlib.contextmanager
    def another_number() -> Iterator[None]:
        nonlocal number
        number = 6
        try:
            yield
        finally:
            number = 5

    @contextlib.contextmanager
    def another_tensor() -> Iterator[None]:
        tensors.insert(0, torch.ones(3, 1))
        try:
            yield
        finally:
            tensors.pop(0)

    return GuardCase(function, lambda: (x34(),), [lambda: (x34(),)], [another_number, another_tensor])


@case
def globals_of_the_module() -> GuardCase:
    def function(x: Tensor) -> Tensor:
        return helper(x) * GLOBAL_NUMBER + len(GLOBAL_LIST) + GLOBAL_TENSOR

    return GuardCase(
        function,
        lambda: (x34(),),
        contexts=[
            lambda: setting(globals(), "GLOBAL_NUMBER", 5),
            lambda: setting(globals(), "GLOBAL_LIST", [1]),
            lambda: setting(globals(), "GLOBAL_TENSOR", torch.ones(4).double()),
            lambda: setting(globals(), "helper", other_helper),
            lambda: setting(helper, "__defaults__", (7,)),
        ],
    )


@case
def aliasing_tensors() -> GuardCase:
    same = x34()
    return GuardCase(
        lambda x, y: x + y,
        lambda: (x34(), x34()),
        [lambda: (same, same), lambda: (x34(), x34()), lambda: (same, x34())],
    )


@case
def the_same_tensor_twice() -> GuardCase:
    same = x34()

    def function(x: Tensor, y: Tensor) -> Tensor:
        return x.sin() + y

    return GuardCase(function, lambda: (same, same), [lambda: (same, same), lambda: (same, x34())])


@case
def modules() -> GuardCase:
    net, other = Net(), Net()
    return GuardCase(
        lambda x, module: module(x),
        lambda: (x34(), net),
        [lambda: (x34(), net), lambda: (x34(), other), lambda: (x34(), nn.Linear(4, 4))],
        [
            lambda: setting(net, "training", False),
            lambda: setting(net.layers[1], "training", False),
            lambda: setting(net, "scale", 2.0),
            lambda: setting(net, "settings", {"b": {"c": "x"}, "a": [1, 2]}),
            lambda: setting(net.settings, "a", [1]),
            lambda: setting(net.extra._modules, "0", nn.Linear(4, 4, bias=False)),
        ],
    )


@case
def lists_of_modules() -> GuardCase:
    parts = [nn.Linear(4, 4), nn.ReLU()]

    def function(x: Tensor, modules: List[nn.Module]) -> Tensor:
        for module in modules:
            x = module(x)
        return x

    return GuardCase(
        function,
        lambda: (x34(), parts),
        [lambda: (x34(), list(parts)), lambda: (x34(), parts[:1]), lambda: (x34(), [])],
    )


@case
def parameters() -> GuardCase:
    parameter = nn.Parameter(torch.ones(4))
    return GuardCase(
        lambda x, p: x + p, lambda: (x34(), parameter), [lambda: (x34(), parameter), lambda: (x34(), torch.ones(4))]
    )


@case
def gradients_of_tensors() -> GuardCase:
    def tensor(has_grad: bool) -> Tensor:
        leaf = torch.ones(4, requires_grad=True)
        if has_grad:
            leaf.sum().backward()
        return leaf

    return GuardCase(
        lambda x: x.sum() if x.grad is None else x.grad.sum(),
        lambda: (tensor(True),),
        [lambda: (tensor(True),), lambda: (tensor(False),)],
    )


@case
def tensor_subclasses() -> GuardCase:
    return GuardCase(
        lambda x: x + 1,
        lambda: (x34().as_subclass(Subclass),),
        [lambda: (x34().as_subclass(Subclass),), lambda: (x34(),)],
        compiles_everywhere=False,
    )


@case
def grad_mode() -> GuardCase:
    return GuardCase(lambda x: x.sin(), lambda: (x34(),), contexts=[torch.no_grad, torch.inference_mode])


@case
def compiled_without_grad() -> GuardCase:
    return GuardCase(
        lambda x: x.sin(), lambda: (x34(),), contexts=[torch.no_grad, torch.enable_grad], compile_under=torch.no_grad
    )


@case
def autocast() -> GuardCase:
    return GuardCase(
        lambda x: x @ x.t(),
        lambda: (x34(),),
        contexts=[
            lambda: torch.autocast("cpu", dtype=torch.bfloat16),
            lambda: torch.autocast("cpu", enabled=False),
        ],
    )


@case
def compiled_under_autocast() -> GuardCase:
    def bfloat16() -> ContextManager[Any]:
        return torch.autocast("cpu", dtype=torch.bfloat16)

    return GuardCase(
        lambda x: x @ x.t(),
        lambda: (x34(),),
        contexts=[bfloat16, lambda: torch.autocast("cpu", dtype=torch.float16)],
        compile_under=bfloat16,
        guarded_everywhere=False,
    )


@contextlib.contextmanager
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@contextlib.contextmanager
def default_dtype() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextlib.contextmanager
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(before + 1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@case
def global_state() -> GuardCase:
    return GuardCase(
        lambda x: x.sin(),
        lambda: (x34(),),
        contexts=[deterministic, default_dtype, threads, lambda: torch.device("cpu"), lambda: torch.device("meta")],
    )


@case
def default_device() -> GuardCase:
    return GuardCase(
        lambda x: x + torch.ones(4),
        lambda: (x34(),),
        contexts=[contextlib.nullcontext, lambda: torch.device("cpu")],
        compile_under=lambda: torch.device("cpu"),
        guarded_everywhere=False,
    )


class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))


@case
def torch_function_modes() -> GuardCase:
    return GuardCase(lambda x: x.sin(), lambda: (x34(),), contexts=[Mode], guarded_everywhere=False)


@case
def functorch_levels() -> GuardCase:
    def function(x: Tensor) -> Tensor:
        return torch.vmap(torch.sin)(x)

    return GuardCase(function, lambda: (x34(),), [lambda: (x34(),), lambda: (torch.ones(3, 5),)])


@case
def saved_tensors_hooks() -> GuardCase:
    same = torch.fx.symbolic_trace(lambda t: t)

    def inlineable() -> ContextManager[Any]:
        return torch.autograd.graph.saved_tensors_hooks(same, same)

    def opaque() -> ContextManager[Any]:
        return torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)

    return GuardCase(lambda x: x.sin(), lambda: (x34(),), contexts=[inlineable, opaque], guarded_everywhere=False)


@case
def forward_mode_levels() -> GuardCase:
    return GuardCase(
        lambda x: x.sin(), lambda: (x34(),), [lambda: (x34().int(),)], [torch.autograd.forward_ad.dual_level]
    )


@case
def overlapping_views() -> GuardCase:
    base = torch.ones(20)

    def function(x: Tensor, y: Tensor) -> Tensor:
        x.add_(0)
        return x + y

    return GuardCase(
        function,
        lambda: (base[:6], base[3:9]),
        [
            lambda: (base[:6], base[3:9]),
            lambda: (base[:6], base[6:12]),
            lambda: (torch.ones(6), torch.ones(6)),
        ],
        backend="aot_eager",
        dynamic=True,
        compiles_everywhere=False,
    )


@case
def views_that_must_not_overlap() -> GuardCase:
    base = torch.ones(30)

    def function(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        x.add_(0)
        y.add_(0)
        z.add_(0)
        return x + y + z

    return GuardCase(
        function,
        lambda: (base[:6], base[3:9], base[20:26]),
        [
            lambda: (base[:6], base[3:9], base[21:27]),
            lambda: (base[:6], base[3:9], base[8:14]),
            lambda: (base[:6], base[10:16], base[20:26]),
        ],
        backend="aot_eager",
        dynamic=True,
        compiles_everywhere=False,
    )


@case
def shapes_checked_in_c() -> GuardCase:
    return GuardCase(
        lambda x, y: x + y if x.shape[0] < 10 else x - y,
        lambda: (torch.ones(6, 4), torch.ones(6, 4)),
        [lambda: (torch.ones(7, 5), torch.ones(7, 5)), lambda: (torch.ones(12, 4), torch.ones(12, 4))],
        dynamic=True,
        config={"enable_cpp_symbolic_shape_guards": True},
    )


@case
def aliases_checked_in_c() -> GuardCase:
    same = x34()
    return GuardCase(
        lambda x, y: x.sin() + y,
        lambda: (same, same),
        [lambda: (same, same), lambda: (same, x34())],
        config={"use_lamba_guard_for_object_aliasing": False},
    )


@case
def traceable_subclasses() -> GuardCase:
    from torch.testing._internal.two_tensor import TwoTensor

    def two(inner: Tensor) -> Any:
        return TwoTensor(inner, inner.clone())

    return GuardCase(
        lambda x: x * 2,
        lambda: (two(x34()),),
        [lambda: (two(x34()),), lambda: (two(torch.ones(3, 5)),), lambda: (two(x34().double()),), lambda: (x34(),)],
    )


@case
def nested_tensors() -> GuardCase:
    def nested(*lengths: int) -> Tensor:
        return torch.nested.nested_tensor([torch.ones(length, 4) for length in lengths], layout=torch.jagged)

    return GuardCase(lambda x: x * 2, lambda: (nested(2, 3),), [lambda: (nested(2, 3),), lambda: (x34(),)])


class Meters(int):
    pass


@case
def subclasses_of_int() -> GuardCase:
    return GuardCase(
        lambda x, n: x + n,
        lambda: (x34(), Meters(2)),
        [lambda: (x34(), Meters(2)), lambda: (x34(), Meters(3)), lambda: (x34(), 2)],
        compiles_everywhere=False,
        guarded_everywhere=False,
    )


class Words(Dict[str, int]):
    pass


@case
def subclasses_of_dict() -> GuardCase:
    def function(x: Tensor, d: Any) -> Tensor:
        for value in d.values():
            x = x + value
        return x

    return GuardCase(
        function,
        lambda: (x34(), Words(a=1)),
        [lambda: (x34(), Words(a=1)), lambda: (x34(), Words(a=1, b=2)), lambda: (x34(), {"a": 1})],
    )


@case
def optimizers() -> GuardCase:
    parameter = nn.Parameter(torch.ones(4))
    parameter.grad = torch.ones(4)
    plain = torch.optim.SGD([parameter], lr=0.1)
    momentum = torch.optim.SGD([parameter], lr=0.1, momentum=0.9)

    def function(x: Tensor, optimizer: Any) -> Tensor:
        optimizer.step()
        return x + 1

    return GuardCase(
        function, lambda: (x34(), plain), [lambda: (x34(), plain), lambda: (x34(), momentum)], guarded_everywhere=False
    )


@case
def generators_and_random() -> GuardCase:
    def function(x: Tensor, seed: int) -> Tensor:
        return torch.nn.functional.dropout(x, p=0.5, training=seed > 3)

    return GuardCase(function, lambda: (x34(), 2), [lambda: (x34(), 2), lambda: (x34(), 5)])


@case
def weak_references() -> GuardCase:
    import weakref

    kept = [Plain(), Plain()]

    def reference(index: int) -> Any:
        return weakref.ref(kept[index])

    def function(x: Tensor, reference: Any) -> Tensor:
        return x * reference().attribute

    return GuardCase(function, lambda: (x34(), reference(0)), [lambda: (x34(), reference(0)), lambda: (x34(), 3)])


@case
def attention() -> GuardCase:
    def query(*shape: int) -> Tensor:
        return torch.ones(shape)

    return GuardCase(
        lambda q: nn.functional.scaled_dot_product_attention(q, q, q),
        lambda: (query(1, 2, 8, 8),),
        [lambda: (query(1, 2, 8, 8),), lambda: (query(1, 4, 8, 8),)],
    )


@case
def arguments_that_are_not_used() -> GuardCase:
    return GuardCase(
        lambda x, unused, flag=None: x + 1,
        lambda: (x34(), object()),
        [lambda: (x34(), 5), lambda: (x34(), None), lambda: (x34().int(), None)],
    )
