"""The callback for the ``Trainer`` of Hugging Face's transformers.

A module of its own: a public import path, which imports the framework.
"""

from __future__ import annotations

from typing import Optional

from transformers import TrainerCallback

from depyf.integrations.recording import Folder, TrainingRecord


class DepyfCallback(TrainerCallback):  # type: ignore[misc]
    """Dump what the first steps of a training compile, and watch the whole training.

    ``Trainer(..., callbacks=[DepyfCallback("dump", steps=3)])``. ``folder`` is as for ``depyf.prepare_debug``. The
    dump and its page are written after ``steps`` optimizer steps (None: at the end of the training). Unless ``watch``
    is false, each recompilation, graph break and fallback to eager of the whole training is one line on the error
    stream, with a summary at the end. ``shadow`` is as ``every`` of ``depyf.shadow``: one in so many calls of compiled
    code is checked against eager mode (None: none). What the training computes does not change.

    Raises ``ImportError`` without PyTorch, ``TypeError`` and ``ValueError`` for ``steps`` that are not a positive int.
    """

    def __init__(
        self, folder: Folder, *, steps: Optional[int] = 3, watch: bool = True, shadow: Optional[int] = None
    ) -> None:
        self._record = TrainingRecord(folder, steps=steps, watches=watch, shadow=shadow)

    def on_train_begin(self, *_: object, **__: object) -> None:
        """Start the dump and the watch."""
        self._record.start()

    def on_step_end(self, *_: object, **__: object) -> None:
        """Count an optimizer step."""
        self._record.step()

    def on_train_end(self, *_: object, **__: object) -> None:
        """Stop whatever is still active."""
        self._record.stop()
