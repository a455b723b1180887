"""Faults of the environment, with and without depyf: the program behaves and prints the same."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Optional

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from depyf.dynamo.dump.full_code.user_globals import definition_of  # noqa: E402
from depyf.dynamo.hooks import generated_code, torch_names  # noqa: E402
from depyf.dynamo.store import writers  # noqa: E402
from depyf.dynamo.store.directory import DumpDirectory  # noqa: E402

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
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
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
