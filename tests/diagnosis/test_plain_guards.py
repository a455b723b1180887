"""Guards that are read by patterns give the same as Python's parser."""

from __future__ import annotations

import ast

import pytest

from depyf.diagnosis.guard_expressions import read_expression
from depyf.diagnosis.plain_guards import names_of_plain, read_plain

VALUE = "L['self']._modules['bert']._modules['layer']._modules['0']"
READ = [
    f"{VALUE}.training == True",
    f"{VALUE}.inplace == False",
    f"{VALUE}.padding_idx == 0",
    f"{VALUE}.n == -12",
    f"{VALUE}.norm is None",
    "G['a'].b[3] is not None",
    f"___dict_contains('forward', {VALUE}.__dict__)",
    f"not ___dict_contains('forward', {VALUE}.__dict__)",
    "L['n'] == 5",
    "L['n'] == None",
    f"{VALUE}.eps == 1e-12",
    f"{VALUE}.p == 0.1",
    f"{VALUE}.normalized_shape == (64,)",
    f"len({VALUE}) == 6",
    f"not hasattr({VALUE}, 'is_causal')",
    f"hasattr({VALUE}, 'is_causal')",
    f"{VALUE}.__class__.__name__ == 'BertLayer'",
    "L['mode'] == ''",
    "L['mode'] == 'a is b'",
    f"list(dict.keys({VALUE}._modules))[0] == '0'",
    "list(dict.keys(L['d']))[12] == 7",
]
NOT_READ = [
    f"{VALUE}.class == True",
    "L['it\\'s'] == 5",
    'L["n"] == 5',
    "L['n'] == 05",
    "L['x'].size() == 5",
    "len(L['n']) == 05",
    "L['n'] == 0.10",
    "L['n'] == 1e-03",
    "hasattr(L['n'], 'a b')",
    "L['n'] != 5",
    "L['n'] == 5 ",
    "L['n'] is Nonesuch",
    "L['n'] == 5\n",
    "not L['n']",
    "L['n'] == 'it\\'s'",
    "L['n'] == 'a == b'",
    "list(dict.keys(L['d']))[01] == 'a'",
    "list(dict.keys(L['d'])) == ['a']",
    "L['n'] == 1\u0663",  # a digit that is none for the parser
    "L['n'][1\u0663] is None",
    "L['n'].x\ufb01 == 1",  # for the parser it is xfi
]


@pytest.mark.parametrize("code", READ)
def test_the_guard_is_that_of_the_parser(code: str) -> None:
    assert read_plain(code) == read_expression(code)


@pytest.mark.parametrize("code", NOT_READ)
def test_other_forms_are_left_to_the_parser(code: str) -> None:
    assert read_plain(code) is None


PYTHON = [
    "___check_type_id(L['self'], ___ids['a.b.C'])",
    f"hasattr({VALUE}, 'x')",
    f"not ___dict_contains('forward', {VALUE}.__dict__)",
    f"{VALUE}.inplace is False",
    "___equals(L['x'].eps, 1e-12)",
    "___equals(L['x'].shape, (64,))",
    "___check_tensor(L['x'], 'Parameter', 'CPU, AutogradCPU', torch.float32, device=None, requires_grad=True, "
    "size=[1, None], stride=[])",
    "len(G['x'].y) == 1",
    "___reads(L['x'].y)",
]
NOT_PYTHON = [
    "___check(L['x'], a=1, 2)",
    "___check(L['x'].class)",
    "___check(L['x'], <class 'a'>)",
    "___check(inf)",
    "___check(device='cpu', type=device)",
    "___check({'b', 'a'})",
    "L['x'].n == 1 or L['y'].n == 1",
    "(lambda: 1)()",
    "___check(L['x'], 01)",
    "___check(L['x'])\n",
    "",
    "___check(L['x'], if=1)",
    "___check(L['x'], torch.if)",
    "___check(a=1, b=1, a=1)",
    "L['x'].x\ufb01 == 1",
    "L['x'] == 1\u0663",
]


@pytest.mark.parametrize("expression", PYTHON)
def test_the_names_are_those_of_the_syntax_tree(expression: str) -> None:
    tree = ast.parse(expression, mode="eval")
    assert names_of_plain(expression) == {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


@pytest.mark.parametrize("expression", NOT_PYTHON)
def test_what_may_be_no_python_or_needs_an_edit_has_no_names_here(expression: str) -> None:
    assert names_of_plain(expression) is None
