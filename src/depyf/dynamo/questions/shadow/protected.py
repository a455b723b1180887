"""Run code a second time without an effect that the program could see, within a time limit.

What the code changes in memory is restored by ``state_snapshot``. What it does outside of memory can't be: so a profile
function sees each call of a C function before it runs, and stops the run where that would print, write to a file,
start a thread or a process, or use a socket. Each Python function of the program that starts is shown to the snapshot,
which adds what the function reaches. The same profile function ends a run that takes too long.

Not seen are calls that C code makes (``map(print, values)``, callbacks of autograd's threads), and state in C++. A run
can't be ended inside of one call of a C function, or in a loop without calls.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import sys
import threading
from time import monotonic
from types import FrameType, FunctionType, MethodType
from typing import Callable, Dict, Iterator, List, Optional, Sequence

from depyf.base.without_warnings import without_warnings
from depyf.dynamo.hooks import compile_ids, generated_code, private_names, torch_names
from depyf.dynamo.hooks.debuggers import profiles_in_c
from depyf.dynamo.observe.random_state import is_capturing
from depyf.dynamo.questions.shadow.reachable import ReachableState
from depyf.torch_trace.user_code import is_library

OnFrame = Callable[[FrameType], None]

_HARMLESS_OF_FILES = frozenset(("fileno", "isatty", "readable", "writable", "seekable", "tell", "flush", "getvalue"))

_EFFECTS: Dict[str, frozenset[str]] = {
    "builtins": frozenset(("print", "input", "breakpoint")),
    "gc": frozenset(("collect", "enable", "disable")),
    "_io": frozenset(("open", "open_code")),
    "io": frozenset(("open", "open_code")),
    "sys": frozenset(("exit", "settrace", "setrecursionlimit", "addaudithook")),
    "_thread": frozenset(("start_new_thread", "start_joinable_thread", "interrupt_main", "exit")),
    "_posixsubprocess": frozenset(("fork_exec",)),
    "_winapi": frozenset(("CreateProcess", "TerminateProcess", "WriteFile")),
    "_signal": frozenset(("signal", "alarm", "setitimer", "pthread_kill", "raise_signal")),
}
_OF_SYSTEM = ("posix", "nt")
_EFFECTS_OF_SYSTEM = frozenset(
    [
        "_exit",
        "abort",
        "chdir",
        "chmod",
        "chown",
        "close",
        "dup2",
        "execv",
        "execve",
        "fork",
        "forkpty",
        "ftruncate",
        "kill",
        "killpg",
        "link",
        "mkdir",
        "mkfifo",
        "open",
        "pipe",
        "posix_spawn",
        "posix_spawnp",
        "putenv",
        "pwrite",
        "remove",
        "rename",
        "replace",
        "rmdir",
        "sendfile",
        "symlink",
        "system",
        "truncate",
        "umask",
        "unlink",
        "unsetenv",
        "utime",
        "write",
        "writev",
    ]
)


def what_sees_operations() -> str:
    """Return, in words, why no operation can run here that the program does not see; empty if it can."""
    for modes in (private_names.DISPATCH_MODES.find(), private_names.FUNCTION_MODES.find()):
        present = () if modes is None else modes()
        if present:
            return f"{', '.join(type(each).__name__ for each in present)} sees each operation"
    transforms = private_names.TRANSFORMS.find()
    if transforms is not None and transforms() is not None:
        return "a transform of torch.func sees each operation"
    saved = private_names.SAVED_TENSORS_HOOKS.find()
    if saved is not None and saved():
        return "hooks on saved tensors see what autograd keeps"
    if private_names.PROFILER_IS_ON.find():
        return "PyTorch's profiler records each operation"
    if profiles_in_c():
        return "cProfile sees each call"
    if torch_names.distributed_rank() is not None:
        return "the program runs in several processes, and a collective would wait for the others"
    return "a CUDA graph is being captured" if is_capturing() else ""


_HARMLESS_THREADS = (
    "/torch/_inductor/",
    "/torch/utils/data/_utils/pin_memory.py",
    "/multiprocessing/queues.py",
    "/tqdm/_monitor.py",
    "/execnet/",
    "/ipykernel/",
    "/IPython/core/history.py",
    "/tensorboard/summary/",
)
"""Parts of the names of files: a thread in one of these touches no object that a call reaches."""


def others_that_run() -> List[str]:
    """Return the names of the other threads that may run code of the program now or soon. A pool's worker that waits
    for work has frames of libraries only, so all threads count that are not known to be harmless."""
    names = {each.ident: each.name for each in threading.enumerate()}
    harmless = {threading.get_ident(), *generated_code.kernel_builders()}
    found = []
    for thread, innermost in sys._current_frames().items():
        frame: Optional[FrameType] = innermost
        while frame is not None and not any(
            part in frame.f_code.co_filename.replace(os.sep, "/") for part in _HARMLESS_THREADS
        ):
            frame = frame.f_back
        if frame is None and thread not in harmless:
            found.append(names.get(thread, str(thread)))
    return found


@contextlib.contextmanager
def handlers_called_later() -> Iterator[None]:
    """Call the program's signal handlers after the block: what a handler writes inside would be taken back."""
    arrived: List[int] = []
    handlers: Dict[int, Callable[..., object]] = {}
    if threading.current_thread() is threading.main_thread():
        known = {number: signal.getsignal(number) for number in signal.valid_signals()}
        handlers = {number: each for number, each in known.items() if isinstance(each, (FunctionType, MethodType))}
    try:
        for number in handlers:
            signal.signal(number, lambda each, _: arrived.append(each))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for each in arrived:
            handlers[each](each, sys._getframe())


class StoppedError(BaseException):
    """A run that is ended before its end; the message says why. Not an ``Exception``: the code that runs may catch
    those."""


class Protection:
    """What protects the program from the runs of one sampled call."""

    def __init__(self, shared: ReachableState, seconds: float) -> None:
        self._shared = shared
        self._seconds = seconds
        self._is_library: Dict[str, bool] = {}
        self.stopped = ""
        """Why a run was stopped: its code may have caught the exception."""

    @contextlib.contextmanager
    def installed(self, listeners: Sequence[OnFrame] = (), *, limited: bool) -> Iterator[None]:
        """Protect the block; ``listeners`` are called with each frame that starts. ``limited``: it has a time limit.

        Raises ``StoppedError`` where the block would do what can't be undone, or takes too long.
        """
        self.stopped = ""
        deadline = monotonic() + self._seconds if limited else float("inf")
        own = threading.get_ident()
        cover = self._cover
        owners: Dict[type, str] = {}

        def note(frame: FrameType, event: str, called: object) -> None:
            if event == "call":
                cover(frame)
                for each in listeners:
                    each(frame)
            elif event == "c_call":
                owner = getattr(called, "__self__", None)
                kind = owners.get(type(owner))
                if kind is None:  # once for each class: the check for files takes long
                    kind = _FILE if isinstance(owner, io.IOBase) else _OTHER
                    kind = owners[type(owner)] = _SOCKET if isinstance(owner, socket.socket) else kind
                effect = _effect_of(called, owner, kind)
                if effect and compile_ids.current_compile_id() is None:  # else a backward is compiled that was not yet
                    self._stop(effect)
            else:  # something returns
                return
            if monotonic() > deadline and threading.get_ident() == own:
                self._stop(f"it took longer than {self._seconds:g} s in eager mode")

        before, traced = sys.getprofile(), sys.gettrace()
        with without_warnings():
            try:
                sys.settrace(None)  # a debugger must not stop here, and coverage not count it
                sys.setprofile(note)
                yield
            finally:
                sys.setprofile(before)
                sys.settrace(traced)
        if self.stopped:
            raise StoppedError(self.stopped)

    def _cover(self, frame: FrameType) -> None:
        file = frame.f_code.co_filename
        known = self._is_library.get(file)
        if known is None:
            known = self._is_library.setdefault(file, is_library(file))
        if not known:
            self._shared.cover(frame)
            reason = self._shared.why_not_twice()
            if reason:
                self._stop(reason)

    def _stop(self, why: str) -> None:
        self.stopped = why
        raise StoppedError(why)


_FILE, _SOCKET, _OTHER = "file", "socket", "other"
"""What has a C function as its method."""


def _effect_of(called: object, owner: object, kind: str) -> Optional[str]:
    """Return what a call of this C function does outside of memory, in words; None if that is nothing."""
    name = getattr(called, "__name__", "")
    if kind == _FILE:
        return None if name in _HARMLESS_OF_FILES else f"it calls {type(owner).__name__}.{name} of a file"
    if kind == _SOCKET:
        return f"it uses a socket ({name})"
    module = getattr(called, "__module__", None)
    if not isinstance(module, str):
        return None
    if name in _EFFECTS.get(module, ()) or (module in _OF_SYSTEM and name in _EFFECTS_OF_SYSTEM):
        return f"it calls {'os' if module in _OF_SYSTEM else module.lstrip('_')}.{name}".replace("builtins.", "")
    return None
