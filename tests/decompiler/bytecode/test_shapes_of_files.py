"""Files as tools leave them: other headers, none, bytes after the code; and files that only look like one."""

from __future__ import annotations

from pathlib import Path

import pytest

from depyf.decompiler import decompile_pyc
from depyf.decompiler.bytecode.pyc import PycError, UnknownVersionError, is_pyc, parse_pyc
from depyf.decompiler.pipeline.reading import module_in

PYCS = Path(__file__).resolve().parent / "pycs"
OLD = (PYCS / "cp38.pyc").read_bytes()
MAGIC, CODE = OLD[:4], OLD[16:]
SHAPES = {
    "no header": (CODE, "it has no header"),
    "a zeroed header": (bytes(16) + CODE, "its header has no magic number"),
    "a zeroed header of 12 bytes": (bytes(12) + CODE, "its header has no magic number"),
    "a zeroed header of 8 bytes": (bytes(8) + CODE, "its header has no magic number"),
    "a zeroed magic number": (bytes(4) + b"\x01\x02\x03\x04" * 3 + CODE, "its header has no magic number"),
    "a magic number only": (MAGIC + CODE, "its header has 4 bytes, not 16"),
    "a header of 8 bytes": (MAGIC + b"\x01\x02\x03\x04" + CODE, "its header has 8 bytes, not 16"),
    "a header of 12 bytes": (MAGIC + b"\x01\x02\x03\x04\x05\x06\x07\x08" + CODE, "its header has 12 bytes, not 16"),
    "unknown flags": (MAGIC + b"\xff\x00\x00\x00" + OLD[8:], "its header has unknown flags, 0xff"),
    "trailing bytes": (OLD + b"garbage", "7 bytes follow its code, and were not read"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_file_of_any_shape_is_read_and_says_its_shape(shape: str, tmp_path: Path) -> None:
    data, remark = SHAPES[shape]
    assert is_pyc(data)
    pyc = module_in(data, "m.pyc")
    assert pyc.version == (3, 8)
    assert len(pyc.remarks) == 1
    assert pyc.remarks[0].startswith(remark)
    path = tmp_path / "m.pyc"
    path.write_bytes(data)
    assert decompile_pyc(path, python="3.8").source == decompile_pyc(PYCS / "cp38.pyc").source


def test_a_whole_file_has_no_remark() -> None:
    assert [parse_pyc(path.read_bytes()).remarks for path in PYCS.glob("*.pyc")] == [()] * len(list(PYCS.glob("*.pyc")))


@pytest.mark.parametrize("path", sorted(PYCS.glob("*.pyc")), ids=lambda path: path.stem)
def test_the_version_of_a_file_without_a_header_is_found_by_its_bytecode(path: Path) -> None:
    data = path.read_bytes()
    assert module_in(data[16:], "m.pyc").version == parse_pyc(data).version
    assert "the only one in which its bytecode is well-formed" in module_in(data[16:], "m.pyc").remarks[0]


def test_the_version_is_in_the_name_or_named() -> None:
    assert parse_pyc(CODE, "a/__pycache__/m.cpython-38.opt-2.pyc").version == (3, 8)
    assert parse_pyc(CODE, "m.pyc", (3, 9)).version == (3, 9)  # the caller knows
    assert parse_pyc(OLD, "m.cpython-39.pyc", (3, 10)).version == (3, 8)  # the file itself says it
    with pytest.raises(UnknownVersionError):
        parse_pyc(CODE, "m.cpython-21.pyc")


def test_a_file_that_several_pythons_could_have_written_names_them() -> None:
    # return None is the same in 3.8 to 3.10
    from depyf.decompiler.bytecode.opcode_table import table_for

    opcodes = table_for((3, 8)).opcodes
    bare = bytes([opcodes["LOAD_CONST"], 0, opcodes["RETURN_VALUE"], 0])
    number = bytes(4)
    data = b"\xe3" + number * 4 + b"\x01\x00\x00\x00" + b"\x40\x00\x00\x00"  # counts, stack size, flags
    data += b"s\x04\x00\x00\x00" + bare + b")\x01N" + b")\x00" * 4  # code, constants, names, variables, free, cells
    data += b"z\x01m" + b"z\x08<module>" + number + b"s\x00\x00\x00\x00"  # file, name, line, lines
    with pytest.raises(UnknownVersionError, match=r"m.pyc: it has no header: .*--python 3.N .*3.8 or 3.9 or 3.10"):
        module_in(data, "m.pyc")
    assert module_in(data, "m.pyc", "3.9").version == (3, 9)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"class A:\n    pass\n", "malformed|not a .pyc|does not start"),
        (b"cats and dogs are here", "malformed"),
        (bytes(40), "does not start with a magic number"),
        (b"\xe3" + bytes(3), "malformed"),
        (b"\xe3" + b"\xff" * 200, "malformed"),
        (bytes(16) + b"\xe3" + b"\xff" * 200, "malformed"),
        (MAGIC + bytes(12) + CODE[:-1], "malformed"),
        (MAGIC + bytes(4) + CODE[:-9], "malformed"),
        (CODE[:100], "malformed"),
        (MAGIC + bytes(12) + b"N" + CODE, "contains a NoneType, not a code object"),
    ],
)
def test_what_is_no_code_is_refused_in_words(data: bytes, message: str) -> None:
    with pytest.raises(PycError, match=message):
        module_in(data, "m.pyc")


def test_text_is_no_bytecode() -> None:
    for text in (b"", b"c", b"class A:\n    x = 1\n" * 10, b"\xe3\x81\x82 = 1\n" * 9, b"\0" * 90):
        assert not is_pyc(text)
