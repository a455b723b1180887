"""The reader of .pyc files: all versions, and files that are not .pyc files."""

from __future__ import annotations

import _imp
import importlib.util
import marshal
import struct
import sys
from pathlib import Path
from types import CodeType
from typing import Any, Callable, Dict, Iterator

import pytest

from depyf.decompiler.bytecode.code import PortableCode, is_code
from depyf.decompiler.bytecode.instructions import decode
from depyf.decompiler.bytecode.marshal_reader import DEEPEST, EQUAL_HASHES, read_marshal
from depyf.decompiler.bytecode.opcode_table import known_versions, running_version
from depyf.decompiler.bytecode.pyc import HEADER, PycError, parse_pyc, read_pyc

HERE = Path(__file__).resolve().parent
PYCS = sorted((HERE / "pycs").glob("*.pyc"))
RUNNING = running_version()
NEWEST = "{}.{}".format(*known_versions()[-1])

FIELDS = [
    "co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_nlocals", "co_stacksize", "co_flags", "co_code",
    "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_filename", "co_name", "co_firstlineno",
]  # fmt: skip
NEWER_FIELDS = ["co_linetable", "co_qualname", "co_exceptiontable"]

QUALIFIED_NAMES = {
    "<module>", "outer", "outer.<locals>.Local", "outer.<locals>.Local.method", "outer.<locals>.inner", "made_global",
    "outer.<locals>.<lambda>", "Top", "Top.method", "Top.Nested", "Top.Nested.method",
}  # fmt: skip


def codes(code: Any) -> Iterator[Any]:
    yield code
    for constant in code.co_consts:
        if is_code(constant):
            yield from codes(constant)


def differences(native: Any, ours: Any) -> Iterator[str]:
    if isinstance(native, CodeType):
        assert isinstance(ours, PortableCode)
        for field in FIELDS + [name for name in NEWER_FIELDS if hasattr(native, name)]:
            if getattr(native, field) != getattr(ours, field):
                yield f"{native.co_name}.{field}"
        yield from differences(native.co_consts, ours.co_consts)
    elif isinstance(native, tuple):
        assert type(ours) is tuple
        assert len(native) == len(ours)
        for one, other in zip(native, ours):
            yield from differences(one, other)
    elif type(native) is not type(ours) or (repr(native) != repr(ours) and native != ours):
        yield f"{native!r} and {ours!r}"


def module(source: str) -> bytes:
    code = compile(source, "<test>", "exec")
    return importlib.util.MAGIC_NUMBER + struct.pack("<III", 0, 12345, 678) + marshal.dumps(code)


def test_there_is_a_file_of_every_version() -> None:
    there = sorted(read_pyc(path).version for path in PYCS)
    assert there == known_versions(), "write them with tools/record/write_pyc_specimens.py"


@pytest.mark.parametrize("path", PYCS, ids=lambda path: path.stem)
def test_files_of_all_versions_are_read(path: Path) -> None:
    pyc = read_pyc(path)
    assert path.stem == "cp{}{}".format(*pyc.version)
    key = int.from_bytes(path.read_bytes()[:4], "little")
    if (pyc.version >= (3, 11)) == (RUNNING >= (3, 11)):  # the hash function changed
        assert pyc.source_hash == _imp.source_hash(key, (HERE / "specimen.py").read_bytes())
    assert not pyc.checks_source
    found = {code.co_qualname: code for code in codes(pyc.code)}
    assert set(found) >= QUALIFIED_NAMES
    outer = found["outer"]
    assert (outer.co_argcount, outer.co_kwonlyargcount) == (2, 2)
    assert outer.co_varnames[:6] == ("a", "b", "c", "d", "args", "kwargs")
    assert set(outer.co_cellvars) >= {"a", "args", "counter", "kwargs"}
    assert sorted(found["outer.<locals>.Local.method"].co_freevars) == ["__class__", "counter"]
    assert {code.version for code in found.values()} == {pyc.version}
    for code in found.values():
        assert all(instruction.line is None or instruction.line >= 0 for instruction in decode(code).instructions)


@pytest.mark.parametrize("path", PYCS, ids=lambda path: path.stem)
def test_constants_are_what_the_source_says(path: Path) -> None:
    namespace: Dict[str, Any] = {}
    exec(compile((HERE / "specimen.py").read_text(), "specimen.py", "exec"), namespace)
    constants = {repr(constant) for code in codes(read_pyc(path).code) for constant in code.co_consts}
    for name in ("NUMBERS", "TEXTS"):
        assert repr(namespace[name]) in constants


def test_the_same_as_marshal_reads() -> None:
    data = module((HERE / "specimen.py").read_text())
    assert list(differences(marshal.loads(data[HEADER:]), parse_pyc(data).code)) == []
    pyc = parse_pyc(data)
    assert (pyc.version, pyc.source_time, pyc.source_size, pyc.source_hash) == (RUNNING, 12345, 678, None)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        ...,
        3,
        2**200,
        -(2**45),
        0.1,
        1j,
        b"",
        "é",
        (),
        ((1,),),
        [1, [2]],
        {"a": {1: 2}},
        {1},
        frozenset("a"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("form", [0, 1, 2, 4])
def test_objects_of_all_forms(value: Any, form: int) -> None:
    assert repr(read_marshal(marshal.dumps(value, form), RUNNING)) == repr(value)


def test_what_appears_twice_is_the_same_object() -> None:
    shared = ("a", 2**100)
    one, other = read_marshal(marshal.dumps((shared, shared)), RUNNING)
    assert one is other


def test_every_truncation_is_an_error() -> None:
    data = module("def f(a):\n    return a + 1000, 'text'\n")
    for size in range(len(data)):
        with pytest.raises(PycError):
            parse_pyc(data[:size])
    assert parse_pyc(data + b"N").remarks == ("1 bytes follow its code, and were not read",)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"(\xff\xff\xff\x7f", "2147483647 items should follow in 0 bytes"),
        (b"(\xff\xff\xff\xff", "-1 items"),
        (b"l\xff\xff\xff\x7f", "an integer of 2147483647 digits"),
        (b"l\x01\x00\x00\x00\xff\xff", "digits that are too large"),
        (b"l\x02\x00\x00\x00\x01\x00\x00\x00", "none where it should begin"),
        (b"s\xff\xff\xff\x00", "items should follow"),
        (b"z\x05abc", "5 bytes should follow, there are 3"),
        (b"u\x01\x00\x00\x00\xff", "not utf-8"),
        (b"a\x01\x00\x00\x00\xff", "not ascii"),
        (b"f\x01x", "is not a number"),
        (b"r\x00\x00\x00\x00", "a reference to object 0 of 0"),
        (b"\xa9\x01r\x00\x00\x00\x00", "object 0 refers to itself"),
        (b"0", "an object is missing"),
        (b")\x010", "an object is missing"),
        (b">\x01\x00\x00\x00[\x00\x00\x00\x00", "unhashable"),
        (b"?", "unknown type code 0x3f"),
        (b"", "1 bytes should follow"),
        (b")\x01" * (DEEPEST + 1) + b"N", "nested more than"),
    ],
)
def test_malformed_data_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_marshal(data, RUNNING)


def test_types_belong_to_the_versions_that_have_them() -> None:
    assert read_marshal(b":NNN", (3, 14)) == slice(None)
    with pytest.raises(ValueError, match="unknown type code 0x3a"):
        read_marshal(b":NNN", (3, 13))
    with pytest.raises(ValueError, match="unknown type code 0x7d"):
        read_marshal(b"}0", (3, 14))


def test_a_few_bytes_that_describe_a_billion_objects_are_refused() -> None:
    # ((x, x), (x, x)) and so on: each level holds the one before it twice.
    data = b"\xa9\x00"
    for level in range(60):
        data = b"\xa9\x02" + data + b"r" + struct.pack("<i", 60 - level)
    with pytest.raises(ValueError, match="far too many"):
        read_marshal(data, RUNNING)


def test_long_integers_take_linear_time() -> None:
    number = 3**400_000
    assert read_marshal(marshal.dumps(number), RUNNING) == number


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "0 bytes are not a .pyc file"),
        (b"def f(): pass\n", "does not start with a magic number"),
        (b"\x03\xf3\r\n" + bytes(20), "Python 2"),
        (
            struct.pack("<H", 3394) + b"\r\n" + bytes(20),
            f"older than depyf supports, 3.8 to {NEWEST}",
        ),
        (struct.pack("<H", 3400) + b"\r\n" + bytes(20), "pre-release of CPython 3.8|older"),
        (struct.pack("<H", 3550) + b"\r\n" + bytes(20), "pre-release of CPython 3.13"),
        (struct.pack("<H", 3999) + b"\r\n" + bytes(20), "newer than this depyf supports"),
        (struct.pack("<H", 336) + b"\r\n" + bytes(20), "not written by CPython"),
        (importlib.util.MAGIC_NUMBER + bytes(3), "truncated"),
        (importlib.util.MAGIC_NUMBER + b"\x08" + bytes(20), "unknown flags 0x8"),
        (importlib.util.MAGIC_NUMBER + bytes(12) + b"N", "contains a NoneType, not a code object"),
    ],
)
def test_files_that_are_no_pyc_say_what_they_are(data: bytes, message: str) -> None:
    with pytest.raises(PycError, match=message) as caught:
        parse_pyc(data, "some/file.pyc")
    assert str(caught.value).startswith("some/file.pyc: ")


def test_the_magic_number_of_this_python_is_known() -> None:
    assert parse_pyc(module("")).version == sys.version_info[:2]


@pytest.mark.parametrize("kind", [set, frozenset, dict.fromkeys], ids=["set", "frozenset", "dict"])
def test_items_that_share_a_hash_are_refused_before_they_are_compared(kind: Callable[[Any], Any]) -> None:
    same = [number * sys.hash_info.modulus for number in range(1, EQUAL_HASHES + 2)]
    assert read_marshal(marshal.dumps(kind(same[1:])), RUNNING) == kind(same[1:])
    with pytest.raises(ValueError, match="have the same hash"):
        read_marshal(marshal.dumps(kind(same)), RUNNING)
