"""What a session tells about each compilation: where it is, why it broke or happened again, what it made, how long.

Only reads; the facts are torch's own, from the structured trace.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, List, Mapping, Optional, Tuple

from depyf.dynamo.session import GraphFile, KernelFile, Session, TransformedCode
from depyf.dynamo.trace import Event

_PLACE = re.compile(r"^Graph break in user code at (.*):(\d+)$", re.MULTILINE)
_REASON = re.compile(r"^Graph Break Reason: (.*?)(?=^User code traceback:|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class GraphBreak:
    """One graph break: the line of the user at which it happened, torch's reason with its hints, the whole message."""

    filename: Optional[str]
    line: Optional[int]
    reason: str
    text: str = field(repr=False)


@dataclass(frozen=True)
class Compilation:
    """Everything captured under one compile id.

    ``function``, ``filename`` and ``first_line`` are the user's (or the resume function's); ``seconds`` is how long the
    whole compilation took, ``backward_seconds`` that of backward graphs compiled later. Times are None where torch
    did not tell. ``metrics`` is all that torch measured.
    """

    compile_id: str
    compiled_function: Optional[str]
    function: Optional[str]
    filename: Optional[str]
    first_line: Optional[int]
    graph_breaks: Tuple[GraphBreak, ...]
    recompile_reasons: Tuple[str, ...]
    transformed: Optional[TransformedCode]
    graphs: Tuple[GraphFile, ...]
    kernels: Tuple[KernelFile, ...]
    seconds: Optional[float]
    backward_seconds: Optional[float]
    metrics: Mapping[str, Any] = field(repr=False)


def compilations(session: Session) -> List[Compilation]:
    """The compilations of a session in the order in which they began."""
    return [_compilation(session, compile_id) for compile_id in session.compile_ids()]


def _compilation(session: Session, compile_id: str) -> Compilation:
    metrics = session.metrics(compile_id)
    named = session.compiled_function(compile_id)
    transformed = session.records(TransformedCode, compile_id)
    return Compilation(
        compile_id=compile_id,
        compiled_function=None if named is None else named.stable_name,
        function=metrics.get("co_name"),
        filename=metrics.get("co_filename"),
        first_line=metrics.get("co_firstlineno"),
        graph_breaks=tuple(graph_break(e) for e in session.events("dynamo_graph_break_reason", compile_id)),
        recompile_reasons=tuple(r for e in session.events("recompile_reasons", compile_id) for r in _texts(e)),
        transformed=transformed[-1] if transformed else None,
        graphs=tuple(session.graph_files(compile_id)),
        kernels=tuple(session.records(KernelFile, compile_id)),
        seconds=_seconds(session.events("compilation_metrics", compile_id)),
        backward_seconds=_seconds(session.events("bwd_compilation_metrics", compile_id)),
        metrics=metrics,
    )


def graph_break(event: Event) -> GraphBreak:
    """The graph break that an event named ``dynamo_graph_break_reason`` reports."""
    text = event.payload or ""
    place, reason = _PLACE.search(text), _REASON.search(text)
    return GraphBreak(
        filename=place.group(1) if place else None,
        line=int(place.group(2)) if place else None,
        reason=(reason.group(1) if reason else text).strip(),
        text=text,
    )


def _texts(event: Event) -> List[str]:
    """The reasons of a ``recompile_reasons`` event: a JSON list, or one text."""
    try:
        reasons = json.loads(event.payload or "[]")
    except ValueError:
        return [event.payload or ""]
    return [str(reason) for reason in reasons] if isinstance(reasons, list) else [str(reasons)]


def _seconds(events: List[Event]) -> Optional[float]:
    durations = [event.meta.get("duration_us") for event in events if isinstance(event.meta, dict)]
    known = [duration for duration in durations if duration is not None]
    return sum(known) / 1e6 if known else None
