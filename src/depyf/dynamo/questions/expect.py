"""``expect``: fails where a block breaks graphs, recompiles, compiles other graphs or falls back to eager.

It counts with ``watch``; earlier compilations are ignored, and depyf is not called while compiled code runs.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, TypeVar

from depyf.answers.expectation import NAMES, Counted, Number
from depyf.answers.watch import WatchEvent, counted
from depyf.base.plain_data import HasAnswer
from depyf.dynamo.hooks import torch_names
from depyf.dynamo.hooks.hooked_context import HookedContext
from depyf.dynamo.questions.watch import Watch

__tracebackhide__ = True  # pytest shows the lines of the test alone

F = TypeVar("F", bound=Callable[..., Any])


class Expect(HookedContext[Watch], HasAnswer):
    """The context manager and decorator that ``expect`` returns; it may be entered again, each time separately.

    ``counts`` and ``happened`` are those of the last block that was left.
    """

    _name = "expect()"
    _each_anew = True

    def __init__(self, expected: Mapping[str, Number]) -> None:
        super().__init__()
        self._expected = dict(expected)
        self._last = Counted((), 0)

    @property
    def answer(self) -> Counted:
        """What happened in the last block that was left, as data."""
        return self._last

    @property
    def counts(self) -> Mapping[str, int]:
        """The counts by name: ``breaks``, ``recompiles``, ``graphs``, ``fallbacks``."""
        return self._last.counts

    @property
    def happened(self) -> Sequence[WatchEvent]:
        """Every graph break, recompilation and fallback, in order."""
        return self._last.happened

    def _entry(self) -> Watch:
        return Watch(_silent)

    def _start(self, entry: Watch) -> None:
        entry.__enter__()

    def _drop(self, entry: Watch) -> None:
        entry.__exit__(None, None, None)

    def _stop(self, entry: Watch) -> None:
        self._drop(entry)
        self._last = Counted(tuple(entry.happened), entry.graphs)

    def _stopped(self, *, failed: bool) -> None:
        if not failed:  # else the program's exception is reported
            self._last.check(self._expected)

    def __call__(self, function: F) -> F:
        """Return ``function`` with each of its calls as a block."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function) or inspect.isclass(function):
            raise TypeError(
                "depyf.expect decorates functions and coroutine functions: a generator runs only while it is iterated, "
                "and a class is not a block. Use `with depyf.expect(...):` inside of it"
            )
        if not callable(function) or isinstance(function, staticmethod):
            raise TypeError(
                f"depyf.expect decorates functions, and this is a {type(function).__name__}: write @depyf.expect(...) "
                "below @property, @staticmethod and @classmethod"
            )
        expected = self._expected
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*args: object, **kwargs: object) -> object:
                with Expect(expected):
                    return await function(*args, **kwargs)

            return awaited  # type: ignore[return-value]

        @functools.wraps(function)
        def called(*args: object, **kwargs: object) -> object:
            with Expect(expected):
                return function(*args, **kwargs)

        return called  # type: ignore[return-value]

    def __str__(self) -> str:
        """Return the expected numbers, and the last counted ones."""
        wanted = ", ".join(f"{name}={number}" for name, number in self._expected.items())
        last = ", ".join(counted(number, name[:-1]) for name, number in self.counts.items())
        return f"depyf.expect({wanted}): {last}"

    __repr__ = __str__


def _silent(_: WatchEvent) -> None:
    """Do nothing: events are reported at the end."""


def expect(
    *,
    breaks: Optional[Number] = None,
    recompiles: Optional[Number] = None,
    graphs: Optional[Number] = None,
    fallbacks: Optional[Number] = None,
) -> Expect:
    """Return a context manager, and decorator, that fails if a block does not compile as expected.

    Each number is exact, a ``range`` (``range(3)``: at most 2), or None (not checked); at least one must be given.
    ``breaks`` counts graph breaks, each place of the program once; ``recompiles`` recompilations; ``graphs``
    compilations with a graph; ``fallbacks`` frames that fall back to eager, as ``docs/glossary.md`` defines them. Only
    compilations within the block count, in all threads of the process. Calls of code that was compiled before do not
    count; ``torch._dynamo.reset()`` clears Dynamo's caches.

    At the end of the block ``depyf.ExpectationError``, an ``AssertionError``, has the stack of each event and what
    avoids it. If the block itself raises, the exception propagates and nothing is checked. As a decorator it goes
    outside of ``torch.compile``; each call is a block, also of a coroutine function (with other code that runs while it
    waits).

    Raises ``TypeError`` and ``ValueError`` for invalid numbers of events, and ``ImportError`` without PyTorch.
    """
    given = dict(zip(NAMES, (breaks, recompiles, graphs, fallbacks)))
    expected: Dict[str, Number] = {name: number for name, number in given.items() if number is not None}
    if not expected:
        raise ValueError(f"depyf.expect needs something to expect: one of {', '.join(NAMES)}")
    for name, number in expected.items():
        if isinstance(number, bool) or not isinstance(number, (int, range)):
            raise TypeError(f"depyf.expect: {name} is an int, a range or None, and not {type(number).__name__}")
        if min(number, default=-1) < 0 if isinstance(number, range) else number < 0:
            raise ValueError(f"depyf.expect: {name}={number!r} can't happen")
    torch_names.require_torch("expect")
    return Expect(expected)
