"""CUDA graphs that Inductor does not use although the program requests them (``mode="reduce-overhead"``), and why."""

from __future__ import annotations

import re
from typing import List, Mapping, Optional, Sequence, Tuple

from depyf.lazy_pattern import re_compile
from depyf.quick_dataclass import dataclass
from depyf.torch_trace.events import Event

SKIPPED = "cudagraph_skip"
"""The name of depyf's event for what torch only logs while a program runs; its payload is the message."""

_PREFIX = re_compile(r"^(?:skipping cudagraphs due to\s*)+", re.IGNORECASE)
_FOUND = re_compile(r"\s*Found from\s*:\s*")
_FRAME = re_compile(r'File "([^"]+)", line (\d{1,9})')


@dataclass(frozen=True)
class Skip:
    """``reason`` is torch's, on one line; ``place`` the file and line of the user's that it names, if it names one."""

    compile_id: Optional[str]
    reason: str
    place: Optional[Tuple[str, int]]


def skips(events: Sequence[Event]) -> List[Skip]:
    """What was skipped, each reason once for each compilation; what has no compile id was found while code ran."""
    found = [skip for skip in map(_skip_of, events) if skip is not None]
    known = {(skip.reason, skip.place) for skip in found if skip.compile_id is not None}
    unique = dict.fromkeys(s for s in found if s.compile_id is not None or (s.reason, s.place) not in known)
    return list(unique)


def _skip_of(event: Event) -> Optional[Skip]:
    if event.name == SKIPPED:
        message: object = event.payload
    elif event.name in ("compilation_metrics", "bwd_compilation_metrics") and isinstance(event.meta, Mapping):
        message = event.meta.get("cudagraph_skip_reason")
    else:
        return None
    if not message:
        return None
    said, _, where = (str(part) for part in _partition(str(message)))
    frames = _FRAME.findall(where)
    place = (frames[-1][0], int(frames[-1][1])) if frames else None
    return Skip(event.compile_id, " ".join(_PREFIX.sub("", said.strip()).split()).rstrip("."), place)


def _partition(message: str) -> Tuple[str, str, str]:
    match = _FOUND.search(message)
    return (message, "", "") if match is None else (message[: match.start()], match.group(), message[match.end() :])
