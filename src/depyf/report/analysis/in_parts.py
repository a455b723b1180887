"""Make the model of a run part by part: what PyTorch writes changes with its versions, and a reader of one part that
fails on it must not cost the others. The run then says what is missing (``Run.failures``).
"""

from __future__ import annotations

from typing import Callable, Dict, Tuple, TypeVar

from depyf.base.asynchronous import synchronous
from depyf.base.messages import describe
from depyf.base.own_bugs import are_let_through
from depyf.base.own_package import place_of

T = TypeVar("T")


class Parts:
    """The failures of the parts of one run."""

    def __init__(self) -> None:
        self._failed: Dict[str, int] = {}

    @property
    def failures(self) -> Tuple[str, ...]:
        """The messages, each once, with how many parts it stands for."""
        return tuple(
            text if count == 1 else f"{text}, and so for {count - 1:,} more" for text, count in self._failed.items()
        )

    def part(self, what: str, without: T, make: Callable[..., T], *args: object) -> T:
        """Return ``make(*args)``, or ``without`` if it fails: then ``what`` is missing in the run.

        ``what`` is said once for each failing line of depyf and error, however many parts it costs.
        """
        try:
            return make(*args)
        except synchronous() as error:
            if are_let_through():
                raise
            text = f"{what} could not be read: {describe(error)} at {place_of(error)}"
            self._failed[text] = self._failed.get(text, 0) + 1
            return without
