"""The meaning of guard conditions of PyTorch before 2.4, which only their text gives."""

from __future__ import annotations

import pytest

from depyf.diagnosis.guard_text import without_ids
from depyf.dynamo.guards.python_guards import source_of


@pytest.mark.parametrize(
    ("condition", "source"),
    [
        ("___check_obj_id(L['x'].flag, 139767862912352)", "L['x'].flag"),
        (without_ids("___check_type_id(L['n'], 139767862978176)"), "L['n']"),
        ("L['n'] == 2", "L['n']"),
        ("L['x'] is not None", "L['x']"),
        ("not L['self'].training", "L['self'].training"),
        ("set(L['d']['a'].keys()) == {'a', 'z'}", "L['d']['a']"),
        ("len(L['l']) == 2", "L['l']"),
        ("'a' in L['d']", "L['d']"),
        ("not ___dict_contains('a', G['sys'].modules)", "G['sys'].modules"),
        ("hasattr(L['x'], '_dynamo_dynamic_indices') == False", "L['x']"),
        ("___check_tensors(L['x'], L['y'], tensor_check_names=tensor_check_names)", ""),
        ("___check_global_state()", ""),
        ("___guarded_code.valid", ""),
        ("2 <= L['x'].size()[0] <= 7", ""),
        ("utils_device.CURRENT_DEVICE == None", ""),
        ("no Python (", ""),
    ],
)
def test_the_source_of_a_condition(condition: str, source: str) -> None:
    assert source_of(condition) == source
