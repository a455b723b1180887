"""Faults of the environment, with and without depyf: the program behaves and prints the same."""

from __future__ import annotations

import builtins
import importlib
import linecache
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Dict, Optional

import pytest
import warm_python

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from torch_versions import HAS_GUARD_TREES  # noqa: E402

import depyf  # noqa: E402
from depyf.dynamo.capture.hub import capture  # noqa: E402
from depyf.dynamo.dump.full_code.user_globals import definition_of  # noqa: E402
from depyf.dynamo.hooks import generated_code, torch_names  # noqa: E402
from depyf.dynamo.store import writers  # noqa: E402
from depyf.dynamo.store.directory import DumpDirectory  # noqa: E402
from depyf.running import runner  # noqa: E402
from depyf.running.runner import SessionOptions  # noqa: E402

HEAD = """
import contextlib, os, sys
import torch

def session():
    if "DUMP" not in os.environ:
        return contextlib.nullcontext()
    import depyf
    return depyf.prepare_debug(os.environ["DUMP"])

def f(x):
    y = x.sin() + 1
    torch._dynamo.graph_break()
    return (y * 2).sum()

def go():
    torch._dynamo.reset()
    return float(torch.compile(f, backend="eager")(torch.arange(3.0)))
"""


def seen(program: str, folder: Path, environment: Dict[str, str], dump: Optional[Path]) -> Any:
    """Exit status and output of a program, with its compilations dumped if ``dump`` is a directory."""
    folder.mkdir(exist_ok=True)
    (folder / "program.py").write_text(HEAD + program)
    environment = {**environment, **({} if dump is None else {"DUMP": str(dump)})}
    command = [sys.executable, str(folder / "program.py")]
    done = warm_python.run(command, cwd=folder, env=environment)
    return done.returncode, done.stdout, done.stderr


GENERATOR_AT_EXIT = """
def steps():
    with session():
        yield go()

held = steps()
print(next(held))
"""


@pytest.mark.parametrize("program", [GENERATOR_AT_EXIT], ids=["a generator holds a session when the interpreter ends"])
def test_a_program_ends_as_it_does_without(program: str, program_environment: Dict[str, str], tmp_path: Path) -> None:
    without = seen(program, tmp_path / "program", program_environment, None)
    assert seen(program, tmp_path / "program", program_environment, tmp_path / "dump") == without
    assert (tmp_path / "dump" / "full_code_for_f_0.py").exists()


def test_after_the_end_nothing_goes_into_files_that_are_open_now(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Daemon threads go on when the places are given back at exit: their handles are then those of other files."""
    directory = DumpDirectory.at(tmp_path / "dump")
    assert directory.write("a.py", "1") is not None
    writers._give_all_back()
    victims = [os.open(tmp_path / f"{number}", os.O_RDWR | os.O_CREAT) for number in range(10)]
    try:
        assert directory.write("b.py", "2") is not None
    finally:
        for victim in victims:
            os.close(victim)
    assert [(tmp_path / f"{number}").read_text() for number in range(10)] == [""] * 10
    assert caplog.text == ""
    writers._give_all_back()
    assert directory.write("c.py", "3") is not None  # with no file in the place of the handle
    assert caplog.text == ""


def test_a_directory_that_becomes_a_file_does_not_disturb_the_end(tmp_path: Path) -> None:
    other = DumpDirectory.at(tmp_path / "other")
    assert other.write("a.py", "1") is not None
    assert DumpDirectory.at(tmp_path / "dump").write("a.py", "1") is not None
    shutil.rmtree(tmp_path / "dump")
    (tmp_path / "dump").write_text("")
    writers._give_all_back()
    assert not (tmp_path / "other" / writers.FOLDER).exists()


@pytest.mark.skipif(not hasattr(sys, "set_int_max_str_digits"), reason="Python writes integers of any length")
def test_an_integer_that_python_refuses_to_write_is_written() -> None:
    for value in (10**1000, -(10**1000), 10**5, 2**1024 - 1, 2**1024):
        before = sys.get_int_max_str_digits()
        sys.set_int_max_str_digits(640)
        try:
            text, placeholder = definition_of("BIG", {"BIG": value}, "BIG")
            names: Dict[str, Any] = {}
            exec(text, names)
        finally:
            sys.set_int_max_str_digits(before)
        assert (names["BIG"] == value, placeholder) == (True, False)
    assert definition_of("BIG", {"BIG": 1 << 10**7}, "BIG")[1]  # as text it would be longer than the file


def test_a_module_of_pytorchs_that_fails_here_is_no_bug_of_depyfs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In an ASCII locale Inductor reads its own templates and fails; where descriptors are short, anything does."""
    real, broken = importlib.import_module, ["torch._inductor.codecache"]

    def import_module(name: str, package: Optional[str] = None) -> Any:
        if name in broken:
            raise UnicodeDecodeError("ascii", b"\xe2", 0, 1, "ordinal not in range(128)")
        return real(name, package)

    monkeypatch.setattr(torch_names, "_modules", {})
    monkeypatch.setattr(torch_names, "_reported", set())
    monkeypatch.setattr(importlib, "import_module", import_module)
    assert generated_code.pycode_cache() is None
    assert generated_code.pycode_cache() is None
    assert caplog.text.count("PyTorch's torch._inductor.codecache can't be imported here (UnicodeDecodeError: ") == 1
    assert "Inductor's kernels can't be dumped" in caplog.text
    assert "bug" not in caplog.text
    broken.clear()
    assert generated_code.pycode_cache() is not None


def with_builtin(name: str, call: Callable[[], Any]) -> Any:
    """Return what ``call`` returns while the builtin raises."""
    original = getattr(builtins, name)

    def raises(*args: Any, **kwargs: Any) -> Any:
        raise ArithmeticError(name)

    try:
        vars(builtins)[name] = raises
        return call()
    finally:
        vars(builtins)[name] = original


BUILTINS = ("any", "callable", "id", "isinstance", "len", "list", "map", "next", "range", "str", "tuple", "type", "zip")


@pytest.mark.skipif(
    not HAS_GUARD_TREES, reason="Dynamo before 2.4 compiles the function again in a session, and calls builtins itself"
)
@pytest.mark.usefixtures("fresh_dynamo")
def test_calls_do_not_need_builtins_that_the_program_has_replaced(tmp_path: Path) -> None:
    x = torch.arange(3.0)
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    compiled(x)
    # PyTorch's own calls need some of them in some versions. In 2.7 its C++ does not handle what isinstance raises: the
    # process ends.
    names = [name for name in BUILTINS if name != "isinstance" or not torch.__version__.startswith("2.7.")]
    plain = [name for name in names if _result(name, lambda: compiled(x)) is not None]
    with depyf.prepare_debug(tmp_path):
        assert [name for name in plain if _result(name, lambda: compiled(x)) != [1.0, 2.0, 3.0]] == []
    assert {"id", "any"} <= set(plain)


def _result(name: str, call: Callable[[], Any]) -> Any:
    try:
        return with_builtin(name, call).tolist()
    except (ArithmeticError, TypeError):
        return None


@pytest.mark.parametrize("name", ["id", "any", "isinstance", "tuple"])
@pytest.mark.usefixtures("fresh_dynamo")
def test_a_session_starts_and_ends_while_a_builtin_raises(name: str, tmp_path: Path) -> None:
    before = list(sys.meta_path)
    context = depyf.prepare_debug(tmp_path / "one")
    with_builtin(name, context.__enter__)
    context.__exit__(None, None, None)
    with depyf.prepare_debug(tmp_path / "two"):
        result = torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1)).tolist()
        other = depyf.prepare_debug(tmp_path / "three").__enter__()
        with_builtin(name, lambda: other.__exit__(None, None, None))
    last = depyf.prepare_debug(tmp_path / "four").__enter__()
    with_builtin(name, lambda: last.__exit__(None, None, None))
    assert (result, capture._sessions, capture._undo, sys.meta_path) == ([2.0], (), [], before)


@pytest.mark.usefixtures("fresh_dynamo")
def test_a_loader_that_interrupts_when_asked_for_source_does_not_end_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_compiled = False

    class Loader:
        def get_source(self, name: str) -> str:
            if is_compiled:
                raise KeyboardInterrupt
            raise ImportError(name)  # PyTorch asks, too

    path = str(tmp_path / "missing" / "ghost.py")
    ghost = ModuleType("ghost")
    vars(ghost).update(__file__=path, __loader__=Loader())
    exec(compile("def f(x):\n    return x + 1\n", path, "exec"), vars(ghost))
    monkeypatch.setitem(sys.modules, "ghost", ghost)
    with depyf.prepare_debug(tmp_path / "dump"):
        linecache.lazycache(path, vars(ghost))
        assert torch.compile(vars(ghost)["f"], backend="eager")(torch.ones(1)).tolist() == [2.0]
        is_compiled = True
    assert list((tmp_path / "dump").glob("full_code_for_f_0*.py"))


def test_a_finder_that_interrupts_imports_of_depyf_does_not_end_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Finder:
        @staticmethod
        def find_spec(name: str, path: Any = None, target: Any = None) -> None:
            if name.startswith("depyf."):
                raise KeyboardInterrupt(name)

    recording = runner._Recording(str(tmp_path), None, find_nonfinite=False, traced=False, session=SessionOptions())
    for name in ("depyf.dynamo.dump.prepare", "depyf.dynamo.hooks.safely"):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    recording.begin()
    assert "nothing is dumped: KeyboardInterrupt: depyf." in capsys.readouterr().err
