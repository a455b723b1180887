"""Where the files of depyf itself are."""

from __future__ import annotations

import os

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
"""The folder of the package, with the separator at its end."""


def is_own(path: str) -> bool:
    """Whether ``path``, as code objects name it, is a file of depyf."""
    return path.startswith(FOLDER)
