"""``.pyc`` files: the version that wrote one, its facts about its source, and its code object."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Dict, Optional, Union

from depyf.asynchronous import synchronous
from depyf.bytecode.code import PortableCode
from depyf.bytecode.marshal_reader import read_marshal
from depyf.bytecode.opcode_table import Version, known_versions, table_for
from depyf.quick_dataclass import dataclass

HEADER = 16
"""Bytes: the magic number, flags, and either time and size of the source or its hash (PEP 552)."""

_HASH_BASED, _CHECKED = 1, 2


class PycError(ValueError):
    """Raised for a file that is no ``.pyc`` of a supported Python: names the file and the reason."""


@dataclass(frozen=True)
class Pyc:
    """The contents of a ``.pyc`` file. Either ``source_time`` and ``source_size`` are known, or ``source_hash`` is.

    ``checks_source``: whether an import compares the file with its source.
    """

    version: Version
    code: PortableCode
    source_time: Optional[int]
    source_size: Optional[int]
    source_hash: Optional[bytes]
    checks_source: bool


def read_pyc(path: Union[str, os.PathLike[str]]) -> Pyc:
    """Read the ``.pyc`` file at ``path``. Raises ``PycError`` when it is none, ``OSError`` when it can't be read."""
    return parse_pyc(Path(path).read_bytes(), os.fspath(path))


def is_pyc(data: bytes) -> bool:
    """Return whether ``data`` begins as a ``.pyc`` file of a supported Python does."""
    return data[:4] in _versions()


def parse_pyc(data: bytes, name: str = "<pyc>") -> Pyc:
    """Parse the bytes ``data`` of a ``.pyc`` file; ``name`` is for messages. Raises ``PycError``."""
    if len(data) < 4:
        raise PycError(f"{name}: {len(data)} bytes are not a .pyc file")
    version = _versions().get(data[:4])
    if version is None:
        raise PycError(f"{name}: {_foreign(data[:4])}")
    if len(data) < HEADER:
        raise PycError(f"{name}: truncated: a header has {HEADER} bytes, there are {len(data)}")
    flags = int.from_bytes(data[4:8], "little")
    if flags & ~(_HASH_BASED | _CHECKED) or flags == _CHECKED:
        raise PycError(f"{name}: unknown flags {flags:#x} in the header")
    try:
        code = read_marshal(data[HEADER:], version)
    except synchronous(ValueError) as error:
        raise PycError(f"{name}: {error}") from error
    if not isinstance(code, PortableCode):
        raise PycError(f"{name}: contains a {type(code).__name__}, not a code object")
    if flags & _HASH_BASED:
        return Pyc(version, code, None, None, data[8:HEADER], bool(flags & _CHECKED))
    time, size = (int.from_bytes(data[start : start + 4], "little") for start in (8, 12))
    return Pyc(version, code, time, size, None, True)


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
