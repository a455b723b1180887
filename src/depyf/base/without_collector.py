"""Pause the cyclic garbage collector: in the decompiler, and where a session writes its files."""

from __future__ import annotations

import contextlib
import gc
from typing import Iterator

from depyf.base.own_builtins import keep_builtins
from depyf.base.restoring import restoring

keep_builtins(globals())


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Pause the cyclic garbage collector. With hundreds of thousands of small live objects its passes cost more than
    the work, and more with every instruction."""
    if not gc.isenabled():
        yield
        return
    with restoring(gc.enable) as again, again:
        gc.disable()
        yield
