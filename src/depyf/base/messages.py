"""Send every message of depyf to the user: log records, lines on the error stream, text on the output.

A message must not change what the program does. The error stream may be closed or missing, and a handler, filter or
record factory of the program, or its replacement of ``print``, may raise: then only the message is lost. Exceptions
from outside are passed on (``depyf.base.asynchronous``).
"""

from __future__ import annotations

import logging
import os
import sys
from types import TracebackType
from typing import Any, Collection, Optional, TextIO, Tuple, Type, Union

from depyf.base.asynchronous import suppressed_all, synchronous
from depyf.base.own_builtins import keep_builtins
from depyf.base.write_signals import without_write_signals

keep_builtins(globals())

LOGGER = "depyf"
_logger = logging.getLogger(LOGGER)

ExcInfo = Union[None, BaseException, Tuple[Type[BaseException], BaseException, Optional[TracebackType]]]


def log(level: int, message: str, *args: object, exc_info: ExcInfo = None, logger: str = "") -> None:
    """Log ``message % args`` on the logger ``depyf``, or on another one with this name."""
    try:
        with without_write_signals():
            chosen = logging.getLogger(logger) if logger else _logger
            chosen.log(level, message, *args, exc_info=exc_info, stacklevel=2)
    except synchronous():
        pass


def warn(message: str, *args: object) -> None:
    """Log a warning on the logger ``depyf``."""
    log(logging.WARNING, message, *args)


def chosen_word(given: Optional[str], option: str, variable: str, words: Tuple[str, str], otherwise: str) -> str:
    """Return which of two words is chosen for an option: the word ``given``, or the word in the environment's
    ``variable``; empty without one.

    Raises ``ValueError`` for another word that is given. Another word in the environment is reported, with what applies
    ``otherwise``, and chooses none.
    """
    if given is not None:
        if given not in words:
            raise ValueError(f"{option}={given!r}: depyf knows {words[0]!r} and {words[1]!r}")
        return given
    chosen = os.environ.get(variable, "")
    if chosen and chosen not in words:
        warn("%s=%s is neither %s nor %s: %s", variable, chosen, *words, otherwise)
    return chosen if chosen in words else ""


def describe(error: BaseException) -> str:
    """Return ``Type: message`` of an exception whose own ``__str__`` may raise."""
    with suppressed_all():
        return f"{type(error).__name__}: {error}"
    return f"{type(error).__name__} (its message can't be shown)"


def cut(text: str, limit: int, end: str = "...") -> str:
    """Return ``text``, or its start with ``end`` where it has more than ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - len(end)] + end


def listed(names: Collection[str], most: int) -> str:
    """Return ``a, b and 3 more``: the first ``most`` names, and the number of the others."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(list(names)[:most]) + more


def takes_escapes(stream: Optional[TextIO]) -> bool:
    """Return whether a stream is a terminal whose user has not asked for plain text (https://no-color.org)."""
    try:
        is_terminal = stream is not None and stream.isatty()
    except synchronous():  # closed
        return False
    return is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def write(stream: Any, text: str) -> bool:
    """Write ``text`` to a stream, which may be closed or None; return whether that succeeded."""
    try:
        with without_write_signals():
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


def duration(seconds: Optional[float]) -> str:
    """Return a time with its unit, three digits; empty for None."""
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            digits = max(0, 2 - len(str(int(seconds / size))) + 1)
            return f"{seconds / size:.{digits}f} {unit}"
    return f"{seconds * 1e9:.0f} ns"
