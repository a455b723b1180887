"""The guard functions of depyf decide as PyTorch does, for every kind of guarded value."""

from __future__ import annotations

import contextlib
import importlib.util
import re
import sys
from pathlib import Path
from types import CodeType
from typing import Any, List, Tuple

import pytest

torch = pytest.importorskip("torch")

from torch_versions import IS_OLD  # noqa: E402

from depyf.dynamo.dump.pausing import let_nothing_compile  # noqa: E402
from depyf.dynamo.entries.call_target import resolve  # noqa: E402
from depyf.dynamo.guards import python_guards as guards_function  # noqa: E402
from depyf.dynamo.guards.entry_guards import EntryGuards, header  # noqa: E402
from depyf.dynamo.guards.live_values import register  # noqa: E402
from depyf.dynamo.guards.stable_expressions import Naming  # noqa: E402
from depyf.dynamo.guards.tree import DICT_MANAGER  # noqa: E402
from depyf.dynamo.hooks import cache_entries, compiled_callables  # noqa: E402
from depyf.dynamo.hooks.hooked_context import undone_afterwards  # noqa: E402
from depyf.dynamo.hooks.patching import collecting  # noqa: E402
from depyf.dynamo.store.names import StableNames  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[1]))
from guarded_inputs import CASES, GuardCase, attempts  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]


def compiled_case(case: GuardCase) -> Tuple[Any, Any, EntryGuards]:
    """The compiled function, its cache entry for the case's own arguments, and our rendering of its guards."""
    for setting in case.config:
        if not hasattr(torch._dynamo.config, setting):
            pytest.skip(f"this PyTorch has no setting {setting}")
    compiled = torch.compile(case.function, backend=case.backend, dynamic=case.dynamic)
    may_fail = IS_OLD and not case.compiles_everywhere
    may_raise = torch._dynamo.exc.BackendCompilerFailed if may_fail else ()
    with case.compile_under(), torch._dynamo.config.patch(case.config), contextlib.suppress(may_raise):
        compiled(*case.arguments())
    entries = cache_entries.cache_entries(case.function.__code__)
    if not entries and may_fail:
        pytest.skip("this PyTorch does not compile it")
    assert len(entries) == 1
    entry = entries[0]
    return compiled, entry, EntryGuards.of(entry.guard_manager, "__guard_0", Naming(StableNames().text))


def imported(guards: EntryGuards, folder: Path) -> Any:
    """The guard function from a file that was written and imported."""
    path = folder / "guards_of_case.py"
    path.write_text(f"{header([guards])}\n{guards.source()}", encoding="utf-8")
    register(str(path), guards.table())
    spec = importlib.util.spec_from_file_location("guards_of_case", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, guards.name)


def decision_of_pytorch(compiled: Any, manager: Any, values: Any) -> bool:
    if not guards_function.is_function(manager):
        return bool(manager.root.check(values))
    # PyTorch before 2.4: the function also asks about the call that it is evaluated for; this is one of ``compiled``
    # that compiles nothing. What it raises is a guard that fails.
    eval_frame = torch._dynamo.eval_frame
    settings = compiled_callables.entry_of(compiled).saved_config_and_hash
    as_called = eval_frame.restore_guarded_dynamo_config(True, settings, False)
    with eval_frame.backend_cache_wrapper(False), as_called, contextlib.suppress(Exception):
        return bool(manager(values))
    return False


@pytest.mark.parametrize("name", CASES)
def test_the_guard_function_decides_as_pytorch(name: str, tmp_path: Path) -> None:
    case = CASES[name]()
    compiled, entry, guards = compiled_case(case)
    from_file = imported(guards, tmp_path)
    decisions: List[bool] = []
    for what, arguments, context in attempts(case):
        with context:
            values = resolve(case.function, "why").frame_locals(arguments(), {})
            expected = decision_of_pytorch(compiled, entry.guard_manager, values)
            failing = [line.expression for line in guards.failing(values)]
            assert guards.evaluate(values) == expected, f"{what}: PyTorch says {expected}; failing: {failing}"
            assert (failing == []) == expected, what
            assert from_file(values, case.function.__globals__) == expected, f"{what}: the file's function differs"
        decisions.append(expected)
    if not decisions[0] and any(line.expression.startswith("___check_obj_id(") for line in guards.lines) and IS_OLD:
        pytest.skip("this PyTorch guards the object itself, which the case makes anew")
    assert decisions[0] is True
    if False not in decisions and IS_OLD and not case.guarded_everywhere:
        pytest.skip("this PyTorch has no such guard")
    assert False in decisions, "the case has nothing that does not match"


@pytest.mark.parametrize("name", CASES)
def test_the_guard_function_foretells_a_recompilation(name: str) -> None:
    case = CASES[name]()
    compiled, entry, guards = compiled_case(case)
    if any(name.startswith("__resume_at_") for name in entry.code.co_names):
        pytest.skip("this PyTorch breaks the graph: whether it compiles again is not up to these guards alone")
    for what, arguments, context in attempts(case):
        with context:
            values = arguments()
            hit = guards.evaluate(resolve(case.function, "why").frame_locals(values, {}))
            assert runs_without_compiling(compiled, values, entry.code) == hit, what


def runs_without_compiling(compiled: Any, values: Any, code: CodeType) -> bool:
    if not hasattr(torch.compiler, "set_stance"):
        return runs_when_nothing_is_compiled(compiled, values, code)
    with torch.compiler.set_stance("fail_on_recompile"), contextlib.suppress(TypeError, AttributeError):
        try:
            compiled(*values)
        except RuntimeError as error:
            if "recompile" in str(error):
                return False
            raise
    return True


def runs_when_nothing_is_compiled(compiled: Any, values: Any, code: CodeType) -> bool:
    """The same for PyTorch before 2.6: whether ``code`` runs when Dynamo only runs what it has."""
    ran: List[CodeType] = []
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: ran.append(frame.f_code))
    try:
        with contextlib.suppress(Exception), undone_afterwards("testing") as undo:
            collecting(undo, let_nothing_compile)  # plain Python raises what it likes
            compiled(*values)
    finally:
        sys.setprofile(before)
    return any(each is code for each in ran)


@pytest.mark.parametrize("name", CASES)
def test_every_guard_of_common_values_is_plain_python(name: str) -> None:
    case = CASES[name]()  # an entry of PyTorch 2.4 is gone, under its handle, when an object dies that it guards
    _, entry, guards = compiled_case(case)
    if guards_function.is_function(entry.guard_manager):
        pytest.skip("PyTorch before 2.4 does not report what it compares tensors and the global state with")
    live = {(line.kind, line.source) for line in guards.lines if line.live}
    shows_state = "___check_global_state() against {" in str(entry.guard_manager)
    allowed = LIVE_KINDS.get(name, {DICT_MANAGER}) | (set() if shows_state else {"GLOBAL_STATE"})
    allowed |= set() if cache_entries.reports_absent_items() else {"SET_CONTAINS"}
    if not hasattr(torch._dynamo.guards.GuardBuilder, "SET_CONTAINS"):  # before PyTorch 2.8 no class of an iterator
        allowed |= {"TUPLE_ITERATOR_LEN", "RANGE_ITERATOR_MATCH", DICT_MANAGER}
    assert {kind for kind, _ in live} <= allowed


LIVE_KINDS = {
    # A class as a dict key: its text does not say which of several classes of that name.
    "dict_with_odd_keys": {"EQUALS_MATCH"},
    # The subclass makes the checker up, or it compares values that have no literal.
    "traceable_subclasses": {"LAMBDA_GUARD"},
    "nested_tensors": {"LAMBDA_GUARD"},
}


@pytest.mark.parametrize("name", CASES)
def test_the_text_holds_no_id_or_address(name: str) -> None:
    case = CASES[name]()
    _, _, guards = compiled_case(case)
    found = re.findall(r"0x[0-9a-f]{6,}|\d{9,}", guards.source())
    assert set(found) <= {str(2**63), str(2**63 - 1)}  # the range of an integer


def test_there_are_enough_kinds() -> None:
    assert len(CASES) >= 50
