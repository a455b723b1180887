"""Texts of guards become fields: the source, and the operands with the relation between them."""

from __future__ import annotations

import importlib
import re
import sys
from typing import Any, Tuple

import pytest

from depyf.diagnosis import guard_text
from depyf.diagnosis.guard_text import read

regex_parser: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")


@pytest.mark.parametrize(
    ("condition", "source"),
    [
        ("___check_obj_id(L['x'].flag, 139767862912352)", "L['x'].flag"),
        ("___check_type_id(L['n'], 139767862978176)", "L['n']"),
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
        ("2 <= L['x'].size()[0] <= 7", "L['x']"),
        ("utils_device.CURRENT_DEVICE == None", "utils_device.CURRENT_DEVICE"),
        ("no Python (", ""),
    ],
)
def test_the_source_of_a_condition(condition: str, source: str) -> None:
    assert read(condition).source == source


@pytest.mark.parametrize(
    ("code", "operands", "operators"),
    [
        ("L['n'] == 2", ("L['n']", "2"), ("==",)),
        ("L['n'] is not None", ("L['n']", "None"), ("is not",)),
        ("L['x'] is L['y']", ("L['x']", "L['y']"), ("is",)),
        ("L['x'] == Shard(dim=", ("L['x']", "Shard(dim="), ("==",)),  # not Python
        ("L['x'] == ' == '", ("L['x']", "' == '"), ("==",)),
        ("2 <= L['x'].size()[0]", ("2", "L['x'].size()[0]"), ("<=",)),
        ("2 <= L['x'].size()[0] <= 7", ("2", "L['x'].size()[0]", "7"), ("<=", "<=")),
        ("L['x'].size()[0] != L['y'].size()[0]", ("L['x'].size()[0]", "L['y'].size()[0]"), ("!=",)),
        ("'a' in L['d']", (), ()),
        ("not L['l']", (), ()),
    ],
)
def test_operands_and_their_relation_are_fields(
    code: str, operands: Tuple[str, ...], operators: Tuple[str, ...]
) -> None:
    guard = read(f"{code}  # y = x  # a.py:3 in f")
    assert (guard.operands, guard.operators) == (operands, operators)


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("not L['l']", ("L['l']",)),
        ("len(L['l']) == 2", ("L['l']",)),
        ("len(L['l'].f[0]()) == 2", ("L['l'].f[0]()",)),
        ("___tuple_iterator_len(L['it']) == 2", ("L['it']",)),
        ("not set.__contains__(L['s'], 'a')", ("L['s']", "'a'")),
        ("set.__contains__(L['s'], <class 'int'>)", ()),  # the name of the class is all that is left of it
        ("L['n'] == 2", ()),
    ],
)
def test_arguments_of_a_call_are_python(code: str, arguments: Tuple[str, ...]) -> None:
    assert read(code).arguments == arguments


@pytest.mark.parametrize(
    ("code", "sizes"),
    [
        ("L['x'].size()[0] == L['y'].size()[1]*2", ("L['x'].size()[0]", "L['y'].size()[1]")),
        ("L['x'].storage_offset() != 0", ("L['x'].storage_offset()",)),
        ("L['n'] > 3", ("L['n']",)),
        ("L['n'] == 3", ()),
    ],
)
def test_a_relation_has_the_values_that_it_compares(code: str, sizes: Tuple[str, ...]) -> None:
    assert read(code).sizes == sizes


def test_changed_settings_are_fields() -> None:
    changed = read("GLOBAL_STATE changed: autocast(cpu)_enabled grad_mode=False ").changed
    assert changed == (("autocast(cpu)_enabled", "", ("cpu", "enabled")), ("grad_mode", "False", None))


@pytest.mark.parametrize("rule", guard_text._RULES, ids=lambda rule: rule[0] or "any text")
def test_no_text_of_a_pattern_lacks_what_is_looked_for_first(rule: Tuple[str, Any, object]) -> None:
    """A pattern is tried where a text has the literal of its rule: it must be in all texts that the pattern matches."""
    literal, pattern, _ = rule
    parts = regex_parser.parse(*pattern._of)
    certain = "".join(chr(value) if str(operation) == "LITERAL" else "\0" for operation, value in parts)
    assert literal in certain
    assert re.compile(*pattern._of).search("\0") is None
