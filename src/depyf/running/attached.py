"""Answer ``depyf attach`` in the process that is asked: in a signal handler, or in code that another process injects.

Both run in the main thread, between two instructions of the program. An exception of depyf becomes the answer;
exceptions from outside go on to the program.
Only light modules are imported at the top: with ``DEPYF_ATTACH`` this is imported when Python starts.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Dict, List, Mapping, Optional

from depyf.base.asynchronous import suppressed, synchronous
from depyf.base.messages import describe, error_line
from depyf.base.own_package import is_own
from depyf.base.visible import visible
from depyf.running import exchange
from depyf.running.injected import undisturbed
from depyf.running.torch_import import compiler_is_imported

VARIABLE = "DEPYF_ATTACH"

_SHOWN = 12

PROTOCOL = 1
"""Of the requests: a process with another depyf may be asked."""

_ROOM = 350
"""How many more calls an answer may need. Before Python 3.11 a program whose limit of recursion has been reached once,
and which goes on deeper, is aborted."""

_WITHOUT_OTHER_USE = ("SIGURG", "SIGUSR1", "SIGUSR2", "SIGIO", "SIGWINCH")
"""The signals that a program may be made to answer, beside the real-time ones: others end it, or have a meaning."""

_answering: List[str] = []
"""The request that is answered now."""


def signal_number(text: str) -> Optional[int]:
    """Return the number of the signal that a value of ``DEPYF_ATTACH`` names: ``1`` is the default, ``SIGUSR2`` and
    ``SIGRTMIN+3`` name others; None for another text.

    The default is ``SIGURG``: a process without a handler ignores it, so it does no harm when it arrives while Python
    ends, which removes the handlers."""
    name, _, more = ("SIGURG" if text == "1" else text.strip().upper()).partition("+")
    found = getattr(signal, name, None)
    if not isinstance(found, signal.Signals) or (more and not more.isdecimal()):
        return None
    if name != "SIGRTMIN":
        return int(found) if name in _WITHOUT_OTHER_USE and not more else None
    number = int(found) + int(more or "0")
    return number if number in signal.valid_signals() else None


def listen(text: str) -> None:
    """Answer requests when the signal comes, unless the program or its parent has made something of that signal."""
    number = signal_number(text)
    if number is None:
        message = f"depyf: {VARIABLE}={text}: must be 1 or the name of a signal, such as SIGUSR2 or SIGRTMIN+3"
        error_line(visible(message))
    elif signal.getsignal(number) == signal.SIG_DFL:
        with suppressed(ValueError):  # Python starts in a subinterpreter, which gets no signals
            signal.signal(number, _on_signal)


def _on_signal(_number: int, _frame: Optional[FrameType]) -> None:
    undisturbed(answer_all)


def answer_all() -> None:
    """Answer all requests to this process."""
    try:
        folders = list(exchange.folders_for(os.getpid()))
    except synchronous():  # the program has no file descriptor left, say
        return
    for folder in folders:
        answer(folder)


def answer(folder: str) -> None:
    """Answer the request in ``folder``, if there is one of this user."""
    try:
        request = exchange.take_request(folder)
        if request is None:
            return
        found: Mapping[str, object]
        if _answering:
            found = {"busy": "answers another request"}
        elif _is_deep():
            found = {"busy": "is near its limit of recursion"}
        else:
            try:
                _answering.append(folder)
                found = _answered(request)
            except synchronous() as error:
                found = {"error": describe(error)}
            finally:
                _answering.clear()
        exchange.write_json(os.path.join(folder, exchange.ANSWER), found)
    except synchronous():  # the directory is gone, or the disk is full: whoever asks sees no answer
        pass


def _is_deep() -> bool:
    frame: Optional[FrameType] = sys._getframe()
    left = sys.getrecursionlimit() - _ROOM
    while frame is not None and left >= 0:
        frame, left = frame.f_back, left - 1
    return left < 0


def _answered(request: Mapping[str, object]) -> Mapping[str, object]:
    if request.get("protocol") != PROTOCOL:
        return {"error": "depyf in that process is of another version, and does not know this request"}
    if not compiler_is_imported():
        return _without_compiler(request)
    from depyf.dynamo.questions.attached.answering import answered

    found: Dict[str, object] = answered(request)
    return found


def _without_compiler(request: Mapping[str, object]) -> Mapping[str, object]:
    """Return what is known where PyTorch's compiler has not been imported, or is being imported right now."""
    nothing = "PyTorch's compiler is not imported yet: nothing was compiled"
    if request.get("start") or request.get("stop"):
        return {"error": nothing}
    lines = []
    frame: Optional[FrameType] = sys._getframe()
    while frame is not None:
        code = frame.f_code
        if not is_own(code.co_filename) and code.co_filename != "<string>":
            lines.append((code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    lines.reverse()
    shown = [f"  {path}:{line} in {name}" for path, line, name in lines[-_SHOWN:]]
    text = "\n".join([f"process {os.getpid()}: {nothing}", *shown])
    return {"text": text, "why": text, "state": {"pid": os.getpid(), "phase": nothing, "stack": lines}}
