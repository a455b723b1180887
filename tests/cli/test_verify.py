"""``depyf verify``: an edited file against the original, as a user calls it. Nothing of either is run."""

from __future__ import annotations

import json
import py_compile
import sys
from pathlib import Path
from typing import Callable, Tuple

import pytest

from depyf.cli import main
from depyf.decompiler.verify.compare import Comparer

Verify = Callable[..., Tuple[int, str]]

ORIGINAL = '''\
import os
LIMIT = 3

def ratio(a, b, scale=LIMIT):
    """Text."""
    top = a + 1
    bottom = b * scale
    return top / bottom

class Box:
    size = 1

    def grow(self, by):
        self.size += by
        return [each for each in range(self.size)]
'''


@pytest.fixture
def verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Verify:
    """Call the command with texts in place of files: EDITED, ORIGINAL, what follows their names, and options."""

    def call(edited: str, original: str = ORIGINAL, at: str = "", *options: str) -> Tuple[int, str]:
        for name, text in (("edited.py", edited), ("original.py", original)):
            (tmp_path / name).write_text(text)
        return run(capsys, f"{tmp_path / 'edited.py'}{at}", f"{tmp_path / 'original.py'}{at}", *options)

    return call


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> Tuple[int, str]:
    status = main(["verify", *map(str, arguments)])
    printed = capsys.readouterr()
    return status, printed.out + printed.err


def changed(old: str, new: str, text: str = ORIGINAL) -> str:
    assert old in text
    return text.replace(old, new)


def test_a_file_that_is_formatted_anew_has_the_same_bytecode(verify: Verify) -> None:
    status, printed = verify(changed("a + 1", "(a  +  1)  # a comment"))
    assert status == 0
    assert [line[:14] for line in printed.splitlines()[:-1]] == ["same bytecode "] * 4
    assert printed.splitlines()[-1] == "EDITED is proved to be the same: 4 same bytecode"


def test_another_name_of_a_local_variable_is_proved(verify: Verify) -> None:
    status, printed = verify(changed("top", "numerator"))
    assert status == 0
    assert "equivalent           ratio (numerator was top)" in printed


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("a + 1", "a + 2", "at line 6 (edited: line 6) the original does: binary '+' (<argument a>, 1), with 1 where "),
        ("    bottom", "    print(a)\n    bottom", "the edited code does: load global 'print' ()"),
        ("b * scale", "b * scale * scale", "the edited code does: binary '*'"),
        ("by\n", "by - 0\n", "different            Box.grow"),
        ("Text.", "Words.", "the docstrings differ: 'Text.' in the original, 'Words.' in the edited code"),
        ("scale=LIMIT", "scale=4", "different            the statements outside of functions and classes"),
        ("LIMIT = 3", "LIMIT = 4", "with 3 where the edited code has 4"),
        ("size = 1", "size = 2", "different            Box\n"),
        ("def grow", "@property\n    def grow", "different            Box\n"),
        ("self, by", "self, less", "the argument names differ"),
        ("import os\n", "import os\ndef new(): pass\n", "only in EDITED       new"),
    ],
)
def test_a_difference_is_named(verify: Verify, old: str, new: str, message: str) -> None:
    status, printed = verify(changed(old, new))
    assert (status, message in printed) == (1, True), printed


def test_a_function_that_is_gone_is_only_in_the_original(verify: Verify) -> None:
    status, printed = verify(ORIGINAL.partition("class")[0])
    assert status == 1
    assert "only in ORIGINAL     Box.grow" in printed


def test_two_independent_operations_in_another_order_are_different_and_two_constants_are_not(verify: Verify) -> None:
    operations = "    top = a + 1\n    bottom = b * scale\n"
    assert verify(changed(operations, "".join(reversed(operations.splitlines(keepends=True)))))[0] == 1
    constants = "def f(a):\n    x = 1\n    y = a\n    return g(x, y)\n"
    status, printed = verify(changed("    x = 1\n    y = a\n", "    y = a\n    x = 1\n", constants), constants)
    assert (status, "equivalent           f" in printed) == (0, True)


def test_what_needs_an_assumption_is_said_not_to_be_proved(verify: Verify) -> None:
    status, printed = verify(changed("    bottom = b * scale\n    return top / bottom", "    return top / (b * scale)"))
    assert status == 3
    assert "could not be proved  ratio" in printed
    assert "the same if nothing observes bottom (a debugger, a traceback), nor when the values are released" in printed
    assert printed.splitlines()[-1].startswith("EDITED is not proved to be the same: ")


def test_functions_with_one_name_are_compared_with_the_code_around_them(verify: Verify) -> None:
    twice = "if a:\n    def f(): return 1\nelse:\n    def f(): return 2\n"
    assert verify(twice + "#", twice)[0] == 0
    status, printed = verify(changed("return 2", "return 3", twice), twice)
    assert (status, "in f: " in printed) == (1, True)


def test_one_function_is_compared_with_its_decorators_and_default_values(verify: Verify) -> None:
    status, printed = verify(changed("size = 1", "size = 2"), ORIGINAL, ":ratio")
    assert (status, len(printed.splitlines())) == (0, 3)
    status, printed = verify(changed("scale=LIMIT", "scale=LIMIT + 1"), ORIGINAL, ":ratio")
    assert status == 1
    assert "different            the definition of ratio: decorators, default values, annotations" in printed
    assert verify(changed("size = 1", "size = 2"), ORIGINAL, ":Box")[0] == 1
    assert verify(changed("def grow", "@property\n    def grow"), ORIGINAL, ":Box.grow")[0] == 1


def test_the_original_may_be_a_pyc_file_also_one_of_dash_o(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, edited = tmp_path / "m.py", tmp_path / "edited.py"
    source.write_text("def f(x, y=1):\n    assert x\n    return x + y\n")
    edited.write_text(source.read_text() + "# edited\n")
    for level in (0, 1):
        pyc = py_compile.compile(str(source), doraise=True, optimize=level)
        assert run(capsys, edited, pyc)[0] == 0
        assert run(capsys, f"{edited}:f", pyc)[0] == 0
    edited.write_text(changed("y=1", "y=2", source.read_text()))
    assert run(capsys, edited, pyc)[0] == 1
    assert run(capsys, edited, f"{pyc}:f")[0] == 1


def test_a_pyc_of_another_python_is_never_said_to_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "cp39.pyc" if sys.version_info[:2] != (3, 9) else "cp310.pyc"
    pyc = Path(__file__).resolve().parents[1] / "decompiler" / "bytecode" / "pycs" / name
    (tmp_path / "edited.py").write_text("def f(): pass\n")
    status, printed = run(capsys, tmp_path / "edited.py", pyc)
    assert "different  " not in printed
    assert f"compiled by another Python (3.{name[3:-4]})" in printed
    assert status == 1  # it lacks functions


def test_a_module_is_found_and_not_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("never_run.py", "edited.py"):
        (tmp_path / name).write_text("import no_such_module\ndef f(): return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert run(capsys, tmp_path / "edited.py", "never_run:f")[0] == 0
    assert run(capsys, tmp_path / "edited.py", "never_run")[0] == 0


GUARDS = """\
@___guard
def __guard_0_for_f(L, G, **___kwargs_ignored):
    return (
        ___check_tensor(L['a'], size=[4])  # a + 1
        and ___check_tensor(L['b'], size=[4])
        and 2 <= L['a'].size()[0]
    )
"""


@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        ("        and ___check_tensor(L['b'], size=[4])\n", "", ["is gone: ___check_tensor(L['b'], size=[4])\n"]),
        ("2 <=", "3 <=", ["is gone: 2 <= L['a'].size()[0]\n", "is new: 3 <= L['a'].size()[0]\n"]),
        ("    )", "        and L['c'] is None\n    )", ["is new: L['c'] is None\n"]),
    ],
)
def test_guards_are_compared_as_a_set_of_texts(verify: Verify, old: str, new: str, messages: list[str]) -> None:
    status, printed = verify(changed(old, new, GUARDS), GUARDS)
    assert status == 1
    assert [message for message in messages if message not in printed] == []
    assert printed.count("guard that is ") == len(messages)


def test_the_same_guards_in_another_order_are_not_proved(verify: Verify) -> None:
    first, second = "___check_tensor(L['b'], size=[4])", "2 <= L['a'].size()[0]"
    edited = GUARDS.replace(first, "0").replace(second, first).replace("and 0", f"and {second}")
    status, printed = verify(edited, GUARDS)
    assert (status, "the guards that both have are in another order" in printed) == (3, True)
    assert verify(edited.replace("    return", "    print(L)\n    return"), GUARDS)[0] == 1
    assert verify(edited.replace("L, G", "L, H"), GUARDS)[0] == 1


def test_a_folder_is_searched_for_the_file_of_the_same_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dump").mkdir()
    for path in (tmp_path / "full_code_for_f_0.py", tmp_path / "dump" / "full_code_for_f_0.py"):
        path.write_text(GUARDS)
    assert run(capsys, tmp_path / "full_code_for_f_0.py", tmp_path / "dump")[0] == 0
    (tmp_path / "other.py").write_text(GUARDS)
    status, printed = run(capsys, tmp_path / "other.py", tmp_path / "dump")
    assert (status, printed) == (2, f"depyf: {tmp_path / 'dump'}: no file other.py in it; name the original file\n")
    status, printed = run(capsys, tmp_path / "other.py", tmp_path / "other.py")
    assert (status, printed) == (2, f"depyf: {tmp_path / 'other.py'}: EDITED and ORIGINAL are one file\n")


def test_a_kernel_that_is_a_text_is_compared_by_lines(verify: Verify) -> None:
    kernel = "kernel = compile_it('''\n#include <a>\nfloat x = 2.0;\n''')\n"
    status, printed = verify(changed("2.0", "3.0", kernel), kernel)
    assert (status, "from line 3 of the text on, 'float x = 2.0;' and 'float x = 3.0;'" in printed) == (1, True)


def test_every_row_is_written_as_json(verify: Verify, tmp_path: Path) -> None:
    output = tmp_path / "rows.json"
    assert verify(changed("a + 1", "a + 2", changed("bottom", "b2")), ORIGINAL, "", "--json", str(output))[0] == 1
    data = json.loads(output.read_text())
    (row,) = [each for each in data["rows"] if each["verdict"] == "different"]
    assert (data["status"], row["name"], row["line_of_original"], row["line_of_edited"]) == (1, "ratio", 6, 6)
    status, printed = verify(ORIGINAL + "#", ORIGINAL, "", "--json", str(tmp_path / "edited.py"))
    assert (status, "would replace the input" in printed) == (2, True)


LOOP = """\
def total(items):
    found = 0
    for item in items:
        if item > 0:
            found += item
        else:
            found -= 1
    return found
"""
GUARDED = """\
def total(items):
    found = 0
    for item in items:
        if not item > 0:
            found -= 1
            continue
        found += item
    return found
"""


@pytest.mark.parametrize("at", ["", ":total"])
def test_a_certificate_is_written_and_checked_without_the_verifier(
    verify: Verify, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    file = str(tmp_path / "total.json")
    status, printed = verify(GUARDED, LOOP, at, "--certificate", file)
    assert (status, f"{file} certifies the two " in printed, "(states: 1)" in printed) == (0, True, True), printed
    monkeypatch.setattr(Comparer, "compare", None)  # a call raises
    status, printed = verify(GUARDED, LOOP, at, "--check", file)
    assert (status, printed.count("\n"), " behave the same; checked (states: 1)" in printed) == (0, 1, True), printed
    for wrong in (GUARDED.replace("-= 1", "-= 2"), GUARDED.replace("        found += item\n", "")):
        status, printed = verify(wrong, LOOP, at, "--check", file)
        assert (status, " proves nothing about the two " in printed) == (3, True), printed
    Path(file).write_text("[[")
    status, printed = verify(GUARDED, LOOP, at, "--check", file)
    assert (status, "the certificate is malformed" in printed) == (3, True), printed


def test_a_certificate_is_not_written_without_a_proof_that_can_be_checked(verify: Verify, tmp_path: Path) -> None:
    file = tmp_path / "total.json"
    status, printed = verify(GUARDED.replace("-= 1", "-= 2"), LOOP, "", "--certificate", str(file))
    assert (status, file.exists()) == (1, False), printed
    status, printed = verify(GUARDED.replace("found", "sum_"), LOOP, "", "--certificate", str(file))
    assert (status, file.exists(), f"depyf: {file} is not written: no certificate: " in printed) == (3, False, True)
    status, printed = verify(GUARDED, LOOP, "", "--check", str(file))
    assert (status, printed) == (2, f"depyf: {file}: No such file or directory\n")
    assert verify(GUARDED, LOOP, "", "--check", str(file), "--json", str(file))[0] == 2


@pytest.mark.parametrize(
    "data",
    [b"def f(:", b"\x00\x01\x02", b'x = "\xff"', b"# coding: none\n", b"x=" + b"(" * 5000, b"x=a" + b".b" * 50_000],
    ids=["syntax", "binary", "no UTF-8", "encoding", "nested", "deep"],
)
def test_a_file_that_is_no_python_is_said_in_one_line(
    data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(ORIGINAL)
    bad.write_bytes(data)
    for arguments in ((good, bad), (bad, good)):
        status, printed = run(capsys, *arguments)
        assert (status, printed.count("\n"), printed.startswith(f"depyf: {bad}: ")) == (2, 1, True), printed


def test_what_is_missing_is_said_in_one_line(verify: Verify, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "gone.py", "json") == (2, "depyf: gone.py: no such file\n")
    status, printed = verify(ORIGINAL + "#", ORIGINAL, ":none")
    assert (status, "no such function or class in " in printed) == (2, True)
