"""The logs that torch writes with ``TORCH_TRACE=<directory>``, read back as the events that were sent.

A record is a line ``V0601 12:00:00.123000 123 torch/_dynamo/utils.py:12] {json}``, its payload the lines after it, each
with a tab in front. File names stand once, as a record of kind ``str`` with a number, and by that number from there on.
Logs of several programs in one file, or with a prefix on each line (as launchers add), are separated. A log of a
process that was killed, or that is still being written, is read as far as possible; notes say what is missing.
"""

from __future__ import annotations

import contextlib
import glob
import gzip
import hashlib
import os
import re
import time
import zlib
from dataclasses import field
from typing import Any, BinaryIO, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

from depyf.asynchronous import suppressed, synchronous
from depyf.lazy_pattern import re_compile
from depyf.quick_dataclass import dataclass
from depyf.regular_files import open_regular
from depyf.torch_trace.events import Event, event_of
from depyf.torch_trace.json_text import parsed

PATTERN = "dedicated_log_torch_trace_*.log*"
"""Torch's names of these files."""

_RECORD = re_compile(
    r"^(?P<mark>[^\t{]*?)[VDIWEC](?P<date>\d{4} \d\d:\d\d:\d\d)\.(?P<micros>\d{6,}) (?P<process>\d+) "
    r"[^\]\n]*:\d+\] (?P<json>\{.*)$"
)

_LARGEST_PROCESS_ID = 1 << 22
"""Torch before 2.5 writes thread ids there, which are addresses: they do not tell processes apart."""


_LONGEST_LINE = 1 << 28
_HARMLESS, _MOST_PACKED = 1 << 26, 200
"""In bytes; and how many times its size a packed log may have: real ones have up to 30 times."""


_END_OF_TIME = 1 << 35
"""In seconds since the epoch: what ``time.localtime`` can do."""


class LogError(ValueError):
    """A file that is not a log of torch's trace."""


@dataclass(frozen=True)
class TraceLog:
    """The records of one process in the file ``path``.

    ``rank`` is None for a program that is not distributed. ``started`` is the time of the first record, in seconds
    since the epoch.
    """

    path: str
    rank: Optional[int]
    process: int
    started: float
    events: Tuple[Event, ...] = field(repr=False)
    notes: Tuple[str, ...]


def find_logs(path: str) -> List[str]:
    """The logs that ``path`` names: itself if it is a file, those in it if it is a directory, sorted by name."""
    if not os.path.isdir(path):
        return [path] if is_log(path) else []
    named = glob.glob(os.path.join(glob.escape(path), PATTERN))
    others = glob.glob(os.path.join(glob.escape(path), "*.log")) + glob.glob(
        os.path.join(glob.escape(path), "*.log.gz")
    )
    return sorted(named or (other for other in others if is_log(other)))


def is_log(path: str) -> bool:
    """Return whether the file starts like such a log."""
    try:
        with _open(path) as file:
            head = file.read(1 << 16).decode("utf-8", "replace")
    except synchronous(OSError, EOFError, zlib.error):
        return False
    return any(_RECORD.match(line) for line in head.split("\n"))


def read_log(path: str) -> List[TraceLog]:
    """Return the log of each process in the file, in the order of their first records.

    Raises ``LogError`` for a file that has no record at all, and ``OSError``.
    """
    processes: Dict[int, _Process] = {}
    trouble = _Trouble()
    for mark, record in _records(path, trouble):
        number = int(record.match.group("process"))
        key = number if number <= _LARGEST_PROCESS_ID else -1
        processes.setdefault(key, _Process(number)).add(record, mark, trouble)
    if not processes:
        raise LogError(f"{path}: no log of torch's trace (record one with TORCH_TRACE=<directory>)")
    modified = os.stat(path).st_mtime
    return [process.log(path, modified, trouble.notes()) for process in processes.values()]


def log_lines(path: str) -> Iterator[str]:
    """The lines of the file, unpacked, as far as it can be."""
    return _lines(path, _Trouble())


@dataclass
class _Record:
    match: re.Match[str]
    payload: List[str] = field(default_factory=list)


@dataclass
class _Trouble:
    """What could not be read, counted."""

    foreign: int = 0
    unreadable: int = 0
    cut: int = 0
    unnamed: int = 0
    ended: str = ""

    def notes(self) -> Tuple[str, ...]:
        found = [
            (self.unreadable, "{} of its records can't be read (cut off, or mixed with other output)"),
            (self.cut, "{} of its records have only a part of their text (cut off, or mixed with other output)"),
            (self.unnamed, "{} names of files are missing: the beginning of the log is not there"),
            (self.foreign, "{} lines in it are not of the trace, and were left out"),
        ]
        counted = tuple(text.format(number) for number, text in found if number)
        return (*counted, self.ended) if self.ended else counted


def _records(path: str, trouble: _Trouble) -> Iterator[Tuple[str, _Record]]:
    """The records with the mark in front of their lines; lines of several marks may take turns."""
    open_records: Dict[str, _Record] = {}
    for line in _lines(path, trouble):
        mark, tab, rest = line.partition("\t")
        if tab and mark in open_records:
            open_records[mark].payload.append(rest)
            continue
        match = _RECORD.match(line)
        if match is None:
            trouble.foreign += bool(line.strip())
            continue
        mark = match.group("mark")
        done = open_records.pop(mark, None)
        if done is not None:
            yield mark, done
        open_records[mark] = _Record(match)
    yield from open_records.items()


def _lines(path: str, trouble: _Trouble) -> Iterator[str]:
    with _open(path) as file:
        try:
            for line in _whole_lines(file, trouble):
                yield line.rstrip(b"\n").decode("utf-8", "replace")
        except synchronous(EOFError, zlib.error, gzip.BadGzipFile) as error:
            trouble.ended = f"it could not be unpacked to its end ({error})"


def _whole_lines(file: Union[BinaryIO, gzip.GzipFile], trouble: _Trouble) -> Iterator[bytes]:
    """Yield the lines of a log, up to a line longer than any record, or the size limit for unpacking."""
    packed = os.fstat(file.fileno()).st_size if isinstance(file, gzip.GzipFile) else 0
    read = 0
    while True:
        line = file.readline(_LONGEST_LINE)
        read += len(line)
        if len(line) == _LONGEST_LINE:
            trouble.ended = f"it has a line of more than {_LONGEST_LINE >> 20} MiB, and was read up to there"
        elif packed and read > max(_HARMLESS, packed * _MOST_PACKED):
            trouble.ended = f"it unpacks to more than {_MOST_PACKED} times its size, and was read up to there"
        elif line:
            yield line
            continue
        return


@contextlib.contextmanager
def _open(path: str) -> Iterator[Union[BinaryIO, gzip.GzipFile]]:
    """Open a log to read its bytes, unpacked where it is packed."""
    with open_regular(path) as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if packed:
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked
        else:
            yield file


class _Process:
    """The log of one process while it is read."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._names: Dict[object, str] = {}
        self._rank: Optional[int] = None
        self._raw: List[Tuple[str, int, Mapping[str, object], Optional[str]]] = []
        self._clock: Optional[Tuple[str, int, float]] = None

    def add(self, record: _Record, mark: str, trouble: _Trouble) -> None:
        try:
            data = parsed(record.match.group("json"))
            data = self._named(data, trouble) if "str" not in data else data
        except synchronous(ValueError, RecursionError):
            trouble.unreadable += 1
            return
        date, micros = record.match.group("date"), int(record.match.group("micros"))
        if "str" in data:
            with suppressed(ValueError, TypeError):
                text, number = data["str"]
                self._names[number] = text
            return
        if type(data.get("rank")) is int:
            self._rank = data["rank"]
        payload = "\n".join(record.payload) if record.payload or data.get("has_payload") else None
        digest = None if payload is None else _digest(payload)
        trouble.cut += digest is not None and data.get("has_payload") not in (None, True, digest)
        if self._clock is None and "chromium_event" in data and payload is not None:
            self._clock = _clock(date, micros, payload)
        self._raw.append((date, micros, data, payload))

    def _named(self, value: object, trouble: _Trouble) -> Any:
        """``value`` with the numbers of file names replaced by the names."""
        if isinstance(value, dict):
            plain = {key: self._named(item, trouble) for key, item in value.items()}
            number = plain.get("filename")
            if isinstance(number, int) and "line" in plain:
                if number not in self._names:
                    self._names[number] = f"<file {number} of the log>"
                    trouble.unnamed += 1
                plain["filename"] = self._names[number]
            return plain
        if isinstance(value, list):
            return [self._named(item, trouble) for item in value]
        return value

    def log(self, path: str, modified: float, notes: Iterable[str]) -> TraceLog:
        first, offset = ("", 0.0) if not self._raw else (self._raw[0][0], 0.0)
        year = _year(first, modified)
        if self._clock is not None:
            date, micros, true_time = self._clock
            year = time.localtime(true_time).tm_year
            offset = round((true_time - _seconds(date, micros, year)) / 900) * 900  # of the recorder's time zone
        times = [_seconds(date, micros, year) + offset for date, micros, _, _ in self._raw]
        events = [event_of(data, payload, at) for at, (_, _, data, payload) in zip(times, self._raw)]
        return TraceLog(
            path=path,
            rank=self._rank,
            process=self._number,
            started=times[0] if times else modified,
            events=tuple(event for event in events if event is not None),
            notes=tuple(notes),
        )


def _digest(payload: str) -> Optional[str]:
    """Torch's hash, to check that the payload is complete; None if this Python forbids it."""
    try:
        return hashlib.md5(payload.encode("utf-8", "surrogatepass")).hexdigest()
    except synchronous(ValueError):  # a FIPS build of Python
        return None


def _clock(date: str, micros: int, payload: str) -> Optional[Tuple[str, int, float]]:
    """The time of a record as it stands there, and as its event has it: in microseconds since the epoch."""
    try:
        seconds = float(parsed(payload)["ts"]) / 1e6
    except synchronous(ValueError, KeyError, TypeError):
        return None
    return (date, micros, seconds) if 0 <= seconds < _END_OF_TIME else None


def _seconds(date: str, micros: int, year: int) -> float:
    """``MMDD HH:MM:SS`` of that year in local time, as seconds since the epoch."""
    try:
        return time.mktime(time.strptime(f"{year} {date}", "%Y %m%d %H:%M:%S")) + micros / 1e6
    except synchronous(ValueError, OverflowError):
        return 0.0


def _year(date: str, modified: float) -> int:
    """The year, which the log does not say: that of the file's last change, or the one before."""
    year = time.localtime(modified).tm_year
    return year - 1 if date and _seconds(date, 0, year) > modified + 86400 else year
