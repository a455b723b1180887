"""What ``depyf shadow --record`` writes of a run: a digest of each tensor at each step, one event in a line of JSON.

A recording is read as data of strangers: each line is checked, and a line that is no event is counted and passed over.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import struct
from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Optional, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.plain_data import NOT_DATA
from depyf.torch_trace import file_names

START, INPUT, OUTPUT, LOSS = "start", "input", "output", "loss"
GRADIENT, PARAMETER = "gradient", "parameter"
KINDS = (START, INPUT, OUTPUT, LOSS, GRADIENT, PARAMETER)
"""The kinds of events, in the order in which one step computes them: the parameters that a module starts with, what it
is given and returns, what ``backward()`` starts from, gradients before and parameters after ``Optimizer.step``."""

PROJECTIONS = 8
"""The numbers in a sketch."""

WEIGHTED = "*"
"""The end of the key of a parameter whose values are weighted by its gradient: small where that may be rounding. Adam
makes a step of the same size there, so that such values take another way in each run. The key is the name up to the
first space."""

LEAF = "a leaf"
"""The name of a leaf of ``backward()`` whose own name is not known. Several leaves may have this name, in any order."""

_VERSION = 1
_NAME = "recording"
_SUFFIX = ".jsonl"
_LONGEST_LINE = 64 * 2**20
_MOST_STEPS = 10**9


LARGEST_FILE = 2**29
"""The most bytes that a recording has. A larger file of a stranger is not read."""


class RecordingError(Exception):
    """Raised for a file that is no recording; names the file and the reason."""


@dataclass(frozen=True)
class Digest:
    """A tensor in a few numbers.

    ``bits`` is a hash of all bits. ``norm``, ``least`` and ``most`` are computed from the finite values, and
    ``nonfinite`` counts the other values: ``kinds`` those that are NaN, infinite, and infinite with a minus, empty in a
    recording of an earlier depyf and where all are finite. Of values that PyTorch can't convert (float4, int4) the
    bytes stand for them. ``sketch`` has sums of the values, each value with a sign that depends on its
    position alone: the sketches of two tensors differ by as much as the tensors do, up to a factor near one.
    """

    name: str
    dtype: str
    shape: Tuple[int, ...]
    bits: int
    norm: float
    least: float
    most: float
    nonfinite: int
    sketch: Tuple[float, ...]
    kinds: Tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """The number of values."""
        found = 1
        for size in self.shape:
            found *= size
        return found

    @property
    def is_discrete(self) -> bool:
        """Whether the values are no floating point numbers. Those of float4 are two in a byte."""
        return not self.dtype.startswith(("float", "bfloat", "complex")) or self.dtype.startswith("float4")

    def to_data(self) -> List[object]:
        """Return it as a line of the recording has it."""
        sketch = base64.b64encode(struct.pack(f"<{PROJECTIONS}d", *self.sketch)).decode()
        rounded = [float(f"{each:.6g}") for each in (self.norm, self.least, self.most)]
        known = [self.name, self.dtype, list(self.shape), f"{self.bits:016x}", *rounded, self.nonfinite, sketch]
        return [*known, list(self.kinds)] if self.kinds else known


@dataclass(frozen=True)
class Event:
    """Tensors that a run has computed. ``step`` counts the calls of ``Optimizer.step`` that have ended, ``call`` the
    calls of outermost modules before; ``where`` is the module or function, of parameters the optimizer. ``random`` is
    a hash of the states of the random number generators, ``precision`` the dtype in which autocast computes."""

    step: int
    call: int
    kind: str
    where: str
    values: Tuple[Digest, ...]
    random: str = ""
    precision: str = ""

    def to_line(self) -> str:
        """Return the line of the recording."""
        data: Dict[str, object] = {"step": self.step, "call": self.call, "kind": self.kind, "where": self.where}
        data.update((key, each) for key, each in (("random", self.random), ("precision", self.precision)) if each)
        data["values"] = [each.to_data() for each in self.values]
        return json.dumps(data, separators=(",", ":")) + "\n"


@dataclass(frozen=True)
class Recording:
    """A recorded run. ``header`` has what it was: command, versions, rank. ``damaged`` counts lines that are no event,
    as the last line is of a process that was killed."""

    path: str
    header: Mapping[str, object]
    events: Tuple[Event, ...] = field(metadata=NOT_DATA)
    damaged: int = 0

    @property
    def steps(self) -> int:
        """The number of calls of ``Optimizer.step``."""
        return 1 + max((each.step for each in self.events if each.kind == PARAMETER), default=-1)

    def said(self, name: str) -> str:
        """Return a text of the header; empty if the header has no such text."""
        found = self.header.get(name)
        return found if isinstance(found, str) else ""


_UNITS = {"float64": 2.0**-53, "complex128": 2.0**-53, "float32": 2.0**-24, "complex64": 2.0**-24}
_UNITS.update(float16=2.0**-11, bfloat16=2.0**-8, float8_e4m3fn=2.0**-4, float8_e5m2=2.0**-3)


def unit_of(dtype: str) -> float:
    """Return the unit of rounding of a dtype of floating point numbers; zero for others."""
    return _UNITS.get(dtype, 2.0**-3 if dtype.startswith("float8") else 0.0)


def header_line(**known: object) -> str:
    """Return the first line of a recording."""
    return json.dumps({"depyf_recording": _VERSION, **known}) + "\n"


def file_name(rank: Optional[int]) -> str:
    """Return the file name of a rank's recording; ``None``: the program has no ranks."""
    return f"{_NAME}{_SUFFIX}" if rank is None else f"{_NAME}.{file_names.rank_mark(rank)}{_SUFFIX}"


def recordings_in(path: str) -> List[str]:
    """Return the recordings at a path: a file, or those in a folder."""
    if os.path.isdir(path):
        names = sorted(os.listdir(path))
        return [os.path.join(path, each) for each in names if each.startswith(_NAME) and each.endswith(_SUFFIX)]
    return [path] if path.endswith(_SUFFIX) and os.path.isfile(path) and _has_header(path) else []


def _has_header(path: str) -> bool:
    with open(path, encoding="utf-8", errors="replace") as file:
        return "depyf_recording" in file.readline(_LONGEST_LINE)


def read_recording(path: str) -> Recording:
    """Read a recording. Raises ``RecordingError`` for another file."""
    events: List[Event] = []
    damaged = 0
    if os.path.getsize(path) > LARGEST_FILE + _LONGEST_LINE:
        raise RecordingError(f"{path}: larger than what depyf records")
    with open(path, encoding="utf-8", errors="replace") as file:
        header = _data_of(file.readline(_LONGEST_LINE))
        if header is None or header.get("depyf_recording") != _VERSION:
            raise RecordingError(f"{path}: this is no recording of `depyf shadow --record`, or of another version")
        while True:
            line = file.readline(_LONGEST_LINE)
            if not line:
                break
            event = _event(line)
            damaged += event is None
            if event is not None:
                events.append(event)
    return Recording(path, header, tuple(events), damaged)


def _data_of(line: str) -> Optional[Dict[str, object]]:
    try:
        data = json.loads(line)
    except synchronous(ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _event(line: str) -> Optional[Event]:
    data = _data_of(line)
    if data is None:
        return None
    step, call, kind, where, values = (data.get(each) for each in ("step", "call", "kind", "where", "values"))
    if not (_is_count(step) and _is_count(call) and kind in KINDS and isinstance(where, str)):
        return None
    digests = [_digest(each) for each in values] if isinstance(values, list) else [None]
    if any(each is None for each in digests):
        return None
    random, precision = (data.get(each, "") for each in ("random", "precision"))
    if not (isinstance(random, str) and isinstance(precision, str)):
        return None
    known = tuple(each for each in digests if each is not None)
    return Event(int(str(step)), int(str(call)), str(kind), where, known, random, precision)


def _digest(data: object) -> Optional[Digest]:
    if not isinstance(data, list) or len(data) not in (9, 10):
        return None
    name, dtype, shape, bits, norm, least, most, nonfinite, sketch, *more = data
    kinds = more[0] if more else []
    is_text = all(isinstance(each, str) for each in (name, dtype, bits, sketch))
    is_number = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in (norm, least, most))
    is_shape = isinstance(shape, list) and all(map(_is_count, shape))
    is_kinds = isinstance(kinds, list) and len(kinds) in (0, 3) and all(map(_is_count, kinds))
    if not (is_text and is_number and is_shape and is_kinds and _is_count(nonfinite)):
        return None
    try:
        sums = struct.unpack(f"<{PROJECTIONS}d", base64.b64decode(sketch, validate=True))
        hashed = int(bits, 16)
        numbers = float(norm), float(least), float(most)
    except synchronous(ValueError, OverflowError, binascii.Error, struct.error):
        return None
    found = Digest(name, dtype, tuple(shape), hashed, *numbers, nonfinite, sums, tuple(kinds))
    return found if found.count < 2**62 else None


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_STEPS * 1000
