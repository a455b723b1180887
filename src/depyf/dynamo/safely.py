"""The promise that no exception of depyf reaches the user's program."""

from __future__ import annotations

import functools
import logging
from typing import Callable, Optional, Set, TypeVar

from depyf.dynamo import compat

logger = logging.getLogger("depyf")

T = TypeVar("T")

_told: Set[str] = set()


def report_failure(doing: str, error: BaseException) -> None:
    """Log one message for each kind of failure (what was being done, type of the exception); the rest are debug."""
    kind = f"{doing}: {type(error).__name__}"
    level = logging.DEBUG if kind in _told else logging.WARNING
    _told.add(kind)
    detail = describe(error)
    logger.log(level, "%s failed (%s); your program goes on without it", doing, detail)
    logger.debug("%s failed", doing, exc_info=error)


def describe(error: BaseException) -> str:
    """``Type: message`` of an exception whose own ``__str__`` may raise."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return f"{type(error).__name__} (its message can't be shown)"


def safely(doing: str) -> Callable[[Callable[..., T]], Callable[..., Optional[T]]]:
    """Decorator: an exception in the function is reported once under ``doing`` and answered with ``None``.

    Only ``KeyboardInterrupt`` and ``SystemExit`` pass: they are the user's. Dynamo is off inside: a hook may be called
    while compiled code runs (backward graphs are compiled late), and our frames would be traced like the user's.
    """

    def decorate(function: Callable[..., T]) -> Callable[..., Optional[T]]:
        @functools.wraps(function)
        def wrapper(*args: object, **kwargs: object) -> Optional[T]:
            before = compat.set_eval_frame(None)
            try:
                return function(*args, **kwargs)
            except Exception as error:
                report_failure(doing, error)
                return None
            finally:
                compat.set_eval_frame(before)

        return wrapper

    return decorate
