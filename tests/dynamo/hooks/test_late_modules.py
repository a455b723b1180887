"""Hooks into modules that the program has not imported yet."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import logging
import subprocess
import sys
import threading
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Iterator, List, Optional

import pytest

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

from depyf.dynamo.hooks.late_modules import when_imported  # noqa: E402
from depyf.dynamo.hooks.patching import Undo, collecting, replace_attribute, undo_all  # noqa: E402

NAME = "imported_late_by_depyfs_tests"


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / f"{NAME}.py").write_text("def f():\n    return 'original'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = list(sys.meta_path)
    yield
    sys.modules.pop(NAME, None)
    assert sys.meta_path == before


def replace() -> object:
    return replace_attribute(sys.modules[NAME], "f", lambda: "replaced")


def waiting() -> List[Undo]:
    undo: List[Undo] = []
    collecting(undo, lambda: when_imported(NAME, replace))
    return undo


def test_it_is_installed_when_the_module_is_imported_and_undone_afterwards() -> None:
    undo = waiting()
    assert NAME not in sys.modules
    imported = importlib.import_module(NAME)
    assert imported.f() == "replaced"
    undo_all(undo)
    assert imported.f() == "original"


def test_the_module_is_as_it_would_be_without() -> None:
    undo = waiting()
    imported = importlib.import_module(NAME)
    undo_all(undo)
    del sys.modules[NAME]
    other = importlib.import_module(NAME)
    assert imported.__spec__ is not None
    assert other.__spec__ is not None
    assert type(imported.__loader__) is type(other.__loader__) is type(imported.__spec__.loader)
    assert imported.__file__ == other.__file__
    assert imported.__spec__.cached == other.__spec__.cached


def test_it_is_installed_at_once_where_the_module_is_imported() -> None:
    imported = importlib.import_module(NAME)
    undo = waiting()
    assert imported.f() == "replaced"
    undo_all(undo)
    assert imported.f() == "original"


def test_what_was_undone_is_not_installed() -> None:
    undo_all(waiting())
    assert importlib.import_module(NAME).f() == "original"


def test_several_wait_and_each_is_undone_for_itself() -> None:
    first, second = waiting(), waiting()
    undo_all(first)
    imported = importlib.import_module(NAME)
    assert imported.f() == "replaced"
    undo_all(second)
    assert imported.f() == "original"


def test_the_finder_finds_and_does_not_import() -> None:
    undo = waiting()
    spec = importlib.util.find_spec(NAME)
    assert spec is not None
    assert spec.loader is not None
    assert spec.loader.get_source(NAME) == "def f():\n    return 'original'\n"  # type: ignore[attr-defined]
    assert NAME not in sys.modules
    undo_all(undo)


def test_a_module_that_fails_may_be_imported_again(tmp_path: Path) -> None:
    undo = waiting()
    path = tmp_path / f"{NAME}.py"
    text = path.read_text()
    path.write_text("raise ValueError('not now')\n")
    with pytest.raises(ValueError, match="not now"):
        importlib.import_module(NAME)
    path.write_text(text)
    importlib.invalidate_caches()
    assert importlib.import_module(NAME).f() == "replaced"
    undo_all(undo)


def test_a_hook_that_fails_leaves_the_import_alone(caplog: pytest.LogCaptureFixture) -> None:
    undo: List[Undo] = []
    collecting(undo, lambda: when_imported(NAME, lambda: 1 / 0))
    with caplog.at_level(logging.WARNING, logger="depyf"):
        assert importlib.import_module(NAME).f() == "original"
    assert any("ZeroDivisionError" in record.getMessage() for record in caplog.records)
    undo_all(undo)


def test_another_thread_imports_it() -> None:
    undo = waiting()
    thread = threading.Thread(target=importlib.import_module, args=(NAME,))
    thread.start()
    thread.join()
    assert sys.modules[NAME].f() == "replaced"
    undo_all(undo)


def test_a_session_does_not_import_inductor(tmp_path: Path) -> None:
    program = (
        "import sys, torch, depyf\n"
        f"with depyf.prepare_debug({str(tmp_path / 'dump')!r}):\n"
        "    torch.compile(lambda x: x + 1, backend='eager')(torch.ones(2))\n"
        "print('torch._inductor.compile_fx' in sys.modules, [each for each in sys.meta_path if 'depyf' in str(each)])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "[]"], done.stderr


class Legacy:
    """A loader of the time before ``exec_module``."""

    def load_module(self, name: str) -> ModuleType:
        module = sys.modules[name] = ModuleType(name)
        return module


class LegacyFinder:
    def find_spec(self, name: str, path: object = None, target: object = None) -> Optional[ModuleSpec]:
        return ModuleSpec("legacy_by_depyfs_tests", Legacy()) if name == "legacy_by_depyfs_tests" else None  # type: ignore


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="load_module goes")
def test_a_loader_of_old_times_loads_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "legacy_by_depyfs_tests"
    undo: List[Undo] = []
    finder = LegacyFinder()
    sys.meta_path.append(finder)  # type: ignore[arg-type]
    try:
        collecting(undo, lambda: when_imported(name, lambda: None))
        assert importlib.import_module(name).__name__ == name
    finally:
        undo_all(undo)
        sys.modules.pop(name, None)
        sys.meta_path.remove(finder)  # type: ignore[arg-type]


def test_a_loader_can_be_copied_meanwhile() -> None:
    undo = waiting()
    spec = importlib.util.find_spec(NAME)
    assert spec is not None
    assert copy.copy(spec.loader) is not None
    undo_all(undo)
