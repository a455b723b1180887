"""The step from block stacks to handlers, on operations written by hand: the same under every Python."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import pytest

from depyf.decompiler.bytecode.lines import Span
from depyf.decompiler.normal.blocks import (
    BEGIN_FINALLY,
    CALL_FINALLY,
    END_FINALLY,
    EXC_MATCH,
    POP_BLOCK,
    RERAISE,
    SETUP_FINALLY,
    SETUP_WITH,
    resolve_blocks,
)
from depyf.decompiler.normal.draft import Draft
from depyf.decompiler.normal.ops import Op, byte_offset

A = ("global", "a")
B = ("global", "b")
RETURN_NONE = [(Op.CONST, None), (Op.RETURN, None)]


def drafts(*ops: Tuple[Any, ...]) -> List[Draft]:
    """``(op, arg, target)`` each; targets count operations, of which each has an instruction of its own."""
    made = []
    for index, (op, *rest) in enumerate(ops):
        arg, target = [*rest, None, None][:2]
        made.append(Draft(op, arg, 2 * index, Span(1, None, 1, None), None if target is None else 2 * target))
    return made


def shown(resolved: List[Draft]) -> List[Tuple[Any, Any, Optional[Tuple[Any, int]]]]:
    """Operation, argument, and the first operation of the handler with the depth that it keeps."""
    at = {draft.offset: draft for draft in reversed(resolved)}
    return [
        (draft.op, draft.arg, draft.handler and (at[draft.handler.target].op, draft.handler.depth))
        for draft in resolved
    ]


def test_code_without_blocks_stays_as_it_is() -> None:
    plain = drafts((Op.LOAD, A), (Op.RETURN,))
    assert resolve_blocks(plain) == plain


def test_six_slots_of_an_exception_are_two_values() -> None:
    resolved = resolve_blocks(
        drafts(
            (SETUP_FINALLY, None, 5),
            (Op.LOAD, A),
            (Op.POP,),
            (POP_BLOCK,),
            (Op.JUMP, None, 14),
            (Op.COPY, 1),  # the type
            (Op.LOAD, B),
            (EXC_MATCH, None, 13),
            (Op.POP,),  # the type
            (Op.STORE, ("fast", "e")),
            (Op.POP,),  # the traceback
            (Op.POP_EXC,),
            (Op.JUMP, None, 14),
            (RERAISE,),
            (Op.CONST, None),
            (Op.RETURN,),
        )
    )
    handler = (Op.PUSH_EXC, 0)
    assert shown(resolved) == [
        (Op.LOAD, A, handler),
        (Op.POP, None, handler),
        (Op.JUMP, None, None),
        (Op.PUSH_EXC, None, None),
        (Op.LOAD, B, None),
        (Op.CHECK_EXC, None, None),
        (Op.BRANCH, "false", None),
        (Op.STORE, ("fast", "e"), None),
        (Op.POP_EXC, None, None),
        (Op.JUMP, None, None),
        (Op.RERAISE, None, None),
        *[(op, arg, None) for op, arg in RETURN_NONE],
    ]


def test_a_value_to_return_goes_below_the_exception_by_one_swap() -> None:
    resolved = resolve_blocks(
        drafts(
            (SETUP_FINALLY, None, 3),
            (Op.LOAD, A),
            (Op.RETURN,),
            (Op.POP,),
            (Op.POP,),
            (Op.POP,),
            (Op.LOAD, B),
            (Op.SWAP, 4),
            (Op.SWAP, 3),
            (Op.SWAP, 2),
            (Op.POP_EXC,),
            (Op.RETURN,),
        )
    )
    assert [(draft.op, draft.arg) for draft in resolved[2:]] == [
        (Op.PUSH_EXC, None),
        (Op.POP, None),
        (Op.LOAD, B),
        (Op.SWAP, 2),
        (Op.POP_EXC, None),
        (Op.RETURN, None),
    ]


def test_the_handler_of_a_with_keeps_the_exit_function() -> None:
    resolved = resolve_blocks(
        drafts(
            (Op.LOAD, A),
            (Op.WITH,),
            (SETUP_WITH, None, 5),
            (Op.POP,),
            (Op.RAISE, 0),
            (Op.WITH_EXCEPT,),
            (Op.POP,),
            (RERAISE,),
        )
    )
    raising = next(draft for draft in resolved if draft.op is Op.RAISE)
    assert raising.handler is not None
    assert (raising.handler.depth, raising.handler.lasti) == (1, True)


def test_a_finally_body_has_a_copy_for_each_way_in() -> None:
    resolved = resolve_blocks(
        drafts(
            (SETUP_FINALLY, None, 9),
            (Op.LOAD, A),
            (Op.BRANCH, "false", 7),
            (POP_BLOCK,),
            (CALL_FINALLY, None, 9),
            (Op.CONST, 1),
            (Op.RETURN,),
            (POP_BLOCK,),
            (BEGIN_FINALLY,),
            (Op.LOAD, B),
            (Op.POP,),
            (END_FINALLY,),
            (Op.CONST, None),
            (Op.RETURN,),
        )
    )
    body = [(Op.LOAD, B), (Op.POP, None)]
    assert [(draft.op, draft.arg) for draft in resolved] == [
        (Op.LOAD, A),
        (Op.BRANCH, "false"),
        *body,
        (Op.CONST, 1),
        (Op.RETURN, None),
        *body,
        (Op.JUMP, None),
        (Op.PUSH_EXC, None),
        *body,
        (Op.RERAISE, None),
        *RETURN_NONE,
    ]
    offsets = [draft.offset for draft in resolved]
    assert offsets == sorted(offsets)
    loads = [draft for draft in resolved if draft.arg == B]
    assert len({draft.offset for draft in loads}) == 3
    assert {byte_offset(draft.offset) for draft in loads} == {18}


def nested_finally(depth: int, ops: List[Tuple[Any, ...]]) -> None:
    """A ``try`` that is left in two ways and by exceptions, with the next one in its ``finally`` body."""
    if depth == 0:
        ops.extend([(Op.LOAD, B), (Op.POP,)])
        return
    start = len(ops)
    ops.extend([(SETUP_FINALLY, None, start + 8), (Op.LOAD, A), (Op.BRANCH, "false", start + 6)])
    ops.extend([(POP_BLOCK,), (CALL_FINALLY, None, start + 8), (Op.JUMP, None, -1)])
    ops.extend([(POP_BLOCK,), (BEGIN_FINALLY,)])
    nested_finally(depth - 1, ops)
    ops.append((END_FINALLY,))
    ops[start + 5] = (Op.JUMP, None, len(ops))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_copies_multiply_where_finally_bodies_are_nested(depth: int) -> None:
    ops: List[Tuple[Any, ...]] = []
    nested_finally(depth, ops)
    resolved = resolve_blocks(drafts(*ops, *RETURN_NONE))
    assert sum(draft.arg == B for draft in resolved) == 3**depth


def test_too_many_copies_are_refused() -> None:
    ops: List[Tuple[Any, ...]] = []
    nested_finally(12, ops)
    with pytest.raises(ValueError, match="too many copies"):
        resolve_blocks(drafts(*ops, *RETURN_NONE))


@pytest.mark.parametrize(
    "ops",
    [
        [(Op.POP,), (POP_BLOCK,)],
        [(POP_BLOCK,), (Op.RETURN,)],
        [(Op.LOAD, A), (END_FINALLY,)],
        [(RERAISE,)],
        [(SETUP_FINALLY, None, 2), (Op.RAISE, 0), (Op.RETURN,)],  # would return the type of the exception
        [(SETUP_FINALLY, None, 2), (Op.RAISE, 0), (Op.POP_EXC,), (RERAISE,)],  # the exception lies on top of the state
        [(SETUP_FINALLY, None, 1), (Op.LOAD, A)],
    ],
)
def test_stacks_that_do_not_fit_are_refused(ops: List[Tuple[Any, ...]]) -> None:
    with pytest.raises(ValueError):
        resolve_blocks(drafts(*ops))
