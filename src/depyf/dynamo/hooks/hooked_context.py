"""The base class of all context managers that install hooks, and the functions that install hooks and undo them.

An asynchronous exception (a signal handler's, KeyboardInterrupt) may be raised at any line of entering and leaving. It
propagates to the program, and nothing stays installed. The subclasses decide what is installed.
"""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from threading import get_ident
from types import TracebackType
from typing import Any, Callable, ClassVar, Generic, Iterator, List, Optional, Sequence, Tuple, Type, TypeVar, cast

from depyf.base.asynchronous import is_asynchronous, synchronous
from depyf.base.locks import Lock
from depyf.base.own_builtins import keep_builtins
from depyf.base.restoring import restoring
from depyf.base.without_warnings import without_warnings
from depyf.dynamo.hooks.patching import Undo, collecting
from depyf.dynamo.hooks.safely import report_failure, report_out_of_stack, safely

keep_builtins(globals())

__tracebackhide__ = True  # pytest shows the lines of the test alone

T = TypeVar("T")
C = TypeVar("C", bound="HookedContext[Any]")


class _Forkable:
    """What has to be reset in a forked child."""

    def _after_fork_in_child(self) -> None: ...


class HookedContext(_Forkable, Generic[T]):
    """A context manager that installs hooks on entering, and removes them on leaving.

    It may be entered and left in different functions and threads, again after it was left, and while it is open: then
    its hooks are removed when it was left as often as it was entered. With ``_each_anew`` each entering starts and
    stops separately, and the last one is left first. A ``T`` identifies an entering.
    """

    _name: ClassVar[str]
    """The call that creates one, as messages name it: ``trace()``."""
    _each_anew: ClassVar[bool] = False
    _reports_failures: ClassVar[bool] = False
    """Whether a failure of entering or leaving is reported, and the program continues without the context."""

    def __init__(self) -> None:
        self._open: List[T] = []
        """Each entering that was not left, the last one last."""
        self._entering = Lock()
        self._entered_by: List[Tuple[int, T]] = []
        """The threads that enter now, and what they enter."""
        _contexts.add(self)

    def _entry(self) -> T:
        """Return what identifies an entering. Nothing is installed yet. ``_start`` says what exceptions do."""
        return cast(T, object())

    def _start(self, entry: T) -> None:
        """Install the hooks. After ``_drop`` exceptions propagate to the program, or are reported."""
        raise NotImplementedError

    def _started(self) -> None:
        """Do the part of each entering that is not depyf's own work: warnings are shown."""

    def _drop(self, entry: T) -> None:
        """Remove what ``_start`` has installed, however far it came. May be called again."""
        raise NotImplementedError

    def _stop(self, entry: T) -> None:
        """Remove the hooks, and finish what they have recorded. A failure is reported, and ``_drop`` is called."""
        self._drop(entry)

    def _stopped(self, *, failed: bool) -> None:
        """Report to the user what was found, after all hooks are removed; ``failed``: the body raised."""

    def __enter__(self: C) -> C:
        entries: List[T] = []
        try:
            entry = self._entry()
            entries.append(entry)
            with self._entering, without_warnings():  # of PyTorch's modules that are imported now
                try:
                    self._entered_by.append((get_ident(), entry))
                    self._open.append(entry)
                    if self._each_anew or len(self._open) == 1:
                        self._start(entry)
                    self._entered_by.pop()
                except BaseException:
                    self._abandon(entries)  # before another thread enters, and finds it started
                    raise
            self._started()
            return self
        except BaseException as error:  # the ``with`` statement will not call __exit__
            self._abandon(entries)  # once more: the user may press Ctrl-C twice
            if not self._is_reported("entering", error):
                raise
            return self

    _is_finalizing = staticmethod(sys.is_finalizing)
    """An attribute, as the interpreter may have emptied this module before it closes the last generators."""

    def __exit__(
        self,
        exc_type: Optional[Type[BaseException]],
        exc_value: Optional[BaseException],
        traceback: Optional[TracebackType],
        *left: T,
    ) -> None:
        """Leave the last entering. ``left`` is empty: a parameter is bound before an exception can come."""
        try:
            # At interpreter shutdown it comes from a generator that was never closed: too late for anything.
            if not self._open or self._is_finalizing():
                return
            with self._entering:
                left = tuple(self._open[-1:])  # another thread may have left meanwhile
                is_last = len(left) == 1 and (self._each_anew or len(self._open) == 1)
                if is_last:
                    with without_warnings():
                        safely(f"leaving depyf.{self._name}")(self._end)(left[0])
                self._close(left)
            if is_last:
                report_out_of_stack()
                self._stopped(failed=exc_type is not None)
        except BaseException as error:
            self._abandon(left or self._open[-1:])
            if not self._is_reported("leaving", error):
                raise

    def _is_reported(self, doing: str, error: BaseException) -> bool:
        """Report ``error`` and return True, unless it is for the program."""
        if self._reports_failures and not is_asynchronous(error):
            report_failure(f"{doing} depyf.{self._name}", error)
            return True
        return False

    def _end(self, entry: T) -> None:
        try:
            self._stop(entry)
        except BaseException:
            self._drop(entry)
            raise

    def _close(self, entries: Sequence[T]) -> None:
        self._open = [each for each in self._open if not any(each is other for other in entries)]

    def _abandon(self, entries: Sequence[T]) -> None:
        """Remove the hooks without a report, however far entering or leaving came."""
        with self._entering:
            self._entered_by = [each for each in self._entered_by if not any(each[1] is other for other in entries)]
            self._close(entries)
            for each in entries if self._each_anew or not self._open else ():
                safely(f"leaving depyf.{self._name}")(self._drop)(each)

    def _after_fork_in_child(self) -> None:
        """Undo entering that was started by threads that the child does not have."""
        begun = [entry for thread, entry in self._entered_by if thread != get_ident()]
        if begun:
            self._abandon(begun)


_contexts: weakref.WeakSet[_Forkable] = weakref.WeakSet()


class CallbackContext(HookedContext[object]):
    """One that a training framework can be given as a callback: it is open while a training runs, and takes whatever
    arguments the framework passes."""

    def on_train_begin(self, *_: object, **__: object) -> None:
        """Start: training frameworks call this. An earlier training that failed has not called the end."""
        if not self._open:
            self.__enter__()

    def on_train_end(self, *_: object, **__: object) -> None:
        """Stop: training frameworks call this last."""
        self.__exit__(None, None, None)

    on_fit_start, on_fit_end = on_train_begin, on_train_end

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("on_"):  # the other things that happen in a training
            return lambda *_, **__: None
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _after_fork_in_child() -> None:
    for context in list(_contexts):
        context._after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def install(undo: List[Undo], doing: str, hook: Callable[[], object]) -> bool:
    """Install ``hook`` with what undoes it in ``undo``; a failure is reported. Return whether anything is installed."""
    count = len(undo)
    try:
        collecting(undo, hook)
    except synchronous() as error:
        report_failure(doing, error)
    return len(undo) > count


def uninstall(undo: List[Undo], doing: str) -> None:
    """Undo what the list holds, the last first, and empty it; failures are reported. May be called again."""
    while undo:
        safely(doing)(undo[-1])()
        undo.pop()


@contextlib.contextmanager
def undone_afterwards(doing: str) -> Iterator[List[Undo]]:
    """Undo at the end what was appended to the list inside, the last first; failures are reported under ``doing``.

    Append what undoes a change before the change.
    """
    undo: List[Undo] = []
    with restoring(lambda: uninstall(undo, doing)) as again, again:
        yield undo
