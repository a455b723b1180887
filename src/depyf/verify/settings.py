"""What a comparison is told about the original."""

from __future__ import annotations

from dataclasses import dataclass
from typing import AbstractSet, Mapping


@dataclass(frozen=True)
class Settings:
    """The keyword arguments of ``compare``, which says what they mean."""

    droppable: AbstractSet[str]
    renamed: Mapping[str, str]
    stable_globals: AbstractSet[str]
    tuple_results: Mapping[str, int]
    check_docstring: bool
    always_prove: bool
    assumed: AbstractSet[int] = frozenset()
