"""The least key of the items of a list from each one on, kept while items are replaced."""

from __future__ import annotations

from typing import Generic, List, Tuple, TypeVar

Key = TypeVar("Key", int, Tuple[bool, int])


class LeastFrom(Generic[Key]):
    """``least[i]`` is the least of the ``keys`` from ``i`` on."""

    def __init__(self, keys: List[Key]) -> None:
        self.keys: List[Key] = []
        self.least: List[Key] = []
        self.replace(0, 0, keys)

    def replace(self, start: int, stop: int, keys: List[Key]) -> None:
        """Replace the keys from ``start`` to ``stop``, which takes as long as there are new or changed results."""
        self.keys[start:stop] = keys
        self.least[start:stop] = keys
        for index in reversed(range(start + len(keys))):
            least = min(self.keys[index : index + 1] + self.least[index + 1 : index + 2])
            if index < start and least == self.least[index]:
                break
            self.least[index] = least
