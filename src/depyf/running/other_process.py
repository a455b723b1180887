"""Facts about another process, from Linux's ``/proc``: whose it is, whether it is a Python, which signals it handles.

Nothing is sent to the process. ``check`` refuses what ``depyf attach`` can't or may not enter, with the reason.
"""

from __future__ import annotations

import os
import re
from typing import Dict, Mapping, Optional

from depyf.base.asynchronous import suppressed, synchronous

try:
    import pwd
except ImportError:  # not on Windows
    pwd = None  # type: ignore[assignment]

_PYTHON = re.compile(r"python(?:3(?:\.\d+)?)?[dt]*(?: \(deleted\))?\Z")
_SPACES = ("pid", "mnt")
"""The kinds of namespaces in which both processes must be: files and numbers of processes have the same names then."""


class AttachError(Exception):
    """Raised when a process can't be entered; says why, and what can be done."""


def check(process: int) -> None:
    """Raise ``AttachError`` unless this is a Python process of this user, in the same container."""
    if not os.path.exists("/proc/self/status"):
        raise AttachError(
            "depyf attach needs Linux: it finds out through /proc whose a process is and what it runs. Elsewhere start "
            "the program with depyf run, or with DEPYF_DUMP"
        )
    status = status_of(process)
    owner = owner_of(status)
    if owner != os.geteuid():
        name = _name_of(owner)
        raise AttachError(
            f"process {process} belongs to {name}, and you are {_name_of(os.geteuid())}: depyf attach enters processes "
            f"of its own user only. Run it as {name} (sudo -u {name} depyf attach {process})"
        )
    if status.get("State", "").startswith(("Z", "X")):
        raise AttachError(f"process {process} has ended")
    for space in _SPACES:
        with suppressed(OSError):
            if os.readlink(f"/proc/{process}/ns/{space}") != os.readlink(f"/proc/self/ns/{space}"):
                raise AttachError(f"process {process} runs in another container: run depyf attach inside of that one")
    if not is_python(process):
        raise AttachError(f"process {process} runs {executable(process)}, which is no Python")


def status_of(process: int) -> Mapping[str, str]:
    """Return the fields of ``/proc/PID/status``. Raises ``AttachError`` if there is no such process."""
    found: Dict[str, str] = {}
    try:
        with open(f"/proc/{process}/status", encoding="ascii", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                found[name] = value.strip()
    except synchronous(OSError) as error:
        raise AttachError(f"there is no process {process}") from error
    return found


def owner_of(status: Mapping[str, str]) -> int:
    """Return the effective user of a process: whose rights it has."""
    return int(status.get("Uid", "-1 -1").split()[1])


def _name_of(user: int) -> str:
    with suppressed(KeyError):
        return pwd.getpwuid(user).pw_name
    return f"user {user}"


def executable(process: int) -> str:
    """Return the path of the program that a process runs. Raises ``AttachError`` where that may not be read."""
    try:
        return os.readlink(f"/proc/{process}/exe")
    except synchronous(FileNotFoundError) as error:
        raise AttachError(f"process {process} is ending, or runs no program") from error
    except synchronous(OSError) as error:
        raise AttachError(f"what process {process} runs can't be read ({error.strerror}): {restrictions()}") from error


def is_python(process: int) -> bool:
    """Return whether a process runs the program ``python``. Raises ``AttachError`` where that may not be read."""
    return _PYTHON.match(os.path.basename(executable(process))) is not None


def variable_at_start(process: int, name: str) -> Optional[str]:
    """Return a variable of the environment that a process was started with; None without it."""
    with suppressed(OSError), open(f"/proc/{process}/environ", "rb") as file:
        for entry in file.read().split(b"\0"):
            found, _, value = entry.partition(b"=")
            if os.fsdecode(found) == name:
                return os.fsdecode(value)
    return None


def handles(process: int, number: int) -> bool:
    """Return whether a process has a handler for a signal."""
    return bool(int(status_of(process).get("SigCgt", "0"), 16) >> (number - 1) & 1)


def is_alive(process: int) -> bool:
    """Return whether a process exists and has not ended."""
    try:
        return not status_of(process).get("State", "").startswith(("Z", "X"))
    except AttachError:
        return False


def what_main_thread_does(process: int) -> str:
    """Return in words what the main thread does, as far as the system knows."""
    state = status_of(process).get("State", "?")[:1]
    return {
        "R": "computes",
        "D": "waits for a disk or a device",
        "T": "is stopped (SIGCONT continues it)",
        "t": "is stopped by a debugger",
    }.get(state, "waits in a call")


def restrictions() -> str:
    """Return what keeps a process from debugging others of the same user, as far as the system says it."""
    with suppressed(OSError, ValueError), open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as file:
        scope = int(file.read())
        if scope:
            return (
                f"kernel.yama.ptrace_scope is {scope}, so that a process may debug its children only. The owner of the "
                "machine changes that with sysctl kernel.yama.ptrace_scope=0"
            )
    return "the system does not let this process debug that one (in containers: --cap-add=SYS_PTRACE)"
