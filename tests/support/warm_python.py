"""Run programs in processes that have imported PyTorch before they start.

``run`` is like ``subprocess.run`` for a Python program. To import PyTorch, Dynamo and Inductor takes a fresh process
two to four seconds of CPU time; most programs of the tests take less than one for what they do. So one process of each
test worker imports them once, and waits; for each program it forks, and the child becomes the program, with its own
working directory, environment, arguments, ``sys.path``, standard streams, ``__main__`` and exit.

What is not as in a fresh process, so that tests about it use ``subprocess`` itself:

- ``torch`` and what Dynamo imports are in ``sys.modules`` from the start, before a ``sitecustomize`` on ``PYTHONPATH``;
- variables that the interpreter, or PyTorch on its import, reads have no effect (``run`` refuses those it knows), and
  options of the interpreter can't be given;
- ``PYTHONHASHSEED`` is 0, and ``OMP_NUM_THREADS`` is 1.
"""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Union

FIXED = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
READ_AT_START = ("PYTHON", "TORCH_LOGS", "TORCH_TRACE", "TORCHDYNAMO_", "TORCH_COMPILE_DEBUG", "OMP_")
"""Beginnings of names of variables that have no effect on a program that is run here."""

_template: Optional[subprocess.Popen[str]] = None


def needs_a_fresh_process(command: Sequence[str], environment: Dict[str, str]) -> Optional[str]:
    """Why ``run`` can't run the command, or ``None``."""
    if command[0] != sys.executable or (command[1].startswith("-") and command[1] not in ("-m", "-c")):
        return "an option of the interpreter"
    for name, value in environment.items():
        if name.startswith(READ_AT_START) and name != "PYTHONPATH" and {**os.environ, **FIXED}.get(name) != value:
            return f"{name} is read when the interpreter or PyTorch starts"
    return None


def run(
    command: Sequence[str],
    *,
    cwd: Union[str, os.PathLike[str], None] = None,
    env: Optional[Dict[str, str]] = None,
    input: str = "",
    timeout: float = 300,
    check: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run ``[sys.executable, SCRIPT or "-m", MODULE or "-c", CODE, *arguments]``, and return what it printed.

    Raises ``ValueError`` for a command or a variable that needs a fresh process, ``subprocess.TimeoutExpired`` after
    ``timeout`` seconds, and with ``check`` ``subprocess.CalledProcessError`` for an exit status that isn't 0.
    """
    environment = {**(os.environ if env is None else env), **FIXED}
    reason = needs_a_fresh_process(command, environment)
    if reason is not None:
        raise ValueError(f"use subprocess: {reason}")
    with tempfile.TemporaryDirectory() as folder:
        streams = [os.path.join(folder, name) for name in ("stdin", "stdout", "stderr")]
        Path(streams[0]).write_text(input)
        asked = {
            "arguments": list(command[1:]),
            "cwd": os.getcwd() if cwd is None else os.fspath(cwd),
            "environment": environment,
            "streams": streams,
        }
        status = _status(asked, list(command), timeout)
        printed, errors = (Path(name).read_text(errors="backslashreplace") for name in streams[1:])
    done = subprocess.CompletedProcess(list(command), status, printed, errors)
    if check:
        done.check_returncode()
    return done


def _status(asked: Dict[str, Any], command: List[str], timeout: float) -> int:
    """What ``returncode`` of ``subprocess`` would be."""
    global _template
    if _template is None or _template.poll() is not None:
        _template = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **FIXED},
        )
        atexit.register(_end, _template)
    assert _template.stdin is not None
    assert _template.stdout is not None
    _template.stdin.write(json.dumps(asked) + "\n")
    _template.stdin.flush()
    child = int(_template.stdout.readline())
    late = threading.Timer(timeout, os.kill, (child, signal.SIGKILL))
    late.start()
    try:
        status = int(_template.stdout.readline())
    finally:
        expired = late.finished.is_set()
        late.cancel()
    if expired:
        raise subprocess.TimeoutExpired(command, timeout)
    return status


def _end(template: subprocess.Popen[str]) -> None:
    """End the process that waits for programs, and close the pipes to it."""
    with template:
        template.kill()


def _wait_for_programs() -> Dict[str, Any]:
    """In the process that has imported PyTorch: answer the request of a program, in the child that is to be it."""
    asks, tells = os.fdopen(os.dup(0)), os.dup(1)
    for line in asks:
        child = os.fork()
        if child == 0:
            asks.close()
            os.close(tells)
            asked: Dict[str, Any] = json.loads(line)
            return asked
        os.write(tells, f"{child}\n".encode())
        status = os.waitpid(child, 0)[1]
        returned = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        os.write(tells, f"{returned}\n".encode())
    # The worker has ended. Nothing of this process is to be cleaned up.
    os._exit(0)


def _become(asked: Dict[str, Any]) -> None:
    """Run the program in this process. The traceback of what it raises has no frame of this module."""
    import multiprocessing.process
    import runpy

    for number, name in enumerate(asked["streams"]):
        opened = os.open(name, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(asked["cwd"])
    # Where a child that multiprocessing spawns looks for the script.
    multiprocessing.process.ORIGINAL_DIR = asked["cwd"]  # type: ignore[attr-defined]
    before = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    os.environ.clear()
    os.environ.update(asked["environment"])
    arguments: List[str] = asked["arguments"]
    # The first entry is the folder of this file: in its place comes the folder of the program.
    path = [entry for entry in sys.path[1:] if entry not in before]
    of_script = os.path.dirname(os.path.realpath(arguments[0]))
    first = os.getcwd() if arguments[0] == "-m" else "" if arguments[0] == "-c" else of_script
    own = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[:] = [first, *own, *path]
    sys.path_importer_cache.clear()
    if sys.version_info >= (3, 10):
        sys.orig_argv[:] = [sys.executable, *arguments]
    main = type(sys)("__main__")
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    sys.argv = [arguments[0], *arguments[2:]] if arguments[0] in ("-m", "-c") else arguments
    try:
        if any(os.path.isfile(os.path.join(entry, "sitecustomize.py")) for entry in own):
            sys.modules.pop("sitecustomize", None)
            importlib.import_module("sitecustomize")
        if arguments[0] == "-m":
            runpy._run_module_as_main(arguments[1])  # type: ignore[attr-defined]
        elif arguments[0] == "-c":
            exec(compile(arguments[1], "<string>", "exec"), main.__dict__)
        else:
            main.__file__ = arguments[0]
            exec(compile(Path(arguments[0]).read_bytes(), arguments[0], "exec"), main.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        traceback = error.__traceback__
        sys.excepthook(type(error), error, traceback and traceback.tb_next)
        raise SystemExit(1) from None


if __name__ == "__main__":
    import gc

    if importlib.util.find_spec("torch") is not None:
        for name in ("torch._dynamo", "torch._inductor.compile_fx"):
            importlib.import_module(name)
    # What is here stays: a collection in the child would copy each page of it.
    gc.collect()
    gc.freeze()
    _become(_wait_for_programs())
