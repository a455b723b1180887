"""The state of torch's random number generators, so that a graph can draw the same numbers; and of the device."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterable, Iterator

from depyf.dynamo.hooks import torch_names


class RandomState:
    """The states of the CPU's generator and of those of the CUDA devices that ``values`` are on, as they are now."""

    def __init__(self, values: Iterable[Any]) -> None:
        self._states: Dict[Any, Any] = {"cpu": _torch().get_rng_state()}
        for device in {str(value.device) for value in values if getattr(value, "is_cuda", False)}:
            self._states[device] = _torch().cuda.get_rng_state(device)

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """Inside, the generators go on from here; afterwards they are as they were before it."""
        before = {device: _read(device) for device in self._states}
        _write(self._states)
        try:
            yield
        finally:
            _write(before)


def is_capturing() -> bool:
    """Whether a CUDA graph is being captured: nothing may be read from the device then."""
    cuda = _torch().cuda
    return bool(cuda.is_initialized() and cuda.is_current_stream_capturing())


def _torch() -> Any:
    return torch_names.module("torch")


def _read(device: str) -> Any:
    return _torch().get_rng_state() if device == "cpu" else _torch().cuda.get_rng_state(device)


def _write(states: Dict[Any, Any]) -> None:
    for device, state in states.items():
        if device == "cpu":
            _torch().set_rng_state(state)
        else:
            _torch().cuda.set_rng_state(state, device)
