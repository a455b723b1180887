"""How far a ``shadow`` looks while a session is open, for the page of the session."""

from __future__ import annotations

from collections import Counter
from typing import Callable, Iterable, List, Optional
from typing import Counter as CounterType

from depyf.answers.shadowed import ShadowCounts

Count = Callable[[], ShadowCounts]
"""Returns how far a ``shadow`` has looked since it was made. Equal ones are of one ``shadow``."""


class ShadowLook:
    """One ``shadow`` beside one session, from when both are open until one of them ends."""

    def __init__(self, count: Count) -> None:
        self.count = count
        self.begun = count()
        self._ended: Optional[ShadowCounts] = None

    @property
    def is_open(self) -> bool:
        return self._ended is None

    @property
    def now(self) -> ShadowCounts:
        return self.count() if self._ended is None else self._ended

    def end(self) -> None:
        self._ended = self.now

    def is_within(self, other: ShadowLook) -> bool:
        """Return whether all that it saw is in the other look, too."""
        return self.count == other.count and other.begun.calls <= self.begun.calls and self.now.calls <= other.now.calls


def together(looks: Iterable[ShadowLook]) -> Optional[ShadowCounts]:
    """Return how far they have looked in all, ``None`` if there was none. What nested sessions saw counts once."""
    kept: List[ShadowLook] = []
    for look in looks:
        if not any(look.is_within(each) for each in kept):
            kept = [*(each for each in kept if not each.is_within(look)), look]
    if not kept:
        return None
    parts = [each.now.since(each.begun) for each in kept]
    reasons: CounterType[str] = Counter()
    for part in parts:
        reasons.update(part.reasons)
    calls, sampled, checked = (sum(numbers) for numbers in zip(*((e.calls, e.sampled, e.checked) for e in parts)))
    return ShadowCounts(calls, sampled, checked, dict(reasons))
