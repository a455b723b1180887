"""Programs that compilers of several Pythons compile differently, to be compiled by each of them."""

import collections


class Documented:
    """A docstring of several lines.

    Its second paragraph.
    """

    def method(self):
        self.attribute = 1


class Annotated:
    field: int = 3
    other: "list[int]"
    if field:
        chosen: str = "x"

    def annotated(self, x: field, *args: int, key: str = "k") -> dict:
        return x, args, key

    def _close(self):
        return super()._close()


counter: int = 0


def annotates_locally(limit):
    kind = type(limit)

    def inner(x: kind) -> kind:
        return x

    return inner


def inlined(xs):
    if any(x > 1 for x in xs):
        return all(x.ok for x in xs if x)
    return tuple(x + 1 for x in xs)


def inlined_since_3_15(xs):
    return list(x.first for x in xs), set(x.last for x in xs)


def generators(xs):
    return max(x * 2 for x in xs), sorted((y for y in xs.items), key=len), sum(x for x in xs)


def imports():
    import os
    from sys import path as where

    return os, where


def checks(x):
    assert x, "nothing"
    x.text = f"{x!s:>30}", (x and x.a) or x.b
    return {1, 2, 3}, [*x, *x], {**x}, collections.deque(*x, **x), collections.deque(*x, maxlen=3, **x)


def comprehends(xs):
    x = xs.first
    found = [x for x in xs if x]
    xs.last(x)
    return {k: v + 1 for k, v in found}, {x.y for x in found}


async def waits(xs):
    async with xs as opened:
        await opened
