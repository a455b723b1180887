"""Later sessions of a process read each module of a library once, and leave no name of depyf's in any module."""

from __future__ import annotations

import gc
import itertools
import os
import sys
import sysconfig
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Callable, List, Set

import pytest

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.hooks import loaded_modules  # noqa: E402
from depyf.dynamo.hooks.loaded_modules import loaded_namespaces, namespaces_with, one_reading  # noqa: E402


def nothing() -> None:
    pass


def a_module(name: str, *, folder: str = sysconfig.get_paths()["purelib"], being_imported: bool = False) -> ModuleType:
    module = ModuleType(name)
    module.__file__ = os.path.join(folder, f"{name}.py")
    module.__spec__ = ModuleSpec(name, None)
    module.__spec__._initializing = being_imported  # type: ignore[attr-defined]
    return module


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index of modules is used, as in the second session of a process and later ones."""
    monkeypatch.setattr(loaded_modules, "_blocks", itertools.count(2))
    monkeypatch.setattr(loaded_modules, "_index", loaded_modules._Index())


def having(name: str, value: object) -> Set[str]:
    """The modules that a block finds; a process may have one module by two names."""
    with one_reading():
        assert loaded_modules._is_reading()
        return {str(namespace["__name__"]) for namespace in namespaces_with(name, value)}


@pytest.mark.usefixtures("later")
def test_later_sessions_read_each_module_of_a_library_once(monkeypatch: pytest.MonkeyPatch) -> None:
    value, name, read = object(), "value_of_this_test_of_readings", []
    modules = {
        "holder_library": a_module("holder_library"),
        "holder_importing": a_module("holder_importing", being_imported=True),
        "holder_of_a_user": a_module("holder_of_a_user", folder="/home/me"),
    }
    for each, module in modules.items():
        monkeypatch.setitem(sys.modules, each, module)
    vars(modules["holder_library"])[name] = value
    assert having(name, value) == {"holder_library"}
    # An import that goes on, a module that is reloaded, and the program itself bind names later.
    vars(modules["holder_importing"])[name] = value
    vars(modules["holder_of_a_user"])[name] = value
    monkeypatch.setitem(vars(sys.modules["__main__"]), name, value)
    original = loaded_modules.namespace_of
    monkeypatch.setattr(loaded_modules, "namespace_of", lambda module: read.append(module) or original(module))
    assert having(name, value) == {*modules, "__main__"}
    assert not [each for each in read if type(each) is ModuleType]  # of these only the dictionary was asked
    # A module in the place of another one, and one that was loaded since, are read.
    monkeypatch.setitem(sys.modules, "holder_library", a_module("holder_of_nothing"))
    late = a_module("holder_late")
    vars(late)[name] = value
    sys.modules["holder_late"] = late
    assert having(name, value) == {"holder_importing", "holder_of_a_user", "holder_late", "__main__"}
    # A module that has gone may have its address in another one.
    read.clear()
    del late, sys.modules["holder_late"]
    gc.collect()
    assert loaded_modules._index._loaded == []
    assert having(name, value) == {"holder_importing", "holder_of_a_user", "__main__"}


@pytest.mark.usefixtures("later")
def test_a_module_of_a_user_may_take_the_address_of_another_one() -> None:
    value, name = object(), "value_of_this_test_of_addresses"
    for number in range(30):
        module = a_module(f"holder_{number}", folder="/home/me")
        vars(module)[name] = value
        sys.modules[f"holder_{number}"] = module
        try:
            assert having(name, value) == {f"holder_{number}"}
        finally:
            del sys.modules[f"holder_{number}"], module


@pytest.mark.usefixtures("later")
def test_an_index_that_fails_or_is_interrupted_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    value, name = object(), "value_of_this_test_of_failures"
    module = a_module("holder_interrupted")
    vars(module)[name] = value
    monkeypatch.setitem(sys.modules, "holder_interrupted", module)

    def raising(error: BaseException) -> Callable[..., object]:
        def raises(*_: object) -> None:
            raise error

        return raises

    with monkeypatch.context() as patched:
        patched.setattr(loaded_modules, "_is_complete", raising(MemoryError("no memory")))
        with one_reading():
            assert not loaded_modules._is_reading()
            assert namespaces_with(name, value) == [vars(module)]
        patched.setattr(loaded_modules, "_is_complete", raising(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            having(name, value)
    assert not loaded_modules._is_reading()
    assert having(name, value) == {"holder_interrupted"}

    class Name(str):
        __slots__ = ()

    monkeypatch.setitem(sys.modules, Name("holder_by_another_name"), module)
    with one_reading():
        assert not loaded_modules._is_reading()
        assert namespaces_with(name, value) == [vars(module)] * 2


def test_sessions_leave_no_name_of_theirs_in_any_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(pytest.importorskip("torch._logging"), "trace_structured"):
        pytest.skip("PyTorch before 2.3 has no structured trace")

    def wrapped() -> List[str]:
        return [
            f"{module}.{name}"
            for module, namespace in loaded_namespaces()
            for name in ("trace_structured", "lazy_format_graph_code")
            if os.path.dirname(depyf.__file__) in getattr(namespace.get(name), "__code__", nothing.__code__).co_filename
            and not module.startswith("depyf.")
        ]

    user = a_module("holder_of_a_user", folder="/home/me")
    before = wrapped()
    for number in range(3):
        with depyf.prepare_debug(tmp_path / str(number)):
            assert wrapped() != before
            monkeypatch.setitem(sys.modules, "holder_of_a_user", user)
            exec("from torch._logging import trace_structured", vars(user))
        assert wrapped() == before
