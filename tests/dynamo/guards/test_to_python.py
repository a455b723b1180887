"""PyTorch's guard text becomes Python that checks the same, or nothing."""

from __future__ import annotations

import ast
import re
from typing import Any, Optional, Tuple

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from depyf.diagnosis.guard_text import read  # noqa: E402
from depyf.dynamo.guards import runtime as guard_runtime  # noqa: E402
from depyf.dynamo.guards.entry_guards import EntryGuards, header, live_table_of, namespace  # noqa: E402
from depyf.dynamo.guards.literals import literal_value  # noqa: E402
from depyf.dynamo.guards.live_values import LiveId, LiveTable, NotLiveError, live_table, register  # noqa: E402
from depyf.dynamo.guards.stable_expressions import Naming, tidy  # noqa: E402
from depyf.dynamo.guards.to_python import convert, convert_structure  # noqa: E402
from depyf.dynamo.guards.tree import ACCESS, DICT_MANAGER, TEXT, Check  # noqa: E402
from depyf.dynamo.hooks import cache_entries  # noqa: E402
from depyf.dynamo.store.names import StableNames  # noqa: E402

pytestmark = pytest.mark.torch


def check(kind: str, *parts: str, source: str = "L['x']", value_type: Optional[type] = None) -> Check:
    return Check(kind, source, parts, value_type, frozenset({source}))


def converted(kind: str, text: str, value_type: Optional[type] = None) -> Tuple[Optional[str], str]:
    """The expression and the user's line."""
    naming = Naming(StableNames().text)
    each = check(kind, text, value_type=value_type)
    guard = read(text)
    return convert(each, guard, naming), guard.user_line


@pytest.mark.parametrize(
    ("kind", "text", "value_type", "expected"),
    [
        ("EQUALS_MATCH", "L['x'] == 2    # y = x + 2  # a.py:1 in f", int, "___equals(L['x'], 2)"),
        ("EQUALS_MATCH", "L['x'] == 'a  # b'  # a.py:1 in f", str, "___equals(L['x'], 'a  # b')"),
        ("EQUALS_MATCH", "L['x'] == inf", float, "___equals(L['x'], float('inf'))"),
        ("EQUALS_MATCH", "L['x'] == device(type='cpu')", torch.device, "___equals(L['x'], torch.device(type='cpu'))"),
        ("EQUALS_MATCH", "L['x'] == {'b', 'a'}", set, "___equals(L['x'], {'a', 'b'})"),
        ("EQUALS_MATCH", "L['x'] == frozenset({'b', 'a'})", frozenset, "___equals(L['x'], frozenset({'a', 'b'}))"),
        ("TRUE_MATCH", "L['x'] == True", bool, "L['x'] is True"),
        ("FALSE_MATCH", "L['x'] == False", bool, "L['x'] is False"),
        ("NONE_MATCH", "L['x'] is None", None, "L['x'] is None"),
        ("NOT_NONE", "G['w']() is not None", None, "G['w']() is not None"),
        ("LENGTH_CHECK", "not L['x']", list, "len(L['x']) == 0"),
        ("LENGTH_CHECK", "len(L['x']) == 2", list, "len(L['x']) == 2"),
        ("DICT_LENGTH", "not L['x']", dict, "dict.__len__(L['x']) == 0"),
        (
            "SET_CONTAINS",
            "set.__contains__(L['x'], 1)",
            set,  # PyTorch 2.8 and 2.9 print the same for an item that must be absent
            "___set_contains(L['x'], 1)" if cache_entries.reports_absent_items() else None,
        ),
        (
            "SET_CONTAINS",
            "not set.__contains__(L['x'], 1)",
            set,
            "isinstance(L['x'], (set, frozenset)) and not ___set_contains(L['x'], 1)",
        ),
        (
            "TYPE_MATCH",
            "___check_type_id(L['x'], 94000000001), type=<class 'a.B'>",
            None,
            "___check_type_id(L['x'], ___ids['a.B'])",
        ),
        (
            "ID_MATCH",
            "___check_obj_id(L['x'].f, 94000000001), type=<class 'a.B'>",
            None,
            "___check_obj_id(L['x'].f, ___ids['x.f'])",
        ),
        (
            "ID_MATCH",
            "__check_obj_id(list(dict.keys(L['x']))[0], 94000000001)",
            None,
            "___check_obj_id(list(dict.keys(L['x']))[0], ___ids['list(dict.keys(x))[0]'])",
        ),
        (
            "FAKE_SCRIPT_TYPE_MATCH",
            "___check_fake_script_type(L['x'], 94000000001), type=<class 'a.B'>",
            None,
            "___check_fake_script_type(L['x'], ___ids['a.B'])",
        ),
        (
            "DUAL_LEVEL_MATCH",
            "torch.autograd.forward_ad._current_level == -1",
            None,
            "torch.autograd.forward_ad._current_level == -1",
        ),
        (
            "DISPATCH_KEY_SET_MATCH",
            "L['x'].raw_repr() == DispatchKeySet(CPU, AutogradCPU).raw_repr()",
            None,
            "str(L['x']) == 'DispatchKeySet(CPU, AutogradCPU)'",
        ),
        ("OBJECT_ALIASING", "L['x'] is L['y']", None, "L['x'] is L['y']"),
        ("NO_TENSOR_ALIASING", "check_no_aliasing(L['x'], L['y'])", None, "___check_no_aliasing(L['x'], L['y'])"),
        (
            "LAMBDA_GUARD",
            "torch._functorch.pyfunctorch.compare_functorch_state([('Vmap', 1, 'error')])",
            None,
            "torch._functorch.pyfunctorch.compare_functorch_state([('Vmap', 1, 'error')])",
        ),
        ("LAMBDA_GUARD", "a if L['x'] else L['y']", None, None),
        ("LAMBDA_GUARD", "L['a'] if L['x'] else L['y']", None, "(L['a'] if L['x'] else L['y'])"),
        ("LAMBDA_GUARD", "L['a'] or L['x']", None, "(L['a'] or L['x'])"),
        (
            "LAMBDA_GUARD_NO_ARGS",  # a class of some PyTorch between 2.8 and 2.12
            "torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ids == None",
            None,
            "___inlined_saved_tensors_hooks() is None",
        ),
        ("LAMBDA_GUARD", "___check_metadata_140665093637600_c0/0", None, None),
        ("LAMBDA_GUARD", "__dtensor_spec_140665093637600", None, None),
        ("EQUALS_MATCH", "L['x'] == <object object at 0x7f00>", object, None),
        ("EQUALS_MATCH", "L['x'] == Shard(dim=0)", object, None),
        ("EQUALS_MATCH", "L['x'] == 1 <= x <= 3", object, None),
        ("EQUALS_MATCH", "L['x'] == exit()", object, None),
        ("EQUALS_MATCH", "L['x'] == 2", float, None),
        ("EQUALS_MATCH", "L['x'] == (1, nan)", tuple, None),
        ("DICT_CONTAINS", "___dict_contains(<class 'int'>, L['x'])", None, None),
    ],
)
def test_text_becomes_the_expression_that_checks_the_same(
    kind: str, text: str, value_type: Optional[type], expected: Optional[str]
) -> None:
    expression, _ = converted(kind, text, value_type)
    assert expression == expected


def test_the_users_line_is_split_off() -> None:
    _, user_line = converted("EQUALS_MATCH", "L['x'] == '#'     # y = x  # a.py:3 in f (HINT: why)", str)
    assert user_line == "y = x  # a.py:3 in f (HINT: why)"


def test_names_with_an_id_are_looked_up_by_stable_names() -> None:
    naming = Naming(StableNames().text)
    text = "G['__state_140665093637600_c0'] is None"
    assert convert(check("NONE_MATCH", text), read(text), naming) == "G[___names['__state_0_c0']] is None"
    assert naming.names == {"__state_0_c0": "__state_140665093637600_c0"}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        # The set is written anew as a whole, with a name that has an id in it.
        ("f(L['s'], {'__import_x_139767862978176_c2', 'b'})", None),
        ("___equals(L['s'], {'b', 'a'})", "___equals(L['s'], {'a', 'b'})"),
        ("L['x'] == 1 if L['y'] else 2", "(L['x'] == 1 if L['y'] else 2)"),
        ("L['x'] == 1 if L['y'] else 2  # words", None),
        ("L['x'] == \\\n 2", None),
        ("L['x'] == (1,\n 2)", "L['x'] == (1,  2)"),
    ],
)
def test_what_is_written_is_python(expression: str, expected: Optional[str]) -> None:
    naming = Naming(lambda text: re.sub(r"\d{10,}", "N", text))
    assert tidy(expression, naming) == expected
    whole = tidy(expression.replace("f(", "___equals("), naming)
    assert whole is None or ast.parse(whole, mode="eval")


def test_two_objects_with_the_same_name_get_two_ids() -> None:
    naming = Naming(lambda text: text)
    assert naming.id_of("a.B", 1) == "___ids['a.B']"
    assert naming.id_of("a.B", 2) == "___ids['a.B#2']"
    assert naming.id_of("a.B", 1) == "___ids['a.B']"
    assert naming.id_of("a.B", 2) == "___ids['a.B#2']"


def test_dimension_marks_are_one_expression() -> None:
    absent = [f"hasattr(L['x'], '{mark}') == False" for mark in guard_runtime._MARKS[1:]]
    first = (
        "((getattr(L['x'], '_dynamo_dynamic_indices', set()).issubset({0, 1})) "
        "if hasattr(L['x'], '_dynamo_dynamic_indices') else True)  # x  # a.py:1 in f"
    )
    each = check("DIMENSION_DYNAMIC_MARKING_GUARD", first, *absent)
    expected = "___check_dimension_marks(L['x'], dynamic_indices={0, 1})"
    assert convert_structure(each, Naming(lambda text: text)) == expected


def test_marks_that_are_not_all_known_stay_single_expressions() -> None:
    each = check("DIMENSION_DYNAMIC_MARKING_GUARD", "hasattr(L['x'], '_dynamo_new_mark') == False")
    assert convert_structure(each, Naming(lambda text: text)) is None


@pytest.mark.parametrize(
    ("source", "accessor", "expected"),
    [
        ("L['o']", "GetAttrGuardAccessor(zz)", "hasattr(L['o'], 'zz')"),
        ("L['o'].zz", "GetAttrGuardAccessor(zz)", "___reads(L['o'].zz)"),
        ("L['d']['k']", "DictGetItemGuardAccessor('k')", "___reads(L['d']['k'])"),
    ],
)
def test_an_accessor_that_leads_nowhere_demands_its_value(source: str, accessor: str, expected: str) -> None:
    each = check(ACCESS, accessor, source=source)
    assert convert_structure(each, Naming(lambda text: text)) == expected


def test_a_dict_of_unknown_length_has_no_expression() -> None:
    naming = Naming(lambda text: text)
    assert convert_structure(Check(DICT_MANAGER, "L['d']", (), dict, frozenset()), naming) is None
    known = Check(DICT_MANAGER, "L['d']", (), dict, frozenset(), 2)
    assert convert_structure(known, naming) == "___check_dict(L['d'], ___ids['dict'], 2)"


@pytest.mark.parametrize(
    "text",
    [
        "(1, [2, {'a': (3+4j)}])",
        "-1",
        "torch.float32",
        "range(0, 3)",
        "{1: None}",
        "torch.Size([2])",
        "np.float64(2.0)",
    ],
)
def test_literals_have_values(text: str) -> None:
    found, value = literal_value(text)
    expected = eval(text, {"torch": torch, "np": np})
    assert found
    assert (type(value), value) == (type(expected), expected)


@pytest.mark.parametrize(
    "text",
    [
        "exit()",
        "torch.zeros(9)",
        "np.load('x')",
        "2 ** 9",
        "x",
        "torch.zeros(3).__class__()()",
        "[x for x in ()]",
        "<A at 0x0>",
        "1 2",
    ],
)
def test_what_is_no_literal_is_not_evaluated(text: str) -> None:
    assert literal_value(text) == (False, None)


def test_types_are_compared_by_name_where_ids_mean_nothing() -> None:
    table = LiveTable()
    assert guard_runtime.___check_type_id(1, table.ids["int"])
    assert not guard_runtime.___check_type_id(1.0, table.ids["int"])
    assert guard_runtime.___check_type_id({}, table.ids["dict#2"])


def test_objects_can_not_be_compared_where_ids_mean_nothing() -> None:
    with pytest.raises(NotLiveError, match="known only in the process that compiled"):
        guard_runtime.___check_obj_id(1, LiveTable().ids["one"])


def test_a_live_id_is_compared_as_a_number() -> None:
    value = object()
    live = LiveTable(ids={"value": id(value)})
    assert guard_runtime.___check_obj_id(value, live.ids["value"])
    assert not guard_runtime.___check_obj_id(object(), live.ids["value"])
    assert live.ids["value"] == LiveId("other name", id(value))


def test_a_guard_that_can_not_be_read_does_not_hold_but_one_that_is_not_live_says_so() -> None:
    guard = guard_runtime.___guard(lambda values: values["x"].y.z)
    assert guard({"x": 1}) is False

    def not_live(values: Any) -> bool:
        raise NotLiveError("elsewhere")

    with pytest.raises(NotLiveError):
        guard_runtime.___guard(not_live)({})


def test_a_file_gets_the_table_that_was_registered_for_it(tmp_path: Any) -> None:
    table = LiveTable(ids={"a": 1})
    register(str(tmp_path / "x.py"), table)
    assert live_table(str(tmp_path / "sub" / ".." / "x.py")) is table
    assert len(live_table(str(tmp_path / "other.py")).ids) == 0


def function(x: Any, n: int) -> Any:
    return x + n


def rendered(name: str = "guard", naming: Optional[Naming] = None) -> EntryGuards:
    from depyf.dynamo.hooks import cache_entries

    torch._dynamo.reset()
    torch.compile(function, backend="eager")(torch.ones(3), 2)
    return EntryGuards.of(cache_entries.cache_entries(function.__code__)[0].guard_manager, name, naming)


def test_a_guard_without_python_form_asks_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    from depyf.dynamo.guards import to_python as guards_text

    monkeypatch.setitem(guards_text.LEAVES, "TENSOR_MATCH", lambda *_: None)
    guards = rendered()
    if {line.kind for line in guards.lines} == {TEXT}:
        pytest.skip("PyTorch before 2.4 has no tree of guards, and none of its tensors has a guard of its own")
    asked = [line for line in guards.lines if line.live]
    # PyTorch before 2.6 does not tell what it compares the global state with either.
    assert {line.kind for line in asked} - {"GLOBAL_STATE"} == {"TENSOR_MATCH"}
    (tensor,) = [line for line in asked if line.kind == "TENSOR_MATCH"]
    assert tensor.expression == "___live.guard('guard', \"L['x']\")(L)"
    assert "not expressible" in guards.source()
    scope = guards.live.global_scope()
    assert guards.evaluate({"x": torch.ones(3), "n": 2}, scope)
    assert not guards.evaluate({"x": torch.ones(4), "n": 2}, scope)
    # Only the one value is asked about, where PyTorch can be asked about one (2.5 and later).
    failing = {line.kind for line in guards.failing({"x": torch.ones(4), "n": 3}, scope)}
    assert failing - {"GLOBAL_STATE"} == {"TENSOR_MATCH", "EQUALS_MATCH"}
    assert ("GLOBAL_STATE" in failing) == (not hasattr(guards.live._living().root, "clone_manager"))


def test_everything_can_be_asked_of_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    from depyf.dynamo.guards import entry_guards as guards

    monkeypatch.setattr(guards, "convert", lambda *_: None)
    monkeypatch.setattr(guards, "convert_structure", lambda *_: None)
    monkeypatch.setattr(guards, "_mode_stack", lambda *_: None)
    all_live = rendered()
    assert all(line.live for line in all_live.lines)
    assert all_live.evaluate({"x": torch.ones(3), "n": 2})
    assert not all_live.evaluate({"x": torch.ones(3), "n": 3})


def test_a_live_guard_whose_entry_is_gone_says_so() -> None:
    guards = rendered()
    if guards.lines[0].kind == TEXT:
        pytest.skip("PyTorch before 2.4 keeps the guards of an entry that is gone")
    torch._dynamo.reset()
    import gc

    gc.collect()
    with pytest.raises(NotLiveError, match="gone"):
        guards.live.check({"x": torch.ones(3), "n": 2})
    with pytest.raises(NotLiveError, match="gone"):
        guards.evaluate({"x": torch.ones(3), "n": 2})


def test_several_guard_functions_share_one_header() -> None:
    naming = Naming(lambda text: text)
    guards = [rendered(f"guard_{index}", naming) for index in range(2)]
    text = "\n".join([header(guards), *(each.source() for each in guards)])
    defined = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert defined == ["guard_0", "guard_1"]
    used = {"___check_tensor"} if guards[0].lines[0].kind != TEXT else {"___check_type_id"}
    assert set(namespace(guards, live_table_of(guards, naming))) > {"___live", "___ids", *used}


def test_an_invalidated_entry_lets_nothing_through() -> None:
    if not hasattr(torch._dynamo.guards, "DeletedGuardManagerWrapper"):
        pytest.skip("this PyTorch keeps the guards of an invalidated entry, and one of them fails")
    deleted = torch._dynamo.guards.DeletedGuardManagerWrapper("Cache line invalidated because L['m'] got deallocated")
    guards = EntryGuards.of(deleted, "guard")
    assert "False  # Cache line invalidated because L['m'] got deallocated" in guards.source()
    assert guards.evaluate({}, {}) is False


def test_guards_that_are_a_function_are_rendered_from_its_text() -> None:
    """As they are in PyTorch 2.2 and 2.3: one Python function with its text beside it."""

    def guard_function(frame_locals: Any) -> bool:
        raise AssertionError("it also asks about the call of the compiled function")

    guard_function.code_parts = [  # type: ignore[attr-defined]
        "___guarded_code.valid",
        "___check_global_state()",
        f"___check_type_id(L['n'], {id(int)})",
        "L['n'] == 2",
        f"L['x'].data_ptr() == {10**12}",
        "(___skip_backend_check() or ___current_backend() == ___lookup_backend(140490792078992))",
        "___check_tensors(L['x'], tensor_check_names=tensor_check_names)",
    ]
    parts = guard_function.code_parts  # type: ignore[attr-defined]
    guard_function.verbose_code_parts = [f"{part:<60}  # return x + n  # a.py:1 in f" for part in parts]  # type: ignore[attr-defined]
    state = {"enabled": True}
    guard_function.closure_vars = {  # type: ignore[attr-defined]
        "___guarded_code": type("Code", (), {"valid": True}),
        "___check_global_state": lambda: state["enabled"],
        "___check_type_id": lambda value, number: id(type(value)) == number,
        "___check_tensors": lambda x, tensor_check_names: x.shape == (3,),
        "tensor_check_names": ["x"],
    }
    guard_function.global_scope = {"G": {}}  # type: ignore[attr-defined]
    guards = EntryGuards.of(guard_function, "guard")
    assert [line.expression for line in guards.lines] == [
        "___live.guard('guard', '___guarded_code.valid')(L)",
        "___live.guard('guard', '___check_global_state()')(L)",
        "___check_type_id(L['n'], ___ids['n'])",
        "L['n'] == 2",
        "___live.guard('guard', \"L['x'].data_ptr() == ...\")(L)",
        "___live.guard('guard', \"___check_tensors(L['x'], tensor_check_names=tensor_check_names)\")(L)",
    ]
    assert {line.user_line for line in guards.lines} == {"return x + n  # a.py:1 in f"}

    class At:
        shape = (3,)

        def data_ptr(self) -> int:
            return 10**12

    assert guards.evaluate({"x": At(), "n": 2})
    assert guards.live.check({"x": At(), "n": 2})
    assert not guards.evaluate({"x": At(), "n": 3})
    assert not guards.evaluate({"x": At(), "n": 2.0})
    assert not guards.live.check({"x": object(), "n": 2})
    assert [line.code for line in guards.failing({"x": torch.ones(3), "n": 2})] == [parts[4]]
    state["enabled"] = False
    assert [line.code for line in guards.failing({"x": At(), "n": 2})] == ["___check_global_state()"]


def test_tensors_without_marked_dimensions_are_checked_together() -> None:
    def adds(one: Any, other: Any, third: Any, marked: Any) -> Any:
        return one + other + third + marked.sum()

    tensors = [torch.ones(2) for _ in range(4)]
    torch._dynamo.mark_static(tensors[3], 0)
    torch.compile(adds, backend="eager")(*tensors)
    (entry,) = cache_entries.cache_entries(adds.__code__)
    guards = EntryGuards.of(entry.guard_manager, "guard")
    if not any(line.expression.startswith("___check_dimension_marks") for line in guards.lines):
        pytest.skip("this PyTorch has no guard on them that is one for all kinds of marks")
    (line,) = (line for line in guards.source().splitlines() if "map(" in line)
    assert line.endswith("all(map(___check_dimension_marks, (L['one'], L['other'], L['third'])))  # 3 tensors")
    assert guards.evaluate(dict(zip(["one", "other", "third", "marked"], tensors)))
    torch._dynamo.mark_dynamic(tensors[1], 0)
    assert not guards.evaluate(dict(zip(["one", "other", "third", "marked"], tensors)))
