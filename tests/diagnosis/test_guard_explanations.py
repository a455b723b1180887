"""Guards in words. The texts are PyTorch 2.13's own, printed by ``check_verbose`` and in its recompile reasons."""

from __future__ import annotations

from typing import Optional

import pytest

from depyf.diagnosis.changed_keys import with_changed_keys
from depyf.diagnosis.guard import Guard, GuardKind
from depyf.diagnosis.guard_advice import GuardedFrame
from depyf.diagnosis.guard_explanations import _EXPLANATIONS, WITHOUT_EXPLANATION, explain
from depyf.diagnosis.guard_sources import as_written
from depyf.diagnosis.guard_text import read

LINE = "                         # lambda x, n: x + n,  # tests/a.py:242 in <lambda>"

KNOWN = [
    ("tensor 'L['x']' size mismatch at index 1. expected 4, actual 5", "x", "4", "5", "x has size 5 in dimension 1"),
    ("tensor 'L['x']' rank mismatch. expected 2, actual 1", "x", "2", "1", "x has 1 dimension(s), and was"),
    (
        "tensor 'pair[1]' dtype mismatch. expected Float, actual Double",
        "pair[1]",
        "float32",
        "float64",
        "has dtype float64",
    ),
    ("tensor 'x' requires_grad mismatch. expected requires_grad=0", "x", "False", "True", "x requires grad, and was"),
    ("tensor 'x' stride mismatch at index 0. expected 4, actual 1", "x", "4", "1", "x has stride 1 in dimension 0"),
    (
        "expected type of 'L['m']._modules['0']._parameters['bias']' to be a tensor type, "
        "' but found <class 'NoneType'>",
        "m[0].bias",
        None,
        "None",
        "m[0].bias is None, and was a tensor",
    ),
    (
        "expected type of 'x' to be <class 'torch.Tensor'>, but found <class 'torch.nn.parameter.Parameter'>",
        "x",
        "torch.Tensor",
        "torch.nn.parameter.Parameter",
        "x is of class torch.nn.parameter.Parameter",
    ),
    (
        "tensor 'L['x']' dispatch key set mismatch. expected DispatchKeySet(CPU, AutogradCPU), actual "
        "DispatchKeySet(CPU, Conjugate, AutogradCPU)",
        "x",
        "CPU, AutogradCPU",
        "CPU, Conjugate, AutogradCPU",
        "its dispatch key set has Conjugate",
    ),
    ("Duplicate tensor found where not expected! ", "", None, None, "two arguments are the same tensor"),
    ("GLOBAL_STATE changed: grad_mode ", "", None, None, "grad mode has changed since"),
    ("GLOBAL_STATE changed: autocast(cpu)_dtype ", "", None, None, "the dtype of autocast for the CPU has changed"),
    (
        "GLOBAL_STATE changed: autocast(cuda)_enabled=True",
        "",
        "off",
        "on",
        "autocast for CUDA is on; this entry was compiled with autocast for CUDA off",
    ),
    (
        "GLOBAL_STATE changed: grad_mode=False default_dtype=torch.float64",
        "",
        None,
        None,
        "grad mode is off; this entry was compiled with grad mode on; the default dtype is torch.float64",
    ),
    (
        "tensor 'L['x']' dispatch key set mismatch. expected DispatchKeySet(CPU, AutogradCPU), actual "
        "DispatchKeySet(CPU, AutogradCPU, AutocastCPU)",
        "x",
        "CPU, AutogradCPU",
        "CPU, AutogradCPU, AutocastCPU",
        "x comes under autocast; it did not when this entry was compiled (AutocastCPU)",
    ),
    ("___check_torch_function_mode_stack()", "", None, None, "the active torch function modes"),
    ("KeyError on L['d']['a']", "d['a']", None, "missing", "d['a'] is missing, and was there when this was compiled"),
    ("len(L['d']) != 2", "d", "2", None, "d has a different number of keys; it was compiled for 2"),
    (
        "CodeGuardAccessor: Not a function on L['fn'].__code__",
        "fn",
        "function",
        None,
        "fn is not a function of Python, and was one when this was compiled",
    ),
    ("TYPE_MISMATCH(L['d'])", "d", None, None, "d is of another class"),
    (
        "_dynamo_dynamic_indices not a subset: runtime {0, 1} is not a subset of compiled {0}",
        "",
        "{0}",
        "{0, 1}",
        "dimensions {0, 1} of a tensor are marked",
    ),
    ("___check_type_id(L['n'], 14036), type=<class 'int'>" + LINE, "n", "int", None, "n is not a int"),
    (
        "___check_obj_id(G['helper'].__code__, 14), type=<class 'code'>" + LINE,
        "helper",
        None,
        None,
        "helper is another",
    ),
    ("L['n'] == 2" + LINE, "n", "2", None, "n is not 2, which it was compiled for"),
    ("L['mode'] == 'a  # b'" + LINE, "mode", "'a  # b'", None, "mode is not 'a  # b'"),
    ("L['bias'] is None", "bias", "None", "not None", "bias is not None, and was compiled for None"),
    ("L['x'] is L['y']", "x", None, None, "x and y are not the same object"),
    ("len(L['items']) == 2" + LINE, "items", "2", None, "items has another number of items, and was compiled for 2"),
    ("not L['items']", "items", "empty", None, "items is not empty"),
    ("not ___dict_contains('z', L['d'])", "d", "lacked", "has", "d has 'z', which it lacked"),
    ("set.__contains__(L['s'], 1)", "s", "had", "lacks", "s lacks 1, which it had"),
    ("not hasattr(L['o'], 'absent')", "o.absent", "lacked", "has", "o has the attribute absent"),
    ("list(dict.keys(L['d']))[3] == <class 'int'>", "d", "int", None, "the keys of d, or their order, have changed"),
    ("(type(L['n']) is float and __math_isnan(L['n']))", "n", "nan", None, "n is not nan"),
    ("not math.isnan(___from_numpy(L['n']).item())", "n", None, None, "n is nan"),
    ("int(L['n']) == 2", "n", "2", None, "int(n) is not 2"),
    ("___tuple_iterator_len(L['it']) == 3", "it", "3", None, "the number of items left in it is not 3"),
    ("___normalize_range_iter(L['it']) == (0, 4, 1)", "it", "(0, 4, 1)", None, "the state of the iterator it"),
    ("2 <= L['x'].size()[0] <= 19  # if x.shape[0] % 3:  # a.py:2 in f", "x", None, None, "2 <= x.size()[0] <= 19"),
    ("L['module'].training == True", "module.training", "True", None, "module.training is not True"),
    ("2 <= L['n']  # if n > 1:  # a.py:2 in f", "n", None, None, "it was compiled for 2 <= n, which does not hold"),
    ("L['n'] != 0", "n", None, None, "it was compiled for n != 0, which does not hold"),
    ("'a' in L['d']", "d", "had", "lacks", "d lacks 'a', which it had when this was compiled"),
    (
        "hasattr(L['x'], '_dynamo_dynamic_indices') == False",
        "x",
        None,
        None,
        "the marked dimensions (dynamic_indices) of x are different; it was compiled for none",
    ),
    (
        "((L['x']._dynamo_dynamic_indices.issubset({0})) if hasattr(L['x'], '_dynamo_dynamic_indices') else True)",
        "x",
        "{0}",
        None,
        "the marked dimensions (dynamic_indices) of x are different; it was compiled for marks on {0}",
    ),
    (
        "___check_fake_script_type(L['x'], 94000000001), type=<class 'a.B'>",
        "x",
        "a.B",
        None,
        "x is not a a.B, which it was compiled for",
    ),
    ("BACKEND_MATCH failure: torch.compile detected", "", None, None, "another backend callable"),
]


@pytest.mark.parametrize(("text", "subject", "before", "now", "words"), KNOWN)
def test_what_torch_says_in_words(
    text: str, subject: str, before: Optional[str], now: Optional[str], words: str
) -> None:
    told = explain(read(text))
    assert (told.subject, told.before, told.now) == (subject, before, now)
    assert words in told.words
    assert told.advice


def test_a_value_that_is_known_is_told() -> None:
    told = explain(read("L['n'] == 2").with_actual("3"))
    assert told.words == "n is 3, and was compiled for 2"
    assert told.now == "3"


@pytest.mark.parametrize("text", ["something new", "a b c == ", "f(L['x'])", "", "lambda: 3"])
def test_what_is_not_known_comes_back_as_it_is(text: str) -> None:
    assert explain(read(text)).words == f"this does not hold: {as_written(text)}"


def test_the_users_line_behind_a_guard() -> None:
    guard = read("n == 2" + LINE)
    assert (guard.code, guard.user_code, guard.location) == ("n == 2", "lambda x, n: x + n,", ("tests/a.py", 242))
    assert guard.user_line == "lambda x, n: x + n,  # tests/a.py:242 in <lambda>"
    assert read("L['n'] == 'no # comment'").location is None


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("L['self']._modules['layers']._modules['0']._parameters['weight']", "self.layers[0].weight"),
        ("G['SETTINGS']['a']", "SETTINGS['a']"),
        ("L['self']._modules['odd name']", "self.'odd name'"),
    ],
)
def test_sources_as_users_write_them(source: str, written: str) -> None:
    assert as_written(source) == written


def test_every_kind_has_an_explanation_or_is_listed() -> None:
    missing = set(GuardKind) - set(_EXPLANATIONS) - WITHOUT_EXPLANATION
    assert not missing, f"_EXPLANATIONS in diagnosis/guard_explanations.py has no row for {missing}"
    assert not set(_EXPLANATIONS) & WITHOUT_EXPLANATION


@pytest.mark.parametrize("kind", GuardKind)
def test_a_guard_of_which_only_the_kind_is_known_is_explained(kind: GuardKind) -> None:
    told = explain(Guard(kind, "L['x']", operands=("L['x']", "L['y']"), code="its text"))
    assert "its text" in told.words if kind in WITHOUT_EXPLANATION else told.words
    assert "{" not in told.words


@pytest.mark.parametrize(
    "text",
    [
        "len() == 2",
        f"len(L['d']) != {'9' * 5000}",
        f"len(L['d']) == {'9' * 5000}",
        "len(L['d']) == ²",
        f"___check_obj_id(L['x'], {'9' * 5000})",
        "hasattr() == 1",
        "___tuple_iterator_len() == 2",
        *("L['x']" + "[0]" * depth + " == 1" for depth in (400, 5000)),
        *("not " * depth + "L['x']" for depth in (400, 5000)),
        "+".join(["L['x'].size()[0]"] * 1000) + " == 3",
        "L['x'] == " + "(" * 150 + "1" + ")" * 150,
    ],
)
def test_damaged_and_hostile_logs_raise_nothing(text: str) -> None:
    told = explain(read(text))
    assert told.words
    with_changed_keys(told, {"'a'"}, None, GuardedFrame(keywords="d"))


CHECKED = [
    ("L['n'] == 3", "n"),
    ("L['self'].training == True", "self.training"),
    ("len(L['xs']) == 3", "length of xs"),
    ("tensor 'L['x']' size mismatch at index 0. expected 4, actual 6", "size of x in dimension 0"),
    ("tensor 'L['x']' dtype mismatch. expected Float, actual Double", "dtype of x"),
    ("something unknown", "something unknown"),
]


@pytest.mark.parametrize(("text", "checked"), CHECKED)
def test_what_was_compared_has_no_values(text: str, checked: str) -> None:
    assert explain(read(text)).checked == checked
