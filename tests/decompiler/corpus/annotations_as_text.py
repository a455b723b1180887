"""Annotations that are never evaluated: the bytecode holds their text."""

from __future__ import annotations


# run: annotated_function(3).__annotations__
def annotated_function(count):
    def nested(first: NotDefined, *rest: dict[str, list[int]], key: 'quoted' = None) -> int | None:
        local: Unknown = count
        return local

    return nested


# run: annotated_class().__annotations__
def annotated_class():
    class Record:
        number: Undefined
        pairs: tuple[int, ...] = ()

    return Record
