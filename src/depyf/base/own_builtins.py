"""Python's builtins as they were when depyf was imported.

A program may replace a builtin by one that raises, or that does something else: a test mocks ``builtins.id``. Functions
take builtins from ``__builtins__`` of their module. The modules that keep depyf's failures from the program, and that
remove its hooks, have a copy there, so a replaced builtin can make other work of depyf fail, and nothing more.
"""

from __future__ import annotations

import builtins
from typing import Dict

_BUILTINS = dict(vars(builtins))


def keep_builtins(namespace: Dict[str, object]) -> None:
    """Make the functions that a module defines from now on use the copy. ``namespace`` is ``globals()`` there."""
    namespace["__builtins__"] = _BUILTINS
