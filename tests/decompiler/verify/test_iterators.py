"""An iterator that is a plain value, as Dynamo has: text calls the builtin ``iter`` itself."""

from __future__ import annotations

from types import FunctionType
from typing import Any, List

import pytest
from hand_made import Line, hand_made
from operations import CALL_G, Step, listing, local, proved

from depyf.decompiler import decompile_code
from depyf.decompiler.bytecode.opcode_table import running_version
from depyf.decompiler.normal.ops import NormalCode, Op

RETURN: Step = (Op.RETURN,)
MADE = listing(local("a"), (Op.ITER,), RETURN)


def called(function: object, *arguments: Step, keywords: Any = ()) -> NormalCode:
    return listing(
        (Op.NULL,), (Op.CONST, function), *arguments, (Op.CALL, (len(arguments), keywords, "below")), RETURN
    )  # fmt: skip


def test_the_builtin_makes_the_iterator_that_the_operation_makes() -> None:
    assert proved(MADE, called(iter, local("a")))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(called(iter, local("b")), id="of another value"),
        pytest.param(called(iter, local("a"), local("b")), id="until a value"),
        pytest.param(called(iter, local("a"), keywords=("a",)), id="with a keyword"),
        pytest.param(called(next, local("a")), id="another builtin"),
        pytest.param(called(lambda a: iter(a), local("a")), id="another function"),
        pytest.param(
            listing((Op.NULL,), (Op.LOAD, ("global", "iter")), local("a"), (Op.CALL, (1, (), "below")), RETURN),
            id="a global of the name",
        ),
        pytest.param(listing(local("a"), (Op.ITER,), (Op.ITER,), RETURN), id="twice"),
        pytest.param(listing(local("a"), RETURN), id="not at all"),
    ],
)
def test_other_calls_are_refused(other: NormalCode) -> None:
    assert not proved(MADE, other)


def test_when_the_iterator_is_made_matters() -> None:
    now = listing(local("a"), (Op.ITER,), *CALL_G, (Op.CALL, (0, (), "below")), (Op.POP,), RETURN)
    assert proved(
        now,
        listing(
            *((Op.NULL,), (Op.CONST, iter), local("a"), (Op.CALL, (1, (), "below"))),
            *(*CALL_G, (Op.CALL, (0, (), "below")), (Op.POP,), RETURN),
        ),
    )
    assert not proved(
        now,
        listing(
            *(*CALL_G, (Op.CALL, (0, (), "below")), (Op.POP,)),
            *((Op.NULL,), (Op.CONST, iter), local("a"), (Op.CALL, (1, (), "below")), RETURN),
        ),
    )


START: List[Line] = [("RESUME", 0)] if running_version() >= (3, 11) else []


@pytest.mark.skipif(running_version() >= (3, 15), reason="GET_ITER makes two values")
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([("LOAD_FAST", 0), "GET_ITER"], id="returned"),
        pytest.param([("LOAD_FAST", 0), "GET_ITER", ("BUILD_TUPLE", 1)], id="in a display"),
        pytest.param([("LOAD_FAST", 0), "GET_ITER", ("STORE_FAST", 0), ("LOAD_FAST", 0)], id="stored"),
        pytest.param([("LOAD_FAST", 0), ("LOAD_FAST", 0), "GET_ITER", "POP_TOP"], id="dropped"),
    ],
)
def test_the_text_makes_it_where_the_bytecode_does(steps: List[Line]) -> None:
    code = hand_made([*START, *steps, "RETURN_VALUE"], ("a",))
    found = decompile_code(code)
    assert found.verdict.code_proved, (found.reason, found.source)
    assert "__const_iter_0(a)" in found.source

    class Counted:
        made = 0

        def __iter__(self) -> Any:
            self.made += 1
            return iter(())

    for each in (code, found.compile_like()):
        counted = Counted()
        FunctionType(each, {})(counted)
        assert counted.made == 1
