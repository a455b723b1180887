"""Groups of guards, and PyTorch's kinds in words."""

from __future__ import annotations

import pytest

from depyf.diagnosis.guard_groups import GROUPS, group_of, kind_in_words
from depyf.dynamo.guards.to_python import LEAVES, TEXT

CASES = [
    ("TENSOR_MATCH", "L['x']", "", "Tensors"),
    ("NO_TENSOR_ALIASING", "", "check_no_aliasing(L['x'], L['y'])", "Tensors"),
    ("SYMBOLIC_SHAPE_GUARD", "", "L['x'].size()[0] >= 2", "Sizes"),
    ("DIMENSION_DYNAMIC_MARKING_GUARD", "L['x']", "", "Marked dimensions"),
    ("GLOBAL_STATE", "", "___check_global_state()", "State of PyTorch"),
    ("LAMBDA_GUARD", "", "___check_torch_function_mode_stack()", "State of PyTorch"),
    ("LAMBDA_GUARD", "L['device']", "device == 1", "Conditions"),
    ("TYPE_MATCH", "L['self']._modules['up']", "", "Module structure"),
    ("DICT_LENGTH", "L['config']", "", "Lengths and keys"),
    ("ID_MATCH", "G['helper']", "", "Functions and classes"),
    ("EQUALS_MATCH", "L['n']", "L['n'] == 3", "Values"),
    ("SOMETHING_NEW", "L['n']", "", "Conditions"),
]


@pytest.mark.parametrize(("kind", "source", "text", "name"), CASES)
def test_a_guard_is_in_its_group(kind: str, source: str, text: str, name: str) -> None:
    assert GROUPS[group_of(kind, source, text)].name == name


def test_every_kind_of_guard_has_words() -> None:
    as_text = {"DATA_PTR_MATCH", "DISPATCH_KEY_SET_MATCH", "COMPLEX_IS_NAN", "FLOAT_IS_NAN", "FAKE_SCRIPT_TYPE_MATCH"}
    conditions = {each for each in LEAVES if each.startswith("LAMBDA_GUARD")} | {
        "RANGE_ITERATOR_MATCH",
        "TUPLE_ITERATOR_LEN",
    }
    kinds = {each for each in LEAVES if each != TEXT} - as_text - conditions
    assert [each for each in sorted(kinds) if kind_in_words(each) is None] == []
    assert kind_in_words("SOMETHING_NEW") is None
