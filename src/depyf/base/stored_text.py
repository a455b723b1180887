"""Texts that stay in the file that they were found in, and are read from there each time that they are needed."""

from __future__ import annotations

import errno
import os
import pickle
import tempfile
import threading
import weakref
import zlib
from typing import IO, ClassVar, Optional, Tuple, Union

from depyf.base.asynchronous import suppressed
from depyf.base.regular_files import open_regular

_IN_MEMORY = 1 << 22
"""Up to this size, in bytes, texts that are in no file that can be read again are kept in memory."""

_MOST_OPEN = 64
"""Of all logs that are read."""

State = Tuple[int, int, int, int]
"""Device, inode, size and time of the last change of a file."""


class TextFile:
    """A file with texts in UTF-8. Whatever gets its name later is not read instead.

    In an ``indented`` file each line of a text has a tab in front, as in the logs of torch's trace. With a ``state``,
    that of the file when the texts were found, changes by other programs are noticed. A pickled one is opened again by
    its ``path``, when a text is first read.
    """

    _open: ClassVar[weakref.WeakSet[TextFile]] = weakref.WeakSet()

    def __init__(self, file: IO[bytes], path: str = "", *, state: Optional[State] = None, indented: bool) -> None:
        self._path = path
        self._state = state
        self._indented = indented
        self._lock = threading.Lock()
        self._deletion: Optional[weakref.finalize[..., object]] = None
        self._keep(file)

    @classmethod
    def copy_in(cls, directory: str) -> TextFile:
        """Return a new file in a directory. It is deleted with the object, or with the one made of its pickle."""
        handle, path = tempfile.mkstemp(dir=directory)
        made = cls(os.fdopen(handle, "w+b"), path, indented=False)
        made._deletion = weakref.finalize(made, _delete, path)
        return made

    @classmethod
    def may_open(cls) -> bool:
        """Return whether few enough are open for another one: a process may only have some hundreds."""
        return len(cls._open) < _MOST_OPEN

    def read(self, text: StoredText, most: Optional[int] = None) -> str:
        """Return a text, or its first ``most`` bytes. Raises ``OSError`` if another program has changed it."""
        return self._plain(self._bytes(text, most)).decode("utf-8", "replace")

    def contains(self, word: str, text: StoredText) -> bool:
        """Return whether a word on one line is in a text; quicker than to read the text."""
        return word.encode("utf-8") in self._bytes(text)

    def add(self, data: bytes) -> StoredText:
        """Write a text at the end of the file."""
        with self._lock:
            assert self._file is not None
            offset = self._file.seek(0, os.SEEK_END)
            self._file.write(data)
        return StoredText(self, offset, len(data))

    def _keep(self, file: IO[bytes]) -> None:
        self._file: Optional[IO[bytes]] = file
        TextFile._open.add(self)
        weakref.finalize(self, file.close)

    def _bytes(self, text: StoredText, most: Optional[int] = None) -> bytes:
        with self._lock:
            if self._file is not None:
                return self._read(self._file, text, most)
            with open_regular(self._path) as file:
                if not TextFile.may_open():
                    return self._read(file, text, most)
                self._keep(os.fdopen(os.dup(file.fileno()), "rb"))
                return self._read(file, text, most)

    def _read(self, file: IO[bytes], text: StoredText, most: Optional[int]) -> bytes:
        """Return the bytes of a text. One whose file has changed is compared with what it was, as long as the file can
        be the same one with more at its end."""
        file.seek(text.offset)
        now = None if self._state is None else state_of(file)
        if self._state is None or now is None or now == self._state:
            return file.read(text.length if most is None else min(most, text.length))
        data = file.read(text.length)
        if now[:2] != self._state[:2] or zlib.crc32(self._plain(data)) != text.checksum:
            raise OSError(
                errno.ESTALE,
                "another program has changed the file while it was read; read it again",
                self._path,
            )
        return data if most is None else data[:most]

    def _plain(self, data: bytes) -> bytes:
        return unindented(data) if self._indented else data

    def __getstate__(self) -> Tuple[str, Optional[State], bool, bool]:
        if not self._path:
            raise pickle.PicklingError("texts are in a file without a name")
        if self._file is not None and self._file.writable():
            self._file.flush()
        if self._deletion is not None:
            self._deletion.detach()
        return self._path, self._state, self._indented, self._deletion is not None

    def __setstate__(self, state: Tuple[str, Optional[State], bool, bool]) -> None:
        self._path, self._state, self._indented, is_copy = state
        self._lock = threading.Lock()
        self._file = None
        self._deletion = weakref.finalize(self, _delete, self._path) if is_copy else None


class StoredText:
    """A text by its position in a file, in bytes. ``str`` reads it. ``checksum`` is the CRC-32 of the text, which only
    files of other programs need; texts of one ``digest`` are equal."""

    __slots__ = ("_file", "checksum", "digest", "length", "offset")

    def __init__(self, file: TextFile, offset: int, length: int, checksum: int = 0) -> None:
        self._file = file
        self.offset = offset
        self.length = length
        self.checksum = checksum
        self.digest: Optional[str] = None

    def __contains__(self, word: str) -> bool:
        return self._file.contains(word, self)

    def __str__(self) -> str:
        return self._file.read(self)

    def head(self, most: int) -> str:
        """Return the first characters: those in ``most`` bytes of the file."""
        return self._file.read(self, most)


Text = Union[str, StoredText]


def identity_of(text: Optional[Text]) -> Optional[str]:
    """Return what only equal texts have in common; None if that is not known without reading the text."""
    return text.digest if isinstance(text, StoredText) else text


class HasText:
    """Something with a text that may be stored."""

    text: Optional[Text]

    @property
    def content(self) -> Optional[str]:
        """The text, read from its file if it is stored there."""
        return self.text if self.text is None or isinstance(self.text, str) else str(self.text)


class Copies:
    """Where texts that are in no file which can be read again are written to: by default a temporary file, which has no
    name and ends with the process, or else a file in ``directory``, which other processes can open."""

    directory: ClassVar[Optional[str]] = None

    @classmethod
    def new_file(cls) -> TextFile:
        if cls.directory is None:
            return TextFile(tempfile.SpooledTemporaryFile(_IN_MEMORY), indented=False)
        return TextFile.copy_in(cls.directory)


def _delete(path: str) -> None:
    with suppressed(OSError):
        os.unlink(path)


def state_of(file: IO[bytes]) -> State:
    """Return what differs between open files, and for one file after a change."""
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def unindented(lines: bytes) -> bytes:
    """Return the lines without the tab in front of each."""
    return b"\n".join(lines.split(b"\n\t"))[1:]  # half the time of replacing
