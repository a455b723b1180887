"""Records of torch's structured trace as events: received in process, or read from a log (``TORCH_TRACE``)."""

from __future__ import annotations

import sys
from dataclasses import field
from typing import Any, Dict, List, Mapping, Optional

from depyf.base.quick_dataclass import dataclass, replace
from depyf.base.stored_text import HasText, Text
from depyf.torch_trace.stages import is_graph
from depyf.torch_trace.tracebacks import condensed

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

START = "dynamo_start"
"""Dynamo traces a frame: its first attempt begins, or another one."""

GRAPH_BREAK, RECOMPILATION = "dynamo_graph_break_reason", "recompile_reasons"
"""Why the graph ends before the frame does; which guards of the entries before failed. Both come before the end."""

GUARDS = ("dynamo_cpp_guards_str", "dynamo_guards")
"""The guards of an entry: since 2.4 as a tree, before as a list."""

KERNELS = "inductor_output_code"
"""The code that Inductor wrote."""

FORWARD_METRICS, BACKWARD_METRICS = "compilation_metrics", "bwd_compilation_metrics"
METRICS = frozenset({FORWARD_METRICS, BACKWARD_METRICS})
"""The end of a compilation, with its times; a backward that is compiled later has an end of its own."""

STANDALONE = "standalone/"
"""The start of compile ids for compilations without Dynamo: torch gives them none, depyf does."""

FX_GRAPH_HIT, AOTAUTOGRAD_HIT = "fx_graph_cache_hit", "aotautograd_cache_hit"
"""Inductor's cache, and AOTAutograd's cache, gave the compiled graph."""

CACHE_HITS = frozenset({FX_GRAPH_HIT, AOTAUTOGRAD_HIT})

GRAPH_PASS = "depyf_graph_pass"

CALL_SITE = "depyf_call_site"
"""Reported by depyf at the start of a compilation: ``meta`` has the whole stack (``dynamo_start`` may lack inner
calls), and the line at which ``torch.compile`` was called, if that is known."""

LATER = "later_compilation"
"""Reported by depyf when a graph was compiled after its compilation had ended; ``meta`` has the time."""

PIECE_STARTS = "vllm_piecewise_compile_start"
"""Reported by vLLM before it compiles a piece of a split graph: as JSON, the piece and the sizes it is compiled for."""

_NAMED = frozenset({"artifact", "graph_dump"})
"""Kinds of many things, each with a name of its own."""

UNREAD = frozenset({"aot_forward_graph_fw_metadata", "aot_forward_graph_fw_subclass_metadata", "fx_graph_runnable"})
"""Artifacts that nothing in the process reads: they take PyTorch longer to write than many graphs."""

ERROR = "dynamo_error"
"""The error of a compilation: a traceback, as text (from PyTorch 2.6 on)."""


@dataclass(frozen=True)
class Event(HasText):
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
    text: Optional[Text] = field(repr=False)
    created: float
    stack: Any = field(repr=False, default=None)

    @property
    def payload(self) -> Optional[str]:
        """The text that torch attached."""
        return self.content


def without_bulk(event: Event) -> Event:
    """Return the event without its payload if that is in its own file or not read again; an error is condensed."""
    if event.payload is None or event.name == PHASE:
        return event
    if event.name == ERROR:
        return replace(event, text=condensed(event.payload))
    in_file = event.name == KERNELS or "_cache_" in event.name or is_graph(event.payload)
    if not (in_file or event.name in UNREAD):
        return event
    return replace(event, text=None)


def kind_of(record: Mapping[str, object]) -> Optional[str]:
    """Return the kind of a trace record; ``None`` for unused kinds."""
    kind = next((key for key in record if key not in _CONTEXT), None)
    return None if kind in BULKY else kind


def event_of(record: Mapping[str, Any], payload: Optional[Text], created: float) -> Optional[Event]:
    """Return the event of one trace record; ``None`` for unused kinds."""
    kind = kind_of(record)
    if kind is None:
        return None
    meta = record[kind]
    attempt = int(record.get("attempt") or 0)
    name = event_name(kind, meta)
    return Event(name, _compile_id(record), attempt, meta, payload, created, record.get("stack"))


def event_name(kind: str, meta: object) -> str:
    """Return the name of the event that a record of this kind is."""
    return sys.intern(str(meta.get("name", kind) if kind in _NAMED and isinstance(meta, dict) else kind))


def _compile_id(record: Mapping[str, object]) -> Optional[str]:
    """Return the compile id of a record, spelled as ``str(CompileId)`` does."""
    autograd = record.get("compiled_autograd_id")
    prefix = "" if autograd is None else f"!{autograd}"
    if "frame_id" not in record:
        return prefix or None
    frame = f"{record['frame_id']}/{record.get('frame_compile_id', 0)}"
    return sys.intern(f"{prefix}/{frame}" if prefix else frame)


def is_of_dynamo(frame: Mapping[str, object]) -> bool:
    """Return whether a frame of a stack, with its file name, is of the module of PyTorch that starts compilations."""
    return str(frame.get("filename")).replace("\\", "/").endswith("torch/_dynamo/convert_frame.py")


def resolve_frames(frames: Any, names: Mapping[object, str]) -> List[Dict[str, Any]]:
    """Return a stack of the trace with the numbers of file names replaced by ``names``."""
    resolved = []
    for frame in frames or []:
        filename = frame.get("filename")
        known = isinstance(filename, (str, int))  # anything else is a stranger's
        resolved.append({**frame, "filename": names.get(filename, filename) if known else str(filename)})
    return resolved
