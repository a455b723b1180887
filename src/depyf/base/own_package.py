"""The location of depyf's own files."""

from __future__ import annotations

import os
import sys
from typing import Callable, Sequence, TypeVar

from depyf.base.own_builtins import keep_builtins

keep_builtins(globals())

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
"""The folder of the package, with the separator at its end."""

_RUNS_A_PROGRAM = os.path.join(FOLDER, "running", "program.py")

_Each = TypeVar("_Each")


def recompiled_each_time() -> str:
    """Return that Python compiles depyf's modules anew in each process, and what to do; empty if Python does not."""
    cached = None if __spec__ is None else __spec__.cached  # None in a zip file, where bytecode is not cached
    if not sys.dont_write_bytecode or cached is None or os.path.exists(cached):
        return ""
    return (
        "Python compiles depyf's own modules anew in each process, which takes some seconds: PYTHONDONTWRITEBYTECODE "
        f"(or -B) is set, and their bytecode is not cached; python -m compileall -q {FOLDER} caches it"
    )


def is_own(path: str) -> bool:
    """Return whether ``path``, as code objects name it, is a file of depyf."""
    return path.startswith(FOLDER)


def without_launcher(stack: Sequence[_Each], path_of: Callable[[_Each], str]) -> Sequence[_Each]:
    """Return the calls in a stack (the outermost first) from the program's own first one on, if ``depyf run`` runs it:
    the earlier calls started depyf (its script in ``bin``, say). ``path_of`` returns the file of a call."""
    ran = (at for at in reversed(range(len(stack))) if path_of(stack[at]) == _RUNS_A_PROGRAM)
    return stack[next(ran, -1) + 1 :]


def place_of(error: BaseException) -> str:
    """Return the innermost line of depyf in the exception's traceback, as ``depyf/file.py:line``."""
    found, traceback = "depyf", error.__traceback__
    while traceback is not None:
        path = traceback.tb_frame.f_code.co_filename
        if is_own(path):
            found = f"depyf/{path[len(FOLDER) :]}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return found
