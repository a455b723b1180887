"""The location of depyf's own files."""

from __future__ import annotations

import os

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
"""The folder of the package, with the separator at its end."""


def is_own(path: str) -> bool:
    """Return whether ``path``, as code objects name it, is a file of depyf."""
    return path.startswith(FOLDER)


def place_of(error: BaseException) -> str:
    """Return the innermost line of depyf in the exception's traceback, as ``depyf/file.py:line``."""
    found, traceback = "depyf", error.__traceback__
    while traceback is not None:
        path = traceback.tb_frame.f_code.co_filename
        if is_own(path):
            found = f"depyf/{os.path.relpath(path, FOLDER)}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return found
