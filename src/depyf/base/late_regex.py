"""Regular expressions that are compiled when they are first used.

depyf has 300 regular expressions; most processes use a few dozen. Compiling all of them took 50 of the 205 ms of
entering a first session. A module of its own, since both halves need it.
"""

from __future__ import annotations

import re
from typing import AnyStr, Tuple, Union, cast


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a stand-in for ``re.compile(text, flags)``, which is called when an attribute is first read.

    ``re.error`` is raised then, not before. Threads may compile the same text twice; both get equal patterns.
    """
    return cast("re.Pattern[AnyStr]", _LateRegex((text, flags)))


class _LateRegex:
    def __init__(self, of: Tuple[Union[str, bytes], int]) -> None:
        self._of = of

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):  # ``copy`` and ``pickle`` ask for methods of an object that has no attributes yet
            raise AttributeError(name)
        value = getattr(re.compile(*cast(Tuple[str, int], self._of)), name)
        # The next look-up finds the bound method in the object: it costs what it costs on a pattern.
        self.__dict__[name] = value
        return value

    def __repr__(self) -> str:
        return f"regex{self._of!r}"
