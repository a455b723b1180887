"""Exceptions from outside are distinguished from those of depyf's own work, whatever their type."""

from __future__ import annotations

import ctypes
import functools
import importlib.machinery
import json
import os
import re
import signal
import sys
import threading
from types import FrameType, ModuleType
from typing import Any, Callable, Dict, Iterator, List, Optional, Type

import pytest

from depyf.base import asynchronous
from depyf.base.asynchronous import is_asynchronous, suppressed, synchronous
from depyf.base.own_package import place_of
from depyf.base.restoring import restoring
from depyf.base.without_warnings import without_warnings


class Limit(Exception):
    """A program's own."""


class LimitInWords(Exception):
    """As rq's time limit for threads: a type can be sent, no instance, and so it makes its message itself."""

    def __init__(self, seconds: int = 1, *args: object) -> None:
        super().__init__(f"more than {seconds} seconds", *args)


TYPES = [Limit, Exception, TimeoutError, ValueError, OSError, KeyError, StopIteration, ZeroDivisionError]

WORK: Dict[str, Any] = {"__name__": "depyf.work"}
exec(
    """
def loop(begin):
    begin()
    total = 0
    for i in range(100000):
        total += i
    return total

def call(function, *arguments):
    return function(*arguments)

def wrap(begin):
    try:
        loop(begin)
    except Exception as error:
        raise ValueError("made of it") from error

def divide():
    return 1 / 0

def fail():
    raise Exception

def lookup():
    return {}[0]
""",
    WORK,
)


def caught_in(function: Callable[..., object], *arguments: object) -> BaseException:
    try:
        WORK["call"](function, *arguments)
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


class _Handlers:
    def __init__(self, kind: Type[BaseException]) -> None:
        self.kind = kind

    def method(self, number: int, frame: Optional[FrameType]) -> None:
        raise self.kind

    def __call__(self, *arguments: object) -> None:
        raise self.kind

    def through_others(self, number: int, frame: Optional[FrameType]) -> None:
        self._raise()

    def _raise(self) -> None:
        raise self.kind("too late")

    def without_frame(self, number: int, frame: Optional[FrameType]) -> None:
        del number, frame
        raise self.kind


@pytest.fixture(autouse=True)
def _handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("how", ["method", "__call__", "through_others", "without_frame", "partial", "object"])
def test_what_a_signal_handler_raises(kind: Type[BaseException], how: str) -> None:
    handlers = _Handlers(kind)
    if how == "partial":
        handler: Any = functools.partial(lambda value, number, frame: handlers._raise(), 1)
    else:
        handler = handlers if how == "object" else getattr(handlers, how)
    signal.signal(signal.SIGINT, handler)
    for function in (WORK["loop"], WORK["wrap"]):
        assert is_asynchronous(caught_in(function, lambda: signal.raise_signal(signal.SIGINT)))


def test_a_signal_handler_of_a_librarys() -> None:
    """As ``torch.distributed.elastic`` has one, which raises ``SignalException``."""
    namespace: Dict[str, Any] = {"__name__": "torch.distributed.elastic.multiprocessing.api"}
    exec("def handler(signum, frame):\n    raise OSError(signum)", namespace)
    signal.signal(signal.SIGINT, namespace["handler"])
    assert is_asynchronous(caught_in(WORK["loop"], lambda: signal.raise_signal(signal.SIGINT)))


@pytest.mark.parametrize("kind", [Limit, LimitInWords, Exception, TimeoutError, RuntimeError])
def test_what_another_thread_sends(kind: Type[BaseException]) -> None:
    send = ctypes.pythonapi.PyThreadState_SetAsyncExc
    thread, exception = ctypes.c_ulong(threading.get_ident()), ctypes.py_object(kind)
    assert is_asynchronous(caught_in(WORK["loop"], functools.partial(send, thread, exception)))


def test_what_a_trace_function_raises() -> None:
    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code is WORK["divide"].__code__:
            raise Limit
        return None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        error = caught_in(WORK["divide"])
    finally:
        sys.settrace(before)
    assert isinstance(error, Limit)
    assert is_asynchronous(error)


class _Hostile:
    def __repr__(self) -> str:
        raise Limit

    def __eq__(self, other: object) -> bool:
        raise Limit("compared")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    "function",
    [
        WORK["divide"],
        WORK["fail"],
        WORK["lookup"],
        functools.partial(WORK["call"], repr, _Hostile()),
        functools.partial(WORK["call"], _Hostile().__eq__, 1),
        functools.partial(WORK["call"], int, "x"),
        functools.partial(WORK["call"], next, iter(())),
        functools.partial(WORK["call"], open, "/no/such/file"),
        functools.partial(WORK["call"], sys._getframe, 100000),
        functools.partial(WORK["wrap"], WORK["divide"]),
    ],
)
def test_what_began_in_our_work(function: Callable[[], object]) -> None:
    assert not is_asynchronous(caught_in(function))


def test_what_the_program_was_handling_before_it_called_us() -> None:
    signal.signal(signal.SIGINT, _Handlers(Limit).method)
    try:
        WORK["loop"](lambda: signal.raise_signal(signal.SIGINT))
    except Limit:
        error = caught_in(WORK["divide"])
    assert isinstance(error.__context__, Limit)
    assert not is_asynchronous(error)


def test_clauses() -> None:
    passed: List[str] = []
    signal.signal(signal.SIGINT, _Handlers(TimeoutError).method)
    for guarded in (_with_clause, _with_suppressed):
        try:
            guarded(WORK["loop"], lambda: signal.raise_signal(signal.SIGINT))
        except TimeoutError:
            passed.append(guarded.__name__)
        guarded(open, "/no/such/file")
    assert passed == ["_with_clause", "_with_suppressed"]


def _with_clause(function: Callable[..., object], *arguments: object) -> None:
    try:
        function(*arguments)
    except synchronous(OSError):
        pass


def _with_suppressed(function: Callable[..., object], *arguments: object) -> None:
    with suppressed(OSError):
        function(*arguments)


class Hostile:
    """A handler whose attributes can't be read."""

    def __call__(self, *arguments: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"{name} can't be had")


def test_objects_that_can_not_be_looked_at_do_not_replace_the_exception() -> None:
    before = signal.signal(signal.SIGUSR1, Hostile())
    try:
        with suppressed(KeyError):
            {}["what our work has raised"]
    finally:
        signal.signal(signal.SIGUSR1, before)


class Falsy(Exception):
    def __bool__(self) -> bool:
        raise RuntimeError("has no truth")


def _chained() -> None:
    try:
        raise Falsy
    except Falsy as cause:
        raise KeyError("ours") from cause


def test_an_exception_without_truth_is_a_cause_like_others() -> None:
    assert not is_asynchronous(caught_in(_chained))


def test_what_a_function_in_c_raises_with_arguments_is_no_time_limit() -> None:
    """As numpy's own exceptions are: their type is neither the standard library's nor ours."""
    kind = type("CoreError", (Exception,), {"__module__": "numpy_core"})
    error = caught_in(functools.partial(functools.reduce, functools.partial(_thrown, kind), [1, 2]))
    assert type(error) is kind
    assert not is_asynchronous(error)


def _set_none(kind: Type[BaseException]) -> None:
    """Have a function in C raise ``kind`` without arguments, in the frame that calls it."""
    ctypes.pythonapi.PyErr_SetNone(ctypes.py_object(kind))


def test_a_function_in_c_that_raises_its_own_type_without_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """As pydantic's do: ``PydanticOmit`` has no arguments, and no ``raise`` has raised it."""
    kind = type("Omit", (Exception,), {"__module__": "validators"})
    compiled = ModuleType("validators._compiled")
    compiled.__file__ = f"/somewhere/_compiled{importlib.machinery.EXTENSION_SUFFIXES[0]}"
    vars(compiled)["Omit"] = kind
    monkeypatch.setitem(sys.modules, "validators._compiled", compiled)
    assert not is_asynchronous(caught_in(_set_none, kind))


def test_a_function_in_c_that_raises_a_type_written_in_python_is_in_doubt_and_passes() -> None:
    """What another thread sends looks the same: the same type, no arguments, at a call."""
    assert is_asynchronous(caught_in(_set_none, Limit))


def _yields() -> Iterator[int]:
    yield 1
    yield 2


def _throw(kind: Type[BaseException], started: bool) -> None:
    generator: Any = _yields()
    if started:
        next(generator)
    generator.throw(kind)


@pytest.mark.parametrize("started", [False, True])
def test_what_is_thrown_into_a_generator(started: bool) -> None:
    assert not is_asynchronous(caught_in(_throw, Limit, started))


def _sent_to_a_generator(send: Callable[[], object]) -> None:
    for _ in _sends(send):
        pass


def _sends(send: Callable[[], object]) -> Iterator[int]:
    yield 1
    send()
    yield 2


def test_what_another_thread_sends_to_a_generator() -> None:
    send = ctypes.pythonapi.PyThreadState_SetAsyncExc
    thread, exception = ctypes.c_ulong(threading.get_ident()), ctypes.py_object(Limit)
    assert is_asynchronous(caught_in(_sent_to_a_generator, functools.partial(send, thread, exception)))


def _chain(length: int) -> None:
    if not length:
        raise ZeroDivisionError
    try:
        _chain(length - 1)
    except Exception as error:
        raise ValueError from error


def test_handlers_are_read_once_for_a_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    read: List[int] = []
    getsignal = asynchronous.getsignal
    monkeypatch.setattr(asynchronous, "getsignal", lambda number: (read.append(number), getsignal(number))[1])
    assert not is_asynchronous(caught_in(_chain, 20))
    assert len(read) == len(set(read)) > 0


def _thrown(kind: Type[BaseException], *values: object) -> None:
    (_ for _ in ()).throw(kind("with arguments"))


class Unreadable(Exception):
    """Hides what Python knows of it."""

    @property  # type: ignore[misc, override]
    def __traceback__(self) -> Any:
        raise ValueError("no traceback")

    __context__ = __cause__ = __traceback__  # type: ignore[assignment]


def test_an_exception_that_hides_its_traceback_arrives() -> None:
    def handler(number: int, frame: Any) -> None:
        raise Unreadable("time is up")

    before = signal.signal(signal.SIGUSR1, handler)
    arrived = False
    try:
        with suppressed(Exception):
            signal.raise_signal(signal.SIGUSR1)
    except Unreadable:
        arrived = True
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert arrived


def _given_a_frame(frame: FrameType) -> None:
    raise ValueError("a callback's own")


def _given_code(code: object) -> None:
    raise ValueError("a callback's own")


def _gives_its_frame() -> None:
    _given_a_frame(sys._getframe())


def _gives_its_code() -> None:
    _given_code(_gives_its_code.__code__)


@pytest.mark.parametrize("callback", [_gives_its_frame, _gives_its_code])
def test_a_callback_that_gives_its_own_frame_to_a_function_is_not_interrupted(callback: Callable[[], None]) -> None:
    assert not is_asynchronous(caught_in(callback))


def _knows_its_frame_and_is_interrupted() -> None:
    sys._getframe()
    signal.raise_signal(signal.SIGUSR1)


def test_a_signal_handler_is_known_where_a_callback_finds_its_own_frame() -> None:
    before = signal.signal(signal.SIGUSR1, _raises_limit)
    try:
        assert is_asynchronous(caught_in(_knows_its_frame_and_is_interrupted))
    finally:
        signal.signal(signal.SIGUSR1, before)


def _raises_limit(number: int, frame: Optional[FrameType]) -> None:
    raise ValueError("time is up")


def test_a_failure_is_judged_where_a_test_has_replaced_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """What judges and reports a failure must not fail by the same function."""
    asynchronous._is_of_library.cache_clear()

    def forbidden(*args: object, **kwargs: object) -> None:
        raise AssertionError("no files in this test")

    try:
        os.path.join("a", json.dumps({object(): 1}))
    except TypeError as raised:
        error = raised
    with monkeypatch.context() as patch:
        for name in ("join", "relpath", "abspath", "realpath", "exists", "dirname"):
            patch.setattr(os.path, name, forbidden)
        for name in ("getpid", "getcwd", "stat", "open"):
            patch.setattr(os, name, forbidden)
        with without_warnings():
            judged, place = is_asynchronous(error), place_of(error)
    assert (judged, place) == (False, "depyf")


def test_the_place_of_a_failure_is_a_path_in_the_package() -> None:
    with pytest.raises(TypeError) as raised:
        restoring(3).__exit__()  # type: ignore[arg-type]
    assert re.fullmatch(r"depyf/base/restoring\.py:\d+", place_of(raised.value))
