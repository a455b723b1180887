"""Every kind of guard of this PyTorch is read, explained and checked in Python; an unknown one does no harm."""

from __future__ import annotations

from typing import Any, Dict, Tuple

import pytest

torch = pytest.importorskip("torch")

from torch_versions import HAS_GUARD_TREES  # noqa: E402

import depyf  # noqa: E402
from depyf.diagnosis import guard_text  # noqa: E402
from depyf.diagnosis.guard import GuardKind  # noqa: E402
from depyf.diagnosis.guard_explanations import WITHOUT_EXPLANATION  # noqa: E402
from depyf.diagnosis.guard_text import read  # noqa: E402
from depyf.dynamo.guards import entry_guards, to_python  # noqa: E402
from depyf.dynamo.guards.entry_guards import EntryGuards  # noqa: E402
from depyf.dynamo.guards.stable_expressions import Naming  # noqa: E402
from depyf.dynamo.guards.to_python import LEAVES, convert  # noqa: E402
from depyf.dynamo.guards.tree import TEXT, Check  # noqa: E402
from depyf.dynamo.hooks import cache_entries  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]

ABSTRACT = frozenset(("LeafGuard", "RelationalGuard"))
NUMBER = 94000000001
TENSOR = "check_tensor(L['x'], Tensor, DispatchKeySet(CPU), torch.float32, device=None, requires_grad=False, "

SAMPLES: Dict[str, Tuple[str, GuardKind]] = {
    "COMPLEX_IS_NAN": ("(type(L['z']) is complex and __numpy_isnan(L['z']))", GuardKind.NAN),
    "DATA_PTR_MATCH": (f"L['x'].data_ptr() == {NUMBER}", GuardKind.NUMBER),
    "DEFAULT_DEVICE": ("utils_device.CURRENT_DEVICE == None", GuardKind.CHOICE),
    "DICT_CONTAINS": ("not ___dict_contains('z', L['d'])", GuardKind.CONTAINS),
    "DICT_LENGTH": ("len(L['d']) == 2", GuardKind.LENGTH),
    "DICT_VERSION": ("___dict_version(L['d']) == 7", GuardKind.NUMBER),
    "DIMENSION_DYNAMIC_MARKING_GUARD": ("hasattr(L['x'], '_dynamo_dynamic_indices') == False", GuardKind.MARKS),
    "DISPATCH_KEY_SET_MATCH": ("L['x'].raw_repr() == DispatchKeySet(CPU).raw_repr()", GuardKind.DISPATCH_KEYS),
    "DUAL_LEVEL_MATCH": ("torch.autograd.forward_ad._current_level == -1", GuardKind.NUMBER),
    "DYNAMIC_INDICES": (
        "((L['x']._dynamo_dynamic_indices.issubset({0})) if hasattr(L['x'], '_dynamo_dynamic_indices') else True)",
        GuardKind.MARKS,
    ),
    "EQUALS_MATCH": ("L['n'] == 2", GuardKind.NUMBER),
    "FAKE_SCRIPT_TYPE_MATCH": (f"___check_fake_script_type(L['x'], {NUMBER})", GuardKind.FAKE_SCRIPT_CLASS),
    "FALSE_MATCH": ("L['flag'] == False", GuardKind.CHOICE),
    "FLOAT_IS_NAN": ("(type(L['n']) is float and __math_isnan(L['n']))", GuardKind.NAN),
    "GLOBAL_STATE": ("___check_global_state()", GuardKind.GLOBAL_STATE),
    "ID_MATCH": (f"___check_obj_id(L['f'], {NUMBER}), type=<class 'function'>", GuardKind.IDENTITY),
    "LAMBDA_GUARD": ("2 <= L['x'].size()[0]", GuardKind.RELATION),
    "LAMBDA_GUARD_NO_ARGS": (
        "torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ids == None",
        GuardKind.HOOKS,
    ),
    "LAMBDA_GUARD_NO_FRAMELOCALS": ("__math_isnan(L['n'])", GuardKind.NAN),
    "LENGTH_CHECK": ("not L['items']", GuardKind.EMPTY),
    "MAPPING_KEYS_MATCH": ("list(L['m'].keys()) == ['a']", GuardKind.KEYS),
    "NONE_MATCH": ("L['x'] is None", GuardKind.NONE),
    "NOT_NONE": ("L['x'] is not None", GuardKind.NONE),
    "NO_HASATTR": ("not hasattr(L['o'], 'absent')", GuardKind.ATTRIBUTE),
    "NO_TENSOR_ALIASING": ("check_no_aliasing(L['x'], L['y'])", GuardKind.ALIASING),
    "OBJECT_ALIASING": ("L['x'] is L['y']", GuardKind.SAME_OBJECT),
    "RANGE_ITERATOR_MATCH": ("___normalize_range_iter(L['it']) == (0, 4, 1)", GuardKind.ITERATOR_STATE),
    "SET_CONTAINS": ("set.__contains__(L['s'], 1)", GuardKind.CONTAINS),
    "STORAGE_OVERLAPPING": ("check_overlapping(overlapping=[L['x']], non_overlapping=[])", GuardKind.ALIASING),
    "SYMBOLIC_SHAPE_GUARD": ("L['y'].size()[0] == L['x'].size()[0]", GuardKind.RELATION),
    "TENSOR_ALIASING": ("L['x'] is L['y']", GuardKind.SAME_OBJECT),
    "TENSOR_MATCH": (f"{TENSOR}size=[3, None], stride=[4, 1])", GuardKind.TENSOR),
    "TORCH_FUNCTION_MODE_STACK": ("___check_torch_function_mode_stack()", GuardKind.MODES),
    "TRUE_MATCH": ("L['flag'] == True", GuardKind.CHOICE),
    "TUPLE_ITERATOR_LEN": ("___tuple_iterator_len(L['it']) == 3", GuardKind.ITERATOR_LENGTH),
    "TYPE_MATCH": (f"___check_type_id(L['n'], {NUMBER}), type=<class 'int'>", GuardKind.CLASS),
}
"""What each class of guards of PyTorch prints, and the kind of guard that it is."""


def test_every_class_of_guards_of_this_pytorch_has_a_row() -> None:
    if not HAS_GUARD_TREES:
        pytest.skip("PyTorch before 2.4 has no classes of guards")
    classes = vars(torch._C._dynamo.guards)
    base = classes["LeafGuard"]
    leaves = {name for name, each in classes.items() if isinstance(each, type) and issubclass(each, base)} - ABSTRACT
    missing = leaves - set(LEAVES)
    assert not missing, f"LEAVES in dynamo/guards/to_python.py has no row for {sorted(missing)} (docs/recipes.md)"


def test_every_row_has_a_sample() -> None:
    differ = (set(LEAVES) - {TEXT}) ^ set(SAMPLES)
    assert not differ, f"LEAVES in dynamo/guards/to_python.py and SAMPLES differ: {sorted(differ)}"


@pytest.mark.parametrize("leaf", SAMPLES)
def test_what_a_class_of_guards_prints_is_read(leaf: str) -> None:
    text, kind = SAMPLES[leaf]
    guard = read(f"{text}  # y = x  # a.py:1 in f")
    assert guard.kind is kind, "a rule in _RULES of diagnosis/guard_text.py reads it"
    assert (guard.code, guard.location) == (text, ("a.py", 1))
    assert kind not in WITHOUT_EXPLANATION or kind in (GuardKind.TENSOR, GuardKind.ALIASING)
    assert kind in (GuardKind.MODES, GuardKind.GLOBAL_STATE) or guard.source or guard.operands or guard.code


def function(x: Any, n: int) -> Any:
    return x + n


@pytest.fixture
def compiled() -> Any:
    each = torch.compile(function, backend="eager", dynamic=False)
    each(torch.ones(3), 2)
    return each


def test_of_a_class_that_is_not_known_pytorch_is_asked(compiled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(to_python, "LEAVES", {})
    assert convert(Check("NEW_MATCH", "L['n']", (), int, frozenset()), read("L['n'] > 1"), Naming(str)) is None
    (entry,) = cache_entries.cache_entries(function.__code__)
    guards = EntryGuards.of(entry.guard_manager, "guard")
    assert any(line.live for line in guards.lines)
    assert guards.evaluate({"x": torch.ones(3), "n": 2}, globals())
    assert not guards.evaluate({"x": torch.ones(3), "n": 3}, globals())
    assert "n is 3, and was compiled for 2" in str(depyf.why(compiled, torch.ones(3), 3))


def test_text_that_is_not_known_is_shown_as_it_is(compiled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_text, "read_plain", lambda _: None)
    monkeypatch.setattr(guard_text, "_RULES", [])
    monkeypatch.setattr(guard_text, "read_expression", lambda _: guard_text.Guard(GuardKind.UNKNOWN))
    caches = (guard_text.read, guard_text._read_code)
    for cache in caches:
        cache.cache_clear()
    (entry,) = depyf.why(compiled, torch.ones(3), 3).entries
    for cache in caches:
        cache.cache_clear()
    assert entry.failed[0].explanation.words.startswith("this does not hold: n == 2")


def test_a_guard_that_prints_nothing_is_named_by_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    check = Check("NEW_MATCH", "L['n']", (), int, frozenset({"L['n']"}))
    monkeypatch.setattr(entry_guards, "checks_of", lambda _: iter([check]))
    (line,) = EntryGuards.of(function, "guard").lines
    assert (line.live, line.code, line.guard.kind) == (True, "NEW_MATCH of L['n']", GuardKind.UNKNOWN)
