"""Calls in the form that Dynamo writes for CPython 3.8 to 3.10, and no compiler does: made by hand."""

from __future__ import annotations

import dis
import sys
from types import CodeType, FunctionType
from typing import Any, List, Tuple

import pytest

from depyf.decompiler import decompile_code
from depyf.decompiler.errors import DecompilationError
from depyf.decompiler.hints import Hints
from depyf.decompiler.result import Decompilation, Verdict

pytestmark = pytest.mark.skipif("CALL_FUNCTION_KW" not in dis.opmap, reason="bytecode of CPython 3.8 to 3.10")

HINTS = Hints(stable_globals=frozenset({"__resume_at_1", "__import_builtins"}))


def assembled(instructions: List[Tuple[str, int]], like: Any, **fields: Any) -> CodeType:
    pairs = [byte for name, argument in instructions for byte in (dis.opmap[name], argument)]
    code: CodeType = like.__code__.replace(co_code=bytes(pairs), co_stacksize=20, **fields)
    return code


def proved(code: CodeType) -> Decompilation:
    found = decompile_code(code, hints=HINTS)
    assert found.verdict.proved, (found.source, found.reason)
    return found


def test_local_variables_may_be_restored_between_the_names_of_keywords_and_the_call() -> None:
    def like(f: Any, x: Any, y: Any) -> Any:
        return f(x, y=y)

    code = assembled(
        [
            *(("LOAD_FAST", 0), ("LOAD_FAST", 1), ("LOAD_FAST", 2), ("LOAD_CONST", 1)),
            *(("LOAD_CONST", 2), ("STORE_FAST", 1), ("DELETE_FAST", 2)),
            *(("CALL_FUNCTION_KW", 2), ("LOAD_FAST", 1), ("BUILD_TUPLE", 2), ("RETURN_VALUE", 0)),
        ],
        like,
        co_consts=(None, ("y",), 7),
    )

    def callee(x: int, y: int) -> Any:
        return x, y

    assert FunctionType(code, {})(callee, 1, 2) == ((1, 2), 7)
    again = proved(code).compile_like(code)
    assert FunctionType(again, {})(callee, 1, 2) == ((1, 2), 7)


def test_names_of_keywords_that_are_jumped_past_are_refused() -> None:
    def like(f: Any, x: Any) -> Any:
        return f(y=x)

    call = 7 if sys.version_info >= (3, 10) else 14
    code = assembled(
        [
            *(("LOAD_FAST", 0), ("LOAD_FAST", 1), ("LOAD_CONST", 1), ("LOAD_FAST", 1), ("POP_JUMP_IF_FALSE", call)),
            *(("LOAD_CONST", 2), ("STORE_FAST", 1)),
            *(("CALL_FUNCTION_KW", 1), ("RETURN_VALUE", 0)),
        ],
        like,
        co_consts=(None, ("y",), 7),
    )
    with pytest.raises(DecompilationError, match="has no constant names"):
        decompile_code(code)


class Base:
    def method(self, x: Any) -> Any:
        return x


def test_a_function_is_called_that_has_just_been_made_under_a_name_of_dynamos() -> None:
    def around() -> Any:
        __class__ = Base

        def torch_dynamo_resume_in_f(___stack0: Any, self: Any) -> Any:
            return ___stack0, super(__class__, self).__init__

        def like(self: Any, x: Any) -> Any:
            return __class__

        return torch_dynamo_resume_in_f.__code__, like

    inner, like = around()
    code = assembled(
        [
            *(("LOAD_FAST", 0), ("LOAD_METHOD", 0), ("LOAD_FAST", 1), ("CALL_METHOD", 1)),
            *(("LOAD_CLOSURE", 0), ("BUILD_TUPLE", 1), ("LOAD_CONST", 1), ("LOAD_CONST", 2), ("MAKE_FUNCTION", 8)),
            *(("ROT_TWO", 0), ("LOAD_FAST", 0), ("CALL_FUNCTION", 2), ("RETURN_VALUE", 0)),
        ],
        like,
        co_consts=(None, inner, "__resume_at_12_70"),
        co_names=("method",),
    )
    found = decompile_code(code, hints=HINTS)
    assert found.verdict is Verdict.PLACEHOLDERS  # no text says that this function has another qualified name
    assert [each.value for each in found.placeholders] == ["__resume_at_12_70"]
    assert "def torch_dynamo_resume_in_f(___stack0, self):" in found.source
    again = found.compile_like(code)
    assert "__resume_at_12_70" in again.co_consts
    run = FunctionType(again, {"super": super}, None, None, like.__closure__)
    assert run(Base(), 3)[0] == 3


def test_what_has_been_called_dies_before_its_result_is_passed_on() -> None:
    def like(self: Any) -> Any:
        return self

    code = assembled(
        [
            *(
                ("LOAD_FAST", 0),
                ("LOAD_ATTR", 0),
                ("LOAD_FAST", 0),
                ("LOAD_ATTR", 1),
                ("CALL_FUNCTION", 0),
                ("POP_TOP", 0),
            ),
            *(("CALL_FUNCTION", 0), ("LOAD_GLOBAL", 2), ("ROT_TWO", 0), ("CALL_FUNCTION", 1), ("RETURN_VALUE", 0)),
        ],
        like,
        co_names=("first", "second", "__resume_at_1"),
    )
    assert "del first" in proved(code).source


@pytest.mark.skipif("RERAISE" not in dis.opmap, reason="bytecode of CPython 3.9 and 3.10")
def test_a_call_in_a_block_that_takes_what_lies_below_stays_in_the_block() -> None:
    def like(f: Any, leave: Any, x: Any) -> Any:
        return f(x)

    unit = 1 if sys.version_info >= (3, 10) else 2
    code = assembled(
        [
            *(("LOAD_FAST", 0), ("LOAD_FAST", 2), ("SETUP_FINALLY", 6 * unit), ("CALL_FUNCTION", 1), ("POP_BLOCK", 0)),
            *(("LOAD_FAST", 1), ("CALL_FUNCTION", 0), ("POP_TOP", 0), ("JUMP_FORWARD", 4 * unit)),
            *(("LOAD_FAST", 1), ("CALL_FUNCTION", 0), ("POP_TOP", 0), ("RERAISE", 0)),
            *(("LOAD_GLOBAL", 0), ("ROT_TWO", 0), ("CALL_FUNCTION", 1), ("RETURN_VALUE", 0)),
        ],
        like,
        co_names=("__resume_at_1",),
    )
    again = proved(code).compile_like(code)
    seen: List[str] = []
    run = FunctionType(again, {"__resume_at_1": lambda value: [*seen, value]})
    assert run(lambda x: seen.append("call") or x, lambda: seen.append("leave"), 3) == ["call", "leave", 3]
    with pytest.raises(ZeroDivisionError):
        run(lambda x: x / 0, lambda: seen.append("left"), 3)
    assert seen == ["call", "leave", "left"]
