"""Make reused compile ids unique: after ``torch._dynamo.reset`` torch counts from the start again."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Optional, Set, TypeVar

from depyf.base.quick_dataclass import replace
from depyf.torch_trace.events import FORWARD_METRICS, PHASE, RECOMPILATION, START, Event

R = TypeVar("R")

_MARK = "#"


def distinguished(records: Iterable[R]) -> List[R]:
    """Return the records (events, or others with a ``compile_id``), in their order, with unique ids of compilations.
    The second compilation ``0/0`` becomes ``0/0#2``, and later ones of that frame are ``0/1#2``."""
    generations: Dict[str, int] = {}
    ended: Dict[str, Set[str]] = {}  # by frame
    found: List[R] = []
    for record in records:
        compile_id: Optional[str] = getattr(record, "compile_id", None)
        if compile_id is not None:
            if isinstance(record, Event):
                # ``0/0`` begins again after it has ended: torch was reset, this is another frame 0.
                if compile_id in ended.get(_frame(compile_id), ()) and _begins(record):
                    generations[_frame(compile_id)] = generations.get(_frame(compile_id), 1) + 1
                    del ended[_frame(compile_id)]
                elif record.name == FORWARD_METRICS:
                    ended.setdefault(_frame(compile_id), set()).add(compile_id)
            if _frame(compile_id) in generations:
                changed: Any = record
                record = replace(changed, compile_id=f"{compile_id}{_MARK}{generations[_frame(compile_id)]}")
        found.append(record)
    return found


def of_same_generation(compile_id: str, other: str) -> str:
    """Return the unique id of ``other``, which torch named beside ``compile_id``."""
    return other + "".join(compile_id.partition(_MARK)[1:])


def _frame(compile_id: str) -> str:
    return compile_id.partition("/")[0]


def _begins(event: Event) -> bool:
    """Return whether this event is the first one of a compilation, for any listener."""
    if event.name == PHASE:
        if event.payload is None:  # received in process
            return isinstance(event.meta, dict) and (event.meta.get("name"), event.meta.get("ph")) == ("dynamo", "B")
        return '"name": "dynamo"' in event.payload and '"ph": "B"' in event.payload
    return event.attempt == 0 and event.name in (START, RECOMPILATION)
