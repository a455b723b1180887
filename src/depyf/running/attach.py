"""``depyf attach``: ask a running process of the same user what it compiles and has compiled.

Python 3.14 and later run a script for another process (``sys.remote_exec``, PEP 768). An older Python answers a
signal, if ``DEPYF_ATTACH`` was set when it started and ``depyf install-hook`` had been run. The request and the answer
are files in a private directory (``exchange``).
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from typing import Callable, Dict, List, Mapping, Optional

from depyf.base.asynchronous import suppressed, synchronous
from depyf.running import exchange, injected, other_process
from depyf.running.attached import PROTOCOL, VARIABLE, signal_number
from depyf.running.other_process import AttachError, check

_REMOTE = """
import sys
if not hasattr(sys, "remote_exec"):
    sys.exit(3)
try:
    sys.remote_exec(int(sys.argv[1]), sys.argv[2])
except BaseException as error:
    print(f"{type(error).__name__}: {error}")
    sys.exit(4 if isinstance(error, PermissionError) else 5)
"""
"""Run by the Python of the other process: only an equal version may do this."""
_HAS_NO_REMOTE, _IS_NOT_PERMITTED = 3, 4

_POLL, _SAYS_THAT_IT_WAITS, _AFTER_TAKEN = 0.02, 2.0, 30.0
"""Seconds: between two looks for the answer; until it is said that the process does not answer yet; and how long an
answer may take that the process has begun."""

_SCRIPT = """
injected_by_depyf = True
text, names = {text!r}, {{}}
try:
    exec(text, names)
    names[{run!r}]({folder!r}, {package!r})
except BaseException as error:
    exec(text, names)
    names["_raise_later"](error)
"""
"""What the other process runs. An exception of a handler that comes while Python reads this is lost, as it comes before
the first line: the code that takes longer to compile is a string, compiled where its exceptions are kept."""

Tell = Callable[[str], object]


def ask(
    process: int,
    request: Mapping[str, object],
    *,
    timeout: float,
    tell: Tell,
    signal_name: Optional[str] = None,
    cancelled: Optional[threading.Event] = None,
) -> Dict[str, object]:
    """Return the answer of a process. ``tell`` gets a line when the process has to be waited for; ``cancelled`` ends
    the waiting.

    Raises ``AttachError`` when it can't be asked, does not answer within ``timeout`` seconds, or answers with an error.
    """
    check(process)
    _sweep(process)
    until = time.monotonic() + timeout
    cancelled = cancelled or threading.Event()
    while True:
        found = _ask_once(process, request, until, tell, signal_name, cancelled)
        if "error" in found:
            raise AttachError(f"process {process}: {found['error']}")
        if "busy" not in found:
            return found
        if time.monotonic() > until:
            raise AttachError(f"process {process} {found['busy']}: try again when that has ended")
        tell(f"process {process} {found['busy']}: waiting for the end of that")
        cancelled.wait(0.5)


def _ask_once(
    process: int,
    request: Mapping[str, object],
    until: float,
    tell: Tell,
    signal_name: Optional[str],
    cancelled: threading.Event,
) -> Dict[str, object]:
    try:
        folder = exchange.new_folder(process, {"protocol": PROTOCOL, **request})
    except synchronous(OSError) as error:
        raise AttachError(f"no private directory can be made in {exchange.PLACE} ({error.strerror})") from error
    keep = False
    try:
        keep = _send(process, folder, signal_name)  # Python reports a script that is gone, when it comes to run it
        found = _wait(process, folder, until, tell, cancelled)
        keep = keep and found is None
        if found is not None:
            _remove_withdrawn(process)
            return found
        what = other_process.what_main_thread_does(process)
        unless = "" if keep else ", and not where the program has a handler of its own for the signal"
        raise AttachError(
            f"process {process} has not answered: its main thread {what}. It can answer between two lines of Python "
            f"only{unless}: try again, or wait longer (--timeout SECONDS)"
        )
    finally:
        exchange.withdraw_request(folder)
        if not keep:
            exchange.remove_folder(folder)


def _send(process: int, folder: str, signal_name: Optional[str]) -> bool:
    """Make the process look for its request; return whether it is by a script."""
    refused = "that Python has no sys.remote_exec (3.14 and later)"
    if signal_name is None:
        script = os.path.join(folder, "script.py")
        ended = _remote_exec(process, script, folder)
        if ended.returncode == 0:
            return True
        if ended.returncode == _IS_NOT_PERMITTED:
            refused = f"{ended.stdout.strip()}: {other_process.restrictions()}"
        elif ended.returncode != _HAS_NO_REMOTE:
            refused = (ended.stdout or ended.stderr).strip().rpartition("\n")[2]
        with suppressed(OSError):
            os.unlink(script)
    number = _listening_to(process, signal_name, refused)
    if number is None:
        raise AttachError(
            f"process {process} can't be entered: {refused}; and it was not started with {VARIABLE}=1, with which a "
            "Python that has depyf install-hook answers a signal"
        )
    try:
        os.kill(process, number)
    except synchronous(OSError) as error:
        raise AttachError(f"process {process} has ended ({error.strerror})") from error
    return False


def _listening_to(process: int, signal_name: Optional[str], refused: str) -> Optional[int]:
    """Return the signal that the process answers; None if it was not started so. Raises ``AttachError`` if the program
    has made something else of that signal."""
    text = signal_name or other_process.variable_at_start(process, VARIABLE)
    if not text or text == "0":
        return None
    number = signal_number(text)
    if number is None:
        raise AttachError(f"{text} names no signal that depyf uses (SIGURG, SIGUSR2, SIGRTMIN+3)")
    if not other_process.handles(process, number):
        raise AttachError(
            f"process {process} can't be entered: {refused}; and it was to answer signal {number}, but has no handler "
            "for it: depyf install-hook was not run for its Python, or the program uses that signal itself"
        )
    return number


def script_for(folder: str) -> str:
    """Return the script with which a process answers the request in ``folder``."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with open(injected.__file__, encoding="utf-8") as file:
        return _SCRIPT.format(text=file.read(), run=injected.run.__name__, folder=folder, package=package)


def _remote_exec(process: int, script: str, folder: str) -> subprocess.CompletedProcess[str]:
    with open(os.open(script, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(script_for(folder))
    program = [other_process.executable(process), "-I", "-S", "-c", _REMOTE, str(process), script]
    try:
        return subprocess.run(program, capture_output=True, text=True, timeout=30, check=False)
    except synchronous(OSError, subprocess.SubprocessError) as error:
        return subprocess.CompletedProcess(program, 5, f"{program[0]}: {error}", "")


def _wait(
    process: int, folder: str, until: float, tell: Tell, cancelled: threading.Event
) -> Optional[Dict[str, object]]:
    """Return the answer; None if the process does not come to take the request."""
    begun, told = time.monotonic(), False
    while True:
        found = exchange.read_json(os.path.join(folder, exchange.ANSWER))
        if found is not None:
            return found
        with suppressed(OSError), open(os.path.join(folder, "failed.txt"), encoding="utf-8") as file:
            return {"error": f"depyf can't be imported there ({file.read()})"}
        if not other_process.is_alive(process):
            raise AttachError(f"process {process} has ended")
        now = time.monotonic()
        if now > until + _AFTER_TAKEN:
            raise AttachError(f"process {process} has taken the request and does not answer")
        if now > until and exchange.withdraw_request(folder):
            return None
        if not told and now - begun > _SAYS_THAT_IT_WAITS and os.path.exists(os.path.join(folder, exchange.REQUEST)):
            told = True
            tell(
                f"process {process} does not answer yet: its main thread "
                f"{other_process.what_main_thread_does(process)}. Waiting {until - now:.0f} s more"
            )
        if cancelled.wait(_POLL):
            raise AttachError(f"process {process} has not answered before the command was interrupted")


def _remove_withdrawn(process: int) -> None:
    """Remove what earlier requests have left, which the process did not come to: it runs the last script only."""
    for folder in exchange.folders_for(process):
        with suppressed(OSError):
            if os.listdir(folder) == ["script.py"]:
                exchange.remove_folder(folder)


def _sweep(process: int) -> None:
    """Remove directories of requests to processes that have ended before they came to answer."""
    with suppressed(OSError):
        for name in os.listdir(exchange.PLACE):
            number = name[len("depyf_attach_") :].partition("_")[0] if name.startswith("depyf_attach_") else ""
            if number.isdecimal() and int(number) != process and not os.path.exists(f"/proc/{number}"):
                exchange.remove_folder(os.path.join(exchange.PLACE, name))


def descendants(process: int) -> List[int]:
    """Return the numbers of those that run a Python: of a process, and of those that it has started, directly or not.

    If none does, the process alone is returned.
    """
    parents: Dict[int, int] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdecimal():
            with suppressed(AttachError, ValueError):
                parents[int(name)] = int(other_process.status_of(int(name)).get("PPid", "0"))
    found = [process]
    for each in found:
        found += sorted(child for child, parent in parents.items() if parent == each and child not in found)
    return [each for each in found if _may_be_python(each)] or [process]


def _may_be_python(process: int) -> bool:
    """Return whether a process runs a Python; False if it has ended, or does not let itself be read."""
    with suppressed(AttachError):
        return other_process.is_python(process)
    return False
