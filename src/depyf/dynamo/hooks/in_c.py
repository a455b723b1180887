"""Functions composed of functions in C: no Python code runs in them, so no signal handler runs. PyTorch calls such a
function where an exception would end the process. Python runs signal handlers, and raises exceptions sent by other
threads, only between instructions of Python code.
"""

from __future__ import annotations

from collections import defaultdict, deque
from functools import partial
from threading import get_ident
from time import perf_counter_ns
from types import CodeType
from typing import Callable, DefaultDict, Deque, Iterator, List, Optional, Sequence, Tuple, Union

from depyf.base.own_builtins import keep_builtins

keep_builtins(globals())

Call = Callable[[CodeType], object]
Noted = Deque[Union[CodeType, int]]
"""Code objects, each with the time after it."""

_KEPT = 1 << 20
"""The number of runs of a thread that are kept until they are taken."""


class InTurn:
    """``call(code)`` calls each of the functions with ``code``; the functions may be exchanged at any time. All but the
    last must return something false.
    """

    def __init__(self) -> None:
        self._compared: List[object] = []
        self.call: Call = self._compared.__contains__
        """``in`` on a list compares each item with the object."""

    def set(self, functions: Sequence[Call]) -> None:
        """Set the functions to call."""
        self._compared[:] = [_compared_by(each) for each in functions]


def _compared_by(function: Call) -> object:
    return type("Compared", (), {"__eq__": staticmethod(function), "__hash__": None})()


def without_result(function: Call) -> Tuple[Call, ...]:
    """Return functions to be called in turn: they call ``function`` and ignore its result."""
    codes: List[CodeType] = []
    dropped: Deque[object] = deque(maxlen=0)
    return codes.append, partial(next, map(dropped.append, map(function, iter(codes.pop, None))))


class RunNotes:
    """Records which code objects were about to run, and when (``perf_counter_ns``), for each thread in order.
    ``functions`` are to be called in turn with a code object that is about to run.
    """

    def __init__(self) -> None:
        self._threads: DefaultDict[int, Noted] = defaultdict(partial(deque, (), 2 * _KEPT))
        codes: List[CodeType] = []
        buffers = map(self._threads.__getitem__, iter(get_ident, None))  # that of this thread, each time
        code = map(deque.append, buffers, iter(codes.pop, None))
        time: Iterator[None] = map(deque.append, buffers, iter(perf_counter_ns, None))
        self.functions: Tuple[Call, ...] = (codes.append, partial(next, code), partial(next, time))

    def threads(self) -> List[int]:
        """Return the ids of the threads with records."""
        return list(self._threads)

    def waiting(self, thread: int) -> Noted:
        """Return what ``take`` would take, as recorded: true if there is something."""
        return self._threads[thread]

    def take(self, thread: int) -> List[Tuple[CodeType, int]]:
        """Return what was recorded of a thread since the last call, and drop it."""
        buffer = self._threads[thread]
        taken: List[Tuple[CodeType, int]] = []
        code: Optional[CodeType] = None
        for _ in range(len(buffer)):
            each = buffer.popleft()
            if not isinstance(each, int):
                code = each
            elif code is not None:  # else taking it was interrupted the last time
                taken.append((code, each))
                code = None
        return taken
