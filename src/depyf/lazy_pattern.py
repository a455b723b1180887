"""``re_compile``: a regular expression that is compiled when it is first used, not when its module is imported.

depyf has 140 of them, and a session, or one decompilation, uses some.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from re import compile as re_compile
else:
    import re

    class re_compile:  # noqa: N801 - it replaces a function
        """Has the methods of ``re.compile(pattern, flags)``; each is looked up once."""

        def __init__(self, pattern, flags=0):
            self._arguments = pattern, flags

        def __getattr__(self, name):
            if name.startswith("__"):  # looked up by copy, pickle and similar modules
                raise AttributeError(name)
            found = getattr(re.compile(*self._arguments), name)
            self.__dict__[name] = found
            return found


__all__ = ["re_compile"]
