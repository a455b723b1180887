"""The state of torch's random number generators, so that a graph can draw the same numbers again."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Dict, Iterable, Iterator

if TYPE_CHECKING:
    import torch


class RandomState:
    """The present states of the CPU's generator, and of the generator of each CUDA device that ``values`` are on."""

    def __init__(self, values: Iterable[object]) -> None:
        import torch

        self._states: Dict[str, torch.Tensor] = {"cpu": torch.get_rng_state()}
        for device in {str(each.device) for each in values if isinstance(each, torch.Tensor) and each.is_cuda}:
            self._states[device] = torch.cuda.get_rng_state(device)

    @property
    def cpu(self) -> torch.Tensor:
        """The state of the CPU's generator."""
        return self._states["cpu"]

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """Set the generators to the recorded states, and restore their present states at the end."""
        before = {device: _read(device) for device in self._states}
        _write(self._states)
        try:
            yield
        finally:
            _write(before)


def is_capturing() -> bool:
    """Return whether a CUDA graph is being captured: nothing may be read from the device during that."""
    import torch

    cuda = torch.cuda
    return bool(cuda.is_initialized() and cuda.is_current_stream_capturing())


def _read(device: str) -> torch.Tensor:
    import torch

    return torch.get_rng_state() if device == "cpu" else torch.cuda.get_rng_state(device)


def _write(states: Dict[str, torch.Tensor]) -> None:
    import torch

    for device, state in states.items():
        if device == "cpu":
            torch.set_rng_state(state)
        else:
            torch.cuda.set_rng_state(state, device)
