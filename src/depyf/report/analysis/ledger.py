"""Account for the memory of variables while statements are read: what is alive, since when, and how much in all."""

from __future__ import annotations

from typing import Dict, Iterable, List, Optional, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.report.model.memory import HeldTensor


@dataclass(frozen=True)
class Moment:
    """The bytes that are alive when the operation on a line has its results, and still its operands."""

    line: int
    bytes: int


@dataclass
class _Storage:
    """Memory that one tensor or several views share. ``began`` and ``ended`` count the moments before it."""

    tensor: HeldTensor
    began: int
    users: int = 0
    ended: Optional[int] = None


def stays_alive(name: str, *, backward: bool) -> bool:
    """Return whether the program has an input of a graph, too. The backward's own are gradients and saved tensors."""
    return not backward or name.startswith("primals_")


class Ledger:
    """What each variable holds. A storage is freed when no variable holds it any more."""

    def __init__(self) -> None:
        self.moments: List[Moment] = []
        self.uncounted = 0
        self.inputs = 0
        self._alive = 0
        self._storages: List[_Storage] = []
        self._held: Dict[str, Tuple[_Storage, ...]] = {}
        self._inputs: Dict[str, _Storage] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._held

    def storages(self) -> Dict[str, HeldTensor]:
        """Return the memory that each variable holds which holds one tensor."""
        return {name: held[0].tensor for name, held in self._held.items() if len(held) == 1}

    def add_input(self, name: str, size: Optional[int], line: int, *, kept: bool, view_of: str = "") -> HeldTensor:
        """Add an input of the graph, and return its memory. What is ``kept`` is never freed, because the caller has it,
        too. Inputs that are ``view_of`` the same thing share memory."""
        first = self._inputs.get(view_of or name)
        if first is None:
            first = self._inputs[view_of or name] = self._allocated(name, size, line, is_input=True)
            self.inputs += first.tensor.bytes
            first.users += kept
        self._bind(name, (first,))
        return first.tensor

    def allocate(self, name: str, sizes: Iterable[Tuple[str, Optional[int]]], line: int) -> None:
        """Let a variable hold new tensors, each with its name and its size in bytes, None if that is not known."""
        self._bind(name, tuple(self._allocated(each, size, line) for each, size in sizes))

    def allocate_one(self, name: str, size: Optional[int], line: int) -> None:
        """Let a variable hold a new tensor of its name."""
        self._bind(name, (self._allocated(name, size, line),))

    def share(self, name: str, other: str, index: Optional[int] = None) -> None:
        """Let a variable hold the memory of another one, or of one of the tensors there."""
        held = self._held.get(other, ())
        self._bind(name, held if index is None or len(held) <= 1 else held[index : index + 1])

    def release(self, name: str) -> None:
        """Let a variable hold nothing."""
        for storage in self._held.pop(name, ()):
            storage.users -= 1
            if storage.users == 0:
                storage.ended = len(self.moments)
                self._alive -= storage.tensor.bytes

    def note(self, line: int) -> None:
        """Note how much is alive at an operation."""
        self.moments.append(Moment(line, self._alive))

    def peak(self) -> int:
        """Return the index of the first moment at which the most is alive; raises ``ValueError`` without any."""
        return max(range(len(self.moments)), key=lambda at: self.moments[at].bytes)

    def alive_at(self, moment: int) -> List[HeldTensor]:
        """Return the tensors that are alive at a moment, the largest first."""
        return by_size(
            each.tensor
            for each in self._storages
            if each.began <= moment and (each.ended is None or moment < each.ended) and each.tensor.bytes
        )

    def _allocated(self, name: str, size: Optional[int], line: int, *, is_input: bool = False) -> _Storage:
        self.uncounted += size is None
        storage = _Storage(HeldTensor(name, size or 0, line, is_input), len(self.moments))
        self._alive += storage.tensor.bytes
        self._storages.append(storage)
        return storage

    def _bind(self, name: str, storages: Tuple[_Storage, ...]) -> None:
        for each in storages:
            each.users += 1
        self.release(name)
        self._held[name] = storages


def by_size(tensors: Iterable[HeldTensor]) -> List[HeldTensor]:
    """Return the tensors, the largest first."""
    return sorted(tensors, key=lambda each: (-each.bytes, each.line, each.name))
