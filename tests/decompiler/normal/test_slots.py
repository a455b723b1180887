"""Values that take two slots of the stack take one in the normal form."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import pytest

from depyf.decompiler.bytecode.lines import Span
from depyf.decompiler.normal.draft import Draft
from depyf.decompiler.normal.ops import Handler, Op
from depyf.decompiler.normal.slots import SECOND_SLOT, forget_second_slots

Step = Tuple[Any, ...]


def drafts(*steps: Step, handler: Optional[Handler] = None) -> List[Draft]:
    """One draft an offset; a step is an operation, its argument, and the offset it may jump to."""
    return [
        Draft(
            step[0],
            step[1] if len(step) > 1 else None,
            offset,
            Span(1, None, 1, None),
            step[2] if len(step) > 2 else None,
            handler,
        )
        for offset, step in enumerate(steps)
    ]


def shown(result: List[Draft]) -> List[Step]:
    return [(draft.op, draft.arg) for draft in result]


def test_a_loop_left_with_a_value_drops_one_iterator() -> None:
    """3.15: ``SWAP 3; POP; POP`` below a value."""
    result = forget_second_slots(
        drafts(
            (Op.LOAD, ("fast", "y")),
            (Op.ITER,),
            (SECOND_SLOT,),
            (Op.FOR, False, 8),
            (Op.SWAP, 3),
            (Op.POP,),
            (Op.POP,),
            (Op.RETURN,),
            (Op.CONST, None),
            (Op.RETURN,),
        )
    )
    assert shown(result)[2:] == [
        (Op.FOR, False),
        (Op.SWAP, 2),
        (Op.POP, None),
        (Op.RETURN, None),
        (Op.CONST, None),
        (Op.RETURN, None),
    ]


def test_what_counts_slots_counts_one_less() -> None:
    handler = Handler(10, 3, False)
    steps = drafts(
        (Op.BUILD, ("list", 0)),
        (Op.LOAD, ("fast", "y")),
        (SECOND_SLOT,),
        (Op.COPY, 3),
        (Op.POP,),
        (Op.CONST, 1),
        (Op.ADD, ("list", 3)),
        (Op.POP,),
        (Op.POP,),
        (Op.RETURN,),
        (Op.RERAISE,),
    )
    steps[5].handler = handler
    result = forget_second_slots(steps)
    assert (Op.COPY, 2) in shown(result)
    assert (Op.ADD, ("list", 2)) in shown(result)
    assert [draft.handler.depth for draft in result if draft.handler is not None] == [2]


def test_the_exit_method_is_called_without_its_other_slot() -> None:
    result = forget_second_slots(
        drafts(
            (Op.LOAD, ("fast", "m")),
            (Op.WITH,),
            (SECOND_SLOT,),
            (Op.SWAP, 2),
            (Op.POP,),
            (Op.CONST, None),
            (Op.CONST, None),
            (Op.CONST, None),
            (Op.CALL, (3, (), "above")),
            (Op.RETURN,),
        )
    )
    assert shown(result)[1:3] == [(Op.WITH, None), (Op.POP, None)]
    assert (Op.CALL, (3, (), "")) in shown(result)


@pytest.mark.parametrize(
    "steps",
    [
        [(Op.LOAD, ("fast", "y")), (SECOND_SLOT,), (Op.UNARY, "-"), (Op.RETURN,)],
        [(Op.CONST, 1), (Op.SWAP, 3), (SECOND_SLOT,), (Op.RETURN,)],
        [(SECOND_SLOT,), ("SEND",), (Op.RETURN,)],
    ],
)
def test_a_second_slot_is_no_value(steps: List[Step]) -> None:
    with pytest.raises(ValueError):
        forget_second_slots(drafts(*steps))


def test_stacks_that_depend_on_the_way_are_refused() -> None:
    with pytest.raises(ValueError, match="depends on the path"):
        forget_second_slots(
            drafts(
                (Op.LOAD, ("fast", "y")),
                (Op.BRANCH, "true", 4),
                (SECOND_SLOT,),
                (Op.JUMP, None, 5),
                (Op.CONST, 1),
                (Op.CONST, 2),
                (Op.RETURN,),
            )
        )
