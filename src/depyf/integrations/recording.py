"""The common part of the callbacks: a training whose first steps are dumped, and that is watched and checked."""

from __future__ import annotations

import os
from functools import partial
from typing import Optional, Tuple, Union

from depyf.dynamo.dump.prepare import PrepareDebug, prepare_debug
from depyf.dynamo.questions.shadow.question import Shadow
from depyf.dynamo.questions.shadow.question import shadow as begin_shadow
from depyf.dynamo.questions.watch import Watch, watch

Folder = Union[str, "os.PathLike[str]"]


class TrainingRecord:
    """A training that is dumped for its first ``steps`` steps (None: for all), and watched to its end.

    One in ``shadow`` calls of compiled code, if that is a number, is checked against eager mode.
    """

    def __init__(self, folder: Folder, *, steps: Optional[int], watches: bool, shadow: Optional[int] = None) -> None:
        if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int)):
            raise TypeError(f"steps must be an int or None, not {type(steps).__name__}")
        if steps is not None and steps < 1:
            raise ValueError(f"steps={steps}: must be at least 1; None dumps all steps")
        self.prepared: PrepareDebug = prepare_debug(folder)
        self.watched: Optional[Watch] = watch() if watches else None
        self.shadowed: Optional[Shadow] = None if shadow is None else begin_shadow(shadow)
        self._made_anew = partial(TrainingRecord, folder, steps=steps, watches=watches, shadow=shadow)
        self._steps = steps
        self._left: Optional[int] = None
        self._dumps = self._watches = False

    def __reduce__(self) -> Tuple[object, ...]:
        """Return how to make a copy, as for another process: one that has not started."""
        return self._made_anew, ()

    def start(self) -> None:
        """Start, if it has not started: a training that failed before may not have reported its end."""
        self._left = self._steps
        if self.watched is not None and not self._watches:
            self._watches = True
            self.watched.__enter__()
        if self.shadowed is not None:
            self.shadowed.on_train_begin()
        if not self._dumps:
            self._dumps = True
            self.prepared.__enter__()

    def step(self) -> None:
        """Count a step that has ended; after the last one that is dumped, stop the dump and write the page."""
        if self._left is not None and self._dumps:
            self._left -= 1
            if self._left <= 0:
                self._end_dump()

    def stop(self) -> None:
        """Stop whatever is still active. May be called again."""
        self._end_dump()
        if self.watched is not None and self._watches:
            self._watches = False
            self.watched.__exit__(None, None, None)
        if self.shadowed is not None:
            self.shadowed.on_train_end()

    def _end_dump(self) -> None:
        if self._dumps:
            self._dumps = False
            self.prepared.__exit__(None, None, None)
