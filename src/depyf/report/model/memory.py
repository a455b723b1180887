"""The memory of a graph, as a part of the model of a run."""

from __future__ import annotations

from dataclasses import field
from typing import Mapping, Tuple

from depyf.base.quick_dataclass import dataclass


@dataclass(frozen=True)
class HeldTensor:
    """A tensor that is alive: the name of its first variable, its size in bytes, and the line that makes it.

    ``input`` says that it is an input of the graph, or a view of one.
    """

    name: str
    bytes: int
    line: int
    input: bool = False


@dataclass(frozen=True)
class Memory:
    """The memory of one graph, or of the code that Inductor generated for it, run operation by operation, in bytes.

    ``peak`` is the most that is alive at once, inputs included, at the operation on line ``line``; ``largest`` are the
    largest tensors at that time. ``inputs`` is the size of all inputs. ``saved`` is what the forward keeps for the
    backward, the largest first: ``saved_bytes`` in all, without inputs. ``uncounted`` are results of unknown size.
    ``sizes`` are the values of the symbols in the shapes.
    """

    peak: int
    line: int
    inputs: int
    largest: Tuple[HeldTensor, ...] = ()
    saved: Tuple[HeldTensor, ...] = ()
    saved_bytes: int = 0
    uncounted: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict)


def in_words(size: int) -> str:
    """Return a size in bytes with a unit (powers of 1024)."""
    if size < 1024:
        return f"{size} B"
    amount = float(size)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        amount /= 1024
        if amount < 1023.95 or unit == "TiB":
            break
    return f"{amount:.1f} {unit}"
