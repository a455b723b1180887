"""Keep depyf's exceptions out of the user's program, and report each failure once.

A message has what failed, where, the consequence and the remedy. It is logged once for each failing line of depyf and
each dump directory: a bug that affects every file is one message, not one for every file.
"""

from __future__ import annotations

import functools
import logging
import sys
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, TextIO, Tuple, TypeVar

from depyf.base.asynchronous import suppressed, synchronous
from depyf.base.messages import describe, log, write
from depyf.base.own_builtins import keep_builtins
from depyf.base.own_package import place_of
from depyf.base.write_signals import without_write_signals
from depyf.dynamo.hooks import frame_evaluation, torch_names

keep_builtins(globals())

T = TypeVar("T")

_UNKNOWN: object = object()

_reported: Dict[Tuple[str, str, str], object] = {}
_directory = ""
_out_of_stack: Optional[str] = None
"""Failures that could not be reported for lack of stack."""


class Failure(NamedTuple):
    """A failure of depyf: what it was ``doing``, the line in depyf (``place``), and the exception as text."""

    doing: str
    place: str
    error: str

    def __str__(self) -> str:
        return (
            f"{self.doing} failed at {self.place} ({self.error})"
            if self.place
            else f"{self.doing} failed ({self.error})"
        )


failure_listeners: List[Callable[[Failure], object]] = []
"""Called with every failure, also with repeated ones, which are not logged again."""


def dumping_into(directory: str) -> None:
    """Set the dump directory that messages name; failures that were logged for another one are logged again."""
    global _directory
    _directory = directory


def report_failure(doing: str, error: BaseException, advice: str = "") -> None:
    """Log a warning that ``doing`` something failed with ``error``, which is being handled; repeats are logged at debug
    level. ``advice`` is for failures that are not bugs of depyf.
    """
    place = place_of(error)
    note_failure(Failure(doing, place, describe(error)))
    mine = object()
    key = (_directory, place, type(error).__name__)
    first = _reported.setdefault(key, mine) is mine  # atomic: threads fail together
    log(
        logging.WARNING if first else logging.DEBUG,
        "%s failed at %s (%s). Your program continues; %s. %s",
        doing,
        place,
        describe(error),
        f"the dump in {_directory} will be incomplete" if _directory else "only that is missing",
        advice or _advice(error),
    )
    log(logging.DEBUG, "%s failed", doing, exc_info=error)


def has_failed(directory: str) -> bool:
    """Return whether something has failed while depyf dumped into this directory."""
    return any(key[0] == directory for key in list(_reported))


def note_failure(failure: Failure) -> None:
    """Pass a failure to the receivers: the dump's index lists what is missing."""
    for listener in list(failure_listeners):
        with suppressed(Exception):  # the failure may be one of what it needs, and is logged in any case
            listener(failure)


def _advice(error: BaseException) -> str:
    if isinstance(error, OSError):
        return "Check free space and write permission, then rerun"
    return (
        "This is a bug of depyf: please report it with the traceback, "
        "which logging.getLogger('depyf').setLevel(logging.DEBUG) shows"
    )


def safely(doing: str) -> Callable[[Callable[..., T]], Callable[..., Optional[T]]]:
    """Return a decorator that reports an exception of the function once under ``doing`` and returns ``None``.

    Asynchronous exceptions (a signal handler's, ``KeyboardInterrupt``, ``SystemExit``) propagate, after Dynamo's state
    is restored. Dynamo is off inside: a hook may be called while compiled code runs (backward graphs are compiled
    late), and depyf's frames would be traced like the user's.
    """

    def decorate(function: Callable[..., T]) -> Callable[..., Optional[T]]:
        @functools.wraps(function)
        def wrapper(*args: object, **kwargs: object) -> Optional[T]:
            global _out_of_stack
            before = _UNKNOWN
            # The innermost ``try`` is the normal course: off, call, report, on. The one around it is for an
            # interruption at any line of these; the outermost for a recursion limit that is reached in the reporting
            # itself.
            try:
                try:
                    try:
                        before = frame_evaluation.set_eval_frame(None)
                        return function(*args, **kwargs)
                    except synchronous() as error:
                        report_failure(doing, error)
                    finally:
                        if before is not _UNKNOWN:
                            frame_evaluation.set_eval_frame(before)
                except synchronous() as error:  # a torch that disables Dynamo in some other way
                    report_failure(doing, error)
                except BaseException:
                    if before is not _UNKNOWN:
                        frame_evaluation.set_eval_frame(before)  # the same above may have been interrupted
                    raise
            except RecursionError as error:
                # A call above needed more stack than was left, and next to nothing can be called here. The failure is
                # noted for ``report_out_of_stack``. A signal handler's exception may have been replaced by this one.
                _out_of_stack = doing
                try:
                    interruption = _interruption_behind(error)
                except RecursionError:
                    return None
            else:
                return None
            if interruption is not None:
                raise interruption
            return None

        return wrapper

    return decorate


def _interruption_behind(error: BaseException) -> Optional[BaseException]:
    """Return the ``KeyboardInterrupt`` or the like that ``error`` replaced in the same frame, if there is such an
    exception.
    """
    # KeyboardInterrupt  <- __context__ of <-  RecursionError (raised while the first was handled in ``wrapper``). An
    # exception whose traceback starts in another frame was caught inside of the function, or the program was handling
    # it when it called the hook: neither is to be raised again.
    first, before_it = error, error.__context__
    for _ in range(100):  # the program may have made a cycle of contexts
        if before_it is None:
            break
        came = before_it.__traceback__
        if came is not None and came.tb_frame is error.__traceback__.tb_frame:  # type: ignore[union-attr]
            first = before_it
        before_it = before_it.__context__
    return None if isinstance(first, Exception) else first


@safely("reporting what ran out of stack")
def report_out_of_stack() -> None:
    """Report the failure that could not be reported at once, as nothing can be called at the recursion limit."""
    global _out_of_stack
    doing, _out_of_stack = _out_of_stack, None
    if doing is not None:
        try:
            raise RecursionError("little of the recursion limit was left when the program came there")
        except RecursionError as error:
            report_failure(doing, error, "sys.setrecursionlimit raises the limit")


def users(what: str, function: Callable[..., object]) -> Callable[..., object]:
    """Wrap a user's ``function`` that depyf calls: its exceptions are reported once, as the user's, and do not
    propagate. ``what`` it is, as a message can start with it: "the callback of depyf.watch".
    """

    @safely(f"calling {what}")
    def call(*args: object, **kwargs: object) -> object:
        try:
            return function(*args, **kwargs)
        except synchronous() as error:
            _report_users(what, error)
            return None

    return call


def _report_users(what: str, error: BaseException) -> None:
    """Report ``error``, which user code called by depyf raised, and which is being handled."""
    traceback = None if error.__traceback__ is None else error.__traceback__.tb_next  # without our own frame
    last = traceback
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    place = "" if last is None else f"{last.tb_frame.f_code.co_filename}:{last.tb_lineno}"
    mine = object()
    first = _reported.setdefault((what, place, type(error).__name__), mine) is mine
    log(
        logging.WARNING if first else logging.DEBUG,
        "%s raised %s%s. Your program continues; the same failure is not reported again",
        what,
        describe(error),
        f" at {place}" if place else "",
        exc_info=(type(error), error, traceback) if first else None,
    )


@safely("writing a line for the user")
def say(stream: Optional[TextIO], lines: Iterable[str]) -> None:
    """Write lines for the user, to stderr if ``stream`` is None. A closed stream is no failure."""
    text = "".join(f"{with_rank(line)}\n" for line in lines)
    if stream is None:
        write(sys.stderr, text)
    else:
        users("the stream given to depyf", functools.partial(_write, stream))(text)


def with_rank(line: str) -> str:
    """Return a line that starts with ``depyf`` and, if there are several, the process's rank: all of them write to the
    same terminal.
    """
    rank = torch_names.distributed_rank()
    return line if rank is None else line.replace("depyf", f"depyf [rank {rank}]", 1)


def _write(stream: TextIO, text: str) -> None:
    # Closed, or none: callers keep a list.
    with without_write_signals(), suppressed(OSError, ValueError, AttributeError):
        stream.write(text)
        stream.flush()
