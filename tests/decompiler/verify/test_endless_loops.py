"""A loop that does nothing observable is proved to be endless only if it is, also where it makes objects."""

from __future__ import annotations

from types import CodeType

import pytest

from depyf.decompiler.verify import compare


def code(source: str) -> CodeType:
    module = compile(source, "<test>", "exec", dont_inherit=True)
    return next(const for const in module.co_consts if isinstance(const, CodeType))


MADE = [
    "y = (x,)",
    "y = [x, [x]]",
    "y = {1: x}",
    "y = lambda z=x: z",
    "y = lambda: z",
    "y = z; z = [y is z]",
    "y = [x]; z = y; y = None",
]


@pytest.mark.parametrize("made", MADE)
def test_an_endless_loop_that_makes_objects_is_proved(made: str) -> None:
    original = code(f"def f(x, z):\n if x:\n  g()\n else:\n  while True: {made}\n k()")
    candidate = code(f"def f(x, z):\n if x:\n  g()\n  k()\n else:\n  while True: {made}")
    assert compare(original, candidate).proved
    assert not compare(original, code(f"def f(x, z):\n if x:\n  g()\n  k()\n else:\n  {made}")).proved


def shifted(count: int) -> str:
    """A loop that ends after ``count`` rounds: only which names are the same object differs from one to the next."""
    names = [f"a{number}" for number in range(count)]
    moves = "".join(f"  {one} = {two}\n" for one, two in zip(names, names[1:]))
    return f"def f(x):\n b = [x]\n {' = '.join(names)} = b\n while a0 is b:\n{moves}  {names[-1]} = [x]\n"


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param("def f(x):\n s = 0\n while s != 300:\n  s += 1\n  b = [x]\n", id="counts"),
        pytest.param(shifted(60), id="the same contents"),
        pytest.param(shifted(60).replace("b = [x]", "b = [x]\n g()", 1), id="the same contents, made before an event"),
    ],
)
def test_a_loop_that_ends_is_not_taken_for_an_endless_one(ending: str) -> None:
    before = " g()\n" if "g()" in ending else ""
    endless = code(f"def f(x):\n b = [x]\n{before} while True: b = [x]\n")
    for candidate in (ending, ending + " k()"):
        assert not compare(endless, code(candidate)).proved
        assert not compare(code(candidate), endless).proved


def test_a_loop_that_needs_more_and_more_memory_does_not_repeat() -> None:
    growing = code("def f(x):\n y = x\n while True: y = (y,)")
    assert not compare(growing, code("def f(x):\n y = x\n while True: y = (x,)")).proved


@pytest.mark.parametrize("made", ["1", "(x,)"])
def test_what_an_endless_loop_keeps_alive_matters(made: str) -> None:
    held = code(f"def f(x):\n y = h(x)\n while True: z = {made}")
    dropped = code(f"def f(x):\n y = h(x)\n y = None\n while True: z = {made}")
    for original, candidate in ((held, dropped), (dropped, held)):
        assert compare(original, candidate).reason.startswith("lifetime: ")
