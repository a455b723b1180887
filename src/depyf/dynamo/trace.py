"""The structured trace of torch, received in process as a stream of events.

torch reports every stage of a compilation on the logger ``torch.__trace``. A handler there sees all of it with no
environment variable and also when the compiler caches are warm.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional

from depyf.dynamo import compat
from depyf.dynamo.patching import Undo
from depyf.dynamo.safely import report_failure

TRACE_LOGGER = "torch.__trace"

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
"""Keys of a record that say where it comes from; the one key that is left over is the kind of the record."""

_BULKY = frozenset({"str", "describe_tensor", "describe_storage", "describe_source", "chromium_event", "dump_file"})
"""Kinds that are many, large and of no use here."""


@dataclass(frozen=True)
class Event:
    """One record of the trace.

    ``name`` is the artifact's own name for the kind ``artifact`` and the kind otherwise: torch sends the same thing
    under either, depending on whether its caches are warm. ``compile_id`` is ``"frame/compile"`` without the attempt.
    ``meta`` is what torch attached, usually a dict. ``created`` is in seconds since the epoch.
    """

    name: str
    compile_id: Optional[str]
    attempt: int
    meta: Any = field(repr=False)
    payload: Optional[str] = field(repr=False)
    created: float
    stack: Any = field(repr=False, default=None)


def event_of(record: Mapping[str, Any], payload: Optional[str], created: float) -> Optional[Event]:
    """The event of one trace record; ``None`` for the kinds that nobody reads."""
    kind = next((key for key in record if key not in _CONTEXT), None)
    if kind is None or kind in _BULKY:
        return None
    meta = record[kind]
    name = meta.get("name", kind) if kind == "artifact" and isinstance(meta, dict) else kind
    attempt = int(record.get("attempt") or 0)
    return Event(str(name), _compile_id(record), attempt, meta, payload, created, record.get("stack"))


def _compile_id(record: Mapping[str, Any]) -> Optional[str]:
    """The compile id of a record, spelled as ``str(CompileId)`` does."""
    autograd = record.get("compiled_autograd_id")
    prefix = "" if autograd is None else f"!{autograd}"
    if "frame_id" not in record:
        return prefix or None
    frame = f"{record['frame_id']}/{record.get('frame_compile_id', 0)}"
    return f"{prefix}/{frame}" if prefix else frame


class TraceHandler(logging.Handler):
    """Turns trace records into events and hands each to ``receive``, on the thread that compiles."""

    def __init__(self, receive: Callable[[Event], object]) -> None:
        super().__init__(logging.DEBUG)
        self._receive = receive

    def emit(self, record: logging.LogRecord) -> None:
        try:
            event = event_of(record.metadata, record.payload, record.created)  # type: ignore[attr-defined]
            if event is not None:
                self._receive(event)
        except Exception as error:
            report_failure("reading torch's structured trace", error)

    def handle(self, record: logging.LogRecord) -> bool:
        """Without the handler's lock: receiving may take long (files), is thread-safe itself, and compiling threads
        shall not wait."""
        self.emit(record)
        return True


def listen(receive: Callable[[Event], object]) -> Undo:
    """Send every event to ``receive`` from now on; answers the function that ends it."""
    compat.find("torch._logging", "_internal")
    logger = logging.getLogger(TRACE_LOGGER)
    handler = TraceHandler(receive)
    # Not addHandler: torch's own handler removes itself from the list while the first record is being dispatched, and
    # the handler after it is then skipped.
    logger.handlers.insert(0, handler)
    level = logger.level
    logger.setLevel(logging.DEBUG)

    def stop() -> None:
        logger.removeHandler(handler)
        if logger.level == logging.DEBUG:
            logger.setLevel(level)

    return stop


def resolve_frames(frames: Any) -> List[Dict[str, Any]]:
    """A stack as the trace sends it, with the numbers of file names replaced by the names."""
    names = {number: text for text, number in compat.interned_strings().items()}
    resolved = []
    for frame in frames or []:
        filename = frame.get("filename")
        resolved.append({**frame, "filename": names.get(filename, filename)})
    return resolved
