"""Torch's reasons for not using CUDA graphs: in its metrics while it compiles, only in its log while code runs."""

from __future__ import annotations

import functools
import logging
import time
from typing import List

from depyf.dynamo.capture.session import Receivers
from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.attribution import current_compile_id
from depyf.dynamo.hooks.patching import Undo, registered
from depyf.dynamo.hooks.safely import safely
from depyf.torch_trace.cudagraphs import SKIPPED, is_skip
from depyf.torch_trace.events import Event

_LOGGERS = ("__cudagraphs", "__perf_hints")
"""Of Inductor's, the later one is what torch up to 2.4 uses."""


def watch_cudagraphs(receivers: Receivers) -> List[Undo]:
    """Start to record messages about skipped CUDA graphs in every session that ``receivers`` returns."""

    @safely("noting skipped CUDA graphs")
    def note(record: logging.LogRecord) -> None:
        message = record.getMessage()
        if not is_skip(message):
            return
        event = Event(SKIPPED, current_compile_id(), 0, None, message, time.time())
        for session in receivers():
            session.add(event)

    def filter_(record: logging.LogRecord) -> bool:
        note(record)
        return True

    undo: List[Undo] = []
    for logger in [
        logging.getLogger(f"{each.module}.{name}") for each in private_names.CUDAGRAPH_LOGGERS for name in _LOGGERS
    ]:
        undo.append(registered(functools.partial(logger.removeFilter, filter_)))
        logger.addFilter(filter_)
    return undo
