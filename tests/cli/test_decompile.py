"""``depyf decompile``: files as they are found in the wild, other Pythons, and what is asked for with options."""

from __future__ import annotations

import importlib.util
import marshal
import os
import struct
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import CodeType
from typing import Any, Dict

import pytest

from depyf.cli import main
from depyf.decompiler import decompile_pyc
from depyf.decompiler.bytecode.opcode_table import running_version
from depyf.decompiler.pipeline import attempts

PYCS = Path(__file__).resolve().parent.parent / "decompiler" / "bytecode" / "pycs"
OWN = PYCS / "cp{}{}.pyc".format(*running_version())
SOURCE = "def f(x):\n    return [x, 1]\n\n\ndef g():\n    pass\n"


def pyc_of(code: CodeType) -> bytes:
    return importlib.util.MAGIC_NUMBER + struct.pack("<III", 0, 0, 0) + marshal.dumps(code)


def write_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the printer write ``[x, 2]`` for ``[x, 1]``, in every form of the text."""
    made = attempts.to_source
    monkeypatch.setattr(
        attempts, "to_source", lambda *given: replace(made(*given), text=made(*given).text.replace("[x, 1]", "[x, 2]"))
    )


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "m.pyc"
    path.write_bytes(pyc_of(compile(SOURCE, "m.py", "exec")))
    return path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> Dict[str, Any]:
    status = main(["decompile", *arguments])
    captured = capsys.readouterr()
    return {"status": status, "out": captured.out, "err": captured.err}


def test_a_file_without_a_header_is_printed_with_a_remark(capsys: Any, module: Path) -> None:
    bare = module.with_name("bare.pyc")
    bare.write_bytes(module.read_bytes()[16:])
    found = shown(capsys, str(bare), "--python", "{}.{}".format(*running_version()))
    assert (found["status"], found["out"]) == (0, SOURCE)
    assert "it has no header; read as CPython" in found["err"]
    # the extracted scripts of programs have no suffix either
    plain = module.with_name("plain")
    plain.write_bytes(bytes(16) + module.read_bytes()[16:])
    found = shown(capsys, str(plain), "--python", sys.executable)
    assert (found["status"], found["out"]) == (0, SOURCE)
    assert "its header has no magic number" in found["err"]


def test_an_entry_of_an_archive_and_a_function_in_it(capsys: Any, module: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "lib.whl", "w") as opened:
        opened.write(module, "p/m.pyc")
    entry = os.path.join(str(tmp_path / "lib.whl"), "p", "m.pyc")
    assert shown(capsys, entry)["out"] == SOURCE
    assert shown(capsys, f"{entry}:g")["out"] == "def g():\n    pass\n"
    assert shown(capsys, f"{entry}:5")["out"] == "def g():\n    pass\n"
    missing = shown(capsys, os.path.join(str(tmp_path / "lib.whl"), "other.pyc"))
    assert missing["status"] == 2
    assert "no such entry in the archive" in missing["err"]


def test_the_folder_of_a_frozen_program_with_its_archive(capsys: Any, module: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    (program / "PYZ.pyz_extracted" / "p").mkdir(parents=True)
    (program / "main.pyc").write_bytes(bytes(16) + module.read_bytes()[16:])
    (program / "PYZ.pyz_extracted" / "p" / "q.pyc").write_bytes(module.read_bytes())
    with zipfile.ZipFile(program / "base_library.zip", "w") as opened:
        opened.write(module, "codecs.pyc")
        opened.write(module, "encodings/__pycache__/utf_8.cpython-{}{}.pyc".format(*running_version()))
        opened.write(module, "../evil.pyc")
    with zipfile.ZipFile(program / "data.zip", "w") as opened:
        opened.writestr("readme.txt", "no bytecode")
    out = tmp_path / "deep" / "out"
    version = "{}.{}".format(*running_version())
    found = shown(capsys, str(program), "-o", str(out), "--python", version)
    written = {path.relative_to(out).as_posix(): path.read_text() for path in out.rglob("*.py")}
    assert written == dict.fromkeys(
        ["main.py", "PYZ.pyz_extracted/p/q.py", "base_library.zip/codecs.py", "base_library.zip/encodings/utf_8.py"],
        SOURCE,
    )
    assert [path.name for path in tmp_path.rglob("evil*")] == []
    assert "leads out of the archive" in found["out"]
    assert found["status"] == 1


def test_an_archive_is_decompiled_like_a_folder(capsys: Any, module: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "lib.egg", "w") as opened:
        opened.write(module, "p/m.pyc")
        opened.writestr("p/n.py", SOURCE)
    assert shown(capsys, str(tmp_path / "lib.egg"))["status"] == 2  # where to?
    found = shown(capsys, str(tmp_path / "lib.egg"), "-o", str(tmp_path / "out"))
    assert found["status"] == 0
    assert (tmp_path / "out" / "p" / "m.py").read_text() == (tmp_path / "out" / "p" / "n.py").read_text() == SOURCE


def test_a_frozen_module_by_its_name(capsys: Any) -> None:
    found = shown(capsys, "_frozen_importlib:_call_with_frames_removed")
    assert found["status"] == 0
    assert "def _call_with_frames_removed(f, *args, **kwds):" in found["out"]
    assert shown(capsys, "_frozen_nothing")["status"] == 2


@pytest.mark.parametrize("level", [1, 2])
def test_optimised_and_hash_based_files(capsys: Any, tmp_path: Path, level: int) -> None:
    code = compile('def f(x):\n    "Doc."\n    assert x, 1\n    return __debug__\n', "m.py", "exec", optimize=level)
    head = importlib.util.MAGIC_NUMBER + struct.pack("<I", 3) + b"\x01" * 8
    folder = tmp_path / "__pycache__"
    folder.mkdir()
    path = folder / "m.cpython-{}{}.opt-{}.pyc".format(*running_version(), level)
    path.write_bytes(head + marshal.dumps(code))
    found = shown(capsys, str(path))
    assert found["status"] == 0
    assert found["out"] == "def f(x):\n" + ('    """Doc."""\n' if level == 1 else "") + "    return False\n"
    assert shown(capsys, str(tmp_path), "-o", str(tmp_path / "out"))["status"] == 0
    assert (tmp_path / "out" / "m.py").read_text() == found["out"]


def test_a_file_of_an_older_python_is_proved_without_that_python(capsys: Any) -> None:
    found = shown(capsys, str(PYCS / "cp38.pyc"), "--python", "none")
    assert found["status"] == 0
    assert "def outer(" in found["out"]


def test_a_file_of_a_newer_python_is_printed_unverified_without_that_python(
    capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = [path for path in PYCS.glob("*.pyc") if (3, int(path.stem[3:])) > running_version()]
    if not newer:
        pytest.skip("this Python is the newest")
    for path in newer:
        answer = decompile_pyc(path, python="none")
        assert answer.verdict.value == "unverified"
        assert answer.reason.startswith("not compared: it takes CPython 3.")
        found = shown(capsys, str(path), "--python", "none")
        assert found["status"] == 1
        assert "def outer(" in found["out"]
        assert "# depyf: not proved: not compared: it takes CPython" in found["out"]


def test_the_python_that_is_named_must_be_the_one_of_the_file(capsys: Any, tmp_path: Path) -> None:
    found = shown(capsys, str(OWN), "--python", "3.9" if running_version() != (3, 9) else "3.8")
    assert found["status"] == 2
    assert "compiled by CPython {}.{}, not by CPython 3.".format(*running_version()) in found["err"]
    found = shown(capsys, str(OWN), "--python", str(tmp_path / "nothing"))
    assert found["status"] == 2
    assert "can't be run" in found["err"]
    found = shown(capsys, str(OWN), "--python", sys.executable)
    assert found["status"] == 0
    assert "def outer(" in found["out"]


def test_text_that_is_known_to_differ_is_printed_only_with_unsafe(
    capsys: Any, module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown(capsys, str(module), "--unsafe")["status"] == 0  # what is proved is proved
    write_a_mistake(monkeypatch)
    stubbed = shown(capsys, str(module))
    assert stubbed["status"] == 1
    assert "[x, 2]" not in stubbed["out"]
    assert "raise NotImplementedError" in stubbed["out"]
    alone = shown(capsys, f"{module}:f")
    assert (alone["status"], alone["out"]) == (1, "")
    assert "differs from the original" in alone["err"]

    for arguments in ([str(module)], [f"{module}:f"]):
        found = shown(capsys, *arguments, "--unsafe", "--verdict")
        assert found["status"] == 1
        lines = found["out"].splitlines()
        assert lines[0].startswith("def f(x):  # depyf: not proved: at offset ")
        assert lines[1] == "    return [x, 2]"
        assert lines[-1].startswith("# depyf: unverified: ")
        assert "unverified" in found["err"]
    # also into a file
    assert shown(capsys, f"{module}:f", "--unsafe", "-o", str(tmp_path / "f.py"))["status"] == 1
    assert "return [x, 2]" in (tmp_path / "f.py").read_text()
