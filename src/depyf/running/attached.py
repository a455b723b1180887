"""Answer ``depyf attach`` in the process that is asked: in a signal handler, or in code that another process injects.

Both run in the main thread, between two instructions of the program. An exception of depyf becomes the answer;
exceptions from outside go on to the program.
Only light modules are imported at the top: with ``DEPYF_ATTACH`` this is imported when Python starts.
"""

from __future__ import annotations

import os
import signal
import traceback
from types import FrameType
from typing import Dict, Mapping, Optional

from depyf.base.asynchronous import synchronous
from depyf.base.messages import describe, error_line
from depyf.base.own_package import is_own
from depyf.running import exchange
from depyf.running.torch_import import compiler_is_imported

VARIABLE = "DEPYF_ATTACH"

_SHOWN = 12

PROTOCOL = 1
"""Of the requests: a process with another depyf may be asked."""


def signal_number(text: str) -> Optional[int]:
    """Return the number of the signal that a value of ``DEPYF_ATTACH`` names: ``1`` is the default, ``SIGUSR2`` and
    ``SIGRTMIN+3`` name others; None for another text."""
    if text == "1":
        first = getattr(signal, "SIGRTMIN", None)  # not on macOS
        return int(signal.SIGUSR2) if first is None else int(first) + 10
    name, _, more = text.strip().upper().partition("+")
    found = getattr(signal, name, None)
    if not isinstance(found, signal.Signals) or (more and not more.isdecimal()):
        return None
    number = int(found) + int(more or "0")
    return number if number in signal.valid_signals() else None


def listen(text: str) -> None:
    """Answer requests when the signal comes, unless the program or its parent has made something of that signal."""
    number = signal_number(text)
    if number is None:
        error_line(f"depyf: {VARIABLE}={text}: must be 1 or the name of a signal, such as SIGUSR2 or SIGRTMIN+3")
    elif signal.getsignal(number) == signal.SIG_DFL:
        signal.signal(number, _on_signal)


def _on_signal(_number: int, _frame: Optional[FrameType]) -> None:
    for folder in list(exchange.folders_for(os.getpid())):
        answer(folder)


def answer(folder: str) -> None:
    """Answer the request in ``folder``, if there is one of this user."""
    try:
        request = exchange.take_request(folder)
        if request is None:
            return
        try:
            found = _answered(request)
        except synchronous() as error:
            found = {"error": describe(error)}
        exchange.write_json(os.path.join(folder, exchange.ANSWER), found)
    except synchronous():  # the directory is gone, or the disk is full: whoever asks sees no answer
        pass


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
    stack = [each for each in traceback.extract_stack() if not is_own(each.filename) and each.filename != "<string>"]
    shown = [f"  {each.filename}:{each.lineno} in {each.name}" for each in stack[-_SHOWN:]]
    text = "\n".join([f"process {os.getpid()}: {nothing}", *shown])
    lines = [(each.filename, each.lineno, each.name) for each in stack]
    return {"text": text, "why": text, "state": {"pid": os.getpid(), "phase": nothing, "stack": lines}}
