"""Tell exceptions that arrive from outside (signals, other threads, debuggers) from those that our own work raises.

An ``except`` clause of ours may catch what began in our work. An exception that a signal handler raises while we work
is the program's: a time limit, the end of a worker. Python does not mark it, so traceback and type are examined:

- a frame of the traceback is a signal handler, a trace function or a monitoring callback: Python calls these with the
  frame or the code that they interrupt, which no function is called with in the normal course. A handler that has
  dropped its argument is recognised by its code, as long as it is installed;
- the type is defined outside of the standard library, PyTorch and depyf, and the exception has no arguments and was
  raised by an instruction that is no ``raise``: ``PyThreadState_SetAsyncExc`` does that, as libraries for time limits
  use it.

In doubt about a type of the program's the exception goes on to the program.
"""

from __future__ import annotations

import dis
import functools
import os
import signal
import sys
import sysconfig
from types import CodeType, FrameType, TracebackType
from typing import Iterator, List, Optional, Set, Tuple, Type, TypeVar, overload

E = TypeVar("E", bound=BaseException)

_PACKAGE = __name__.partition(".")[0]
_DEBUGGERS = ("bdb", "pdb")
"""Modules of the standard library whose functions are called with the frame that they interrupt."""

_RAISING = ("RAISE_VARARGS", "RERAISE", "END_FINALLY", "END_ASYNC_FOR")
_LIMITS = ("Exception", "RuntimeError", "TimeoutError")
"""Names of types that no function in C raises without arguments, and that time limits do."""


@overload
def synchronous() -> Tuple[Type[Exception], ...]: ...


@overload
def synchronous(*kinds: Type[E]) -> Tuple[Type[E], ...]: ...


def synchronous(*kinds: Type[object]) -> Tuple[Type[object], ...]:
    """Return ``kinds`` (by default ``Exception``) for an ``except`` clause; nothing if what is handled came from
    outside.

    To be called in the clause itself: ``except synchronous(OSError) as error:``.
    """
    error = sys.exc_info()[1]
    if error is not None and is_asynchronous(error):
        return ()
    return kinds or (Exception,)


class suppressed:  # noqa: N801 - used as the function contextlib.suppress is
    """``contextlib.suppress`` for what does not come from outside."""

    def __init__(self, *kinds: Type[BaseException]) -> None:
        self._kinds = kinds

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> bool:
        return isinstance(error, self._kinds) and error is not None and not is_asynchronous(error)


def is_asynchronous(error: BaseException) -> bool:
    """Return whether ``error``, or what it was raised for, came from outside of the work that the traceback shows.

    Raises only what comes from outside itself; where the answer can't be had, it is False.
    """
    try:
        return _came_from_outside(error)
    except Exception as failure:  # objects of the program that are looked at may raise
        if _is_called_with_its_caller(list(_frames(failure.__traceback__))):
            raise
        return False


def _came_from_outside(error: BaseException) -> bool:
    seen: Set[int] = set()
    current: Optional[BaseException] = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        frames = list(_frames(current.__traceback__))
        if _is_interrupted(frames) or _is_sent(current, frames):
            return True
        current = _raised_while_handling(current, [frame for frame, _ in frames])
    return False


def _frames(traceback: Optional[TracebackType]) -> Iterator[Tuple[FrameType, int]]:
    """Yield each frame with the offset of the instruction that it has come to, the outermost first."""
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lasti
        traceback = traceback.tb_next


def _raised_while_handling(error: BaseException, frames: List[FrameType]) -> Optional[BaseException]:
    """Return the exception that one of ``frames`` has made ``error`` of."""
    before = error.__context__ if error.__cause__ is None else error.__cause__
    first = None if before is None else before.__traceback__
    # One that the program was handling when it called us was caught further out.
    return before if first is not None and any(frame is first.tb_frame for frame in frames) else None


def _is_interrupted(frames: List[Tuple[FrameType, int]]) -> bool:
    """Return whether one of the frames was not called by the one before it, but interrupted it."""
    if _is_called_with_its_caller(frames):
        return True
    of_others = [inner for inner, _ in frames[1:] if not _is_librarys(_root(inner.f_globals.get("__name__")))]
    return bool(of_others) and not {inner.f_code for inner in of_others}.isdisjoint(_signal_handlers())


def _is_called_with_its_caller(frames: List[Tuple[FrameType, int]]) -> bool:
    """Return whether a function of the program's, or a debugger's, was given the frame or code that it interrupts."""
    for (outer, _), (inner, _) in zip(frames, frames[1:]):
        name = _root(inner.f_globals.get("__name__"))
        if name in _DEBUGGERS or not _is_librarys(name):
            if any(value is outer or value is outer.f_code for value in _arguments(inner)):
                return True
    return False


def _arguments(frame: FrameType) -> Iterator[object]:
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    known = frame.f_locals
    for name in code.co_varnames[:count]:
        yield known.get(name)
    if code.co_flags & 0x04:  # *args
        values = known.get(code.co_varnames[count])
        yield from values if isinstance(values, tuple) else ()


def _signal_handlers() -> Set[CodeType]:
    """Return the code of all handlers that are installed, of what they wrap as well."""
    found: Set[CodeType] = set()
    for number in signal.valid_signals():
        handler: object = signal.getsignal(number)
        for _ in range(10):
            if isinstance(handler, functools.partial):
                handler = handler.func
            handler = getattr(handler, "__func__", handler)
            called = handler if hasattr(handler, "__code__") else vars(type(handler)).get("__call__")
            code = getattr(called, "__code__", None)
            if isinstance(code, CodeType):
                found.add(code)
            handler = getattr(handler, "__wrapped__", None)
            if handler is None:
                break
    return found


def _is_sent(error: BaseException, frames: List[Tuple[FrameType, int]]) -> bool:
    """Return whether ``error`` was raised where nothing raises it: another thread has sent it."""
    if not frames or not isinstance(error, Exception):
        return False
    frame, offset = frames[-1]
    if _is_librarys(_root(type(error).__module__)):
        in_library = _is_librarys(_root(frame.f_globals.get("__name__")))
        possible = in_library and not error.args and type(error).__name__ in _LIMITS
    else:
        possible = not error.args  # libraries for time limits send types, of which Python makes instances
    return possible and not _raises(frame.f_code, offset)


def _raises(code: CodeType, offset: int) -> bool:
    for each in dis.get_instructions(code):
        if each.offset >= offset:
            return each.offset == offset and each.opname in _RAISING
    return False


def _root(module: object) -> str:
    return str(module).partition(".")[0]


@functools.lru_cache(maxsize=None)
def _is_librarys(name: str) -> bool:
    """Return whether a module of this name belongs to the standard library, to PyTorch or to depyf."""
    if name in ("torch", "functorch", _PACKAGE) or name in sys.builtin_module_names:
        return True
    if name in getattr(sys, "stdlib_module_names", ()):  # since 3.10
        return True
    path = getattr(sys.modules.get(name), "__file__", None) or ""
    folder = os.path.join(sysconfig.get_paths()["stdlib"], "")
    rest = path[len(folder) :] if path.startswith(folder) else ""
    return bool(rest) and not rest.startswith(("site-packages", "dist-packages"))
