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
import logging
import time
from typing import Callable, List, Mapping, Optional

from depyf.base.asynchronous import synchronous
from depyf.base.locks import Lock
from depyf.base.own_builtins import keep_builtins
from depyf.dynamo.hooks import compile_ids, private_names, torch_names
from depyf.dynamo.hooks.patching import Undo, registered, replace_everywhere
from depyf.dynamo.hooks.safely import report_failure
from depyf.torch_trace.events import BULKY, PHASE, UNREAD, Event, event_name, event_of
from depyf.torch_trace.metrics import READ_OF_PHASES

keep_builtins(globals())

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
            report_failure(_READING, error)

    def handle(self, record: logging.LogRecord) -> bool:
        """Emit without the handler's lock: receiving may take long (files) and is thread-safe, and compiling threads
        must not be blocked."""
        self.emit(record)
        return True


def listen(receive: Callable[[Event], object]) -> Undo:
    """Start to send every event to ``receive``; return the function that stops it."""
    private_names.LOGGING_INTERNAL.find()
    # Without the function that PyTorch reports with, failures of its reporting could not be kept out of compilations.
    reporting = private_names.TRACE_STRUCTURED
    if (reporting.find_or_report() if reporting.is_expected(torch_names.torch_version()) else reporting.find()) is None:
        return lambda: None
    logger = logging.getLogger(TRACE_LOGGER)
    handler = TraceHandler(receive)
    # Not addHandler: torch's own handler removes itself from the list while the first record is being dispatched, and
    # the handler after it is then skipped.

    def stop() -> None:
        with _lock:
            logger.removeHandler(handler)
            if any(isinstance(each, TraceHandler) for each in logger.handlers):
                return
            while _isolation:
                _isolation.pop()()
            while _level_before:
                if logger.level is _OUR_LEVEL:  # else the program has set another one meanwhile, which may be DEBUG
                    logger.setLevel(_level_before[-1])
                _level_before.pop()

    registered(stop)
    with _lock:
        logger.handlers.insert(0, handler)
        _isolate(logger)
        if logger.level is not _OUR_LEVEL:
            _level_before[:] = [logger.level]
            logger.setLevel(_OUR_LEVEL)
    return stop


_lock = Lock()


class _Level(int):
    """A level that is recognised by its identity: PyTorch may set DEBUG as well, and means to keep it."""


_OUR_LEVEL = _Level(logging.DEBUG)

_level_before: List[int] = []
"""The level of the trace's logger, while ours is set."""


_isolation: List[Undo] = []
"""The undo function of the wrapper around torch's own, while it is installed."""

_READING = "reading torch's structured trace"

_ADVICE = "PyTorch can't describe something of this program; depyf only asked it to"


def _isolate(logger: logging.Logger) -> None:
    """Keep failures of torch's reporting out of the compilation while only depyf listens."""
    original = private_names.TRACE_STRUCTURED.find()
    if original is None or _isolation or any(map(_is_the_programs, logger.handlers)):
        return
    pass_on: Callable[..., object] = functools.partial(_pass_on, logger, original)

    @functools.wraps(original)
    def trace_structured(*args: object, **kwargs: object) -> object:
        try:
            if any(map(_is_the_programs, logger.handlers)):
                return original(*args, **kwargs)
            return pass_on(*args, **kwargs)
        except synchronous() as error:
            if any(map(_is_the_programs, logger.handlers)):
                raise
            what = args[0] if args else kwargs.get("name")
            report_failure(f"having PyTorch report {what}", error, _ADVICE)
            return None

    _isolation.append(replace_everywhere(private_names.TRACE_STRUCTURED.name, original, trace_structured))


def _pass_on(
    logger: logging.Logger,
    original: Callable[..., object],
    name: str,
    metadata_fn: Callable[[], object] = dict,
    *,
    payload_fn: Callable[[], object] = lambda: None,
    **options: object,
) -> None:
    """Hand over what torch reports while only depyf listens. Torch's own record of it (``original``) takes several
    times as long, and what nobody reads is not made.
    """
    if name in BULKY:
        return
    if name == PHASE:
        data = payload_fn()
        if isinstance(data, dict) and data.get("ph") in ("B", "E"):
            _send(logger, PHASE, {key: data[key] for key in READ_OF_PHASES if key in data}, None, options)
        return
    meta = metadata_fn()
    event = event_name(name, meta)
    if event in UNREAD or event == private_names.AOT_CACHE.module:  # its settings
        return
    payload = payload_fn()
    if payload is None or isinstance(payload, str):
        _send(logger, event, meta, payload, options)
    else:  # torch writes it as JSON
        original(name, lambda: meta, payload_fn=lambda: payload, **options)


def _send(
    logger: logging.Logger, name: str, meta: object, payload: Optional[str], options: Mapping[str, object]
) -> None:
    compile_id, attempt = (None, 0) if options.get("suppress_context") else compile_ids.current_trace_id()
    given = options.get("compile_id")
    if compile_id is None and given is not None and not options.get("suppress_context"):
        compile_id = str(given)
    event = Event(name, compile_id, attempt, meta, payload, time.time())
    for handler in logger.handlers:
        if isinstance(handler, TraceHandler):
            try:
                handler.receive(event)
            except synchronous() as error:
                report_failure(_READING, error)


def _is_the_programs(handler: logging.Handler) -> bool:
    """Return whether anything except depyf reads the trace; torch's own handler removes itself if it has nowhere to
    write to. Pytest adds handlers to every logger that does not propagate, and would print a line for each record below
    a test that fails.
    """
    if isinstance(handler, TraceHandler) or type(handler).__module__ == "_pytest.logging":
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
    """Return the table (text to number) that the structured trace abbreviates file names with."""
    return private_names.INTERN_TABLE.find() or {}
