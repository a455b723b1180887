"""pdb keeps tracing until the interpreter is gone, and fails there: by then its own modules have been emptied.

What still runs at that time (``__del__``, callbacks of weak references) then prints "Exception ignored in ...
'NoneType' object has no attribute 'path'".
"""

from __future__ import annotations

import atexit
import bdb
import sys
from typing import List

_registered: List[bool] = []
"""Not empty when it is: once is enough."""


def end_tracing_at_exit() -> None:
    """Make pdb (or another debugger made from ``bdb``) end its tracing when the interpreter begins to shut down.

    Exit handlers that were registered before are not traced: call it early.
    """
    if not _registered:
        atexit.register(_end_tracing)
        _registered.append(True)


def _end_tracing() -> None:
    if isinstance(getattr(sys.gettrace(), "__self__", None), bdb.Bdb):
        sys.settrace(None)
