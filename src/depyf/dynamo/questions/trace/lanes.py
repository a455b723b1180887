"""Record runs: a buffer of numbers for each thread, which is folded when it is full. This is called each time that
compiled code runs, so it only appends three numbers per event to a list. ``(thing, start, 0)`` is a start, ``(~thing,
end, 0)`` an end (0 if the time is unknown) and ``(thing, start, end)`` a run with nothing inside. Times come
from ``perf_counter_ns``.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections import deque
from threading import get_ident
from time import perf_counter_ns
from types import CodeType, FrameType
from typing import Callable, Dict, List, Optional, Set, Tuple, cast

from depyf.answers.trace import BACKWARD, CODE, Thing
from depyf.base.locks import Lock
from depyf.dynamo.entries.hints import RESUMED
from depyf.dynamo.hooks import frame_evaluation
from depyf.dynamo.hooks.in_c import Noted, RunNotes
from depyf.dynamo.hooks.safely import safely

_FULL = 3 * 1500
"""How long a buffer becomes before it is folded: a pause of about two milliseconds."""


class Lane:
    """The events of one thread. ``open`` are the things that have started there, as far as is known."""

    __slots__ = ("buffer", "converting", "foreign", "ident", "instead", "lock", "name", "noted", "open", "taking")

    def __init__(self, ident: int, noted: Optional[Noted] = None) -> None:
        thread = next((each for each in threading.enumerate() if each.ident == ident), None)
        self.ident = ident
        self.foreign = thread is None
        """A thread that Python did not start: one of autograd's."""
        self.name = "a thread of autograd's" if thread is None else thread.name
        self.instead: Optional[Lane] = None
        self.buffer: List[int] = []
        self.open: List[int] = []
        self.lock = Lock()
        self.taking = False
        self.noted: Noted = deque() if noted is None else noted
        """Runs recorded by C functions that are not events yet."""
        self.converting = False
        """Whether ``noted`` is being turned into events now."""


Take = Callable[[Lane, List[int]], object]


class Lanes:
    """The buffers of all threads, and the numbers of things: ``things[number]`` is the thing."""

    def __init__(self, meet: Callable[[CodeType, int], Optional[Thing]]) -> None:
        self.things: List[Thing] = [Thing(CODE, "unknown code")]
        self.late: Set[int] = set()
        """The numbers of backwards: no step of a program begins with one."""
        self.numbers: Dict[int, int] = {}
        """The number of a code object, by its id, as long as that lives."""
        self.takers: Tuple[Take, ...] = ()
        self.notes = RunNotes()
        self.reports_ends = False
        """Whether this Python reports when a frame ends."""
        self._lanes: Dict[int, Lane] = {}
        self._meet_code = meet
        self._lock = Lock()
        self._alive: Dict[int, weakref.ref[CodeType]] = {}

    def begin(self, code: CodeType, caller: Optional[FrameType]) -> None:
        """Record that code called by ``caller`` starts."""
        number = self._number_of_code(code)
        lane = self._lanes.get(get_ident()) or self._new_lane()
        if lane.noted or lane.converting:
            self.take_noted(lane, caller)
        opened = lane.open
        if opened:
            self.close_all_but_callers(lane, caller)
        opened.append(number)
        buffer = lane.buffer
        buffer.extend((number, perf_counter_ns(), 0))
        if len(buffer) > _FULL:
            self.fold(lane)

    def end(self, code: CodeType) -> None:
        """Record the end of code; called by the function that Python calls in its frame."""
        now = perf_counter_ns()
        lane = self._lanes.get(get_ident()) or self._new_lane()
        if lane.noted or lane.converting:
            self.take_noted(lane, sys._getframe(2))
        number = self.numbers.get(id(code))
        if number is None or number not in lane.open:
            return
        opened = lane.open
        while opened:
            last = opened.pop()
            if last == number:
                break
            lane.buffer.extend((~last, 0, 0))  # an exception has ended it
        lane.buffer.extend((~number, now, 0))

    def ran(self, number: int, start: int, caller: Optional[FrameType], lane: Optional[Lane] = None) -> Lane:
        """Record that something with nothing inside has run from ``start`` until now; ``caller`` called it (None:
        unknown). It is noted in that lane, or else in the one that is returned."""
        end = perf_counter_ns()
        if lane is None:
            lane = self._lanes.get(get_ident()) or self._new_lane()
            lane = lane.instead or lane
        if lane.noted or lane.converting:
            self.take_noted(lane, caller)
        if lane.open and not (caller is None and self.reports_ends):
            self.close_all_but_callers(lane, caller)
        buffer = lane.buffer
        buffer.extend((number, start, end))
        if len(buffer) > _FULL:
            self.fold(lane)
        return lane

    def note(self, number: int, caller: Optional[FrameType]) -> None:
        """Record a run of unknown duration."""
        lane = self.lane()
        if lane.noted or lane.converting:
            self.take_noted(lane, caller)
        if lane.open:
            self.close_all_but_callers(lane, caller)
        lane.buffer.extend((number, perf_counter_ns(), 0, ~number, 0, 0))

    def take_noted(self, lane: Lane, frame: Optional[FrameType]) -> None:
        """Make events of the runs recorded by C functions, and end those that ``frame`` is not inside of (``None``:
        unknown). If two have ended, the second was not inside the first, unless it is a resume function, which the
        first calls.
        """
        with lane.lock:
            try:
                lane.converting = True
                if frame is not None and len(lane.noted) == 2 and lane.noted[0] is frame.f_code:  # as a rule
                    self._begin_running(lane, frame)
                    return
                # Else ``frame`` (with its callers) says which of the runs go on: all others have ended.
                noted = [(self._number_of_code(code), code, when) for code, when in self.notes.take(lane.ident)]
                if frame is None:
                    running = [True] * len(lane.open) + [False] * len(noted)
                else:
                    running = self._running([*lane.open, *(number for number, _, _ in noted)], frame)
                opened = running[: len(lane.open)]
                for (number, code, when), runs in zip(noted, running[len(lane.open) :]):
                    if not code.co_name.startswith(RESUMED):
                        self._close_what_ended(lane, opened)
                    opened.append(runs)
                    lane.open.append(number)
                    lane.buffer.extend((number, when, 0))
                if frame is not None:
                    self._close_what_ended(lane, opened)
            finally:
                lane.converting = False

    def _begin_running(self, lane: Lane, frame: FrameType) -> None:
        number = self._number_of_code(frame.f_code)
        lane.noted.popleft()
        when = cast(int, lane.noted.popleft())
        if lane.open:
            self.close_all_but_callers(lane, frame.f_back)
        lane.open.append(number)
        lane.buffer.extend((number, when, 0))

    def _number_of_code(self, code: CodeType) -> int:
        return self.numbers.get(id(code)) or self.meet(code) or 0

    def _running(self, begun: List[int], frame: Optional[FrameType]) -> List[bool]:
        """Return for each of ``begun`` (numbers, the innermost last) whether ``frame`` is inside it."""
        # Callers are matched from the inside out. What lies between two callers in ``begun`` is no caller: it has
        # ended.
        running = [False] * len(begun)
        end = len(begun)
        while frame is not None and end:
            number = self.numbers.get(id(frame.f_code))
            at = end - 1
            while at >= 0 and begun[at] != number:
                at -= 1
            if at >= 0:
                running[at] = True
                end = at
            frame = frame.f_back
        return running

    def _close_what_ended(self, lane: Lane, running: List[bool]) -> None:
        while running and not running[-1]:
            running.pop()
            lane.buffer.extend((~lane.open.pop(), 0, 0))

    def close_all_but_callers(self, lane: Lane, caller: Optional[FrameType]) -> None:
        """Close frames that are not callers of ``caller``: their end was not reported."""
        opened, numbers, frame = lane.open, self.numbers, caller
        if frame is not None and numbers.get(id(frame.f_code)) == opened[-1]:
            return
        kept = 0
        while frame is not None:
            number = numbers.get(id(frame.f_code))
            if number is not None and number in opened:
                kept = len(opened) - opened[::-1].index(number)
                break
            frame = frame.f_back
        while len(opened) > kept:
            lane.buffer.extend((~opened.pop(), 0, 0))

    def lane(self) -> Lane:
        """Return the lane of this thread, or its replacement at the moment."""
        lane = self._lanes.get(get_ident()) or self._new_lane()
        return lane.instead or lane

    def number_of(self, thing: Thing) -> int:
        """Return a number for a thing, equal for equal things."""
        with self._lock:
            if thing in self.things:
                return self.things.index(thing)
            return self.new_number(thing)

    def new_number(self, thing: Thing) -> int:
        """Return a number that only this thing has."""
        with self._lock:
            if thing.kind == BACKWARD:
                self.late.add(len(self.things))
            self.things.append(thing)
            return len(self.things) - 1

    def know(self, code: CodeType, number: int) -> None:
        """Map this number to that code object."""
        key = id(code)
        self.numbers[key] = number

        def forget(_: object) -> None:
            self.numbers.pop(key, None)
            self._alive.pop(key, None)

        self._alive[key] = weakref.ref(code, forget)

    @safely("folding what ran")
    def fold(self, lane: Lane) -> None:
        """Pass a lane's records to all receivers."""
        with lane.lock:
            if not lane.taking:  # else the program runs inside of us: a finalizer runs compiled code
                self._give(lane)

    def _give(self, lane: Lane) -> None:
        try:
            lane.taking = True
            length = len(lane.buffer)
            chunk = lane.buffer[:length]
            del lane.buffer[:length]
            for take in self.takers:
                take(lane, chunk)
        finally:
            lane.taking = False

    def fold_all(self) -> None:
        """Fold all threads, with what functions in C have noted."""
        for ident in self.notes.threads():
            lane = self._lanes.get(ident) or self._make_lane(ident)
            if lane is not None and lane.noted:
                self.take_noted(lane, sys._getframe(1) if ident == get_ident() else None)
        for lane in list(self._lanes.values()):
            self.fold(lane)

    def end_what_ended(self) -> None:
        """Close the frames of this thread that are not callers of this one: Python does not report their end."""
        lane = self._lanes.get(get_ident())
        if lane is not None and lane.noted:
            self.take_noted(lane, sys._getframe(1))
        if lane is not None and lane.open:
            self.close_all_but_callers(lane, sys._getframe(1))

    @safely("looking at code that runs")
    def meet(self, code: CodeType) -> int:
        """Number transformed code, and identify it."""
        with self._lock:
            known = self.numbers.get(id(code))
            if known is not None:  # another thread was faster
                return known
            number = self.new_number(Thing(CODE, code.co_name, None, code.co_filename, code.co_firstlineno))
            thing = self._meet_code(code, number)
            if thing is not None:
                self.things[number] = thing
            self.know(code, number)
            return number

    def _new_lane(self) -> Lane:
        return self._make_lane(get_ident()) or Lane(get_ident())

    @safely("looking at a new thread")
    def _make_lane(self, ident: int) -> Lane:
        return self._lanes.setdefault(ident, Lane(ident, self.notes.waiting(ident)))


_CALLED_WHILE_DYNAMO_IS_ON = (
    Lanes.begin,
    Lanes.end,
    Lanes.ran,
    Lanes.lane,
    Lanes.close_all_but_callers,
    Lanes.take_noted,
    Lanes._begin_running,
    Lanes._number_of_code,
    Lanes._running,
    Lanes._close_what_ended,
    Lanes._new_lane,
    RunNotes.take,
)


def keep_dynamo_out() -> None:
    """Make Dynamo skip this module's code."""
    frame_evaluation.keep_dynamo_out("depyf")
    for function in _CALLED_WHILE_DYNAMO_IS_ON:
        frame_evaluation.skip_code(function.__code__)
