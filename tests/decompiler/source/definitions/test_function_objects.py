"""Defaults and annotations of function objects are written when they have an expression, and mentioned when not."""

from __future__ import annotations

import enum
import functools
import inspect
import json
from typing import Any, Callable, Dict

import pytest

from depyf import decompile

MARK = object()


class Color(enum.Enum):
    RED = 1


def typed(a: int, *rest: str, b: Dict[str, int] = {}, **more: Any) -> None:  # noqa: B006
    pass


def with_defaults(a, b=1, c=(1, [2, {"k": b"x"}], -1.5), *, d=MARK, e=Color.RED, f=len, g=json.JSONEncoder, h=None):
    return a, b


def without_a_name(a=object(), b=frozenset({1}), c=2):  # noqa: B008
    return a


def test_defaults_evaluate_to_the_same_objects() -> None:
    namespace: Dict[str, Any] = dict(globals())
    exec(compile(decompile(with_defaults), "<test>", "exec"), namespace)
    again = namespace["with_defaults"]
    assert again.__defaults__ == with_defaults.__defaults__
    assert again.__kwdefaults__ == with_defaults.__kwdefaults__
    assert again.__kwdefaults__["d"] is MARK


def test_annotations_are_written_as_they_were() -> None:
    first = decompile(typed).splitlines()[0]
    assert first == "def typed(a: int, *rest: str, b: Dict[str, int]={}, **more: Any) -> None:"


def test_what_has_no_name_is_mentioned() -> None:
    source = decompile(without_a_name)
    assert source.splitlines()[0] == "def without_a_name(a=..., b=..., c=2):"
    assert source.splitlines()[-2:] == [
        "# the default of a is a object without a name here",
        "# the default of b is a frozenset without a name here",
    ]


def test_objects_whose_repr_raises_do_no_harm() -> None:
    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError

        def __eq__(self, other: object) -> bool:
            raise RuntimeError

    def function(a=Rude()):  # noqa: B008
        return a

    assert "a=..." in decompile(function)


class Module:
    """As torch names it."""

    def __call__(self) -> int:
        return self.forward()

    def forward(self) -> int:
        return 17


Module.__module__ = "torch.nn.modules.module"


def test_of_a_module_it_is_forward() -> None:
    class Net(Module):
        def forward(self, x: int = 3) -> int:
            return x + 18

    assert decompile(Net()).startswith("def forward(self, x: int=3) -> int:")
    wrapper = Module()
    wrapper._orig_mod = Net()  # type: ignore[attr-defined]
    assert "x + 18" in decompile(wrapper)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (len, "len is built in"),
        ([].append, "list.append is built in"),
        (str.upper, "str.upper is built in"),
        (int, "int is a class"),
        (Color, "Color is a class"),
        (3, "a int holds no Python code"),
        (functools.partial(len), "a partial holds no Python code"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_holds_no_code_says_so(target: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        decompile(target)


def test_partials_and_methods_lead_to_their_function() -> None:
    call: Callable[..., Any] = functools.partial(with_defaults, 1)
    assert decompile(call) == decompile(with_defaults)
    assert inspect.isfunction(with_defaults)
