"""Stop pdb's tracing before the interpreter shuts down. It fails there, as its own modules have been emptied: code that
still runs (``__del__``, callbacks of weak references) then prints "Exception ignored in ... 'NoneType' object has no
attribute 'path'".
"""

from __future__ import annotations

import atexit
import bdb
import sys
from typing import List

_TOOL_OF_BDB = "bdbtracer"
"""The name under which ``bdb`` uses ``sys.monitoring``, as pdb makes it do since Python 3.14."""

_registered: List[bool] = []
"""Not empty once it is registered."""


def end_tracing_at_exit() -> None:
    """Make pdb (or another debugger based on ``bdb``) stop tracing when the interpreter starts to shut down. Exit
    handlers that were registered before are not traced: call this early.
    """
    if not _registered:
        atexit.register(_end_tracing)
        _registered.append(True)


def _end_tracing() -> None:
    if isinstance(getattr(sys.gettrace(), "__self__", None), bdb.Bdb):
        sys.settrace(None)
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None and monitoring.get_tool(monitoring.DEBUGGER_ID) == _TOOL_OF_BDB:
        monitoring.free_tool_id(monitoring.DEBUGGER_ID)
