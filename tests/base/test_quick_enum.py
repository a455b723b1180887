"""depyf.base.quick_enum behaves as the standard library's ``Enum`` where depyf uses it, and reads members faster."""

from __future__ import annotations

import copy
import enum
import pickle
from typing import Any

import pytest

from depyf.base import quick_enum
from depyf.decompiler.flow.graph import Test as FlowTest
from depyf.decompiler.lift.items import Mark
from depyf.decompiler.normal.ops import Op


def made(base: Any) -> Any:
    class Colour(base):
        """A colour."""

        RED = "red"
        """The first."""
        GREEN = "green"

        @property
        def is_red(self) -> bool:
            return self is type(self).RED

    return Colour


@pytest.mark.parametrize("base", [enum.Enum, quick_enum.Enum])
def test_members_are_those_of_the_standard_library(base: Any) -> None:
    cls = made(base)
    assert [(each.name, each.value, repr(each), str(each)) for each in cls] == [
        ("RED", "red", "<Colour.RED: 'red'>", "Colour.RED"),
        ("GREEN", "green", "<Colour.GREEN: 'green'>", "Colour.GREEN"),
    ]
    assert cls("green") is cls["GREEN"] is cls.GREEN
    assert cls.RED != cls.GREEN
    assert cls.RED.is_red
    assert not cls.GREEN.is_red
    assert len(cls) == len({*cls}) == 2
    assert isinstance(cls.RED, cls)
    assert copy.deepcopy(cls.RED) is copy.copy(cls.RED) is cls.RED
    with pytest.raises(ValueError, match=r"'blue' is not a valid .*Colour"):
        cls("blue")


def test_members_are_pickled_by_their_names() -> None:
    assert pickle.loads(pickle.dumps([Op.LOAD, Mark.NULL])) == [Op.LOAD, Mark.NULL]


@pytest.mark.parametrize("cls", [Op, Mark, FlowTest])
def test_no_function_runs_when_a_member_is_read(cls: Any) -> None:
    kind = type(cls)
    assert kind.__getattribute__ is type.__getattribute__
    assert not hasattr(kind, "__getattr__")
