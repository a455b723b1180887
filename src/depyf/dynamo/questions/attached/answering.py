"""Answer one request of ``depyf attach``: describe the process, begin a session, or end the session.

``answered`` is called in the main thread between two instructions of the program, which may be in a compilation.
"""

from __future__ import annotations

import os
import platform
import sys
from types import FrameType
from typing import TYPE_CHECKING, Dict, List, Mapping, Optional, Sequence

from depyf.answers.attached import Attached, Compiling
from depyf.base.asynchronous import is_asynchronous
from depyf.base.messages import describe
from depyf.base.without_collector import without_collector
from depyf.dynamo.hooks import torch_names, torch_settings
from depyf.dynamo.questions.attached.functions import Budget, counters_now, failed_lately, functions_now, remembered
from depyf.dynamo.questions.attached.phase import (
    compiling_now,
    imported_now,
    own_frame,
    own_work,
    phase_of,
    users_stack,
)

if TYPE_CHECKING:
    from depyf.dynamo.dump.prepare import PrepareDebug

# What dumps is imported when a session begins: the program waits for each import.

_sessions: List[PrepareDebug] = []
"""The session that ``--start`` has begun, if it has not ended."""


def answered(request: Mapping[str, object]) -> Dict[str, object]:
    """Return the answer to a request as data for JSON."""
    main = own_frame()
    with without_collector():
        compiling = compiling_now(main)
        start, stop = request.get("start"), request.get("stop")
        if (start or stop) and compiling:  # hooks come and go between two compilations
            return {"busy": str(compiling[0])}
        if start or stop or request.get("code"):
            own, imported = own_work(main), imported_now(main)
            if own is not None:  # which may hold a lock, or have done half of its work
                return {"busy": f"runs {own} of depyf"}
            if imported is not None:  # which lacks what the rest of it defines
                return {"busy": f"imports {imported}"}
        if start:
            return _start(str(start))
        if stop:
            return _stop()
        found = _state(main, compiling, request)
        return {"text": str(found), "why": found.why(), "state": found.to_dict()}


def _state(main: Optional[FrameType], compiling: Sequence[Compiling], request: Mapping[str, object]) -> Attached:
    seconds = request.get("seconds")
    budget = Budget(float(seconds) if isinstance(seconds, (int, float)) else 1.0)
    functions, notes = functions_now(budget, with_code=bool(request.get("code")))
    metrics = remembered()
    failed = failed_lately()
    return Attached(
        pid=os.getpid(),
        command=(os.path.basename(sys.executable or "python"), *sys.argv),
        rank=torch_names.distributed_rank(),
        python=platform.python_version(),
        torch=torch_names.torch_version(),
        phase=phase_of(main, compiling),
        stack=users_stack(main),
        compiling=tuple(compiling),
        compilations=len(metrics),
        seconds=sum(getattr(each, "duration_us", None) or 0 for each in metrics) / 1e6,
        functions=tuple(functions),
        failed=tuple(failed),
        counters=dict(counters_now()),
        settings=tuple(torch_settings.settings_in_force()),
        session=_session_in_words(),
        notes=tuple(notes),
    )


def _session_in_words() -> str:
    if "depyf.dynamo.capture.hub" not in sys.modules:
        return ""
    from depyf.dynamo.capture.hub import capture

    current = capture.current()
    if current is None:
        return ""
    begun = " (begun by depyf attach --start)" if any(each.session is current for each in _sessions) else ""
    return f"session: dumps into {current.directory.path}{begun}"


def _start(directory: str) -> Dict[str, object]:
    if _sessions:
        return {"error": f"it dumps already into {_sessions[-1].dump_src_dir}: depyf attach {os.getpid()} --stop"}
    from depyf.dynamo.dump.prepare import PrepareDebug

    opened = PrepareDebug(directory, stepping=False)
    _sessions.append(opened)
    try:
        opened.__enter__()
    except BaseException as error:
        _sessions.clear()
        if is_asynchronous(error):
            raise
        return {"error": describe(error)}
    failure = _failure_of(opened)
    if failure:
        _sessions.clear()
        opened.__exit__(None, None, None)
        return {"error": failure}
    return {"text": f"process {os.getpid()}: dumps what it compiles from now on into {opened.dump_src_dir}"}


def _stop() -> Dict[str, object]:
    if not _sessions:
        return {"error": "no session was begun there by depyf attach --start"}
    opened = _sessions.pop()
    opened.__exit__(None, None, None)
    failure = _failure_of(opened)
    if failure:
        return {"error": failure}
    return {"text": f"process {os.getpid()}: the dump is in {opened.dump_src_dir}", "directory": opened.dump_src_dir}


def _failure_of(opened: PrepareDebug) -> str:
    """Return why a file of the dump could not be written; empty if all could."""
    return "" if opened.session is None else opened.session.directory.failure
