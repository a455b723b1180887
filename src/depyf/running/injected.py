"""The code that ``depyf attach`` has another Python (3.14 and later) run: the script has its text and calls ``run``.

A module of its own: it runs in a process that may have no depyf, so nothing of depyf is imported at the top.
"""

import importlib
import importlib.util
import os
import sys
import threading
import time
from types import FrameType, ModuleType
from typing import Callable, Optional

injected_by_depyf = True
"""Marks the frames of the script, whose file has no name."""

_LEAST_ROOM = 60
"""How many more calls it takes to answer that there is no room for an answer."""


def run(folder: str, package: str) -> None:
    """Answer the request in ``folder`` with the depyf of this process, or else with the depyf in ``package``. An
    exception of a signal handler that comes meanwhile is raised in the program, right after this."""
    try:
        undisturbed(_answer, folder, package)
    except BaseException as error:  # Python prints what a script raises, and drops it
        _raise_later(error)


def undisturbed(call: Callable[..., object], *arguments: str) -> None:
    """Call a function while Dynamo compiles nothing in this thread. The program may have been interrupted in a function
    that compiled code calls: Dynamo would compile and count what is called from there.

    Nothing is called where the program has all but reached its limit of recursion."""
    # Calls that exceed the limit of recursion would raise in the program, which has not exceeded it. Before 3.12 calls
    # from C count, too, and have no frame: then the error is dropped.
    frame: Optional[FrameType] = sys._getframe()
    left = sys.getrecursionlimit() - _LEAST_ROOM
    while frame is not None:
        frame, left = frame.f_back, left - 1
    if left < 0:
        return
    # No function of Python is called until Dynamo's callback is taken off: Dynamo would look at that function. So this
    # is private_names.SET_EVAL_FRAME_IN_C, found without any import.
    in_c = getattr(sys.modules.get("torch"), "_C", None)
    set_callback = getattr(getattr(getattr(in_c, "_dynamo", None), "eval_frame", None), "set_eval_frame", None)
    before = None if set_callback is None else set_callback(None)
    try:
        call(*arguments)
    except RecursionError:
        pass
    finally:
        if set_callback is not None:
            set_callback(before)


def _answer(folder: str, package: str) -> None:
    try:
        if os.listdir(folder) == ["script.py"]:  # the request was withdrawn: nobody waits any more
            for name in os.listdir(folder):
                os.unlink(os.path.join(folder, name))
            os.rmdir(folder)
            return
        _import_depyf(package)
        # By name: ``attached`` imports this module.
        answer_all = importlib.import_module("depyf.running.attached").answer_all
    except Exception as error:
        asynchronous = sys.modules.get("depyf.base.asynchronous")
        own = (ImportError, SyntaxError, FileNotFoundError, PermissionError)  # else from outside
        if not isinstance(error, own) if asynchronous is None else asynchronous.is_asynchronous(error):
            raise
        _write_failure(os.path.join(folder, "failed.txt"), error)
        return
    answer_all()  # of several scripts Python runs the last one only


def _write_failure(path: str, error: Exception) -> None:
    """Tell whoever asks, unless the directory is gone: a child that was forked meanwhile runs the script, too."""
    try:
        with open(f"{path}.new", "w", encoding="utf-8", errors="replace") as file:
            file.write(f"{type(error).__name__}: {error}")
        os.replace(f"{path}.new", path)
    except (FileNotFoundError, PermissionError):
        pass


def _import_depyf(package: str) -> None:
    if "depyf" in sys.modules or importlib.util.find_spec("depyf") is not None:
        return
    path = os.path.join(package, "__init__.py")
    spec = importlib.util.spec_from_file_location("depyf", path, submodule_search_locations=[package])
    if spec is None or spec.loader is None:
        raise ImportError(f"there is no depyf in {package}")
    module: ModuleType = importlib.util.module_from_spec(spec)
    sys.modules["depyf"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules["depyf"]
        raise


def _raise_later(error: BaseException) -> None:
    """Raise it in the main thread after this script: in a handler of a signal that nothing else handles."""
    import signal

    candidates = (signal.SIGURG, *range(signal.SIGRTMAX, signal.SIGRTMIN, -1))
    number = next((each for each in candidates if signal.getsignal(each) == signal.SIG_DFL), 0)
    if number == 0:
        return

    def handler(_number: int, frame: Optional[FrameType]) -> None:
        while frame is not None:
            if "injected_by_depyf" in frame.f_globals:  # the script has not ended yet
                threading.Thread(target=send, daemon=True).start()
                return
            frame = frame.f_back
        signal.signal(number, signal.SIG_DFL)
        raise error

    def send() -> None:
        time.sleep(0.02)  # the script ends
        os.kill(os.getpid(), number)

    signal.signal(number, handler)
    threading.Thread(target=send, daemon=True).start()
