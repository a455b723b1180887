"""Read ``.pyc`` files: the Python version, the state of the source (time and size, or hash), and the code object.

Files that tools cut out of programs and archives have no header, a header of zeros, or the shorter header of an older
Python. The code object is then found by the byte that it begins with. Without a magic number the version must be given.
"""

from __future__ import annotations

import functools
import os
from typing import Dict, List, Optional, Tuple, Union

from depyf.base.archives import read_file
from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.bytecode.code import PortableCode
from depyf.decompiler.bytecode.marshal_reader import read_first
from depyf.decompiler.bytecode.opcode_table import Version, known_versions, table_for

HEADER = 16
"""Bytes: the magic number, flags, and either time and size of the source or its hash (PEP 552)."""

_SHORTER = (12, 8, 4)
"""Headers with time and size (3.3 to 3.6), with the time only, and of a magic number only."""

_NO_MAGIC = bytes(4)

_HASH_BASED, _CHECKED = 1, 2

_BEGINS = (ord("c"), ord("c") | 0x80)
"""The first bytes of code objects in ``marshal`` data."""


class PycError(ValueError):
    """Raised for a file that is no ``.pyc`` of a supported Python: names the file and the reason."""


class UnknownVersionError(PycError):
    """Raised for a file that does not say its version. ``fitting``: its code as each version that can be read as."""

    def __init__(self, name: str, why: str, fitting: Tuple[PortableCode, ...]) -> None:
        self.name, self.why, self.fitting = name, why, fitting
        names = [".".join(map(str, code.version)) for code in fitting]
        super().__init__(f"{name}: {why}: name the Python that wrote it, --python 3.N (it may be {' or '.join(names)})")


@dataclass(frozen=True)
class Pyc:
    """The contents of a ``.pyc`` file. Either ``source_time`` and ``source_size`` are known, or ``source_hash`` is, or
    neither. ``checks_source``: whether an import compares the file with its source. ``remarks``: how the file differs
    from what Python writes, a phrase each.
    """

    version: Version
    code: PortableCode
    source_time: Optional[int]
    source_size: Optional[int]
    source_hash: Optional[bytes]
    checks_source: bool
    remarks: Tuple[str, ...] = ()


def read_pyc(path: Union[str, os.PathLike[str]], version: Optional[Version] = None) -> Pyc:
    """Read the ``.pyc`` file at ``path``, or the entry of an archive (``lib.zip/m.pyc``). ``version``: that of a file
    that does not say it. Raises ``PycError`` when it is none, ``OSError`` when it can't be read."""
    return parse_pyc(read_file(os.fspath(path)), os.fspath(path), version)


def is_pyc(data: bytes) -> bool:
    """Return whether ``data`` begins as a ``.pyc`` file of a supported Python does, or one that has lost its header."""
    if data[:4] in _versions():
        return True
    if b"\0" not in data[:64]:  # which text has not
        return False
    return data[0] in _BEGINS or (data[:4] == _NO_MAGIC and bool(_starts(data)))


def parse_pyc(data: bytes, name: str = "<pyc>", version: Optional[Version] = None) -> Pyc:
    """Parse the bytes ``data`` of a ``.pyc`` file; ``name`` is for messages. ``version``: that of a file that does not
    say it; the default is what its name says (``m.cpython-38.pyc``). Raises ``PycError``."""
    if len(data) < 4:
        raise PycError(f"{name}: {len(data)} bytes are not a .pyc file")
    known = _versions().get(data[:4])
    if known is not None:
        return _parsed(data, name, known)
    if data[0] in _BEGINS:
        why, starts = "it has no header", [0]
    elif data[:4] == _NO_MAGIC and _starts(data):
        why, starts = "its header has no magic number", _starts(data)
    else:
        raise PycError(f"{name}: {_foreign(data[:4])}")
    version = version or _version_in(name)
    if version is None:
        raise _unknown(data, name, why, starts)
    named = ".".join(map(str, version))
    return _of_code(*_read(data, name, version, starts), (f"{why}; read as CPython {named}",))


def _parsed(data: bytes, name: str, version: Version) -> Pyc:
    """Return the contents of a file with a magic number."""
    starts, flags = _starts(data), int.from_bytes(data[4:8], "little")
    usual = flags & ~(_HASH_BASED | _CHECKED) == 0 and flags != _CHECKED
    if not starts and len(data) < HEADER:
        raise PycError(f"{name}: truncated: a header has {HEADER} bytes, there are {len(data)}")
    if not starts and not usual:
        raise PycError(f"{name}: unknown flags {flags:#x} in the header")
    code, rest, start = _read(data, name, version, starts or [HEADER])
    if start != HEADER:
        return _of_code(code, rest, start, (f"its header has {start} bytes, not {HEADER}",))
    if not usual:
        return _of_code(code, rest, start, (f"its header has unknown flags, {flags:#x}",))
    remarks = _remarks(rest)
    if flags & _HASH_BASED:
        return Pyc(version, code, None, None, data[8:HEADER], bool(flags & _CHECKED), remarks)
    time, size = (int.from_bytes(data[start : start + 4], "little") for start in (8, 12))
    return Pyc(version, code, time, size, None, True, remarks)


def _of_code(code: PortableCode, rest: int, start: int, remarks: Tuple[str, ...]) -> Pyc:
    return Pyc(code.version, code, None, None, None, False, remarks + _remarks(rest))


def _remarks(rest: int) -> Tuple[str, ...]:
    return (f"{rest} bytes follow its code, and were not read",) if rest else ()


def _starts(data: bytes) -> List[int]:
    """Return where the code object may begin behind a header, most likely first."""
    return [start for start in (HEADER, *_SHORTER) if start < len(data) and data[start] in _BEGINS]


def _read(data: bytes, name: str, version: Version, starts: List[int]) -> Tuple[PortableCode, int, int]:
    """Return the code object at the first of ``starts`` that has one, with the number of bytes that follow it."""
    failure: Optional[ValueError] = None
    for start in starts:
        try:
            code, end = read_first(data[start:], version)
        except synchronous(ValueError) as error:
            failure = failure or error
            continue
        if isinstance(code, PortableCode):
            return code, len(data) - start - end, start
        failure = failure or ValueError(f"contains a {type(code).__name__}, not a code object")
    raise PycError(f"{name}: {failure}") from failure


def _unknown(data: bytes, name: str, why: str, starts: List[int]) -> PycError:
    """Return the error for a file without a version."""
    fitting: List[PortableCode] = []
    failure: Optional[PycError] = None
    for version in known_versions():
        try:
            fitting.append(_read(data, name, version, starts)[0])
        except synchronous(PycError) as error:
            failure = error
    if not fitting:
        assert failure is not None
        return failure
    return UnknownVersionError(name, why, tuple(fitting))


_TAG = regex(r"\.cpython-(\d)(\d+)[.-]")


def _version_in(name: str) -> Optional[Version]:
    """Return the version in the name of a file of ``__pycache__``."""
    found = _TAG.search(os.path.basename(name))
    version = (int(found[1]), int(found[2])) if found else None
    return version if version in known_versions() else None


@functools.lru_cache(maxsize=None)
def _versions() -> Dict[bytes, Version]:
    """Return the version of each magic number. It changes up to the last release candidate, so all releases of a
    version have the same."""
    return {table_for(version).magic: version for version in known_versions()}


def _foreign(magic: bytes) -> str:
    """Describe a file with an unknown magic number."""
    if magic[2:] != b"\r\n":
        return "not a .pyc file: it does not start with a magic number"
    number = int.from_bytes(magic[:2], "little")
    numbers = {int.from_bytes(known[:2], "little"): version for known, version in _versions().items()}
    oldest, newest = min(numbers), max(numbers)
    if number > 20000:
        return f"written by Python 2 (magic number {number}); depyf reads files of CPython {_range()}"
    if number > newest:
        return f"written by a Python newer than this depyf supports, {_range()} (magic number {number})"
    if number > oldest:
        major, minor = numbers[min(known for known in numbers if known > number)]
        return f"written by a pre-release of CPython {major}.{minor} (magic number {number}), not by a release"
    if number > 3000:
        return f"written by a Python older than depyf supports, {_range()} (magic number {number})"
    return f"not written by CPython (magic number {number})"


def _range() -> str:
    versions = known_versions()
    return " to ".join(f"{major}.{minor}" for major, minor in (versions[0], versions[-1]))
