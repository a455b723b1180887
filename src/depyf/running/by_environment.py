"""``DEPYF_WATCH=1``, ``DEPYF_SHADOW=1000``, ``DEPYF_ATTACH=1`` and ``DEPYF_DUMP=directory`` in the environment: watch,
check or dump an unchanged program, or let ``depyf attach`` ask it.

``begin`` is called when Python starts: by the files that ``depyf install-hook`` writes (``start_hook.py``), and by
``at_start/sitecustomize.py`` in the processes that a program under ``depyf run --follow`` starts.
A module of its own: Python imports it at its start, without the rest of depyf.
"""

from __future__ import annotations

import atexit
import os
from typing import List

from depyf.base.asynchronous import synchronous
from depyf.base.messages import error_line
from depyf.base.visible import visible
from depyf.running.torch_import import when_compiler_is_imported

VARIABLE = "DEPYF_WATCH"
SHADOW = "DEPYF_SHADOW"
ATTACH = "DEPYF_ATTACH"


_begun: List[bool] = []
"""Not empty once watching has started."""


def begin() -> None:
    """Watch and dump this process from its import of torch's compiler on, if the environment asks for it."""
    if _begun:
        return
    _begun.append(True)
    try:
        _begin()
    except synchronous() as error:  # Python would print the traceback, at every start
        error_line(visible(f"depyf: nothing is watched or dumped: {type(error).__name__}: {error}"))


def _begin() -> None:
    if os.environ.get(VARIABLE, "") not in ("", "0"):
        when_compiler_is_imported(_watch)
    every = os.environ.get(SHADOW, "")
    if every.isdecimal() and int(every):
        when_compiler_is_imported(lambda: _shadow(int(every)))
    elif every not in ("", "0"):
        error_line(visible(f"depyf: {SHADOW}={every}: must be a number of calls, one of which is checked (1000)"))
    if os.environ.get(ATTACH, "") not in ("", "0"):
        from depyf.running.attached import listen

        listen(os.environ[ATTACH])
    if os.environ.get("DEPYF_DUMP"):
        from depyf.running.following import begin_to_dump

        begin_to_dump()


def _watch() -> None:
    from depyf.dynamo.questions.watch import watch

    watched = watch()
    watched.__enter__()

    def end() -> None:
        if watched.compiled:  # else it is a worker process, or a program that does not use the compiler
            watched.on_train_end()

    atexit.register(end)


def _shadow(every: int) -> None:
    from depyf.dynamo.questions.shadow.question import shadow

    seen = shadow(every)
    seen.__enter__()

    def end() -> None:
        if seen.counts.calls:  # else it is a worker process, or a program that compiles nothing
            seen.on_train_end()

    atexit.register(end)
