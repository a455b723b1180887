"""The stacks of calls that the events of a compilation have, and the user's lines in them."""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Tuple

from depyf.diagnosis.guard_sources import as_written
from depyf.report.analysis.anchors import from_cache
from depyf.report.analysis.graph_links import whole_stacks
from depyf.report.analysis.sources import Sources
from depyf.report.model.run import Place
from depyf.torch_trace.events import Event, resolve_frames
from depyf.torch_trace.provenance import CAPTURED, NODE_STACKS, Stack, input_stacks, node_stacks
from depyf.torch_trace.tracebacks import Frame
from depyf.user_code import innermost


class CompilationStacks:
    """Reads the stacks of each compilation in ``events`` once; ``names`` are those of files in events of symbols."""

    def __init__(self, events: Mapping[str, List[Event]], sources: Sources, names: Mapping[object, str]) -> None:
        self._events = events
        self._sources = sources
        self._names = names
        self._whole: Dict[str, Mapping[Tuple[str, int], Tuple[Frame, ...]]] = {}
        self._of_inputs: Dict[str, Mapping[str, Stack]] = {}

    def to(self, compile_id: str, place: Place) -> Tuple[Place, ...]:
        """Return the calls, outermost first, by which a compilation reached a place, if they are unique."""
        for stack in self._whole_stacks(compile_id).values():
            places = self._sources.places(stack)
            if places and places[-1] == place:
                return places
        return ()

    def users_place(self, compile_id: str, frame: Optional[Frame], source: str) -> Optional[Place]:
        """Return the user's line that leads to the frame at which the value ``source`` was guarded. The frame may be in
        a library, which the user may call at several lines: of an input of the graph the line is known. The frame
        itself is returned if none is known.
        """
        place = None if frame is None else self._sources.known_place(*frame[:2])
        if frame is None or (place is not None and not self._is_of_a_library(place)):
            return place
        stack = self._stacks_of_inputs(compile_id).get(as_written(source), ())
        stack = stack or self._whole_stacks(compile_id).get((self._sources.full(frame[0]), frame[1]), ())
        known = [each for each in (place, *self._sources.places(stack)) if each is not None]
        return innermost(known, self._is_of_a_library)

    def _is_of_a_library(self, place: Place) -> bool:
        return self._sources.is_library(place[0])

    def _stacks_of_inputs(self, compile_id: str) -> Mapping[str, Stack]:
        """Return the stacks of calls that came to the inputs of the graph, by the input as the user writes it."""
        if compile_id not in self._of_inputs:
            stacks = [input_stacks(event) for event in self._named(compile_id, NODE_STACKS)]
            self._of_inputs[compile_id] = {as_written(k): stack for each in stacks for k, stack in each.items()}
        return self._of_inputs[compile_id]

    def _whole_stacks(self, compile_id: str) -> Mapping[Tuple[str, int], Tuple[Frame, ...]]:
        """Return the stacks of calls that a compilation recorded, by their innermost frames."""
        if compile_id not in self._whole:
            noted = [node_stacks(event) for event in self._named(compile_id, NODE_STACKS)]
            hit = compile_id in from_cache(self._events.get(compile_id, ()))  # then only this stage has today's lines
            stacks = [nodes for stage, nodes in noted if not hit or stage == CAPTURED]
            stacks += [{"": self._user_stack(event)} for event in self._named(compile_id, "create_symbol")]
            self._whole[compile_id] = whole_stacks(iter(stacks), self._sources)
        return self._whole[compile_id]

    def _user_stack(self, event: Event) -> Tuple[Frame, ...]:
        """Return the frames of the user in an event about a symbol."""
        frames = resolve_frames(event.meta.get("user_stack"), self._names) if isinstance(event.meta, Mapping) else []
        return tuple((str(f.get("filename")), int(f.get("line") or 0), str(f.get("name"))) for f in frames)

    def _named(self, compile_id: str, name: str) -> List[Event]:
        return [event for event in self._events.get(compile_id, ()) if event.name == name]
