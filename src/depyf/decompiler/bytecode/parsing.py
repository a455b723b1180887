"""Parse source text to a tree, also where CPython's own parser is not thread-safe.

CPython 3.11.0 to 3.11.7 has one recursion counter for all threads while it makes the nodes of a tree (gh-106905).
Making nodes may start the garbage collector, which may run Python code (``__del__``, callbacks of weak references),
and so let another thread run. If that thread makes a tree as well, the first one fails: ``SystemError: AST constructor
recursion depth mismatch``. So a tree made here may fail one that the program makes at the same time.
"""

from __future__ import annotations

import ast
import sys
import threading
import time
from types import CodeType, FrameType
from typing import Literal, Optional, Tuple, Union, overload

from depyf.base.asynchronous import synchronous

NOT_SAFE = (3, 11) <= sys.version_info < (3, 11, 8)

_PAUSE, _PAUSES = 0.0005, 400
_ATTEMPTS = 20


@overload
def parse(text: Union[str, bytes]) -> ast.Module: ...


@overload
def parse(text: Union[str, bytes], mode: Literal["eval"]) -> ast.Expression: ...


def parse(text: Union[str, bytes], mode: str = "exec") -> object:
    """Return what ``ast.parse(text, mode=mode)`` returns, and raise what it raises. Where that is not safe, block (0.2
    s at most) until no other thread is inside ``ast.parse``, and retry where another one interfered. A program that
    calls ``compile`` with ``ast.PyCF_ONLY_AST`` by itself is not seen."""
    if not NOT_SAFE:
        return ast.parse(text, mode=mode)
    for attempt in range(_ATTEMPTS):
        _wait_for_others()
        try:
            return _converted(text, mode)
        except synchronous(SystemError):
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("not reached")


def _converted(text: Union[str, bytes], mode: str) -> object:
    """Make the tree. A thread is making one while this frame is not its innermost."""
    return compile(text, "<unknown>", mode, ast.PyCF_ONLY_AST, dont_inherit=True)


_MAKES_TREES: Tuple[CodeType, ...] = (ast.parse.__code__, _converted.__code__)


def _wait_for_others() -> None:
    for _ in range(_PAUSES):
        if not _others_are_parsing():
            return
        time.sleep(_PAUSE)


def _others_are_parsing() -> bool:
    if len(sys._current_frames()) == 1:
        return False
    own = threading.get_ident()
    return any(_is_parsing(frame) for thread, frame in sys._current_frames().items() if thread != own)


def _is_parsing(frame: FrameType) -> bool:
    """Return whether ``frame`` runs while a caller is making a tree."""
    caller: Optional[FrameType] = frame.f_back
    while caller is not None:
        if caller.f_code in _MAKES_TREES:
            return True
        caller = caller.f_back
    return False
