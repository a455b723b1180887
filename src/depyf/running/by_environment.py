"""``DEPYF_WATCH=1`` in the environment: a program is watched with no change in it.

The file ``depyf_watch.pth``, which is installed beside the package, calls ``begin`` when Python starts.
"""

from __future__ import annotations

import atexit
import os
from typing import List

from depyf.running.torch_import import when_compiler_is_imported

VARIABLE = "DEPYF_WATCH"


_begun: List[bool] = []
"""Not empty when it watches: once is enough."""


def begin() -> None:
    """Watch this process from the moment that it imports torch's compiler, if the environment asks for it."""
    if os.environ.get(VARIABLE, "") not in ("", "0") and not _begun:
        _begun.append(True)
        when_compiler_is_imported(_watch)


def _watch() -> None:
    from depyf.dynamo.questions.watch import watch

    watched = watch()
    watched.__enter__()

    def end() -> None:
        if watched.compiled:  # else it is a worker of something, or a program that does not use the compiler
            watched.on_train_end()

    atexit.register(end)
