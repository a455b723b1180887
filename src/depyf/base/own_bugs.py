"""Let bugs of depyf through where a user gets the rest of an answer instead: they must not hide from the tests."""

from __future__ import annotations

_let_through = False


def are_let_through() -> bool:
    """Return whether code that could go on after a bug of depyf raises it instead."""
    return _let_through


class let_through:  # noqa: N801 - used as a function
    """Raise bugs while the context is active, in all threads (for tests and tools)."""

    _letting = True

    def __enter__(self) -> None:
        global _let_through
        self._before, _let_through = _let_through, self._letting

    def __exit__(self, *_error: object) -> None:
        global _let_through
        _let_through = self._before


class as_for_users(let_through):  # noqa: N801 - used as a function
    """Go on after a bug, inside of ``let_through``."""

    _letting = False
