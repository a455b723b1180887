"""Read the logs that torch writes with ``TORCH_TRACE=<directory>`` as events.

A record is a line ``V0601 12:00:00.123000 123 torch/_dynamo/utils.py:12] {json}``, its payload the lines after it, each
with a tab in front. A file name is written once, in a record of kind ``str`` that gives it a number; later records have
the number. Logs of several programs in one file, or with a prefix on each line (as launchers add), are separated. A log
of a process that was killed, or that is still being written, is read as far as possible; notes say what is missing.
"""

from __future__ import annotations

import functools
import glob
import gzip
import hashlib
import os
import sys
import time
import zlib
from dataclasses import field
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from depyf.base.asynchronous import suppressed, synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.base.stored_text import Copies, StoredText, Text, TextFile, state_of
from depyf.torch_trace.events import METRICS, PHASE, Event, event_of, kind_of
from depyf.torch_trace.json_text import parsed, use_fast
from depyf.torch_trace.log_records import RECORD, LogFile, Record, Trouble, open_log, pieces, records
from depyf.torch_trace.metrics import READ_OF_PHASES, UNREAD_METRICS
from depyf.torch_trace.stages import Stage

PATTERN = "dedicated_log_torch_trace_*.log*"
"""Torch's names of these files."""

_LARGEST_PROCESS_ID = 1 << 22
"""Torch before 2.5 writes thread ids there, which are addresses: they do not identify processes."""


_STORED_FROM = 1 << 10
"""In bytes: longer payloads stay in their file, and are read from there when they are needed."""

_MUCH = 1 << 20
"""In bytes: the size of a log for which it pays to import what reads JSON faster."""

_UNREAD = {**dict.fromkeys(METRICS, UNREAD_METRICS), Stage.CAPTURED.record: frozenset({"sizes"})}
"""By kind of record, what is long and not read: the settings of all compilers for each compilation, for example."""

_NAMED_FILE = '"filename"'
"""In the JSON of a record with the numbers of file names."""

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
    """Return the logs at ``path``: itself if it is a file, those in it if it is a directory, sorted by name."""
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
        with open_log(path) as file:
            head = file.read(1 << 16).decode("utf-8", "replace")
    except synchronous(OSError, EOFError, zlib.error):
        return False
    return any(RECORD.match(line) for line in head.split("\n"))


def read_log(path: str) -> List[TraceLog]:
    """Return the log of each process in the file, in the order of their first records.

    Raises ``LogError`` for a file that has no record at all, and ``OSError``.
    """
    processes: Dict[int, _Process] = {}
    trouble = Trouble()
    with open_log(path) as file:
        if os.fstat(file.fileno()).st_size > _MUCH:
            use_fast()
        texts = _Texts(file, path)
        for record in records(file, trouble):
            number = int(record.match.group("process"))
            key = number if number <= _LARGEST_PROCESS_ID else -1
            process = processes.get(key)
            if process is None:
                process = processes[key] = _Process(number, texts)
            process.add(record, trouble)
        modified = os.fstat(file.fileno()).st_mtime
    if not processes:
        raise LogError(f"{path}: no log of torch's trace (record one with TORCH_TRACE=<directory>)")
    return [process.log(path, modified, trouble.notes()) for process in processes.values()]


def log_lines(path: str) -> Iterator[str]:
    """Return the lines of the file, unpacked up to the first error."""
    with open_log(path) as file:
        for _, piece in pieces(file, Trouble()):
            yield from (piece[:-1] if piece.endswith(b"\n") else piece).decode("utf-8", "replace").split("\n")


class _Texts:
    """Where payloads are read from again: the log itself, or a temporary file for a packed log and for a payload with
    other lines in it. If too many logs are open, payloads of the last logs stay in memory."""

    def __init__(self, log: LogFile, path: str) -> None:
        self._log = log
        self._path = os.path.abspath(path)
        self._state = None if isinstance(log, gzip.GzipFile) else state_of(log)
        self._here: Optional[TextFile] = None
        self._copies: Optional[TextFile] = None

    def stored(self, payload: bytes, position: Optional[Tuple[int, int]]) -> Text:
        """Return a payload as text that is read again when needed, from ``position`` of the log or from a copy."""
        here = None if isinstance(self._log, gzip.GzipFile) else position
        opened = self._copies if here is None else self._here
        if len(payload) < _STORED_FROM or not (opened or TextFile.may_open()):
            return payload.decode("utf-8", "replace")
        if here is None:
            self._copies = self._copies or Copies.new_file()
            return self._copies.add(payload)
        # The log itself, also if another file gets its name.
        if self._here is None:
            copy = os.fdopen(os.dup(self._log.fileno()), "rb")
            self._here = TextFile(copy, self._path, state=self._state, indented=True)
        return StoredText(self._here, *here, zlib.crc32(payload))


class _Process:
    """The log of one process while it is read."""

    def __init__(self, number: int, texts: _Texts) -> None:
        self._number = number
        self._texts = texts
        self._names: Dict[object, str] = {}
        self._rank: Optional[int] = None
        self._first: Optional[Tuple[str, int]] = None
        self._events: List[Event] = []
        self._times: List[Tuple[str, int]] = []
        self._clock: Optional[Tuple[str, int, float]] = None

    def add(self, record: Record, trouble: Trouble) -> None:
        text = record.match.group("json")
        try:
            data = parsed(text)
            data = self._named(data, trouble) if _NAMED_FILE in text and "str" not in data else data
        except synchronous(ValueError, RecursionError):
            trouble.unreadable += 1
            return
        date, micros = record.match.group("date"), int(record.match.group("micros"))
        # ``{"str": ["/home/me/a.py", 3]}``: file 3 of later records
        if "str" in data:
            with suppressed(ValueError, TypeError):
                text, number = data["str"]
                self._names[number] = text
            return
        if type(data.get("rank")) is int:
            self._rank = data["rank"]
        payload = record.payload()
        if payload is None and data.get("has_payload"):
            payload = b""
        self._first = self._first or (date, micros)
        # ``has_payload`` is the MD5 of the payload, by which a cut one is found.
        expected = data.get("has_payload")
        digest = None if payload is None or expected in (None, True) else _digest(payload)
        trouble.cut += digest not in (None, expected)
        kind = kind_of(data)
        if kind is None:
            return
        if kind == PHASE and payload is not None:
            phase = _of_phase(payload)
            if phase is not None:
                self._clock = self._clock or _clock(date, micros, phase)
                data[kind], payload = phase, None
        if kind in _UNREAD and isinstance(data[kind], dict):
            data[kind] = {key: _once(value) for key, value in data[kind].items() if key not in _UNREAD[kind]}
        stored = None if payload is None else self._texts.stored(payload, record.position())
        if isinstance(stored, StoredText):
            stored.digest = digest
        event = event_of(data, stored, 0.0)
        if event is not None:
            self._events.append(event)
            self._times.append((sys.intern(date), micros))

    def _named(self, value: object, trouble: Trouble) -> Any:
        """Return ``value`` with the numbers of file names replaced by the names."""
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
        first, offset = self._first or ("", 0), 0.0
        year = _year(first[0], modified)
        # The log has local time without a year and a zone; phases have the true time: their difference is the zone, in
        # quarters of an hour.
        if self._clock is not None:
            date, micros, true_time = self._clock
            year = time.localtime(true_time).tm_year
            offset = round((true_time - _seconds(date, micros, year)) / 900) * 900  # of the recorder's time zone
        for event, at in zip(self._events, self._times):
            object.__setattr__(event, "created", _seconds(*at, year) + offset)  # the year is known only now
        return TraceLog(
            path=path,
            rank=self._rank,
            process=self._number,
            started=_seconds(*first, year) + offset if self._first else modified,
            events=tuple(self._events),
            notes=tuple(notes),
        )


def _digest(payload: bytes) -> Optional[str]:
    """Return torch's hash, to check that the payload is complete; ``None`` if this Python forbids it."""
    try:
        valid = payload if payload.isascii() else payload.decode("utf-8", "replace").encode("utf-8")
        return hashlib.md5(valid).hexdigest()
    except synchronous(ValueError):  # a FIPS build of Python
        return None


def _of_phase(payload: bytes) -> Optional[Dict[str, object]]:
    """Return what is read of the beginning or the end of a phase; None if the payload is not one."""
    try:
        data = parsed(payload.decode("utf-8", "replace"))
    except synchronous(ValueError):
        return None
    if not isinstance(data, dict):
        return None
    return {key: _once(data[key]) for key in READ_OF_PHASES if key in data}


def _once(value: object) -> object:
    """Return a value, a text as the one object that all equal ones share."""
    return sys.intern(value) if isinstance(value, str) else value


def _clock(date: str, micros: int, phase: Mapping[str, object]) -> Optional[Tuple[str, int, float]]:
    """Return the time of a record as in the log, and as in its event: in microseconds since the epoch."""
    try:
        seconds = float(phase["ts"]) / 1e6  # type: ignore[arg-type]
    except synchronous(ValueError, KeyError, TypeError):
        return None
    return (date, micros, seconds) if 0 <= seconds < _END_OF_TIME else None


def _seconds(date: str, micros: int, year: int) -> float:
    """Return ``MMDD HH:MM:SS`` of that year in local time, as seconds since the epoch."""
    whole = _whole_seconds(date, year)
    return 0.0 if whole is None else whole + micros / 1e6


@functools.lru_cache(maxsize=256)
def _whole_seconds(date: str, year: int) -> Optional[float]:
    try:
        return time.mktime(time.strptime(f"{year} {date}", "%Y %m%d %H:%M:%S"))
    except synchronous(ValueError, OverflowError):
        return None


def _year(date: str, modified: float) -> int:
    """Return the year, which the log lacks: the year of the file's last change, or the year before."""
    year = time.localtime(modified).tm_year
    return year - 1 if date and _seconds(date, 0, year) > modified + 86400 else year
