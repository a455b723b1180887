"""The structured trace of torch, received in process as a stream of events.

torch reports every stage of a compilation on the logger ``torch.__trace``. A handler there sees all of it with no
environment variable and also when the compiler caches are warm.

That makes torch format what it otherwise does not: guards, graphs, values of the program. An exception there would
break a compilation that succeeds without depyf, so it is reported as missing output instead; unless the program listens
itself (``TORCH_TRACE``), as it would fail anyway.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import logging
import time
from typing import Callable, List, Mapping

from depyf.asynchronous import synchronous
from depyf.dynamo.hooks import compile_ids, private_names, torch_names
from depyf.dynamo.hooks.patching import Undo, registered, replace_everywhere
from depyf.dynamo.hooks.safely import report_failure
from depyf.torch_trace.events import BULKY, PHASE, Event, event_of

TRACE_LOGGER = "torch.__trace"


class TraceHandler(logging.Handler):
    """Turns trace records into events and hands each to ``receive``, on the thread that compiles."""

    def __init__(self, receive: Callable[[Event], object]) -> None:
        super().__init__(logging.DEBUG)
        self.receive = receive

    def emit(self, record: logging.LogRecord) -> None:
        try:
            event = event_of(record.metadata, record.payload, record.created)  # type: ignore[attr-defined]
            if event is not None:
                self.receive(event)
        except synchronous() as error:
            report_failure("reading torch's structured trace", error)

    def handle(self, record: logging.LogRecord) -> bool:
        """Without the handler's lock: receiving may take long (files), is thread-safe itself, and compiling threads
        shall not wait.
        """
        self.emit(record)
        return True


def listen(receive: Callable[[Event], object]) -> Undo:
    """Start to send every event to ``receive``; return the function that stops it."""
    private_names.LOGGING_INTERNAL.find()
    logger = logging.getLogger(TRACE_LOGGER)
    handler = TraceHandler(receive)
    # Not addHandler: torch's own handler removes itself from the list while the first record is being dispatched, and
    # the handler after it is then skipped.
    level = logger.level
    listening = False

    def stop() -> None:
        nonlocal listening
        logger.removeHandler(handler)
        if listening and logger.level == logging.DEBUG:
            logger.setLevel(level)
        listening = False
        if not any(isinstance(each, TraceHandler) for each in logger.handlers):
            while _isolation:
                _isolation.pop()()

    registered(stop)
    listening = True
    logger.handlers.insert(0, handler)
    _isolate(logger)
    logger.setLevel(logging.DEBUG)
    return stop


_isolation: List[Undo] = []
"""The undo function of the wrapper around torch's own, while it is installed."""

_ADVICE = "PyTorch can't describe something of this program; depyf only asked it to"


def _isolate(logger: logging.Logger) -> None:
    """While only depyf listens, keep failures of torch's reporting out of the compilation."""
    original = private_names.TRACE_STRUCTURED.find()
    if original is None or _isolation or any(map(_is_the_programs, logger.handlers)):
        return

    @functools.wraps(original)
    def trace_structured(*args: object, **kwargs: object) -> object:
        what = args[0] if args else kwargs.get("name")
        try:
            if what in _SHORT and not any(map(_is_the_programs, logger.handlers)):
                _phase(logger, kwargs.get("payload_fn"))
                return None
            return original(*args, **kwargs)
        except synchronous() as error:
            if any(map(_is_the_programs, logger.handlers)):
                raise
            report_failure(f"having PyTorch report {what}", error, _ADVICE)
            return None

    _isolation.append(replace_everywhere(private_names.TRACE_STRUCTURED.name, original, trace_structured))


_READ_OF_PHASES = ("ph", "name", "ts", "pid", "tid")
_SHORT = frozenset({PHASE, *BULKY})
"""Frequent records: their unread parts are not made while only depyf listens."""


def _phase(logger: logging.Logger, payload: object) -> None:
    """Pass on the start or end of a phase, with the parts that are used; other frequent records are not used."""
    data = payload() if callable(payload) else None
    if not isinstance(data, dict) or data.get("ph") not in ("B", "E"):
        return
    compile_id, attempt = compile_ids.current_trace_id()
    text = json.dumps({key: data[key] for key in _READ_OF_PHASES if key in data})
    event = Event(PHASE, compile_id, attempt, {}, text, time.time())
    for handler in logger.handlers:
        if isinstance(handler, TraceHandler):
            handler.receive(event)


def _is_the_programs(handler: logging.Handler) -> bool:
    """Return whether anything except depyf reads the trace; torch's own handler removes itself if it has nowhere to
    write to.
    """
    if isinstance(handler, TraceHandler):
        return False
    return not (type(handler).__name__ == "LazyTraceHandler" and getattr(handler, "root_dir", None) is None)


@functools.lru_cache(maxsize=None)
def reports(event: torch_names.PrivateName) -> bool:
    """Return whether this torch has an event in its structured trace: the sending module's source names it. The module
    is read, not imported, which can take seconds. A module that can't be read is assumed to send it.
    """
    spec = importlib.util.find_spec(event.module)
    if spec is None or spec.origin is None:
        return True
    with open(spec.origin, encoding="utf-8") as file:
        return f'"{event.name}"' in file.read()


def interned_strings() -> Mapping[str, int]:
    """The table (text to number) that the structured trace abbreviates file names with."""
    return private_names.INTERN_TABLE.find() or {}
