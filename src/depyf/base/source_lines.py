"""Read source through ``linecache``, which may call code of the program.

For a file that does not exist ``linecache`` calls ``get_source`` of the module's loader, which a program may have
written, and its cache may contain anything. Whatever a loader raises, a ``SystemExit`` too, means that there is no
source.
"""

from __future__ import annotations

import itertools
import linecache
from typing import Dict, List, Optional

from depyf.base.asynchronous import suppressed_all


def source_lines(path: str, namespace: Optional[Dict[str, object]] = None) -> List[str]:
    """Return the lines of a file, or of what a loader or a notebook has under this name; empty without source.

    ``namespace`` is the dictionary of the module, whose loader is asked.
    """
    with suppressed_all():
        lines: object = linecache.getlines(path, namespace)
        # A file is asked for once for each of its functions: its lines are checked without a loop of Python's.
        if isinstance(lines, list) and all(map(isinstance, lines, itertools.repeat(str))):
            return lines
    return []


def source_line(path: str, number: int) -> str:
    """Return one line of a file without the blanks around it; "" if it can't be read."""
    with suppressed_all():
        return str(linecache.getline(path, number)).strip()
    return ""
