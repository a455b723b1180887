from __future__ import annotations

from typing import NamedTuple


class Pair(NamedTuple):
    first: Missing
    second: dict[str, 'Pair'] = {}
    third: Callable[[int], None] | None = None


# run: module_level(0, key=5)
def module_level(a: Missing, *args: not_there.At_All, key: 'quoted' = 1, **rest: lambda: 1) -> list[Pair] | None:
    return key


# run: annotations_of_the_module()
def annotations_of_the_module():
    return module_level.__annotations__, Pair.__new__.__annotations__, Pair(1), Pair.__annotations__


# run: nested()
def nested():
    def inner(a: Missing = 2, *, b: "quo\ted" = 3) -> (1, 2):
        unused: missing.too
        x: int = a
        return x, b

    return inner(), inner.__annotations__


global cached
cached: dict[int, Missing] = {}


# run: fills_the_cache(1), fills_the_cache(2)
def fills_the_cache(key):
    global cached
    cached = {**cached, key: key}
    return sorted(cached)


# run: class_without_annotations()
def class_without_annotations():
    class Plain:
        def method(self, other: Missing) -> list[Missing]:
            return self

    return Plain.method.__annotations__
