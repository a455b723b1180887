"""Records of torch's structured trace as events: received in process, or read from a log (``TORCH_TRACE``)."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any, Dict, List, Mapping, Optional

from depyf.quick_dataclass import dataclass
from depyf.torch_trace.stages import is_graph

_CONTEXT = frozenset(
    {
        "rank",
        "compiled_autograd_id",
        "frame_id",
        "frame_compile_id",
        "attempt",
        "subgraph_name",
        "has_payload",
        "stack",
    }
)
"""Keys of a record about its origin; the one remaining key is the kind of the record."""

BULKY = frozenset({"str", "describe_tensor", "describe_storage", "describe_source", "dump_file"})
"""Kinds that are frequent, large and unused here."""

PHASE = "chromium_event"
"""The beginning or the end of a phase of a compilation."""

STANDALONE = "standalone/"
"""The start of compile ids for compilations without Dynamo: torch gives them none, depyf does."""

FX_GRAPH_HIT, AOTAUTOGRAD_HIT = "fx_graph_cache_hit", "aotautograd_cache_hit"
"""Inductor's cache, and that of AOTAutograd, gave the compiled graph."""

CACHE_HITS = frozenset({FX_GRAPH_HIT, AOTAUTOGRAD_HIT})

LATER = "later_compilation"
"""Reported by depyf when a graph was compiled after its compilation had ended; ``meta`` has the time."""

_NAMED = frozenset({"artifact", "graph_dump"})
"""Kinds of many things, each with a name of its own."""

_READ_ONCE = frozenset({"fx_graph_runnable", "aot_forward_graph_fw_metadata", "dynamo_error"})


@dataclass(frozen=True)
class Event:
    """One record of the trace.

    ``name`` is its own name for the kinds ``artifact`` and ``graph_dump``, and the kind otherwise: torch sends the same
    thing as an artifact or as a kind of its own, depending on whether its caches are warm. ``compile_id`` is
    ``"frame/compile"`` without the attempt. ``meta`` is what torch attached, usually a dict. ``created`` is in seconds
    since the epoch.
    """

    name: str
    compile_id: Optional[str]
    attempt: int
    meta: Any = field(repr=False)
    payload: Optional[str] = field(repr=False)
    created: float
    stack: Any = field(repr=False, default=None)


def without_bulk(event: Event) -> Event:
    """The event without a payload that is in its own file, or is not read again."""
    if event.payload is None or event.name == PHASE:
        return event
    in_file = event.name == "inductor_output_code" or "_cache_" in event.name or is_graph(event.payload)
    if not (in_file or event.name in _READ_ONCE):
        return event
    return replace(event, payload=None)


def event_of(record: Mapping[str, Any], payload: Optional[str], created: float) -> Optional[Event]:
    """Return the event of one trace record; ``None`` for unused kinds."""
    kind = next((key for key in record if key not in _CONTEXT), None)
    if kind is None or kind in BULKY:
        return None
    meta = record[kind]
    name = meta.get("name", kind) if kind in _NAMED and isinstance(meta, dict) else kind
    attempt = int(record.get("attempt") or 0)
    return Event(str(name), _compile_id(record), attempt, meta, payload, created, record.get("stack"))


def _compile_id(record: Mapping[str, object]) -> Optional[str]:
    """The compile id of a record, spelled as ``str(CompileId)`` does."""
    autograd = record.get("compiled_autograd_id")
    prefix = "" if autograd is None else f"!{autograd}"
    if "frame_id" not in record:
        return prefix or None
    frame = f"{record['frame_id']}/{record.get('frame_compile_id', 0)}"
    return f"{prefix}/{frame}" if prefix else frame


def resolve_frames(frames: Any, names: Mapping[object, str]) -> List[Dict[str, Any]]:
    """A stack as the trace sends it, with the numbers of file names replaced by the ``names``."""
    resolved = []
    for frame in frames or []:
        filename = frame.get("filename")
        resolved.append({**frame, "filename": names.get(filename, filename)})
    return resolved
