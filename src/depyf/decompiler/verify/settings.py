"""The settings of a comparison."""

from __future__ import annotations

from dataclasses import replace
from typing import AbstractSet, Mapping

from depyf.base.quick_dataclass import dataclass


@dataclass(frozen=True)
class Settings:
    """The keyword arguments of ``compare``, documented there."""

    droppable: AbstractSet[str]
    renamed: Mapping[str, str]
    stable_globals: AbstractSet[str]
    tuple_results: Mapping[str, int]
    check_docstring: bool
    always_prove: bool
    assumed: AbstractSet[int] = frozenset()

    def of_nested_code(self) -> Settings:
        """Return the settings for code nested in the original: the hints apply to the original alone."""
        return replace(self, droppable=frozenset(), stable_globals=frozenset(), tuple_results={})
