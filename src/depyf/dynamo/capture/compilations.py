"""What a session tells about each compilation: where it is, why it broke or happened again, what it made, how long.

Only reads; the facts are torch's own, from the structured trace.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Dict, List, Mapping, Optional, Tuple

from depyf.dynamo.capture.session import Cause, FrameSkipped, GraphFile, KernelFile, Session, TransformedCode
from depyf.quick_dataclass import dataclass
from depyf.torch_trace.addresses import without_addresses
from depyf.torch_trace.breaks import break_report
from depyf.torch_trace.events import Event
from depyf.torch_trace.metrics import seconds_of
from depyf.torch_trace.recompiles import reasons_of


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
    metrics: Mapping[str, object] = field(repr=False)


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
        recompile_reasons=tuple(recompile_reasons(session, compile_id)),
        transformed=transformed[-1] if transformed else None,
        graphs=tuple(session.graph_files(compile_id)),
        kernels=tuple(session.records(KernelFile, compile_id)),
        seconds=_seconds(session.events("compilation_metrics", compile_id)),
        backward_seconds=_seconds(session.events("bwd_compilation_metrics", compile_id)),
        metrics=metrics,
    )


def recompile_reasons(session: Session, compile_id: Optional[str]) -> List[str]:
    """Which guards of which cache entries failed, so that this compilation was needed: the most recent entry first."""
    if compile_id is None:
        return []
    return [reason for event in session.events("recompile_reasons", compile_id) for reason in reasons_of(event)]


def fallbacks(session: Session) -> List[FrameSkipped]:
    """The frames that were to be compiled and run as plain Python, each once for each cause, in order.

    Those that Dynamo gives up without a word to anybody (``fullgraph=True``, and skips in older versions) are told from
    the metrics of their compilation.
    """
    noted = session.records(FrameSkipped)
    known = {frame.compile_id for frame in noted}
    for event in session.events("compilation_metrics"):
        if event.compile_id not in known and isinstance(event.meta, dict) and event.meta.get("co_name"):
            if event.meta.get("has_guarded_code") is False:
                noted.append(_from_metrics(event.compile_id, event.meta))
    unique: Dict[Tuple[str, int, str, Cause, str], FrameSkipped] = {}
    for frame in noted:
        unique.setdefault((frame.filename, frame.first_line, frame.qualified_name, frame.cause, frame.reason), frame)
    return list(unique.values())


def _from_metrics(compile_id: Optional[str], metrics: Mapping[str, Any]) -> FrameSkipped:
    failure, place = metrics.get("fail_type"), metrics.get("fail_user_frame_filename")
    reason = f"{failure}: {metrics.get('fail_reason')}" if failure else "Dynamo made no code for it, and no reason"
    return FrameSkipped(
        compile_id=compile_id,
        cause=Cause.SKIPPED if failure is None else Cause.RAISED,
        reason=without_addresses(reason),
        function=str(metrics["co_name"]),
        qualified_name=str(metrics["co_name"]),
        filename=str(metrics.get("co_filename")),
        first_line=int(metrics.get("co_firstlineno") or 0),
        place=None if place is None else (str(place), int(metrics.get("fail_user_frame_lineno") or 0)),
        limit=None,
        original_code=None,
    )


def graph_break(event: Event) -> GraphBreak:
    """The graph break that an event named ``dynamo_graph_break_reason`` reports."""
    report = break_report(event)
    return GraphBreak(report.filename, report.line, report.reason, report.text)


def _seconds(events: List[Event]) -> Optional[float]:
    known = [seconds for seconds in (seconds_of(event.meta) for event in events) if seconds is not None]
    return sum(known) if known else None
