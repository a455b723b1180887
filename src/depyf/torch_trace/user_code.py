"""Which files are the user's own, and which line of a stack of calls is."""

from __future__ import annotations

import functools
import os
import sysconfig
from typing import Callable, Optional, Sequence, Tuple, TypeVar

from depyf.base.own_builtins import keep_builtins
from depyf.base.own_package import is_own
from depyf.torch_trace import file_names

keep_builtins(globals())

_INSTALLED = ("/site-packages/", "/dist-packages/")
_STANDARD_LIBRARY = "/lib/python3."

_Each = TypeVar("_Each")
_Frame = TypeVar("_Frame", bound=Tuple[str, int, str])


@functools.lru_cache(maxsize=10_000)
def is_library(path: str) -> bool:
    """Return whether the file is not the user's own: installed, of depyf (which runs programs), or dumped."""
    slashed = path.replace(os.sep, "/")
    return (
        any(each in slashed for each in _INSTALLED)
        or slashed.startswith(_standard_library())
        or (_STANDARD_LIBRARY in slashed and not os.path.exists(path))
        or path.startswith("<frozen")
        or is_own(path)
        or file_names.is_dumped_code(slashed.rpartition("/")[2])
    )


@functools.lru_cache(maxsize=None)
def _standard_library() -> str:
    return sysconfig.get_paths()["stdlib"].replace(os.sep, "/") + "/"


def innermost(stack: Sequence[_Each], of_library: Callable[[_Each], bool]) -> Optional[_Each]:
    """Return the innermost of the calls in a stack (the outermost first) that is the user's own, or else the innermost;
    ``None`` if there are no calls. ``of_library`` says of a call whether it is in a library."""
    return next((each for each in reversed(stack) if not of_library(each)), stack[-1] if stack else None)


def innermost_frame(stack: Sequence[_Frame]) -> Optional[_Frame]:
    """Return that call of a stack of frames: path, line and name of the function."""
    return innermost(stack, lambda frame: is_library(frame[0]))


def innermost_line(stack: Sequence[_Frame]) -> Optional[Tuple[str, int]]:
    """Return path and line of that call."""
    frame = innermost_frame(stack)
    return None if frame is None else frame[:2]
