"""Read symbolic shapes from torch's trace."""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from depyf.base.own_package import is_own, without_launcher
from depyf.diagnosis.guard_sources import as_written
from depyf.report.analysis.sources import Sources
from depyf.report.model.run import Link, Place, ShapeEvent, ShapeEventKind
from depyf.torch_trace.events import Event, resolve_frames
from depyf.torch_trace.file_names import is_dumped_code
from depyf.torch_trace.user_code import is_library

MOST_OF_ONE = 300
"""The number of events that are kept of one compilation."""

_DEEPEST = 12
"""Of PyTorch's own stacks the innermost frames are kept."""

_KINDS: Mapping[str, ShapeEventKind] = {
    "create_symbol": "symbol",
    "create_unbacked_symbol": "unbacked",
    "symbolic_shape_specialization": "specialised",
    "guard_added": "guard",
    "guard_added_fast": "guard",
}


def shape_events(events: Sequence[Event], names: Mapping[object, str], sources: Sources) -> Tuple[ShapeEvent, ...]:
    """Return the symbols, specialisations and guards on shapes of the last attempt, in order, each once."""
    last: Dict[Optional[str], int] = {}
    for event in events:
        last[event.compile_id] = max(event.attempt, last.get(event.compile_id, 0))
    found: Dict[Tuple[Optional[str], str, str], ShapeEvent] = {}
    counts: Dict[Optional[str], int] = {}
    for event in events:
        kind = _KINDS.get(event.name)
        if kind is None or not isinstance(event.meta, Mapping) or event.attempt != last[event.compile_id]:
            continue
        text = _text(kind, event.meta)
        key = event.compile_id, kind, text
        if key in found or counts.get(event.compile_id, 0) >= MOST_OF_ONE:
            continue
        counts[event.compile_id] = counts.get(event.compile_id, 0) + 1
        found[key] = ShapeEvent(
            event.compile_id,
            kind,
            text,
            str(event.meta.get("reason") or ""),
            own_places(event.meta.get("user_stack"), names, sources),
            _frames(event.meta.get("stack"), names),
        )
    return tuple(found.values())


def _text(kind: ShapeEventKind, meta: Mapping[str, object]) -> str:
    symbol = str(meta.get("symbol"))
    if kind == "symbol":
        return f"{symbol} = {as_written(str(meta.get('source')))}, {meta.get('val')} here, in {meta.get('vr')}"
    if kind == "unbacked":
        return f"{symbol}: known only when it runs, in {meta.get('vr')}"
    if kind == "specialised":
        named = meta.get("sources")
        of = ", ".join(as_written(str(each)) for each in named) if isinstance(named, list) else ""
        return f"{symbol}{f' ({of})' if of else ''} is {meta.get('value')} in this graph"
    return str(meta.get("expr"))


LinesOfCode = Mapping[str, Sequence[Link]]
"""Lines of transformed code with the one line of the user's that they stand for, by file name."""

_NO_LINES: LinesOfCode = {}


def own_places(
    frames: object, names: Mapping[object, str], sources: Sources, transformed: LinesOfCode = _NO_LINES
) -> Tuple[Place, ...]:
    """Return the frames of a stack that are in the user's own files; those in transformed code where they come from."""
    places: List[Place] = []
    for frame in without_launcher(_resolved(frames, names), lambda frame: str(frame.get("filename"))):
        path, line = str(frame.get("filename")), frame.get("line")
        name = path.replace("\\", "/").rpartition("/")[2]
        place = None
        if isinstance(line, int) and is_dumped_code(name):
            links = transformed.get(name, ())
            place = next((link.places[0] for link in links if link.first <= line <= link.last), None)
        elif isinstance(line, int) and not is_library(path):
            place = sources.place(path, line)
        if place is not None:
            places.append(place)
    return tuple(places)


def _frames(frames: object, names: Mapping[object, str]) -> Tuple[str, ...]:
    """Return the innermost frames of PyTorch's own stack as text."""
    shown = [
        f"{_short(str(frame.get('filename')))}:{frame.get('line')} in {frame.get('name')}"
        for frame in _resolved(frames, names)
        if "_logging" not in str(frame.get("filename")) and not is_own(str(frame.get("filename")))
    ]
    return tuple(shown[-_DEEPEST:])


def _resolved(frames: object, names: Mapping[object, str]) -> List[Dict[str, object]]:
    if not isinstance(frames, list):
        return []
    return resolve_frames([each for each in frames if isinstance(each, Mapping)], names)


def _short(path: str) -> str:
    """Return a path of an installed file from its package on."""
    slashed = path.replace("\\", "/")
    return slashed.rpartition("-packages/")[2] or slashed
