"""depyf.base.quick_dataclass behaves as the standard library's ``dataclass`` where depyf uses it."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import field
from typing import Any, Callable, List, Tuple

import pytest

from depyf.base import quick_dataclass
from depyf.decompiler.normal.ops import Handler


def classes(dataclass: Callable[..., Any]) -> List[Any]:
    """The same classes, made by ``dataclass``."""

    @dataclass(frozen=True)
    class Point:
        x: int
        y: int = 2
        seen: List[int] = field(default_factory=list, compare=False)
        hidden: str = field(default="h", repr=False)

    @dataclass(frozen=True)
    class Deep(Point):
        z: int = 3

    @dataclass
    class Mutable:
        x: Any = None
        late: int = field(init=False)

        def __post_init__(self) -> None:
            self.late = 7

    @dataclass(frozen=True, eq=False)
    class Identity:
        x: int

    @dataclass(frozen=True)
    class Own:
        x: int

        def __hash__(self) -> int:
            return 5

        def __repr__(self) -> str:
            return "own"

    @dataclass(frozen=True)
    class Nothing:
        pass

    return [Point, Deep, Mutable, Identity, Own, Nothing]


STANDARD, QUICK = classes(dataclasses.dataclass), classes(quick_dataclass.dataclass)
PAIRS = list(zip(STANDARD, QUICK))
ARGUMENTS: List[Tuple[Any, ...]] = [(), (1,), (1, 2), (1, 5), (1, 2, [3]), (1, 2, [], "other"), (1, 2, [], "h", 9)]


def made(cls: Any, arguments: Tuple[Any, ...]) -> Any:
    try:
        return cls(*arguments)
    except TypeError as error:
        return str(error).rpartition("<locals>.")[2] or str(error)


def shown(cls: Any, arguments: Tuple[Any, ...]) -> str:
    value = made(cls, arguments)
    return value if isinstance(value, str) else repr(value) if cls.__repr__ is not object.__repr__ else ""


@pytest.mark.parametrize("at", range(len(PAIRS)), ids=lambda at: STANDARD[at].__name__)
@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
def test_objects_are_made_and_shown_as_by_the_standard_library(at: int, arguments: Tuple[Any, ...]) -> None:
    assert shown(QUICK[at], arguments) == shown(STANDARD[at], arguments)


@pytest.mark.parametrize("at", range(len(PAIRS)), ids=lambda at: STANDARD[at].__name__)
def test_they_are_equal_and_hashed_where_those_of_the_standard_library_are(at: int) -> None:
    standard, quick = ([made(cls, each) for each in ARGUMENTS] for cls in (STANDARD[at], QUICK[at]))
    for first in range(len(ARGUMENTS)):
        for second in range(len(ARGUMENTS)):
            assert (quick[first] == quick[second]) == (standard[first] == standard[second])
            if type(standard[first]).__hash__ is None:
                assert type(quick[first]).__hash__ is None
            elif standard[first] == standard[second]:
                assert hash(quick[first]) == hash(quick[second])
    assert quick[1] != object()


def test_the_first_call_may_be_a_comparison() -> None:
    """Objects that were pickled elsewhere, or copied, have not gone through ``__init__``."""
    (point, *_) = classes(quick_dataclass.dataclass)
    one, other = object.__new__(point), object.__new__(point)
    for each in (one, other):
        each.__dict__.update(x=1, y=2, seen=[], hidden="")
    assert one == other
    assert hash(one) == hash(other)


def test_what_dataclasses_offers_works() -> None:
    point = QUICK[1](1, seen=[4])
    assert dataclasses.replace(point, z=5) == QUICK[1](1, 2, [], "h", 5)
    assert dataclasses.asdict(point) == {"x": 1, "y": 2, "seen": [4], "hidden": "h", "z": 3}
    assert [each.name for each in dataclasses.fields(point)] == ["x", "y", "seen", "hidden", "z"]
    assert copy.deepcopy(point) == point


def test_lists_of_two_objects_are_two_lists() -> None:
    first, second = QUICK[0](1), QUICK[0](1)
    first.seen.append(1)
    assert second.seen == []


def test_an_object_in_itself_can_be_shown() -> None:
    value = QUICK[2]()
    value.x = value
    assert repr(value).endswith("Mutable(x=..., late=7)")


def test_pickling() -> None:
    handler = Handler(1, 2, lasti=True)
    assert pickle.loads(pickle.dumps(handler)) == handler


def test_replace_is_that_of_the_standard_library() -> None:
    for cls in (STANDARD[0], QUICK[0]):
        before = cls(1, 2, [3], "other")
        after = quick_dataclass.replace(before, y=5)
        assert after == cls(1, 5, [3], "other")
        assert type(after) is cls
        assert after.seen is before.seen
        assert before.y == 2
        with pytest.raises(TypeError, match="no_field"):
            quick_dataclass.replace(before, no_field=1)
    assert [cls(4).late for cls in (STANDARD[2], QUICK[2])] == [7, 7]
    assert quick_dataclass.replace(QUICK[2](4), x=5).late == 7


def test_a_class_whose_reading_was_interrupted_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    point = classes(quick_dataclass.dataclass)[0]

    def interrupted(*_: Any, **__: Any) -> Any:
        def read(cls: Any) -> Any:
            del cls.seen
            raise KeyboardInterrupt

        return read

    with monkeypatch.context() as patch:
        patch.setattr(dataclasses, "dataclass", interrupted)
        with pytest.raises(KeyboardInterrupt):
            point(1)
    assert point(1).seen == []
