"""Count calls of compiled functions while their graphs are observed: how many were observed, how many were not, and
why.
"""

from __future__ import annotations

import sys
from collections import Counter
from threading import get_ident
from types import FrameType
from typing import Counter as CounterOf
from typing import Dict, List, Optional, Set, Tuple

from depyf.answers.coverage import Coverage
from depyf.base.locks import Lock
from depyf.base.quick_dataclass import replace
from depyf.dynamo.capture.records import Cause, FrameSkipped
from depyf.dynamo.dump.pausing import compiles_nothing
from depyf.dynamo.hooks import frame_evaluation, torch_settings
from depyf.dynamo.store.names import StableNames

_STANCE = "under torch.compiler.set_stance({!r})"
RUNS_AS_PLAIN = "ran " + _STANCE + ", as plain Python: no compiled code ran"
_DECIDES = "ran " + _STANCE + ", which decides by itself what is compiled: leave that stance while you look"
_IN_DEBUG = (
    "ran in depyf.debug(), which lets nothing be compiled, and what is observed has to be compiled once more (only "
    "what had been called inside before is): enter this first, call the function once, and then enter depyf.debug()"
)
_DISABLED = "ran with Dynamo disabled (torch._dynamo.config.disable), as plain Python: no compiled code ran"
_NO_GRAPH = (
    "of compiled functions ran no compiled graph: Dynamo leaves this code as it is, or it does nothing with tensors "
    "(depyf.watch() around its first call says which)"
)
_UNKNOWN = "could not be observed: depyf does not know how this PyTorch hands them to Dynamo"


class _OpenCall:
    """An open call of a compiled function. ``counted`` is set when it has run a graph, or when the reason why it has
    not is recorded; ``missed`` is the expected reason why it will not be observed."""

    __slots__ = ("counted", "frame", "missed")

    def __init__(self, frame: int, missed: str) -> None:
        self.frame = frame
        self.missed = missed
        self.counted = False


class Tally:
    """Counts for as long as it lives. Threads may count at the same time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._functions = 0
        self._missed: CounterOf[str] = Counter()
        self._calls: Dict[int, List[_OpenCall]] = {}
        """By threads, the outermost first. The end of a call is not reported: a call is open while its frame runs."""
        self._given_up: Dict[str, None] = {}
        self.stable = StableNames()

    def called(self, frame: FrameType, missed: str = "") -> None:
        """Record the call of a compiled function in a frame of Dynamo's; ``missed`` is why, if no graph in it is
        observed."""
        with self._lock:
            calls = self._of_thread(get_ident(), frame.f_back)
            calls.append(_OpenCall(id(frame), missed))
            self._functions += 1

    def graph_runs(self) -> None:
        """Mark the open calls of this thread as counted: a compiled graph runs in them."""
        with self._lock:
            for call in self._of_thread(get_ident(), sys._getframe(1)):
                call.counted = True

    def miss(self, why: str) -> None:
        """Record that a call is not observed, and ``why``."""
        with self._lock:
            self._missed[why] += 1

    def missed_here(self, why: str) -> None:
        """Record that the innermost call of a compiled function in this thread is not observed."""
        self.graph_runs()
        self.miss(why)

    def begin(self) -> None:
        """Start an observation: earlier fallbacks are dropped."""
        self._given_up.clear()

    def add(self, record: FrameSkipped) -> None:
        """Record a fallback (called by ``Fallbacks``)."""
        if record.cause is not Cause.SKIPPED:
            self._given_up[f"{record.function} ({record.cause.value})"] = None

    def read(self) -> Tuple[int, CounterOf[str]]:
        """Return how many functions were called, and what was missed."""
        frames = sys._current_frames()
        with self._lock:
            for thread in list(self._calls):
                if not self._of_thread(thread, frames.get(thread)):
                    del self._calls[thread]
            return self._functions, Counter(self._missed)

    def _of_thread(self, thread: int, frame: Optional[FrameType]) -> List[_OpenCall]:
        """Return the open calls of a thread that is in ``frame``, and count those that have ended."""
        calls = self._calls.setdefault(thread, [])
        running = set()
        while frame is not None and calls:
            running.add(id(frame))
            frame = frame.f_back
        while calls and calls[-1].frame not in running:
            ended = calls.pop()
            if not ended.counted:
                self._missed[ended.missed or _given_up(list(self._given_up))] += 1
        return calls


def _given_up(functions: List[str]) -> str:
    if functions:
        return f"of compiled functions ran no compiled graph: Dynamo has given up {', '.join(functions)}"
    return _NO_GRAPH


class Looking:
    """The checked calls of one observer, from ``begin`` to ``end``; after another ``begin`` the counts continue."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._lock = Lock()
        self._before = tally.read()
        self._open = False
        self._looked = Coverage()
        self._graphs: Set[str] = set()
        self._passed_on: CounterOf[str] = Counter()
        self._left_out: CounterOf[str] = Counter()

    def begin(self) -> None:
        self._before, self._open = self._tally.read(), True

    def end(self) -> None:
        """Stop counting. May be called again."""
        functions, missed = self._tally.read()
        with self._lock:
            if self._open:
                self._open = False
                self._looked = replace(self._looked, functions=self._looked.functions + functions - self._before[0])
                self._left_out += missed - self._before[1]

    def at(self, graph: str, *, backward: bool) -> None:
        """Record that a call of the compiled graph of that name was checked."""
        with self._lock:
            self._graphs.add(graph)
            before = self._looked
            self._looked = replace(before, calls=before.calls + 1, backwards=before.backwards + backward)

    def passed_on(self, what: str) -> None:
        """Record that the results of a call are not finite, and only because of the graph's inputs."""
        with self._lock:
            self._passed_on[what] += 1

    def left_out(self, why: str) -> None:
        """Record that a call is not checked, or only in part."""
        with self._lock:
            self._left_out[why] += 1

    def so_far(self, operations: int = 0) -> Coverage:
        """Return what has been checked, and ``operations`` outside of compiled graphs."""
        functions, missed = self._tally.read() if self._open else self._before
        functions_before, missed_before = self._before
        with self._lock:
            return replace(
                self._looked,
                functions=self._looked.functions + functions - functions_before,
                graphs=len(self._graphs),
                operations=operations,
                missed=dict(self._left_out + (missed - missed_before)),
                passed_on=dict(self._passed_on),
            )


def why_not_observed(answer: object, ours: object) -> str:
    """Return why a call is not observed, "" if it is: Dynamo would use the callback ``answer``, and depyf has replaced
    it by ``ours`` (None: not replaced)."""
    if torch_settings.dynamo_setting("disable"):
        return _DISABLED
    if ours is not None:
        return ""
    stance = frame_evaluation.stance()
    if answer is None:
        return RUNS_AS_PLAIN.format(stance)
    if compiles_nothing():
        return _IN_DEBUG
    if stance == "default":
        return _UNKNOWN
    return _DECIDES.format(stance)
