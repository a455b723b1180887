"""Which calls of compiled functions are sampled, and how a shadow run learns of them.

Each call of what ``torch.compile`` returned asks Dynamo for the callback of the stance, once, before anything of the
call runs. While a ``shadow`` is open, that one function of Dynamo's is replaced by ``_Hook``, for the whole process:
nothing stands around the compiled code, its guards or its backend, and nothing is there when no ``shadow`` is open. A
call that is not sampled costs a decremented counter and one more call of a Python function.

A sampled call is checked at this point, before it runs: entry and eager mode both run on copies, and then the call of
the program runs as it would have. So what the program gets is not touched by the check, and can't depend on it. The
price is that the entry runs twice in a sampled call.

The distance to the next sample varies around ``every``, by a generator of its own: with a constant distance, a program
that calls two functions in turn would have one of them sampled only. The distances are the same in each run.

During a shadow run, calls of compiled functions on the same thread get the answer of ``answering``: plain Python for
eager mode, what is compiled already for an entry. A stance would do so for all threads.
"""

from __future__ import annotations

import contextlib
import random
import sys
from threading import get_ident
from typing import Callable, Dict, Iterator, Optional

from depyf.base.locks import Lock
from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.compiled_callables import EnteredCall, caller_of_hook, entered_call
from depyf.dynamo.hooks.patching import registered
from depyf.dynamo.hooks.safely import safely

_NO_ANSWER = object()

PLAIN_PYTHON = None
"""The callback that keeps Dynamo out."""

COMPILED_ONLY = False
"""The callback that runs what is compiled, and compiles nothing."""


class Sampler:
    """Calls ``check`` with every ``every``-th call of a compiled function, on average, before that runs."""

    def __init__(self, every: int, check: Callable[[EnteredCall], None]) -> None:
        self._every = every
        self._check = check
        self._distances = random.Random(0)
        self._answers: Dict[int, object] = {}
        """What calls get, by the threads that are in a shadow run."""
        self._lock = Lock()
        self._distance = self._left = self._next_distance()
        self._counted = 0
        self.sampled = 0

    @property
    def calls(self) -> int:
        """The number of calls so far; those inside of shadow runs are not counted."""
        return self._counted + self._distance - self._left

    def install(self) -> None:
        """Install until what it registers (``patching.collecting``) is undone."""
        original = private_names.CALLBACK_FROM_STANCE.require()
        answers = self._answers
        self._counted, self._distance = self.calls, self._next_distance()
        self._left = self._distance
        is_open = True

        def end() -> None:
            nonlocal is_open
            is_open = False

        def hook(callback: object) -> object:
            if answers:
                answer = answers.get(get_ident(), _NO_ANSWER)
                if answer is not _NO_ANSWER:
                    return answer
            # A hook of others may still call this one when it was undone. Without a callback, Dynamo is kept out of a
            # part of a call that has been counted.
            if callback is not None and callback is not False and is_open:
                self._left -= 1
                if self._left <= 0:
                    self._sample()
            return original(callback)

        registered(end)
        private_names.CALLBACK_FROM_STANCE.replace(hook)

    @contextlib.contextmanager
    def answering(self, callback: object) -> Iterator[None]:
        """Let calls of compiled functions on this thread get ``callback`` in the block."""
        thread = get_ident()
        before = self._answers.get(thread, _NO_ANSWER)
        self._answers[thread] = callback
        try:
            yield
        finally:
            if before is _NO_ANSWER:
                self._answers.pop(thread, None)
            else:
                self._answers[thread] = before

    def _next_distance(self) -> int:
        half = self._every // 2
        return self._distances.randint(self._every - half, self._every + half)

    @safely("sampling a call of a compiled function")
    def _sample(self) -> None:
        call: Optional[EnteredCall] = entered_call(caller_of_hook(sys._getframe(1)))
        if call is None:  # asked for another reason: the next call is sampled
            self._left = 1
            return
        with self._lock:
            self._counted += self._distance
            self._distance = self._left = self._next_distance()
            self.sampled += 1
        self._check(call)
