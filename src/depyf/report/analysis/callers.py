"""Callers of compiled functions: the user's stack at the start of each compilation, and the ``torch.compile`` call.

PyTorch reports a stack when a compilation starts, and leaves out the innermost calls (2.13 and 2.15: two frames too
many). A session sees all; in a log other stacks of the same compilation may have them.
"""

from __future__ import annotations

import itertools
from typing import Dict, Iterator, List, Mapping, Sequence, Tuple

from depyf.report.analysis.shapes import LinesOfCode, own_places
from depyf.report.analysis.sources import Sources
from depyf.report.model.run import Place, Run
from depyf.torch_trace.breaks import break_report
from depyf.torch_trace.events import CALL_SITE, GRAPH_BREAK, START, Event, is_of_dynamo, resolve_frames


def of_callers(events: Sequence[Event]) -> List[Event]:
    """Return the few events that ``callers`` and ``call_sites`` read: events of compilations, with a stack."""
    return [
        each
        for each in events
        if each.compile_id
        and (each.name in (CALL_SITE, GRAPH_BREAK) or (isinstance(each.meta, Mapping) and "stack" in each.meta))
    ]


def callers(
    events: Sequence[Event], names: Mapping[object, str], sources: Sources, run: Run
) -> Dict[str, Tuple[Place, ...]]:
    """Return the user's stack at the start of each compilation, outermost first, without the compiled frame."""
    written = _lines_of_transformed(run)
    found: Dict[str, Tuple[Place, ...]] = {}
    complete: Dict[str, Tuple[Place, ...]] = {}
    for event in events:
        frames = event.meta.get("stack") if isinstance(event.meta, Mapping) else None
        if event.compile_id and event.name == START:
            # ``dynamo_start`` has the frame that is compiled as the last one.
            before = frames[:-1] if isinstance(frames, list) else []
            found.setdefault(event.compile_id, own_places(before, names, sources, written))
        elif event.compile_id and event.name == CALL_SITE and frames:
            complete[event.compile_id] = own_places(frames, names, sources, written)
    found.update(complete)
    # Other events may have a longer stack of the same compilation, which starts with the known stack: torch left out
    # the inner calls in the known one.
    others = (find(events, names, sources, written) for find in (_stacks_inside, _stacks_of_breaks))
    for compile_id, stack in itertools.chain.from_iterable(others):
        known = found.get(compile_id)
        if known is not None and len(stack) > len(known) and stack[: len(known)] == known:
            found[compile_id] = stack
    return found


def _lines_of_transformed(run: Run) -> LinesOfCode:
    """Return the lines of transformed code that come from one line of the user's, by file."""
    return {
        each.path: [link for link in each.links if len(link.places) == 1]
        for each in run.artifacts
        if each.kind == "transformed" and each.path is not None
    }


def _stacks_inside(
    events: Sequence[Event], names: Mapping[object, str], sources: Sources, written: LinesOfCode
) -> Iterator[Tuple[str, Tuple[Place, ...]]]:
    """Yield the calls before Dynamo in whole stacks that were reported while a compilation ran."""
    for event in events:
        frames = event.meta.get("stack") if isinstance(event.meta, Mapping) and event.name != START else None
        if event.compile_id and event.name != CALL_SITE and isinstance(frames, list):
            whole = resolve_frames([each for each in frames if isinstance(each, Mapping)], names)
            # Before Dynamo's frame are the calls of the program, after it torch's own and what Dynamo traces.
            before = list(itertools.takewhile(lambda frame: not is_of_dynamo(frame), whole))
            if len(before) < len(whole):
                yield event.compile_id, own_places(before, {}, sources, written)


def _stacks_of_breaks(
    events: Sequence[Event], names: Mapping[object, str], sources: Sources, written: LinesOfCode
) -> Iterator[Tuple[str, Tuple[Place, ...]]]:
    """Yield the calls before the compiled function in the stacks of its graph breaks."""
    compiled: Dict[str, Tuple[object, object]] = {}
    for event in events:
        frames = event.meta.get("stack") if event.name == START and isinstance(event.meta, Mapping) else None
        if event.compile_id and isinstance(frames, list) and frames and isinstance(frames[-1], Mapping):
            [last] = resolve_frames(frames[-1:], names)
            compiled[event.compile_id] = last.get("filename"), last.get("name")
        elif event.compile_id and event.name == GRAPH_BREAK:
            stack = break_report(event).stack
            # The stack of a break begins with the callers, then has the compiled function.
            inside = (at for at, (path, _, name) in enumerate(stack) if (path, name) == compiled.get(event.compile_id))
            before = [{"filename": path, "line": line} for path, line, _ in stack[: next(inside, 0)]]
            yield event.compile_id, own_places(before, {}, sources, written)


def call_sites(events: Sequence[Event], sources: Sources) -> Dict[str, Place]:
    """Return the line at which ``torch.compile`` was called, by compilation, where a session has seen the call."""
    found: Dict[str, Place] = {}
    for event in events:
        if event.name == CALL_SITE and event.compile_id and isinstance(event.meta, Mapping):
            path, line = event.meta.get("filename"), event.meta.get("line")
            place = sources.place(path, line) if isinstance(path, str) and isinstance(line, int) else None
            if place is not None:
                found.setdefault(event.compile_id, place)
    return found


def settings_of(events: Sequence[Event]) -> Dict[str, Tuple[str, ...]]:
    """Return PyTorch's settings that were no defaults, as statements, by compilation, where a session has seen them."""
    found: Dict[str, Tuple[str, ...]] = {}
    for event in events:
        if event.name == CALL_SITE and event.compile_id and isinstance(event.meta, Mapping):
            settings = event.meta.get("settings")
            if isinstance(settings, (list, tuple)):
                found[event.compile_id] = tuple(map(str, settings))
    return found
