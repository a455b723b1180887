"""What ``shadow`` finds while a program runs: compiled code that is no longer what the program says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Iterator, List, Literal, Mapping, Optional, Sequence, Tuple, get_args

from depyf.answers.consoles import in_console
from depyf.answers.watch import counted, shortened
from depyf.base.plain_data import NOT_DATA, Answer

ShadowKind = Literal["stale", "dropped guard", "wrong"]
STALE: Final = "stale"
DROPPED: Final = "dropped guard"
WRONG: Final = "wrong"


@dataclass(frozen=True)
class ShadowFinding(Answer):
    """A cache entry that computes something else than eager mode, or whose dropped guard fails; prints as two lines.

    ``kind`` is ``stale`` (a value has changed that no guard of the entry checks), ``dropped guard`` (a guard fails that
    a filter has dropped, or that the stance skips) or ``wrong`` (no such value was found). ``function`` is the user's
    name of what was called, ``entry`` the compile id of the entry. ``place`` is the file and the line of the user that
    reads the value, or where the function begins. ``cause`` has the value then and now, where they are known.
    ``difference`` is what differs, empty where nothing was run twice. ``advice`` is what to do, or to run.
    """

    kind: ShadowKind
    function: str
    entry: str
    place: Optional[Tuple[str, int]] = field(metadata=NOT_DATA)
    cause: str
    difference: str = ""
    advice: str = ""
    values: Tuple[str, ...] = field(default=(), metadata=NOT_DATA)
    """What ``cause`` quotes of the program's values."""

    _properties = ("filename", "line")

    @property
    def filename(self) -> Optional[str]:
        """The path of the file, None if it is not known."""
        return None if self.place is None else self.place[0]

    @property
    def line(self) -> Optional[int]:
        """The number of the line, None if it is not known."""
        return None if self.place is None else self.place[1]

    def __str__(self) -> str:
        """Return two lines: ``stale f [0/0] train.py:12: s.now was ...``, and what differs, with what to do."""
        where = "" if self.place is None else f" {shortened(self.place[0])}:{self.place[1]}"
        first = " ".join(f"{self.kind} {self.function} [{self.entry}]{where}: {self.cause}".split())
        second = ". ".join(filter(None, (self.difference, self.advice)))
        return f"{first}\n  {' '.join(second.split())}"

    _repr_pretty_ = in_console


@dataclass(frozen=True)
class ShadowCounts:
    """How far a ``shadow`` looked: ``calls`` of compiled functions, how many of them were ``sampled`` and ``checked``,
    and why the others were not checked, with their numbers."""

    calls: int
    sampled: int
    checked: int
    reasons: Mapping[str, int]

    def since(self, earlier: ShadowCounts) -> ShadowCounts:
        """Return how far it has looked since it had looked this far."""
        reasons = {reason: count - earlier.reasons.get(reason, 0) for reason, count in self.reasons.items()}
        return ShadowCounts(
            self.calls - earlier.calls,
            self.sampled - earlier.sampled,
            self.checked - earlier.checked,
            {reason: count for reason, count in reasons.items() if count},
        )


@dataclass(frozen=True)
class Shadowed(Answer, kind="shadow"):
    """All that ``shadow`` has found, in order, and how far it has looked."""

    findings: Tuple[ShadowFinding, ...]
    counts: ShadowCounts

    def __str__(self) -> str:
        return "\n".join([*map(str, self.findings), *summary(self.findings, self.counts)])


_MOST_REASONS = 5


def summary(findings: Sequence[ShadowFinding], counts: ShadowCounts) -> Iterator[str]:
    """Yield lines for the end: how far it looked, what was found, and what was not checked."""
    calls = counted(counts.calls, "call")
    if not counts.sampled:
        yield f"depyf shadow: none of {calls} of compiled functions was sampled, and so none was checked"
        return
    numbers: List[str] = [
        counted(sum(each.kind == kind for each in findings), f"{kind} finding") for kind in get_args(ShadowKind)
    ]
    found = ", ".join(each for each in numbers if not each.startswith("0 ")) or "no finding"
    yield f"depyf shadow: {counts.checked} of {calls} of compiled functions checked: {found}"
    reasons = sorted(counts.reasons.items(), key=lambda each: -each[1])
    for reason, count in reasons[:_MOST_REASONS]:
        yield f"  {counted(count, 'sampled call')} not checked: {reason}"
    left = len(reasons) - _MOST_REASONS
    if left > 0:
        yield f"  and for {counted(left, 'other reason')}"
