"""Read files that may be entries of archives: ``lib.zip/package/m.pyc``, for zip files, wheels and eggs.

Archives may be of strangers: an entry is read up to a limit, nothing is written, and no entry leads out of its archive.
"""

from __future__ import annotations

import os
from typing import Dict, List, Optional, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.regular_files import open_regular

LARGEST = 1 << 28
"""The limit on the bytes of one entry, unpacked."""

MOST = 200_000
"""The limit on the entries of one archive."""


class ArchiveError(ValueError):
    """Raised for an archive, or an entry, that can't be read: names it and the reason."""


def split_path(path: str) -> Optional[Tuple[str, str]]:
    """Return the archive in ``path`` and the name of the entry, with ``/``; ``None`` where no part of it is a file."""
    if os.path.lexists(path):
        return None
    parts = path.replace(os.altsep or os.sep, os.sep).split(os.sep)
    for count in range(1, len(parts)):
        archive = os.sep.join(parts[:count])
        if archive and os.path.isfile(archive):
            return archive, "/".join(parts[count:])
    return None


def is_archive(path: str) -> bool:
    """Return whether ``path`` is a zip file, under any name, also one that is appended to a program."""
    import zipfile  # it takes longer to import than to find out that there is no archive

    try:
        return os.path.isfile(path) and zipfile.is_zipfile(path)
    except synchronous(OSError):
        return False


def read_file(path: str) -> bytes:
    """Return the bytes of a regular file or of an entry. Raises ``OSError`` and ``ArchiveError``."""
    split = split_path(path)
    if split is None:
        with open_regular(path) as file:
            return file.read()
    archive, name = split
    if not is_archive(archive):
        raise NotADirectoryError(20, "is a file, and no zip archive", archive)
    parts = name.split("/")
    if os.pardir in parts or "" in parts or "\\" in name or ":" in parts[0]:
        raise ArchiveError(f"{path}: the name of the entry leads out of the archive")
    import zipfile

    try:
        with open_regular(archive) as file, zipfile.ZipFile(file) as opened:
            entry = opened.getinfo(name)
            if entry.flag_bits & 1:
                raise ArchiveError(f"{path}: is encrypted")
            with opened.open(entry) as stream:
                data = stream.read(LARGEST + 1)
    except (ArchiveError, OSError, MemoryError):
        raise
    except synchronous(KeyError):
        raise FileNotFoundError(2, "no such entry in the archive", path) from None
    except synchronous() as error:  # each method of compression has errors of its own
        raise ArchiveError(f"{path}: can't be unpacked: {error or type(error).__name__}") from error
    if len(data) > LARGEST:
        raise ArchiveError(f"{path}: has more than {LARGEST} bytes")
    return data


def entries(path: str) -> List[str]:
    """Return the names of the files in an archive, as it lists them. Raises ``OSError`` and ``ArchiveError``."""
    import zipfile

    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as opened:
            names = [name for name in opened.namelist() if not name.endswith("/")]
    except (OSError, MemoryError):
        raise
    except synchronous() as error:  # the names, sizes and offsets may be anything
        raise ArchiveError(f"{path}: can't be read as an archive: {error or type(error).__name__}") from error
    if len(names) > MOST:
        raise ArchiveError(f"{path}: has more than {MOST} entries")
    return list(dict.fromkeys(names))


def by_folder(names: List[str]) -> Dict[str, List[str]]:
    """Return the base names of entries by their folders."""
    found: Dict[str, List[str]] = {}
    for name in names:
        folder, _, base = name.rpartition("/")
        found.setdefault(folder, []).append(base)
    return found
