"""Constants without a literal get their values where the name identifies the object."""

from __future__ import annotations

from types import CodeType
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from depyf.dynamo.dump.full_code.constants import Constants, constant_definition, constants_in  # noqa: E402
from depyf.dynamo.dump.full_code.original import Original  # noqa: E402
from depyf.dynamo.dump.full_code.story import Entry  # noqa: E402
from depyf.dynamo.guards.live_values import LiveTable  # noqa: E402

pytestmark = pytest.mark.torch


def code_with(*constants: Any) -> CodeType:
    code = compile("def f(): pass", "<test>", "exec").co_consts[0]
    return code.replace(co_consts=(None, *constants))


def entry(number: int, code: CodeType, source: str) -> Entry:
    return Entry(f"code_{number}", number, None, None, code, source, "")


def test_a_name_stands_for_the_only_constant_of_its_kind() -> None:
    code = code_with((1, torch.float64), "text")
    constants = Constants()
    assert constants.in_entry(entry(0, code, "return __const_dtype_0")).source == "return __const_dtype_0"
    constant = constants.known["__const_dtype_0"]
    assert constant.value is torch.float64
    assert constant_definition(constant) == ("__const_dtype_0 = torch.float64", False)
    table = LiveTable(constants={constant.name: (constant.code, constant.position)})
    assert table.constant("__const_dtype_0") == (True, torch.float64)
    assert table.constant("__const_dtype_1") == (False, None)


def test_one_name_for_two_objects_becomes_two_names() -> None:
    constants = Constants()
    sources = [
        constants.in_entry(entry(number, code_with(dtype), "f(__const_dtype_0)")).source
        for number, dtype in enumerate([torch.int8, torch.int16])
    ]
    assert sources == ["f(__const_dtype_0)", "f(__const_dtype_0_2)"]
    assert [constant.value for constant in constants.known.values()] == [torch.int8, torch.int16]
    original = Original("f", "f(__const_dtype_0)", "decompiled", {}, {"__const_dtype_0": torch.int16})
    assert constants.in_original(original, code_with(torch.int16)).source == "f(__const_dtype_0_2)"


def test_what_can_not_be_told_is_not_guessed() -> None:
    constants = Constants()
    told = constants.in_entry(entry(0, code_with(torch.int8, torch.int16), "f(__const_dtype_0, __const_dtype_1)"))
    assert constants.known == {}
    assert told.source == "f(__const_dtype_0, __const_dtype_1)"


def test_a_call_of_the_builtin_iter_is_written_so_if_no_other_object_is_called_so() -> None:
    def written(source: str, *constants: object) -> object:
        return Constants().in_entry(entry(0, code_with(*constants), source)).source

    assert written("return __const_iter_0(x)") == "return iter(x)"
    assert written("iter = 1\nreturn __const_iter_0(x)") == "iter = 1\nreturn __const_iter_0(x)"
    assert written("return __const_iter_0(x)", iter) == "return __const_iter_0(x)"


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (torch.device("cpu"), "device", "__const_device_0 = torch.device(type='cpu')"),
        (code_with(), "code", "__const_code_0 = ___placeholder('the code object of f')"),
        ({}, "dict", "__const_dict_0 = {}"),
        (object(), "object", "__const_object_0 = ___placeholder('an instance of builtins.object')"),
    ],
)
def test_the_definition_is_the_same_in_every_run(value: Any, kind: str, expected: str) -> None:
    name = f"__const_{kind}_0"
    constants = Constants()
    constants.in_entry(entry(0, code_with(value), f"return {name}"))
    assert constant_definition(constants.known[name])[0] == expected


def test_constants_of_nested_code_are_found() -> None:
    code = code_with(code_with(torch.int8))
    found = {position: value for value, position in constants_in(code)}
    assert found[1, 1] is torch.int8
