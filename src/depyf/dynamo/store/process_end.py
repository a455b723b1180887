"""Exit handlers, however the process was started."""

from __future__ import annotations

import atexit
import multiprocessing
from multiprocessing import util
from typing import Callable


def at_process_end(function: Callable[[], None], *, priority: int) -> None:
    """Call ``function`` when this process or a forked child of it ends, highest priority first. A multiprocessing
    process ends by ``os._exit`` after its finalizers, which a forked one first clears.
    """

    def register_finalizer(_: object = None) -> None:
        util.Finalize(None, function, exitpriority=priority)

    atexit.register(function)
    util.register_after_fork(function, register_finalizer)
    if multiprocessing.parent_process() is not None:
        register_finalizer()
