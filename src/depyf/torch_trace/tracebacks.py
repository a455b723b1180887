"""Parse tracebacks in texts: the user's stack as torch writes it, and errors of compilations."""

from __future__ import annotations

import re
from typing import Dict, List, Tuple

from depyf.base.late_regex import regex
from depyf.torch_trace.user_code import is_library

Frame = Tuple[str, int, str]
"""File, line and name of the function."""

_FRAME = regex(r'^[ \t]*File "(.+?)", line (\d{1,9})(?:, in (.+))?$', re.MULTILINE)
_FRAME_WITH_CODE = regex(_FRAME.pattern + r"\n[ \t]+(?!File )(\S.*)$", re.MULTILINE)
_USER_STACK = regex(r"^(?:from user code|.*\bFound from ?|Original traceback):[ \t]*\n", re.MULTILINE)
_EMPTY_LINE = regex(r"^\s*$", re.MULTILINE)
_TRACEBACK = "Traceback (most recent call last):"
_INSTALLED = regex(r"[/\\](?:site|dist)-packages[/\\]")


def frames_of(traceback: str) -> List[Frame]:
    """Return the frames in a text of the form of Python's tracebacks, in its order (the outermost first)."""
    return [(name, int(line), function or "") for name, line, function in _FRAME.findall(traceback)]


def code_of(traceback: str) -> Dict[Frame, str]:
    """Return the source lines of those frames, as far as the text quotes them."""
    found = _FRAME_WITH_CODE.findall(traceback)
    return {(name, int(line), function or ""): code.strip() for name, line, function, code in found}


def users_stack(traceback: str) -> Tuple[Frame, ...]:
    """Return the frames of the program in the traceback of a compilation's error, the outermost first: the stack of the
    operation that was compiled, as torch appends it to its message, with the frames of libraries in it; after it the
    frames of the program's own code that raised the error while it compiled (a backend, a lowering, a fake
    implementation of an operator).
    """
    # Tracebacks of the error, one after the other; then torch's ``from user code:`` with the stack of the operation.
    before, compiled = _in_parts(traceback)
    own: List[Frame] = []
    raised: List[Frame] = []
    for block in before.split(_TRACEBACK):
        frames = frames_of(block)
        of_program = [frame for frame in frames if not is_library(frame[0])]
        own += [frame for frame in of_program if frame not in own]
        # The innermost frame is the program's: its own code raised the error (a backend, a lowering).
        if of_program and frames[-1] == of_program[-1]:
            raised += [frame for frame in of_program if frame not in raised]
    if compiled:
        return (*compiled, *(frame for frame in raised if frame not in compiled))
    return tuple(own)


def condensed(traceback: str) -> str:
    """Return the text with the frames alone of what comes before the user's stack, without installed code: most of the
    text is torch's. The last frame of each traceback stays, as it says who raised the error."""
    before, _ = _in_parts(traceback)
    kept: List[str] = []
    for block in before.split(_TRACEBACK):
        frames = frames_of(block)
        kept += [f"{_TRACEBACK}\n"] if frames else []
        kept += [
            f'  File "{path}", line {line}, in {function}\n'
            for number, (path, line, function) in enumerate(frames, 1)
            if number == len(frames) or not _INSTALLED.search(path)
        ]
    return "".join(kept) + traceback[len(before) :]


def _in_parts(traceback: str) -> Tuple[str, Tuple[Frame, ...]]:
    """Return the text before torch's stack of the user, and the frames in that stack (none if there is no such)."""
    found = _USER_STACK.search(traceback)
    if found is None:
        return traceback, ()
    end = _EMPTY_LINE.search(traceback, found.end())
    return traceback[: found.start()], tuple(frames_of(traceback[found.end() : end.start() if end else len(traceback)]))
