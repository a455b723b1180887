"""Groups of guards, and descriptions of PyTorch's kinds."""

from __future__ import annotations

import pytest

from depyf.diagnosis.guard_groups import _WORDS, GROUPS, group_of, kind_in_words
from depyf.dynamo.guards.to_python import LEAVES

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


def test_words_are_of_kinds_that_are_known_and_of_the_others_the_text_is_shown() -> None:
    assert set(_WORDS) <= set(LEAVES)
    assert kind_in_words("TENSOR_MATCH") == "properties of a tensor"
    assert kind_in_words("LAMBDA_GUARD") is None
    assert kind_in_words("SOMETHING_NEW") is None
