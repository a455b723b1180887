"""The callback for the ``Trainer`` of Lightning.

A module of its own: a public import path, which imports the framework.
"""

from __future__ import annotations

from typing import Optional

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:  # the package of older versions
    from pytorch_lightning.callbacks import Callback

from depyf.integrations.recording import Folder, TrainingRecord


class DepyfCallback(Callback):  # type: ignore[misc]
    """Dump what the first batches of a training compile, and watch the whole training.

    ``Trainer(..., callbacks=[DepyfCallback("dump", steps=3)])``. ``folder`` is as for ``depyf.prepare_debug``. The
    dump and its page are written after ``steps`` training batches (None: at the end of ``fit``). Unless ``watch`` is
    false, each recompilation, graph break and fallback to eager of the whole training is one line on the error stream,
    with a summary at the end. ``shadow`` is as ``every`` of ``depyf.shadow``: one in so many calls of compiled code is
    checked against eager mode (None: none). What the training computes does not change; if it raises, the dump so far
    is written.

    Raises ``ImportError`` without PyTorch, ``TypeError`` and ``ValueError`` for ``steps`` that are not a positive int.
    """

    def __init__(
        self, folder: Folder, *, steps: Optional[int] = 3, watch: bool = True, shadow: Optional[int] = None
    ) -> None:
        super().__init__()
        self._record = TrainingRecord(folder, steps=steps, watches=watch, shadow=shadow)

    def on_fit_start(self, *_: object, **__: object) -> None:
        """Start the dump and the watch."""
        self._record.start()

    def on_train_batch_end(self, *_: object, **__: object) -> None:
        """Count a batch."""
        self._record.step()

    def on_fit_end(self, *_: object, **__: object) -> None:
        """Stop whatever is still active."""
        self._record.stop()

    def on_exception(self, *_: object, **__: object) -> None:
        """Stop whatever is still active: ``fit`` has failed."""
        self._record.stop()
