"""Other Pythons compile text in processes of their own; nothing is run, and failures are errors in words."""

from __future__ import annotations

import ast
import os
import stat
import sys
from pathlib import Path
from typing import Iterator

import pytest

from depyf.decompiler.bytecode import other_pythons
from depyf.decompiler.bytecode.code import nested_codes
from depyf.decompiler.bytecode.opcode_table import running_version
from depyf.decompiler.bytecode.other_pythons import Interpreter, interpreter_at, interpreter_of, version_named
from depyf.decompiler.errors import DecompilationError

FIELDS = ("co_code", "co_names", "co_varnames", "co_cellvars", "co_freevars", "co_flags", "co_name", "co_argcount")
TEXT = """
import os
def f(a, *b, c=1 << 70, **d):
    "A docstring."
    def g(): return a, c, a[1:2], a[1:2, ::3], a[0], -1.5, 2j, b"x", "\\udc80", ...
    async def h():
        async with a as b: yield [x async for x in b if x]
    return g
class C(f):
    x: int = 3
"""


@pytest.fixture(scope="module")
def own() -> Iterator[Interpreter]:
    """The running Python, in a process: what it makes can be compared with what is made here."""
    interpreter = Interpreter(sys.executable)
    yield interpreter
    interpreter.stop()


def script(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return str(path)


@pytest.mark.parametrize("as_tree", [False, True], ids=["text", "tree"])
def test_it_compiles_as_compile_does(own: Interpreter, as_tree: bool) -> None:
    here = compile(TEXT, "<file>", "exec", dont_inherit=True)
    there = own.compile(ast.parse(TEXT) if as_tree else TEXT, "<file>", "exec", 0)
    assert own.version == there.version == running_version()
    mine, theirs = list(nested_codes(here)), list(nested_codes(there))
    assert len(mine) == len(theirs) >= 5  # 3.12 inlines the comprehension
    for one, other in zip(mine, theirs):
        assert [getattr(one, field) for field in FIELDS] == [getattr(other, field) for field in FIELDS]


def test_constants_without_a_literal_are_sent_in_a_tree(own: Interpreter) -> None:
    tree = ast.parse("x = None")
    tree.body[0].value.value = frozenset({("mark", 1)})  # type: ignore[attr-defined]
    assert frozenset({("mark", 1)}) in own.compile(tree, "<file>", "exec", 0).co_consts


def test_a_text_that_is_refused_is_a_syntax_error_and_the_next_one_is_compiled(own: Interpreter) -> None:
    with pytest.raises(SyntaxError, match="SyntaxError"):
        own.compile("def f(:", "<file>", "exec", 0)
    with pytest.raises(SyntaxError, match=r"null bytes|source code"):
        own.compile("x\0", "<file>", "exec", 0)
    assert own.compile("x = 1", "<file>", "exec", 0).co_names == ("x",)


def test_nothing_is_run_and_the_environment_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sitecustomize", "usercustomize", "marshal", "struct", "_ast"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "sitecustomize.py"))
    monkeypatch.chdir(tmp_path)
    interpreter = Interpreter(sys.executable)
    interpreter.compile(f"import struct\nopen({str(tmp_path / 'run')!r}, 'w')", "<file>", "exec", 0)
    interpreter.stop()
    assert not (tmp_path / "run").exists()


def test_a_process_that_ends_is_started_again_and_not_without_end() -> None:
    interpreter = Interpreter(sys.executable)
    interpreter._process.kill()
    interpreter._process.wait()
    assert interpreter.compile("x = 1", "<file>", "exec", 0).co_names == ("x",)
    interpreter.stop()
    assert interpreter.compile("x = 1", "<file>", "exec", 0).co_names == ("x",)
    interpreter._failures = other_pythons._MOST_FAILURES
    with pytest.raises(DecompilationError, match="has failed 3 times"):
        interpreter.compile("x = 1", "<file>", "exec", 0)
    interpreter.stop()


@pytest.mark.skipif(os.name == "nt", reason="scripts of a shell")
def test_what_answers_too_late_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_pythons, "_SECONDS", 0.3)
    with pytest.raises(DecompilationError, match="did not say its version"):
        Interpreter(script(tmp_path / "slow", "#!/bin/sh\nexec sleep 60\n"))


@pytest.mark.skipif(os.name == "nt", reason="scripts of a shell")
@pytest.mark.parametrize(
    "body", ["exit 0", "echo Hello, this is no Python at all", "printf '\\000\\377\\377\\377\\377'", "printf '\\002'"]
)
def test_what_is_no_python_is_refused(tmp_path: Path, body: str) -> None:
    with pytest.raises(DecompilationError, match="is no Python"):
        Interpreter(script(tmp_path / "program", f"#!/bin/sh\n{body}\n"))
    with pytest.raises(DecompilationError, match="can't be run"):
        Interpreter(str(tmp_path / "nothing"))


@pytest.mark.skipif(os.name == "nt", reason="links")
def test_it_is_found_on_path_but_not_in_relative_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "python{}.{}".format(*running_version())
    folder = tmp_path / "bin"
    folder.mkdir()
    script(folder / name, f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"bin{os.pathsep}.{os.pathsep}")
    assert interpreter_of(running_version()) is None
    monkeypatch.setenv("PATH", f"bin{os.pathsep}{folder}")
    found = interpreter_of(running_version())
    assert found is not None
    assert found.path == str(folder / name)
    assert interpreter_of(running_version()) is found  # one process serves all
    assert interpreter_of(running_version(), "none") is None
    found.stop()


@pytest.mark.skipif(os.name == "nt", reason="links")
def test_a_shim_of_pyenv_leads_to_the_version_that_it_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    major, minor = running_version()
    name = f"python{major}.{minor}"
    shims, installed = tmp_path / "shims", tmp_path / "versions" / f"{major}.{minor}.1" / "bin"
    shims.mkdir()
    installed.mkdir(parents=True)
    script(shims / name, "#!/bin/sh\nexit 127\n")
    script(installed / name, f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    monkeypatch.setenv("PATH", str(shims))
    found = interpreter_of(running_version())
    assert found is not None
    assert found.path == str(installed / name)
    found.stop()


def test_one_that_is_named_must_be_of_the_version(own: Interpreter) -> None:
    assert version_named("3.8") == (3, 8)
    assert version_named("/usr/bin/python3.8") is version_named(None) is version_named("none") is None
    assert interpreter_at(sys.executable).version == running_version()
    with pytest.raises(DecompilationError, match=r"and the code is of CPython 3\.7"):
        interpreter_of((3, 7), sys.executable)
