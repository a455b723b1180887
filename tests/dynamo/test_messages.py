"""A message of depyf changes nothing: the program ends as it does without depyf, even if the message is lost."""

from __future__ import annotations

import builtins
import contextlib
import io
import logging
import sys
import warnings
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.base import messages  # noqa: E402
from depyf.dynamo.dump.full_code import writing as full_code  # noqa: E402
from depyf.dynamo.hooks import safely, torch_names  # noqa: E402


class Refused(Exception):
    """What the program's own logging raises."""


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise Refused


@contextlib.contextmanager
def closed_stderr() -> Iterator[None]:
    stream = io.StringIO()
    stream.close()
    with contextlib.redirect_stderr(stream):
        yield


@contextlib.contextmanager
def no_stderr() -> Iterator[None]:
    with contextlib.redirect_stderr(None):
        yield


@contextlib.contextmanager
def raising_stderr() -> Iterator[None]:
    class Stream(io.StringIO):
        write = _refuse

    with contextlib.redirect_stderr(Stream()):
        yield


@contextlib.contextmanager
def raising_handler() -> Iterator[None]:
    class Handler(logging.Handler):
        emit = _refuse

    handler = Handler()
    logging.getLogger("depyf").addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger("depyf").removeHandler(handler)


@contextlib.contextmanager
def raising_filter() -> Iterator[None]:
    logging.getLogger("depyf").addFilter(_refuse)
    try:
        yield
    finally:
        logging.getLogger("depyf").removeFilter(_refuse)


@contextlib.contextmanager
def raising_factory() -> Iterator[None]:
    """Of log records: for those of depyf's, as torch makes records as well."""
    before = logging.getLogRecordFactory()

    def factory(name: str, *args: Any, **kwargs: Any) -> logging.LogRecord:
        if name == "depyf":
            raise Refused
        return before(name, *args, **kwargs)

    logging.setLogRecordFactory(factory)
    try:
        yield
    finally:
        logging.setLogRecordFactory(before)


@contextlib.contextmanager
def warnings_as_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("default", module="torch")
        yield


@contextlib.contextmanager
def broken_print() -> Iterator[None]:
    """For depyf: Dynamo looks at the module of the built-in functions."""
    before = builtins.print

    def refusing(*args: Any, **kwargs: Any) -> None:
        if sys._getframe(1).f_globals["__name__"].startswith("depyf"):
            raise Refused
        before(*args, **kwargs)

    builtins.print = refusing
    try:
        yield
    finally:
        builtins.print = before


FAULTS = [
    closed_stderr,
    no_stderr,
    raising_stderr,
    raising_handler,
    raising_filter,
    raising_factory,
    warnings_as_errors,
    broken_print,
]


def function(x: Any) -> Any:
    y = x.sin() + 1
    torch._dynamo.graph_break()
    return y * 2


def call() -> List[float]:
    result: List[float] = torch.compile(function, backend="eager")(torch.ones(3)).tolist()
    return result


def plain(directory: Path) -> List[float]:
    return call()


def unwritable(directory: Path) -> List[float]:
    (directory / "file").write_text("")
    with depyf.prepare_debug(directory / "file" / "dump"):
        return call()


def nothing_compiled(directory: Path) -> List[float]:
    with depyf.prepare_debug(directory):
        pass
    return call()


def a_bug(directory: Path) -> List[float]:
    before = full_code._write_one
    full_code._write_one = _refuse
    try:
        with depyf.prepare_debug(directory):
            return call()
    finally:
        full_code._write_one = before


def lines_of_watch(directory: Path) -> List[float]:
    with depyf.watch():
        return call()


def a_callback(directory: Path) -> List[float]:
    with depyf.watch(_refuse):
        return call()


def a_missing_name(directory: Path) -> List[float]:
    torch_names.PrivateName("torch._dynamo", f"no_such_name_{id(directory)}", "nothing is lost").find_or_report()
    return call()


def pausing(directory: Path) -> List[float]:
    hook, sys.breakpointhook = sys.breakpointhook, lambda *_, **__: None
    try:
        with depyf.debug():
            pass
    finally:
        sys.breakpointhook = hook
    return call()


MESSAGES = [unwritable, nothing_compiled, a_bug, lines_of_watch, a_callback, a_missing_name, pausing]


def outcome(program: Callable[[Path], List[float]], fault: Any, directory: Path) -> Tuple[str, object]:
    torch._dynamo.reset()
    with fault():
        try:
            return "result", program(directory)
        except BaseException as error:
            return "exception", repr(error)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("program", MESSAGES)
def test_the_program_ends_as_it_does_without_depyf(
    program: Callable[[Path], List[float]], fault: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safely, "_reported", {})
    without = outcome(plain, fault, tmp_path)
    assert outcome(program, fault, tmp_path) == without
    assert without[0] == "result"


SENDERS: Dict[str, Callable[[], object]] = {
    "warn": lambda: messages.warn("%s", "text"),
    "log": lambda: messages.log(logging.ERROR, "text"),
    "error_line": lambda: messages.error_line("text"),
    "show": lambda: messages.show("text"),
    "write": lambda: messages.write(sys.stderr, "text"),
    "what can't be formatted": lambda: messages.warn("%d", "text"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("sender", SENDERS)
def test_nothing_escapes_what_sends_messages(sender: str, fault: Any) -> None:
    with fault():
        SENDERS[sender]()
