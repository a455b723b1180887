"""Run one decompiler over many code objects; benchmarks/peers.py starts it with the Python of that decompiler.

    python benchmarks/peer_driver.py PEER JOBS.json RESULTS.jsonl

``JOBS.json`` is a list of ``.pyc`` files with one function each, and a time limit for each. Every result is a line:
seconds, and either the source or the error. Peers are called as their own documentation describes. The time is that of
one call: startup and reading the file are excluded where the peer takes a code object, and the file is a few hundred
bytes where it takes a file.
"""

from __future__ import annotations

import contextlib
import io
import json
import marshal
import os
import signal
import subprocess
import sys
import time
from types import CodeType
from typing import Any, Callable


def function_in(path: str) -> CodeType:
    with open(path, "rb") as file:
        file.seek(16)
        module = marshal.load(file)
    found: CodeType = next(constant for constant in module.co_consts if isinstance(constant, CodeType))
    return found


def with_depyf(path: str) -> Callable[[], str]:
    """Prepare this project, or the first depyf from PyPI: both have ``decompile``."""
    from depyf import decompile

    code = function_in(path)
    return lambda: decompile(code)


def with_file(module: str) -> Callable[[str], Callable[[], str]]:
    """Return the function that prepares uncompyle6 or decompyle3, which have ``main.decompile_file``."""

    def prepare(path: str) -> Callable[[], str]:
        decompile_file: Any = __import__(f"{module}.main", fromlist=["main"]).decompile_file

        def work() -> str:
            out = io.StringIO()
            decompile_file(path, out)
            return out.getvalue()

        return work

    return prepare


def with_pycdc(path: str) -> Callable[[], str]:
    """Prepare the program that the variable ``PYCDC`` names; its time is that of a process."""
    command = [os.environ["PYCDC"], path]
    return lambda: subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


PEERS = {
    "ours": with_depyf,
    "depyf": with_depyf,
    "uncompyle6": with_file("uncompyle6"),
    "decompyle3": with_file("decompyle3"),
    "pycdc": with_pycdc,
}


class TooLong(BaseException):
    """Not an ``Exception``, because peers catch those."""


def stop(_number: int, _frame: Any) -> None:
    raise TooLong


def main() -> None:
    peer, jobs, results = sys.argv[1:]
    sys.setrecursionlimit(10_000)
    signal.signal(signal.SIGALRM, stop)
    prepare = PEERS[peer]
    with open(jobs) as file:
        paths, limit = json.load(file)
    with contextlib.suppress(Exception):
        prepare(paths[0])()  # imports and tables are not part of the first measurement
    with open(results, "w") as out:
        for path in paths:
            quiet = io.StringIO()
            source = error = None
            start = time.perf_counter()
            try:
                with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
                    work = prepare(path)
                    signal.setitimer(signal.ITIMER_REAL, limit)
                    start = time.perf_counter()
                    source = work()
            except TooLong:
                error = "time limit"
            except (Exception, SystemExit) as raised:
                error = f"{type(raised).__name__}: {raised}"[:300]
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            out.write(json.dumps({"seconds": time.perf_counter() - start, "source": source, "error": error}) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
