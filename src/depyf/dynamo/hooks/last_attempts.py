"""Read what became of the last compilation of a code object, from the metrics that PyTorch keeps of the last 64.

A module of its own: these metrics are the only record of a failed compilation that exists without an open session.
"""

from __future__ import annotations

from types import CodeType
from typing import Callable, Optional, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.hooks import private_names


@dataclass(frozen=True)
class Attempt:
    """The end of a compilation. ``error`` is the class of the exception, empty if there was none; ``reason`` the first
    line of its message, ``location`` the user's file and line, where PyTorch reports them.
    """

    error: str
    reason: str
    location: Optional[Tuple[str, int]]


def last_attempt(code: CodeType) -> Optional[Attempt]:
    """Return how the last compilation of ``code`` ended; None if PyTorch has no record of one."""
    wanted = (code.co_name, code.co_filename, code.co_firstlineno)
    for each in reversed(list(private_names.COMPILATION_METRICS.find() or ())):
        if tuple(getattr(each, name, None) for name in ("co_name", "co_filename", "co_firstlineno")) == wanted:
            file, line = (getattr(each, f"fail_user_frame_{name}", None) for name in ("filename", "lineno"))
            location = (str(file), int(line)) if file and line else None
            reason = first_line(str(getattr(each, "fail_reason", None) or ""))
            return Attempt(str(getattr(each, "fail_type", None) or "").rpartition(".")[2], reason, location)
    return None


def attempts_kept() -> Callable[[], None]:
    """Return a function that removes the records of the compilations that follow, and restores PyTorch's counters:
    compilations of depyf's are not the program's. What another thread compiles and counts meanwhile is lost."""
    before = list(private_names.COMPILATION_METRICS.find() or ())
    counted = {group: dict(counts) for group, counts in dict(private_names.COUNTERS.find() or {}).items()}

    def restore() -> None:
        records = private_names.COMPILATION_METRICS.find()
        if records is not None:
            records.clear()
            records.extend(before)  # also those that later ones have pushed out
        counters = private_names.COUNTERS.find()
        # In place: programs hold the counters and their groups.
        for group in {*counted, *(counters or ())} if counters is not None else ():
            before_it, now = counted.get(group, {}), counters[group]
            for name in [name for name in now if name not in before_it]:
                del now[name]
            dict.update(now, before_it)
            if group not in counted:
                del counters[group]

    return restore


def first_line(message: str) -> str:
    """Return the first line of a message, with the second if the first ends in a colon (``backend='f' raised:``)."""
    lines = message.strip().split("\n")
    return " ".join(lines[:2] if lines[0].endswith(":") else lines[:1])
