"""What several cache entries of one function show together: sizes and numbers of which each value was compiled for.

Dynamo makes a size or an int dynamic when it meets the second value. Where entries still require different values, one
each, the program or a setting makes constants of them, and marks do not help. A module of its own: a single guard
does not show this.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Dict, Hashable, Iterator, Mapping, Sequence, Set, Tuple

from depyf.base.quick_dataclass import replace
from depyf.diagnosis.guard_advice import GuardCause, GuardedFrame, ValueOrigin, origin_of
from depyf.diagnosis.guard_explanations import CONSTANTS, GuardExplanation, in_frame
from depyf.diagnosis.guard_sources import as_written

Compared = Tuple[str, str]
"""The subject, and the dimension of it (empty for numbers)."""

NOTHING_REQUIRED: Mapping[str, str] = MappingProxyType({})
_ALWAYS_STATIC = frozenset(("0", "1"))
"""Sizes that Dynamo never makes dynamic."""


SETTINGS = ("assume_static_by_default", "automatic_dynamic_shapes", "allow_unspec_int_on_nn_module")
"""The settings of Dynamo that decide what is a constant; ``torch.compile(dynamic=...)`` changes the first two while it
compiles."""


def under(settings: Mapping[str, object], frame: GuardedFrame) -> GuardedFrame:
    """Return the frame with what these settings of Dynamo say about it."""
    static, automatic, module_ints = (settings.get(name) for name in SETTINGS)
    dynamic = True if static is False else False if static and automatic is False else None
    return replace(frame, dynamic=dynamic, module_ints=module_ints is True)


class EntryHistory:
    """What the cache entries of each frame show to be a constant. ``key`` identifies the frame."""

    def __init__(self) -> None:
        self._constants: Dict[Hashable, Set[Compared]] = {}

    def add(
        self,
        key: Hashable,
        failed: Sequence[GuardExplanation],
        frame: GuardedFrame,
        required: Mapping[str, str] = NOTHING_REQUIRED,
    ) -> None:
        """Add a call that no entry of the frame fits: the guards that fail, and what the entry made for the call
        requires, by PyTorch's names."""
        values: Dict[Compared, Set[str]] = {}
        for each in (one for first in failed for one in (first, *first.others)):
            for compared, before in _compared(each, frame):
                values.setdefault(compared, set()).add(before)
        written = {as_written(name): value for name, value in required.items()} if values else {}
        for (subject, at), found in values.items():
            now = written.get(f"{subject}.size()[{at}]" if at else subject)
            if now is not None and not (at and now in _ALWAYS_STATIC):
                found.add(now)
        self._constants.setdefault(key, set()).update(each for each, found in values.items() if len(found) > 1)

    def applied(self, key: Hashable, explanation: GuardExplanation, frame: GuardedFrame) -> GuardExplanation:
        """Return the explanation, and those of the others, with the advice for a constant where all that one compares
        is a constant."""
        others = tuple(self.applied(key, each, frame) for each in explanation.others)
        explanation = replace(explanation, others=others)
        compared = {each for each, _ in _compared(explanation, frame)}
        if not compared or not compared <= self._constants.get(key, set()):
            return explanation
        return in_frame(replace(explanation, cause=CONSTANTS[explanation.cause]), frame)


def _compared(explanation: GuardExplanation, frame: GuardedFrame) -> Iterator[Tuple[Compared, str]]:
    """Yield what a guard on a size or a number compares, with the value that it requires."""
    cause, guard, before = explanation.cause, explanation.guard, explanation.before
    if cause not in CONSTANTS or before is None:
        return
    if cause is GuardCause.SIZE:
        dimensions = zip(guard.detail.split(", "), before.split(", "))
        yield from (((explanation.subject, at), size) for at, size in dimensions if size not in _ALWAYS_STATIC)
        return
    # A global int, or one of a module, is a constant anyway; nan and inf are no other value of a float.
    is_value = before.lstrip("-")[:1].isdigit()
    if is_value and origin_of(guard.code or guard.source, explanation.subject, frame) is not ValueOrigin.GLOBAL:
        yield (explanation.subject, ""), before
