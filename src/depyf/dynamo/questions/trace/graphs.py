"""Time compiled graphs: each is wrapped where transformed code and autograd look it up, and unwrapped at the end. It is
no recorder of calls (``observe/__init__.py`` has the reason).

Dynamo keeps a compiled graph in the user's globals, as ``__compiled_fn_<id>``; AOTAutograd keeps its backward in a
class with static methods, which autograd's node calls. A later replacement by other code is not touched, and nothing
that Dynamo would free is kept alive.
"""

from __future__ import annotations

import functools
import sys
import weakref
from time import perf_counter_ns
from types import CodeType, FrameType, FunctionType
from typing import Callable, List, MutableMapping, Optional

from depyf.answers.trace import BACKWARD, GRAPH, Thing
from depyf.dynamo.hooks import frame_evaluation
from depyf.dynamo.hooks.backward_methods import all_backward_classes, replace_backward
from depyf.dynamo.hooks.patching import Undo, collecting, undo_all
from depyf.dynamo.hooks.recovered import backward_classes
from depyf.dynamo.questions.trace.lanes import Lane, Lanes
from depyf.dynamo.store.names import compiled_fn_number

_FORGOTTEN = "forgotten graph"


class _Spot:
    """The lane in which a graph ran last: its backward belongs there, whichever thread autograd runs it in."""

    __slots__ = ("lane",)

    def __init__(self) -> None:
        self.lane: Optional[Lane] = None


class Graphs:
    """The graphs that are timed."""

    def __init__(self, lanes: Lanes, code_runs: Optional[Callable[[CodeType, Optional[FrameType]], object]]) -> None:
        self._lanes = lanes
        self._code_runs = code_runs
        """Called when code (with its caller) calls its graph, if nothing else reports its runs."""
        self._undo: List[Undo] = []
        self._backwards: weakref.WeakSet[type] = weakref.WeakSet()

    def time(
        self, code: CodeType, scope: MutableMapping[str, object], compile_id: Optional[str], code_thing: Thing
    ) -> int:
        """Start to time the graphs that transformed ``code`` calls; return their number."""
        found = 0
        for name in dict.fromkeys(code.co_names):
            number = compiled_fn_number(name)
            graph = scope.get(name) if number is not None else None
            if callable(graph) and not hasattr(graph, "_depyf_timed"):
                found += 1
                self._time(scope, name, graph, f"__compiled_fn_{number}", compile_id, code_thing)
        return found

    def stop(self) -> None:
        """Restore everything."""
        undo_all(self._undo)

    def _time(
        self,
        scope: MutableMapping[str, object],
        name: str,
        graph: Callable[..., object],
        stable_name: str,
        compile_id: Optional[str],
        code_thing: Thing,
    ) -> None:
        spot = _Spot()
        number = self._lanes.new_number(Thing(GRAPH, stable_name, compile_id, code_thing.filename, code_thing.line))
        timed = _timed(graph, self._lanes, number, spot, self._code_runs)
        self._undo.append(_put_back(scope, name, weakref.ref(timed)))
        scope[name] = timed
        for owner in backward_classes(graph):
            self._time_backward(
                owner, Thing(BACKWARD, stable_name, compile_id, code_thing.filename, code_thing.line), spot
            )

    def time_forgotten(self) -> None:
        """Time the remaining backwards: forwards may have run before ``torch._dynamo.reset``."""
        for owner in all_backward_classes():
            if owner not in self._backwards:
                self._time_backward(owner, Thing(BACKWARD, _FORGOTTEN), _Spot())

    def _time_backward(self, owner: type, thing: Thing, spot: _Spot) -> None:
        number = self._lanes.new_number(thing)

        def around(method: Callable[..., object]) -> Callable[..., object]:
            return _timed_backward(method, self._lanes, number, spot)

        before = len(self._undo)
        collecting(self._undo, lambda: replace_backward(owner, around))
        if len(self._undo) > before:
            self._backwards.add(owner)


def _timed(
    graph: Callable[..., object],
    lanes: Lanes,
    number: int,
    spot: _Spot,
    code_runs: Optional[Callable[[CodeType, Optional[FrameType]], object]],
) -> FunctionType:
    ran = lanes.ran

    @functools.wraps(graph)
    def timed(*args: object, **kwargs: object) -> object:
        caller = sys._getframe(1)
        if code_runs is not None:
            code_runs(caller.f_code, caller.f_back)
        start = perf_counter_ns()
        try:
            return graph(*args, **kwargs)
        finally:
            spot.lane = ran(number, start, caller)

    timed._depyf_timed = True  # type: ignore[attr-defined]
    frame_evaluation.skip_code(timed.__code__)  # type: ignore[attr-defined]
    return timed  # type: ignore[return-value]


def _put_back(scope: MutableMapping[str, object], name: str, ours: weakref.ref[FunctionType]) -> Undo:
    def undo() -> None:
        timed = ours()
        if timed is not None and scope.get(name) is timed:  # else the code that called it was deleted
            scope[name] = vars(timed)["__wrapped__"]

    return undo


def _timed_backward(function: Callable[..., object], lanes: Lanes, number: int, spot: _Spot) -> Callable[..., object]:
    def timed(*args: object, **kwargs: object) -> object:
        # Autograd runs backwards of GPU tensors in threads of its own, which no Python code started. The event belongs
        # to the thread that ran the forward, and so does what the backward calls (``instead``).
        own = lanes.lane()
        lane = spot.lane if own.foreign and spot.lane is not None else own
        own.instead = lane if lane is not own else None
        start = perf_counter_ns()
        try:
            return function(*args, **kwargs)
        finally:
            own.instead = None
            lanes.ran(number, start, sys._getframe(1) if lane is own else None, lane)

    return timed
