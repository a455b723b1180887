"""Bytecode in the form that Dynamo writes: lists that only move values vanish, and nothing else does."""

from __future__ import annotations

from typing import Tuple

import pytest
from operations import CALL_G, Step, code, finding, listing, local

from depyf.decompiler.hints import Hints
from depyf.decompiler.normal.ops import NormalCode, Op
from depyf.decompiler.verify import Finding, compare


def test_stores_into_slices_and_pops_are_executed() -> None:
    original = listing(
        *CALL_G,
        (Op.BUILD, ("list", 0)),  # [] -> [a, b] through slices, then popped from the end
        (Op.COPY, 1),
        local("a"),
        local("b"),
        (Op.BUILD, ("list", 2)),
        (Op.SWAP, 2),
        (Op.CONST, 0),
        (Op.CONST, 0),
        (Op.BUILD, ("slice", 2)),
        (Op.STORE_SUBSCR,),
        (Op.COPY, 1),
        (Op.CONST, -1),
        (Op.SUBSCR,),
        (Op.SWAP, 2),
        (Op.COPY, 1),
        (Op.CONST, -1),
        (Op.DELETE_SUBSCR,),
        (Op.CONST, 0),
        (Op.SUBSCR,),
        (Op.CALL, (2, (), "below")),
        (Op.RETURN,),
    )
    assert finding(original, "def f(a, b): return g(b, a)") == (Finding.EQUIVALENT, "")
    assert finding(original, "def f(a, b): return g(a, b)")[0] is Finding.DIFFERENT


def test_a_call_with_an_extended_list_is_a_plain_call() -> None:
    original = listing(
        *CALL_G,
        local("a"),
        (Op.BUILD, ("list", 1)),
        local("b"),
        (Op.CONST, 1),
        (Op.BUILD, ("tuple", 2)),
        (Op.UPDATE, ("list", 1)),
        (Op.LIST_TO_TUPLE,),
        (Op.CALL_EX, (False, "below")),
        (Op.RETURN,),
    )
    assert finding(original, "def f(a, b): return g(a, b, 1)") == (Finding.EQUIVALENT, "")
    assert finding(original, "def f(a, b): return g(a, b, True)")[0] is Finding.DIFFERENT


def test_methods_of_new_lists_are_executed() -> None:
    original = listing(
        *CALL_G,
        local("a"),
        (Op.BUILD, ("list", 1)),
        (Op.COPY, 1),
        (Op.NULL,),
        (Op.SWAP, 2),
        (Op.ATTR, "append"),
        local("b"),
        (Op.CALL, (1, (), "below")),
        (Op.POP,),
        (Op.NULL,),
        (Op.SWAP, 2),
        (Op.ATTR, "pop"),
        (Op.CONST, 0),
        (Op.CALL, (1, (), "below")),
        (Op.CALL, (1, (), "below")),
        (Op.RETURN,),
    )
    assert finding(original, "def f(a, b): return g(a)") == (Finding.EQUIVALENT, "")


def test_lists_on_the_stack_survive_a_branch() -> None:
    original = listing(
        local("b"),
        (Op.BUILD, ("list", 1)),
        local("a"),
        (Op.BRANCH, "false", 8),
        (Op.CONST, 0),
        (Op.SUBSCR,),
        (Op.RETURN,),
        (Op.RETURN,),
        (Op.POP,),
        (Op.CONST, None),
        (Op.RETURN,),
    )
    assert finding(original, "def f(a, b):\n if a:\n  return b") == (Finding.EQUIVALENT, "")


def test_the_slot_below_may_hold_the_callable() -> None:
    original = listing((Op.LOAD, ("global", "g")), local("a"), local("b"), (Op.CALL, (1, (), "below")), (Op.RETURN,))
    assert finding(original, "def f(a, b): return g(a, b)") == (Finding.EQUIVALENT, "")


def test_when_a_stable_global_is_read_does_not_matter() -> None:
    original = listing(
        *CALL_G, (Op.NULL,), (Op.LOAD, ("global", "h")), (Op.CALL, (0, (), "below")), (Op.CALL, (1, (), "below")),
        (Op.RETURN,),
    )  # fmt: skip
    late = "def f(a, b):\n c = h()\n return g(c)"
    assert finding(original, late)[0] is Finding.DIFFERENT
    assert finding(original, late, stable_globals=frozenset({"g"})) == (Finding.EQUIVALENT, "")


def test_results_of_known_length_are_taken_apart_silently() -> None:
    original = listing(
        *CALL_G,
        (Op.CALL, (0, (), "below")),
        (Op.STORE, ("fast", "out")),
        local("out"),
        (Op.CONST, 1),
        (Op.SUBSCR,),
        local("out"),
        (Op.CONST, 0),
        (Op.SUBSCR,),
        (Op.DELETE, ("fast", "out")),
        (Op.BUILD, ("tuple", 2)),
        (Op.RETURN,),
    )
    known = {"stable_globals": frozenset({"g"}), "tuple_results": {"g": 2}, "droppable": frozenset({"out"})}
    assert finding(original, "def f(a, b):\n x, y = g()\n return (y, x)", **known) == (Finding.EQUIVALENT, "")
    assert finding(original, "def f(a, b):\n x, y = g()\n return (x, y)", **known)[0] is Finding.DIFFERENT
    assert finding(original, "def f(a, b):\n x, y = g()\n return (y, x)")[0] is not Finding.EQUIVALENT


def test_a_list_that_others_have_seen_is_no_longer_looked_into() -> None:
    original = listing(
        local("a"),
        (Op.BUILD, ("list", 1)),
        (Op.STORE, ("fast", "l")),
        *CALL_G,
        local("l"),
        (Op.CALL, (1, (), "below")),
        (Op.POP,),
        local("l"),
        (Op.CONST, 0),
        (Op.SUBSCR,),
        (Op.RETURN,),
    )
    assert finding(original, "def f(a, b):\n l = [a]\n g(l)\n return l[0]") == (Finding.EQUIVALENT, "")
    assert finding(original, "def f(a, b):\n l = [a]\n g(l)\n return a")[0] is not Finding.EQUIVALENT


def test_a_list_that_contains_itself_is_left_to_the_event() -> None:
    original = listing(
        local("a"),
        (Op.BUILD, ("list", 1)),
        (Op.COPY, 1),
        (Op.COPY, 1),
        (Op.CONST, 0),
        (Op.STORE_SUBSCR,),
        (Op.RETURN,),
    )
    assert finding(original, "def f(a, b):\n l = [a]\n l[0] = l\n return l") == (Finding.EQUIVALENT, "")
    assert finding(original, "def f(a, b):\n l = [a]\n l[0] = a\n return l")[0] is not Finding.EQUIVALENT


def test_a_cell_as_a_value_is_the_cell_of_a_closure() -> None:
    original = code("def f(x):\n def g(): return x\n return h(g.__closure__[0])")
    candidate = code("def f(x):\n return h((lambda: x).__closure__[0])")
    assert compare(original, candidate, hints=Hints(droppable=frozenset({"g"}))).finding is not Finding.DIFFERENT


@pytest.mark.parametrize("broken", [(Op.POP,), (Op.BINARY, "+"), (Op.POP_EXC,)])
def test_malformed_bytecode_is_unverified_and_not_a_crash(broken: Step) -> None:
    original = listing(broken, (Op.CONST, None), (Op.RETURN,))
    assert finding(original, "def f(a, b): pass")[0] in (Finding.UNVERIFIED, Finding.DIFFERENT)


def test_arithmetic_of_small_constants_is_what_the_compiler_would_have_made_of_it() -> None:
    original = listing((Op.CONST, 3), (Op.CONST, 4), (Op.BINARY, "*"), (Op.RETURN,))
    assert finding(original, "def f(a, b): return 12")[0] is Finding.EQUIVALENT
    assert finding(original, "def f(a, b): return 13")[0] is Finding.DIFFERENT
    assert finding(original, "def f(a, b): return 12.0")[0] is Finding.DIFFERENT


@pytest.mark.parametrize("members", [(1, 2, 3), ("a", None, 1), (8, 0, 16), (0, True, 2.5)])
def test_members_put_into_a_set_one_by_one_are_a_display_of_constants(members: Tuple[object, ...]) -> None:
    def original(*put_in: object) -> NormalCode:
        constants = [(Op.CONST, value) for value in put_in]
        return listing(*CALL_G, *constants, (Op.BUILD, ("set", len(put_in))), (Op.CALL, (1, (), "below")), (Op.RETURN,))

    source = "def f(a, b): return g({" + ", ".join(map(repr, members)) + "})"
    assert finding(original(*members), source) == (Finding.EQUIVALENT, "")
    assert finding(original(*members[1:]), source)[0] is Finding.DIFFERENT
    assert finding(original(*members[1:], 7), source)[0] is Finding.DIFFERENT


def test_the_order_of_a_set_of_numbers_is_that_in_which_they_were_put_in() -> None:
    original = listing(
        *CALL_G,
        *[(Op.CONST, number) for number in (8, 0, 16)],
        (Op.BUILD, ("set", 3)),
        (Op.CALL, (1, (), "below")),
        (Op.RETURN,),
    )
    assert finding(original, "def f(a, b): return g({16, 8, 0})")[0] is Finding.DIFFERENT


def test_a_dict_with_constant_keys_is_the_same_however_the_keys_come() -> None:
    def original(*keys: object) -> NormalCode:
        pairs = [step for key, name in zip(keys, "ab") for step in ((Op.CONST, key), local(name))]
        return listing(*CALL_G, *pairs, (Op.BUILD, ("map", 2)), (Op.CALL, (1, (), "below")), (Op.RETURN,))

    for keys in ((0, 1), ("x", "y"), (1.5, None), ((0, 1), b"c")):
        source = f"def f(a, b): return g({{{keys[0]!r}: a, {keys[1]!r}: b}})"
        assert finding(original(*keys), source) == (Finding.EQUIVALENT, "")
        assert finding(original(*keys[::-1]), source)[0] is Finding.DIFFERENT
        assert finding(original(keys[0], 7), source)[0] is Finding.DIFFERENT


def test_a_call_of_the_class_makes_a_slice_and_a_call_of_its_name_need_not() -> None:
    def made(*callee: Step) -> NormalCode:
        return listing(
            local("a"), *callee, (Op.CONST, 1), local("b"), (Op.CALL, (2, (), "")), (Op.SUBSCR,), (Op.RETURN,)
        )

    of_class, of_name = made((Op.CONST, slice)), made((Op.LOAD, ("global", "slice")))
    assert finding(of_class, "def f(a, b): return a[1:b]") == (Finding.EQUIVALENT, "")
    for other in ("a[b:1]", "a[1:b:1]", "a[1, b]"):
        assert finding(of_class, f"def f(a, b): return {other}")[0] is Finding.DIFFERENT
    assert not finding(of_name, "def f(a, b): return a[1:b]")[0].proved
    assert not finding(made((Op.CONST, range)), "def f(a, b): return a[1:b]")[0].proved
