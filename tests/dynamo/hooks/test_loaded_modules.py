"""``sys.modules`` may contain any object: reading it assumes nothing, and runs no code of what it finds."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, List

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from torch_versions import needs_stances  # noqa: E402

import depyf  # noqa: E402
from depyf.base.module_namespace import namespace_of  # noqa: E402
from depyf.dynamo.hooks import generated_code, safely  # noqa: E402
from depyf.dynamo.hooks.loaded_modules import file_of, loaded_namespaces, source_text  # noqa: E402
from depyf.dynamo.hooks.patching import replace_everywhere  # noqa: E402

asked: List[str] = []


def note(name: str) -> None:
    """Record what depyf reads: PyTorch's and pytest's own searches through all modules read attributes of them."""
    if os.path.dirname(depyf.__file__) in sys._getframe(2).f_code.co_filename:
        asked.append(name)


class Lazy(ModuleType):
    """Importing what is asked for fails, and not as ``hasattr`` expects."""

    def __getattr__(self, name: str) -> Any:
        note(name)
        raise RuntimeError(f"{name} can't be loaded")


class Closed(ModuleType):
    def __getattribute__(self, name: str) -> Any:
        note(name)
        raise RuntimeError(f"{name} can't be read")

    def __setattr__(self, name: str, value: Any) -> None:
        raise RuntimeError(f"{name} can't be set")


class NoModule:
    """An instance that stands for a module."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        note(name)
        raise RuntimeError(f"{name} does not exist")

    def __bool__(self) -> bool:
        raise RuntimeError("has no truth")


class PropertyDict:
    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        note("__dict__")
        raise RuntimeError("can not be read")


class PropertyModule(ModuleType):
    @property
    def __dict__(self) -> Any:
        note("__dict__")
        raise RuntimeError("can not be read")

    @property
    def __class__(self) -> Any:
        note("__class__")
        raise RuntimeError("can not be read")


class Meta(type):
    def __getattribute__(cls, name: str) -> Any:
        note(name)
        raise RuntimeError("can not be read")

    def __instancecheck__(cls, instance: object) -> bool:
        note("__instancecheck__")
        raise RuntimeError("can not be read")


class OfMeta(metaclass=Meta):
    def __getattribute__(self, name: str) -> Any:
        note(name)
        raise RuntimeError("can not be read")


class OwnDict(Dict[str, Any]):
    def get(self, name: str, default: Any = None) -> Any:
        note(name)
        raise RuntimeError("can not be read")

    __contains__ = __getitem__ = get  # type: ignore[assignment]


class WithOwnDict:
    def __init__(self) -> None:
        self.__dict__ = OwnDict()


class Computed:
    """Its dictionary is computed by a descriptor of the program's."""

    class _Descriptor:
        def __get__(self, instance: object, owner: object) -> Any:
            note("__get__")
            raise RuntimeError("can not be read")

    __dict__ = _Descriptor()  # type: ignore[assignment]


HOSTILE: Dict[str, Any] = {
    "blocked": None,
    "lazy": Lazy("lazy"),
    "closed": Closed("closed"),
    "an_instance": NoModule(),
    "a_property": PropertyDict(),
    "a_module_with_a_property": PropertyModule("a_property"),
    "of_a_metaclass": OfMeta(),
    "a_class_of_a_metaclass": OfMeta,
    "a_dictionary_of_its_own": WithOwnDict(),
    "a_descriptor": Computed(),
    "a_text": "no module",
    "a_class": NoModule,
}


@pytest.fixture(autouse=True)
def _hostile(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(safely, "_reported", {})
    torch._dynamo.reset()
    for name, module in HOSTILE.items():
        monkeypatch.setitem(sys.modules, f"hostile_{name}", module)
    monkeypatch.setitem(sys.modules, 7, ModuleType("named by a number"))  # type: ignore[arg-type]
    asked.clear()
    yield
    torch._dynamo.reset()


@pytest.fixture
def messages(caplog: pytest.LogCaptureFixture) -> Callable[[], List[str]]:
    caplog.set_level(logging.WARNING, "depyf")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "depyf"]


def scaled(x: Any, factor: float = 2.0) -> Any:
    return (x.sin() * factor).sum()


def test_a_dump_is_complete(tmp_path: Path, messages: Callable[[], List[str]]) -> None:
    with depyf.prepare_debug(tmp_path):
        x = torch.ones(3, requires_grad=True)
        torch.compile(scaled, backend="aot_eager")(x).backward()
    assert messages() == []
    names = {path.name for path in tmp_path.rglob("*")}
    assert "full_code_for_scaled_0.py" in names
    assert any(".Backward_graph." in name for name in names)
    assert asked == []
    if list(generated_code.wrapper_makers()):
        assert any(".AOT_" in name for name in names)
    assert "def scaled(x: Any" in (tmp_path / "full_code_for_scaled_0.py").read_text()


@needs_stances
def test_questions_are_answered(messages: Callable[[], List[str]]) -> None:
    compiled = torch.compile(scaled, backend="eager", dynamic=False)
    compiled(torch.ones(3))
    assert "size" in str(depyf.why(compiled, torch.ones(4)))
    assert "scaled" in str(depyf.compare(compiled, torch.ones(3)))
    assert messages() == []


def test_no_module_is_asked() -> None:
    found = dict(loaded_namespaces())
    assert {name for name in found if name.startswith("hostile_")} == {f"hostile_{name}" for name in HOSTILE}
    assert namespace_of(None) == {}
    assert namespace_of(HOSTILE["an_instance"]) == {}
    assert namespace_of(HOSTILE["a_property"]) == {}
    assert namespace_of(HOSTILE["closed"])["__name__"] == "closed"
    assert namespace_of(HOSTILE["a_module_with_a_property"])["__name__"] == "a_property"
    assert namespace_of(HOSTILE["of_a_metaclass"]) == {}
    assert namespace_of(HOSTILE["a_dictionary_of_its_own"]) == {}
    assert namespace_of(HOSTILE["a_descriptor"]) == {}
    assert namespace_of(sys.flags) == {}
    assert file_of(namespace_of(HOSTILE["lazy"])) is None
    assert file_of({"__file__": 3}) is None
    assert file_of(namespace_of(sys.modules[__name__])) == __file__
    assert "def scaled" in str(source_text(scaled.__code__))
    assert source_text(compile("1", "no_file_of_depyfs_tests.py", "exec")) is None
    assert asked == []


def test_a_name_is_replaced_wherever_it_is_known_and_put_back_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    first, later = ModuleType("holder_first"), Closed("holder_closed")
    namespaces = [namespace_of(each) for each in (first, later)]
    original, one, two = object(), object(), object()
    monkeypatch.setitem(sys.modules, "holder_first", first)
    namespaces[0]["value_of_this_test"] = original
    undo_one = replace_everywhere("value_of_this_test", original, one)
    namespaces[1]["value_of_this_test"] = one
    monkeypatch.setitem(sys.modules, "holder_closed", later)
    undo_two = replace_everywhere("value_of_this_test", one, two)
    assert [each["value_of_this_test"] for each in namespaces] == [two, two]
    undo_one()
    assert [each["value_of_this_test"] for each in namespaces] == [two, two]
    undo_two()
    assert [each["value_of_this_test"] for each in namespaces] == [original, original]
