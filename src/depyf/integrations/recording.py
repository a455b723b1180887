"""The common part of the callbacks: a training whose first steps are dumped, and all of which is watched."""

from __future__ import annotations

import os
from functools import partial
from typing import Optional, Tuple, Union

from depyf.dynamo.dump.prepare import PrepareDebug, prepare_debug
from depyf.dynamo.questions.watch import Watch, watch

Folder = Union[str, "os.PathLike[str]"]


class TrainingRecord:
    """A training that is dumped for its first ``steps`` steps (None: for all), and watched to its end."""

    def __init__(self, folder: Folder, *, steps: Optional[int], watches: bool) -> None:
        if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int)):
            raise TypeError(f"steps must be an int or None, not {type(steps).__name__}")
        if steps is not None and steps < 1:
            raise ValueError(f"steps={steps}: must be at least 1; None dumps all steps")
        self.prepared: PrepareDebug = prepare_debug(folder)
        self.watched: Optional[Watch] = watch() if watches else None
        self._made_anew = partial(TrainingRecord, folder, steps=steps, watches=watches)
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

    def _end_dump(self) -> None:
        if self._dumps:
            self._dumps = False
            self.prepared.__exit__(None, None, None)
