"""Send every message of depyf's to the user: log records, lines on the error stream, text on the output.

A message must not change what the program does. The error stream may be closed or missing, a handler, filter or record
factory of the program's may raise, and so may what stands in the place of ``print``: the message is lost then, and
nothing else. Only what comes from outside passes (``depyf.asynchronous``).
"""

from __future__ import annotations

import logging
import sys
from types import TracebackType
from typing import Any, Optional, Tuple, Type, Union

from depyf.asynchronous import synchronous

_logger = logging.getLogger("depyf")

ExcInfo = Union[None, BaseException, Tuple[Type[BaseException], BaseException, Optional[TracebackType]]]


def log(level: int, message: str, *args: object, exc_info: ExcInfo = None) -> None:
    """Log ``message % args`` on the logger ``depyf``."""
    try:
        _logger.log(level, message, *args, exc_info=exc_info, stacklevel=2)
    except synchronous():
        pass


def warn(message: str, *args: object) -> None:
    """Log a warning on the logger ``depyf``."""
    log(logging.WARNING, message, *args)


def write(stream: Any, text: str) -> bool:
    """Write ``text`` to a stream, which may be closed or None; return whether that went well."""
    try:
        stream.write(text)
        stream.flush()
        return True
    except synchronous():
        return False


def error_line(line: object) -> None:
    """Write a line to the error stream."""
    write(sys.stderr, f"{line}\n")


def show(text: str) -> None:
    """Print ``text`` to the output, as the program's own ``print`` does."""
    try:
        print(text)
    except synchronous():
        pass
