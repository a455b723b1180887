"""Run a script in a process of its own, and read from its output whether it shows a difference.

The process has this Python and this environment, without the variables that make depyf record. It starts in an empty
directory, which is the first place where its imports are searched: neither the directory of the script nor that of the
program can replace a module. PyTorch's caches of compiled graphs are off where a difference is to be shown: they may
hold code that this process has compiled.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import Dict, Tuple

from depyf.base.asynchronous import synchronous

_PATIENCE = 600
STOPPED = f"it was stopped after {_PATIENCE} seconds"

_WITHOUT_ITS_FOLDER = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"

_NO_CACHES = {"TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "TORCHINDUCTOR_AUTOGRAD_CACHE": "0"}

_COMPILED = "compiled with "
_MOST_WORDS = 300


def environment() -> Dict[str, str]:
    """Return the environment of a script's process: this one, without depyf's variables."""
    found = {key: value for key, value in os.environ.items() if not key.startswith("DEPYF_")}
    if found.get("PYTHONPATH"):  # its relative parts are those of this process's directory
        found["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, found["PYTHONPATH"].split(os.pathsep)))
    return found


def run_script(path: str, *arguments: str, caches: bool = True) -> Tuple[bool, str]:
    """Run a script in another process; return whether it succeeded, and its output."""
    try:
        with tempfile.TemporaryDirectory(prefix="depyf_script_") as directory:
            done = subprocess.run(
                [sys.executable, "-c", _WITHOUT_ITS_FOLDER, os.path.abspath(path), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=_PATIENCE,
                cwd=directory,
                env={**environment(), **({} if caches else _NO_CACHES)},
            )
    except subprocess.TimeoutExpired:
        return False, STOPPED
    except synchronous(OSError) as error:
        return False, f"no other process could be started: {error}"
    return done.returncode == 0, done.stdout


def differs(path: str) -> Tuple[bool, str]:
    """Return whether a script of ``whole.write_script`` shows that compiled code differs from eager mode, in a process
    of its own; and, where it does not, what it says instead."""
    good, output = run_script(path, caches=False)
    before, title, after = output.partition(_COMPILED)
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if good:
        return False, "a process of its own computes what eager mode does"
    if output == STOPPED or not title:
        last = lines[-1] if lines else "it printed nothing"
        return False, f"in a process of its own the script does not come to an end: {last[:_MOST_WORDS]}"
    if "DIFFER" in before:
        return False, "eager mode gives something else in a process of its own"
    if "DIFFER" not in after:
        return False, f"in a process of its own the script fails: {lines[-1][:_MOST_WORDS]}"
    return True, ""
