"""CUDA graphs that a program requests (``mode="reduce-overhead"``): those that are not used, or recorded again; why."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass
from depyf.torch_trace.events import METRICS, Event
from depyf.torch_trace.user_code import innermost_line

SKIPPED = "cudagraph_skip"
"""The name of depyf's event for what torch only logs while a program runs; its payload is the message."""

RERECORDED = "cudagraph_rerecord"
"""The name of depyf's event for a recording of what was recorded before; ``meta`` has the function and the reason."""

_SKIPS = regex(r"\b(?:skipping|disabling) cudagraphs? ", re.IGNORECASE)
_PREFIX = regex(r"^(?:(?:skipping|disabling) cudagraphs?(?: for backward)? due to\s*)+", re.IGNORECASE)
_FOUND = regex(r"\s*Found from\s*:\s*")
_FRAME = regex(r'File "([^"]+)", line (\d{1,9})')


@dataclass(frozen=True)
class Skip:
    """``reason`` is torch's, on one line; ``place`` the file and line of the user's that it names, if it names one."""

    compile_id: Optional[str]
    reason: str
    place: Optional[Tuple[str, int]]


@dataclass(frozen=True)
class Rerecord:
    """A graph that was recorded again ``times`` times for one reason; ``place`` is as for a skip."""

    compile_id: Optional[str]
    function: str
    mode: str
    reason: str
    place: Optional[Tuple[str, int]]
    times: int = 1


def is_skip(message: str) -> bool:
    """Return whether a message of torch's log says that CUDA graphs are not used."""
    return _SKIPS.search(message) is not None


def rerecords(events: Sequence[Event]) -> List[Rerecord]:
    """Return what was recorded again, each reason once for each graph, in order."""
    counted: Dict[Rerecord, int] = {}
    for event in events:
        if event.name == RERECORDED and isinstance(event.meta, Mapping):
            meta = {name: str(event.meta.get(name) or "") for name in ("function", "mode", "reason", "place")}
            place = _place(meta.pop("place"))
            each = Rerecord(event.compile_id, meta["function"], meta["mode"], meta["reason"], place)
            counted[each] = counted.get(each, 0) + 1
    return [replace(each, times=times) for each, times in counted.items()]


def _place(stack: str) -> Optional[Tuple[str, int]]:
    """Return the innermost line of the user's own of a stack in a text."""
    return innermost_line([(path, int(line), "") for path, line in _FRAME.findall(stack)])


def skips(events: Sequence[Event]) -> List[Skip]:
    """Return what was skipped, each reason once for each compilation; without a compile id it was found at run time."""
    found = [skip for skip in map(_skip_of, events) if skip is not None]
    # torch logs a skip while the program runs, and may report the same in the metrics of the compilation: listed once.
    known = {(skip.reason, skip.place) for skip in found if skip.compile_id is not None}
    unique = dict.fromkeys(s for s in found if s.compile_id is not None or (s.reason, s.place) not in known)
    return list(unique)


def _skip_of(event: Event) -> Optional[Skip]:
    if event.name == SKIPPED:
        message: object = event.payload
    elif event.name in METRICS and isinstance(event.meta, Mapping):
        message = event.meta.get("cudagraph_skip_reason")
    else:
        return None
    if not message:
        return None
    # ``skipping cudagraphs due to mutated inputs. Found from : File "a.py", line 3, in f``
    said, _, where = (str(part) for part in _partition(str(message)))
    return Skip(event.compile_id, " ".join(_PREFIX.sub("", said.strip()).split()).rstrip("."), _place(where))


def _partition(message: str) -> Tuple[str, str, str]:
    match = _FOUND.search(message)
    return (message, "", "") if match is None else (message[: match.start()], match.group(), message[match.end() :])
