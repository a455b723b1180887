"""The structured trace of torch, received in process as a stream of events.

torch reports every stage of a compilation on the logger ``torch.__trace``. A handler there sees all of it with no
environment variable and also when the compiler caches are warm.
"""

from __future__ import annotations

import logging
from typing import Callable

from depyf.asynchronous import synchronous
from depyf.dynamo import compat
from depyf.dynamo.patching import Undo, registered
from depyf.dynamo.safely import report_failure
from depyf.torch_trace.events import Event, event_of

TRACE_LOGGER = "torch.__trace"


class TraceHandler(logging.Handler):
    """Turns trace records into events and hands each to ``receive``, on the thread that compiles."""

    def __init__(self, receive: Callable[[Event], object]) -> None:
        super().__init__(logging.DEBUG)
        self._receive = receive

    def emit(self, record: logging.LogRecord) -> None:
        try:
            event = event_of(record.metadata, record.payload, record.created)  # type: ignore[attr-defined]
            if event is not None:
                self._receive(event)
        except synchronous() as error:
            report_failure("reading torch's structured trace", error)

    def handle(self, record: logging.LogRecord) -> bool:
        """Without the handler's lock: receiving may take long (files), is thread-safe itself, and compiling threads
        shall not wait."""
        self.emit(record)
        return True


def listen(receive: Callable[[Event], object]) -> Undo:
    """Send every event to ``receive`` from now on; answers the function that ends it."""
    compat.find("torch._logging", "_internal")
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

    registered(stop)
    listening = True
    logger.handlers.insert(0, handler)
    logger.setLevel(logging.DEBUG)
    return stop
