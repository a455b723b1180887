"""Answers as plain data: what ``to_dict`` of every result returns (docs/json.md)."""

from __future__ import annotations

import dataclasses
import enum
import math
from typing import ClassVar, Dict, Mapping, Tuple

NOT_DATA: Mapping[str, bool] = {"data": False}
"""The ``metadata`` of a field that JSON can't have, such as a tensor."""


class Answer:
    """The base of every result: a dataclass that becomes plain data. ``kind`` is its name in documents."""

    _document: ClassVar[str]
    _properties: ClassVar[Tuple[str, ...]] = ()
    """Properties that are in the data, beside the fields."""

    def __init_subclass__(cls, kind: str = "") -> None:
        super().__init_subclass__()
        if kind:
            cls._document = kind

    def to_dict(self) -> Dict[str, object]:
        """Return the fields as plain data for JSON: tuples are lists, numbers that JSON lacks (NaN, Inf) are None, and
        tensors are left out.
        """
        return as_fields(self)


class HasAnswer:
    """The base of the objects of ``with`` statements that have an answer."""

    @property
    def answer(self) -> Answer:
        """All that was found, as data."""
        raise NotImplementedError

    def to_dict(self) -> Dict[str, object]:
        """Return all of it as plain data, for JSON."""
        return self.answer.to_dict()


def data_fields(kind: type) -> Tuple[str, ...]:
    """Return the names that objects of a dataclass have as data: of its fields, then of its properties."""
    fields = (each.name for each in dataclasses.fields(kind) if each.metadata.get("data", True))
    return (*fields, *getattr(kind, "_properties", ()))


def as_fields(value: object) -> Dict[str, object]:
    """Return the fields of a dataclass as plain data."""
    return {name: as_data(getattr(value, name)) for name in data_fields(type(value))}


def as_data(value: object) -> object:
    """Return a value of an answer as plain data. Of an object of any other class it is the name of the class: to print
    the object would run its code.
    """
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, enum.Enum):
        return as_data(value.value)
    if type(value) is float:
        return value if math.isfinite(value) else None
    if isinstance(value, Answer):
        return value.to_dict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return as_fields(value)
    if isinstance(value, (tuple, list)):
        return [as_data(each) for each in value]
    if isinstance(value, Mapping):
        return {str(name): as_data(each) for name, each in value.items()}
    if isinstance(value, range):
        return {"from": value.start, "to": value.stop - 1, **({} if value.step == 1 else {"step": value.step})}
    return f"<{type(value).__name__}>"
