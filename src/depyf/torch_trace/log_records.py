"""The records in the bytes of a log of torch's trace. Their JSON is not parsed here."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import zlib
from typing import BinaryIO, Dict, Iterator, List, Optional, Tuple, Union

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass
from depyf.base.regular_files import open_regular
from depyf.base.stored_text import unindented

RECORD = regex(
    r"^(?P<mark>[^\t{]*?)[VDIWEC](?P<date>\d{4} \d\d:\d\d:\d\d)\.(?P<micros>\d{6,}) (?P<process>\d+) "
    r"[^\]\n]*:\d+\] (?P<json>\{.*)$"
)

_TAB = 9
_END_OF_LINES = regex(rb"\n(?!\t)")
"""The end of lines that begin with a tab."""

_BLOCK = 1 << 18
"""In bytes: as much is read at once."""

_LONGEST_LINE = 1 << 28
_HARMLESS, _MOST_PACKED = 1 << 26, 200
"""In bytes; and how many times its size a packed log may have: real ones have up to 30 times."""


LogFile = Union[BinaryIO, gzip.GzipFile]


class Record:
    """A record with the lines of its payload, as they stand in the file from ``start`` to ``end``: each with a tab in
    front."""

    def __init__(self, match: re.Match[str], at: int) -> None:
        self.match = match
        self._pieces: List[bytes] = []
        self._start = self._end = at

    def add(self, lines: bytes, at: int) -> None:
        """Add lines that stand in the file at this position."""
        if at != self._end:
            self._start = -1
        self._end = at + len(lines)
        self._pieces.append(lines)

    def payload(self) -> Optional[bytes]:
        """Return the payload; None if the record has none."""
        if not self._pieces:
            return None
        lines = b"".join(self._pieces)
        return unindented(lines[:-1] if lines.endswith(b"\n") else lines)

    def position(self) -> Optional[Tuple[int, int]]:
        """Return (offset, length) of the payload in the file; None if it is missing, or other lines are mixed in."""
        if self._start < 0 or not self._pieces:
            return None
        return self._start, self._end - self._start - self._pieces[-1].endswith(b"\n")


@dataclass
class Trouble:
    """What could not be read, counted."""

    foreign: int = 0
    unreadable: int = 0
    cut: int = 0
    unnamed: int = 0
    ended: str = ""

    def notes(self) -> Tuple[str, ...]:
        found = [
            (self.unreadable, "{} records of the log can't be read (cut off, or mixed with other output)"),
            (self.cut, "{} records of the log have only a part of their text (cut off, or mixed with other output)"),
            (self.unnamed, "{} names of files are missing: the beginning of the log is not there"),
            (self.foreign, "{} lines of the log do not belong to the trace and were skipped"),
        ]
        counted = tuple(text.format(number) for number, text in found if number)
        return (*counted, self.ended) if self.ended else counted


def records(file: LogFile, trouble: Trouble) -> Iterator[Record]:
    """Yield the records. Lines with different marks in front, of several processes, may alternate."""
    open_records: Dict[str, Record] = {}
    for at, piece in pieces(file, trouble):
        # A payload: lines with a tab in front, without a mark of a launcher before it.
        if piece.startswith(b"\t"):
            if "" in open_records:
                open_records[""].add(piece, at)
            else:
                trouble.foreign += sum(bool(line.strip()) for line in piece.decode("utf-8", "replace").split("\n"))
            continue
        # With a mark: ``[rank0]: \t...`` belongs to the open record with the same mark.
        before, tab, rest = piece.partition(b"\t")
        mark = before.decode("utf-8", "replace")
        if tab and mark in open_records:
            open_records[mark].add(tab + rest, at + len(before))
            continue
        line = piece.rstrip(b"\n").decode("utf-8", "replace")
        match = RECORD.match(line)
        if match is None:
            trouble.foreign += bool(line.strip())
            continue
        mark = match.group("mark")
        done = open_records.pop(mark, None)
        if done is not None:
            yield done
        open_records[mark] = Record(match, at + len(piece))
    yield from open_records.values()


def pieces(file: LogFile, trouble: Trouble) -> Iterator[Tuple[int, bytes]]:
    """Yield the lines of a log, each with its position; lines with a tab in front as many at once as have been read.

    Ends before a line longer than any record, and at the size limit for unpacking.
    """
    is_packed = isinstance(file, gzip.GzipFile)
    most = max(_HARMLESS, os.fstat(file.fileno()).st_size * _MOST_PACKED) if is_packed else None
    data, base, at, more = b"", 0, 0, True
    while more:
        left = data[at:]
        data, base, at = left, base + at, 0
        try:
            block = _block(file, max(_BLOCK, len(left)))  # a long line is read in blocks that grow
            data, more = left + block, bool(block)
            end = len(data) if not more else data.rfind(b"\n") + 1
        except synchronous(EOFError, zlib.error, gzip.BadGzipFile) as error:
            trouble.ended, more, end = f"it could not be unpacked to its end ({error})", False, 0
        while at < end:
            # Payloads are most of a log: all their lines up to the next record are one piece.
            several = data[at] == _TAB and len(data) < _LONGEST_LINE
            found = _END_OF_LINES.search(data, at, end) if several else None
            to = found.end() if found is not None else end if several else data.find(b"\n", at, end) + 1 or end
            # A packed log that unpacks to much more than real logs do is read up to the last line below the limit.
            if most is not None and base + to > most:
                to = data.rfind(b"\n", at, most - base) + 1 or at
                trouble.ended = f"it unpacks to more than {_MOST_PACKED} times its size, and was read up to there"
            if to - at >= _LONGEST_LINE:
                break
            if to > at:
                yield base + at, data[at:to]
            if trouble.ended:
                return
            at = to
        if len(data) - at >= _LONGEST_LINE:
            trouble.ended = f"it has a line of more than {_LONGEST_LINE >> 20} MiB, and was read up to there"
            return


def _block(file: LogFile, size: int) -> bytes:
    """Return the next bytes of a log; of a packed one those before an error, too."""
    return file.read1(size) if isinstance(file, gzip.GzipFile) else file.read(size)


@contextlib.contextmanager
def open_log(path: str) -> Iterator[LogFile]:
    """Open a log to read its bytes, unpacked where it is packed."""
    with open_regular(path) as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if packed:
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked
        else:
            yield file
