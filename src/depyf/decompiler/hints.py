"""What a caller knows about code that a tool wrote, and what a proof with it assumes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import FrozenSet, Iterable, List, Mapping, Tuple


@dataclass(frozen=True)
class Hints:
    """Facts about code that a tool wrote, which its bytecode does not show.

    ``droppable``: local variables that the tool made for its own use; the source may omit them. ``stable_globals``:
    globals that are bound and keep their values while the code runs. ``tuple_results``: stable globals that return a
    tuple when they are called, with its length. ``parameters``: the parameter names of functions, by the global name of
    the call; values passed to them get these names where they have none.
    """

    droppable: FrozenSet[str] = frozenset()
    stable_globals: FrozenSet[str] = frozenset()
    tuple_results: Mapping[str, int] = field(default_factory=dict)
    parameters: Mapping[str, Tuple[str, ...]] = field(default_factory=dict)

    def assumptions(self) -> Tuple[str, ...]:
        """Return the assumptions of a proof with these hints, one sentence for each kind of hint."""
        texts: List[str] = []
        if self.stable_globals:
            texts.append(f"nothing binds or deletes {_listed(self.stable_globals)} while the code runs")
        if self.tuple_results:
            texts.append(f"{_listed(self.tuple_results)} return tuples")
        if self.droppable:
            texts.append(
                f"no code reads the variables {_listed(self.droppable)}, or observes when their values are dropped"
            )
        return tuple(texts) or ("no function takes its docstring from the code",)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
