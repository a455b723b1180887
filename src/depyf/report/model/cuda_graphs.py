"""CUDA graphs that the program requests: those that are not used, and those that are recorded again."""

from __future__ import annotations

from typing import Optional, Tuple

from depyf.quick_dataclass import dataclass


@dataclass(frozen=True)
class CudaGraphSkip:
    """CUDA graphs were requested and are not used: torch's reason, the user's line if it names one, what to do.

    ``compile_id`` is None for what was found while compiled code ran.
    """

    compile_id: Optional[str]
    reason: str
    place: Optional[Tuple[int, int]] = None
    advice: str = ""


@dataclass(frozen=True)
class CudaGraphRerecord:
    """The CUDA graph of a compiled graph was recorded again ``times`` times for this ``reason``.

    ``function`` is PyTorch's name of it, ``mode`` ``FORWARD``, ``BACKWARD`` or ``INFERENCE``.
    """

    compile_id: Optional[str]
    function: str
    mode: str
    reason: str
    times: int = 1
    place: Optional[Tuple[int, int]] = None
    advice: str = ""
