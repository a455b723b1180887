"""Distinguish exceptions from outside (signals, other threads, debuggers) from those that depyf's own work raises.

An ``except`` clause of depyf may handle exceptions of its own work only. An exception that a signal handler raises
meanwhile belongs to the program: a time limit, the end of a worker. Python does not mark it, so traceback and type are
examined. It is from outside if

- a frame of the traceback is a signal handler, a trace function or a monitoring callback: Python calls these with the
  frame or the code that they interrupt, which other functions do not get. A handler that has dropped its argument is
  recognised by its code, as long as it is installed;
- the type is defined in Python outside of the standard library, PyTorch and depyf, the exception has no arguments
  (except those that its own ``__init__`` adds), and it was raised where the interpreter checks for exceptions that
  other threads have sent, as libraries for time limits do with ``PyThreadState_SetAsyncExc``. From 3.11 on these are
  calls, jumps backwards, the starts of functions and resumptions of generators; before, all instructions.

A C function may raise at a call, too, and ``generator.throw()`` at a resumption. That is recognised where possible: the
type belongs to an extension module; the caller mentions ``throw``. In doubt the exception is passed on to the program:
a lost time limit is worse than an error of a callback that is not reported.
"""

from __future__ import annotations

import dis
import functools
import importlib.machinery
import os
import signal
import sys
import sysconfig
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import Callable, Dict, Iterator, List, Optional, Set, Tuple, Type, TypeVar, overload

from depyf.base.module_namespace import namespace_of
from depyf.base.own_builtins import keep_builtins

keep_builtins(globals())

E = TypeVar("E", bound=BaseException)

# The interpreter's own attributes: a type of the program may have properties of these names.
_traceback = vars(BaseException)["__traceback__"].__get__
_cause = vars(BaseException)["__cause__"].__get__
_context = vars(BaseException)["__context__"].__get__

_PACKAGE = __name__.partition(".")[0]
_DEBUGGERS = ("bdb", "pdb")
"""Modules of the standard library whose functions are called with the frame that they interrupt."""

_OWN_FRAME = {"_getframe", "currentframe", "__code__", "f_code"}
"""Names by which a function can get its own frame or code."""

_RAISING = ("RAISE_VARARGS", "RERAISE", "END_FINALLY", "END_ASYNC_FOR")
_CHECKED = ("CALL", "JUMP", "RESUME")
"""Parts of the names of instructions after which the interpreter (since 3.11) checks for pending exceptions."""
_GENERATOR = 0x20 | 0x80 | 0x200
"""Flags of the code of generators, coroutines and asynchronous generators."""

_LIBRARY = os.path.join(sysconfig.get_paths()["stdlib"], "")
"""Found now, while functions of ``os.path`` are the system's: a test may have replaced them by ones that raise when a
failure is judged."""

getsignal: Callable[[int], object] = getattr(sys.modules.get("_signal"), "getsignal", signal.getsignal)
"""Without the conversion to an Enum, which takes longer than everything else."""
_LIMITS = ("Exception", "RuntimeError", "TimeoutError")
"""Names of types that time limits raise without arguments, and C functions do not."""


@overload
def synchronous() -> Tuple[Type[Exception], ...]: ...


@overload
def synchronous(*kinds: Type[E]) -> Tuple[Type[E], ...]: ...


def synchronous(*kinds: Type[object]) -> Tuple[Type[object], ...]:
    """Return ``kinds`` (by default ``Exception``) for an ``except`` clause; () if the handled exception is from
    outside. To be called in the clause itself: ``except synchronous(OSError) as error:``."""
    error = sys.exc_info()[1]
    if error is not None and is_asynchronous(error):
        return ()
    return kinds or (Exception,)


class suppressed:  # noqa: N801 - used as the function contextlib.suppress is
    """``contextlib.suppress`` for exceptions that are not from outside."""

    def __init__(self, *kinds: Type[BaseException]) -> None:
        self._kinds = kinds

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> bool:
        return isinstance(error, self._kinds) and error is not None and not is_asynchronous(error)


class suppressed_all:  # noqa: N801
    """Suppress whatever code of the program raises that is called in the block, such as its loader's ``get_source``:
    also a ``KeyboardInterrupt`` that it raises itself, but no exception from outside."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> bool:
        return error is not None and is_of_called(error)


def is_of_called(error: BaseException) -> bool:
    """Return whether depyf, or code that it called, raised ``error``: of types that are no ``Exception``, whether a
    statement raised it, or ``sys.exit``, and not in a signal handler or the like."""
    if isinstance(error, Exception):
        return not is_asynchronous(error)
    frames = list(_frames(_traceback(error)))
    handlers = _signal_handlers()
    if _is_called_with_its_caller(frames) or any(frame.f_code is code for frame, _ in frames for code in handlers):
        return False
    frame, offset = frames[-1]
    raises = any(
        each.offset == offset and each.opname == "RAISE_VARARGS" for each in dis.get_instructions(frame.f_code)
    )
    return raises or (isinstance(error, SystemExit) and "exit" in frame.f_code.co_names)


def is_asynchronous(error: BaseException) -> bool:
    """Return whether ``error``, or its cause, came from outside of the work that the traceback shows. Raises only
    exceptions from outside; False if the question can't be decided."""
    try:
        return _came_from_outside(error)
    except Exception as failure:  # objects of the program may raise when they are examined
        if _is_called_with_its_caller(list(_frames(failure.__traceback__))):
            raise
        return False


def _came_from_outside(error: BaseException) -> bool:
    seen: Set[int] = set()
    of_others: Dict[int, CodeType] = {}
    current: Optional[BaseException] = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        # Follow the exceptions that were being handled in the same frames: a ``finally`` may have replaced the one from
        # outside by another.
        if not isinstance(current, (Exception, GeneratorExit)):  # ``finally`` has raised in place of Ctrl-C
            return True
        frames = list(_frames(_traceback(current)))
        if _is_called_with_its_caller(frames) or _is_sent(current, frames):
            return True
        for frame, _ in frames[1:]:
            if not _is_of_library(_root(frame.f_globals.get("__name__"))):
                of_others[id(frame.f_code)] = frame.f_code
        current = _raised_while_handling(current, [frame for frame, _ in frames])
    # Once for all of them, and last: reading the handlers takes longer than everything else.
    return bool(of_others) and not of_others.keys().isdisjoint(map(id, _signal_handlers()))


def _frames(traceback: Optional[TracebackType]) -> Iterator[Tuple[FrameType, int]]:
    """Yield each frame with the offset of its current instruction, the outermost first."""
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lasti
        traceback = traceback.tb_next


def _raised_while_handling(error: BaseException, frames: List[FrameType]) -> Optional[BaseException]:
    """Return the exception that a frame of ``frames`` was handling when it raised ``error``; else ``None``."""
    cause = _cause(error)
    before: Optional[BaseException] = _context(error) if cause is None else cause
    first = None if before is None else _traceback(before)
    # An exception that the program was handling when it called depyf was caught further out.
    return before if first is not None and any(frame is first.tb_frame for frame in frames) else None


def _is_called_with_its_caller(frames: List[Tuple[FrameType, int]]) -> bool:
    """Return whether a function of the program, or of a debugger, was given the frame or code that it interrupts. For
    libraries, only functions with the signature of signal handlers are accepted: PyTorch's process launcher has one."""
    for (outer, _), (inner, _) in zip(frames, frames[1:]):
        name = _root(inner.f_globals.get("__name__"))
        if name in _DEBUGGERS or not _is_of_library(name):
            # ``def handler(number, frame)`` gets the interrupted frame, a monitoring callback its code. A function that
            # asks for its own frame may have passed it on itself.
            if not _has_its_own_frame(outer) and any(
                value is outer or value is outer.f_code for value in _arguments(inner)
            ):
                return True
        elif name != _PACKAGE and "frame" in inner.f_code.co_varnames[: inner.f_code.co_argcount]:
            values = list(_arguments(inner))
            if any(isinstance(number, int) and value is outer for number, value in zip(values, values[1:])):
                return True
    return False


def _has_its_own_frame(frame: FrameType) -> bool:
    """Return whether a function of the program may itself have passed its frame to another one."""
    by_itself = not _OWN_FRAME.isdisjoint(frame.f_code.co_names)
    return by_itself and not _is_of_library(_root(frame.f_globals.get("__name__")))


def _arguments(frame: FrameType) -> Iterator[object]:
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    known = frame.f_locals
    for name in code.co_varnames[:count]:
        yield known.get(name)
    if code.co_flags & 0x04:  # *args
        values = known.get(code.co_varnames[count])
        yield from values if isinstance(values, tuple) else ()


@functools.lru_cache(maxsize=None)
def _signal_numbers() -> Tuple[int, ...]:
    return tuple(map(int, signal.valid_signals()))


def _signal_handlers() -> List[CodeType]:
    """Return the code of all installed handlers, and of what they wrap."""
    found: List[CodeType] = []
    for number in _signal_numbers():
        handler: object = getsignal(number)
        for _ in range(10 if callable(handler) else 0):
            if isinstance(handler, functools.partial):
                handler = handler.func
            handler = getattr(handler, "__func__", handler)
            called = handler if hasattr(handler, "__code__") else vars(type(handler)).get("__call__")
            code = getattr(called, "__code__", None)
            if isinstance(code, CodeType):
                found.append(code)
            handler = getattr(handler, "__wrapped__", None)
            if handler is None:
                break
    return found


def _is_sent(error: BaseException, frames: List[Tuple[FrameType, int]]) -> bool:
    """Return whether ``error`` was raised where no instruction raises it: another thread has sent it."""
    if not frames or not isinstance(error, Exception):
        return False
    frame, offset = frames[-1]
    if _is_of_library(_root(type(error).__module__)):
        in_library = _is_of_library(_root(frame.f_globals.get("__name__")))
        # A library's time limit sends ``TimeoutError`` or the like; anywhere else the program may have raised it.
        possible = in_library and not error.args and type(error).__name__ in _LIMITS
    else:
        # Libraries for time limits send types, of which Python makes instances.
        possible = not error.args or _needs_no_arguments(type(error))
    if not possible or not _looks_for_what_is_sent(frame.f_code, offset):
        return False
    return not _is_made_in_c(type(error)) and not (len(frames) > 1 and _is_thrown(frame.f_code, offset, *frames[-2]))


def _needs_no_arguments(kind: Type[BaseException]) -> bool:
    """Return whether an instance that is made without arguments may set its own, such as a message."""
    made_by = getattr(kind, "__init__", None)
    code, defaults = getattr(made_by, "__code__", None), getattr(made_by, "__defaults__", None)
    return isinstance(code, CodeType) and code.co_argcount - len(defaults or ()) <= 1


def _looks_for_what_is_sent(code: CodeType, offset: int) -> bool:
    """Return whether the interpreter may raise a pending exception at this instruction."""
    names = {each.offset: each.opname for each in dis.get_instructions(code)}
    name = names.get(offset, "")  # before the first instruction it is negative
    # 3.11+: pending exceptions are raised at these instructions only; before, at any that does not raise itself.
    if "RESUME" in names.values():  # since 3.11
        return any(part in name for part in _CHECKED)
    return name not in _RAISING


def _is_thrown(code: CodeType, offset: int, caller: FrameType, called_at: int) -> bool:
    """Return whether a generator with this code most likely received the exception by ``throw``."""
    if not code.co_flags & _GENERATOR or "throw" not in caller.f_code.co_names:
        return False
    names = {each.offset: each.opname for each in dis.get_instructions(code)}
    at_call = any(each.offset == called_at and "CALL" in each.opname for each in dis.get_instructions(caller.f_code))
    name = names.get(offset, "RESUME")
    return at_call and any(part in name for part in ("YIELD", "RESUME"))


def _is_made_in_c(kind: Type[BaseException]) -> bool:
    """Return whether an extension module has this type: its functions raise it."""
    root = _root(kind.__module__)
    for name, module in list(sys.modules.items()):
        if _root(name) == root and issubclass(type(module), ModuleType):
            namespace = namespace_of(module)  # a lazy module would be loaded
            path = str(namespace.get("__file__") or "")
            if namespace.get(kind.__name__) is kind and path.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
                return True
    return False


def _root(module: object) -> str:
    return str(module).partition(".")[0]


@functools.lru_cache(maxsize=None)
def _is_of_library(name: str) -> bool:
    """Return whether a module of this name belongs to the standard library, to PyTorch or to depyf."""
    if name in ("torch", "functorch", _PACKAGE) or name in sys.builtin_module_names:
        return True
    if name in getattr(sys, "stdlib_module_names", ()):  # since 3.10
        return True
    path = namespace_of(sys.modules.get(name)).get("__file__")
    path = path if isinstance(path, str) else ""
    rest = path[len(_LIBRARY) :] if path.startswith(_LIBRARY) else ""
    return bool(rest) and not rest.startswith(("site-packages", "dist-packages"))
