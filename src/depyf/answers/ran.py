"""What ran, in which order: the data of a ``trace``.

Events are in the order of their starts; what ran inside of another thing is in its ``inside``. A sequence that occurred
several times in a row is listed once, as ``Repeated``, with the times of all its iterations in its events.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Final, Literal, Mapping, Optional, Tuple, Union

ThingKind = Literal["code", "graph", "backward", "compilation", "plain Python"]
CODE: Final = "code"
GRAPH: Final = "graph"
BACKWARD: Final = "backward"
COMPILATION: Final = "compilation"
PLAIN: Final = "plain Python"


@dataclass(frozen=True)
class Thing:
    """Something that runs.

    ``kind`` is ``code`` (transformed code of Dynamo's), ``graph`` (a compiled graph, forward), ``backward``,
    ``compilation`` or ``plain Python`` (a function that Dynamo had to leave as it is). ``name`` is that of the
    function or ``__compiled_fn_<id>``; ``filename`` and ``line`` are where the function begins.
    """

    kind: ThingKind
    name: str
    compile_id: Optional[str] = None
    filename: str = ""
    line: int = 0
    note: str = ""

    @property
    def label(self) -> str:
        """How it is called in texts, and in ``counts``."""
        number = "" if self.compile_id is None else f" [{self.compile_id}]"
        if self.kind == GRAPH:
            return self.name
        if self.kind == BACKWARD:
            return f"{self.name} backward"
        if self.kind == COMPILATION:
            return f"compile {self.name}{number}"
        if self.kind == PLAIN:
            return f"{self.name} as plain Python"
        return f"{self.name}{number}"


@dataclass(frozen=True)
class Ran:
    """A thing that ran ``count`` times at this place of the order.

    ``start`` is when it began first, in seconds since the record began. ``seconds`` is the time of all these runs,
    ``fastest`` and ``slowest`` are those of single ones: None where it is not known when a run ends.
    """

    thing: Thing
    count: int
    start: float
    seconds: Optional[float] = None
    fastest: Optional[float] = None
    slowest: Optional[float] = None
    inside: Tuple[Event, ...] = ()


@dataclass(frozen=True)
class Repeated:
    """``events`` came ``count`` times, one turn after the other."""

    count: int
    events: Tuple[Event, ...]

    @property
    def start(self) -> float:
        return self.events[0].start


Event = Union[Ran, Repeated]


@dataclass(frozen=True)
class ThreadRan:
    """What ran in one thread. ``dropped`` counts the runs before it, which are only in ``counts`` any more."""

    name: str
    events: Tuple[Event, ...]
    dropped: int = 0


@dataclass(frozen=True)
class Total:
    """All runs of one thing together; times as in ``Ran``."""

    thing: Thing
    count: int
    seconds: Optional[float]
    fastest: Optional[float]
    slowest: Optional[float]

    @property
    def mean(self) -> Optional[float]:
        return None if self.seconds is None or not self.count else self.seconds / self.count


@dataclass(frozen=True)
class WhatRan:
    """All that a trace recorded; prints as an indented list, and shows as a table in Jupyter.

    ``seconds`` is how long it recorded, ``notes`` say what could not be recorded and why.
    """

    seconds: float
    threads: Tuple[ThreadRan, ...]
    totals: Tuple[Total, ...]
    notes: Tuple[str, ...] = field(default=())

    @property
    def events(self) -> Tuple[Event, ...]:
        """Those of all threads, one thread after the other."""
        return tuple(event for thread in self.threads for event in thread.events)

    @property
    def counts(self) -> Mapping[str, int]:
        """How often each thing ran, by its label: ``{"f [0/0]": 3, "__compiled_fn_1": 3}``."""
        found: Dict[str, int] = {}
        for total in self.totals:
            found[total.thing.label] = found.get(total.thing.label, 0) + total.count
        return found
