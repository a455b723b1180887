"""Group the guards of a cache entry for display, with explanations of PyTorch's kinds of guards.

PyTorch names a guard by the function that makes it (``TENSOR_MATCH``); a model of 6 layers has a thousand of them. The
groups are what a cache entry depends on. ``depyf.diagnosis.guard.GuardKind`` is the form of a guard that failed, which
PyTorch's kind does not determine; here nothing has failed, and only PyTorch's kind is known.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Optional, Tuple


@dataclass(frozen=True)
class GuardGroup:
    """A group: what stands above it, what is in it, and what a guard of it looks like.

    A guard is of the group if PyTorch's kind begins with one of ``beginnings`` or has one of ``parts``, if its source
    has one of ``sources``, or if it has no source and its text has one of ``texts``.
    """

    name: str
    about: str
    beginnings: Tuple[str, ...] = ()
    parts: Tuple[str, ...] = ()
    sources: Tuple[str, ...] = ()
    texts: Tuple[str, ...] = ()

    def holds_kind(self, kind: str) -> bool:
        """Return whether all guards of this kind are of this group, if they are of none before it."""
        return kind.startswith(self.beginnings) or any(part in kind for part in self.parts)


GROUPS: Tuple[GuardGroup, ...] = (
    GuardGroup(
        "Tensors",
        "type, device, dtype, sizes and strides of tensors, and which share memory",
        (
            "TENSOR_",
            "NO_TENSOR_",
            "OBJECT_ALIASING",
            "STORAGE_OVERLAPPING",
            "DISPATCH_KEY",
            "DYNAMIC_INDICES",
            "DATA_PTR",
        ),
    ),
    GuardGroup("Sizes", "relations of symbolic sizes", ("SYMBOLIC_SHAPE", "SHAPE_ENV")),
    GuardGroup(
        "Marked dimensions", "dimensions that the program marked as dynamic, or that nothing is marked", ("DIMENSION_",)
    ),
    GuardGroup(
        "State of PyTorch",
        "grad mode, autocast, default device and dtype, modes and hooks that are on",
        ("GLOBAL_STATE", "TORCH_FUNCTION", "DEFAULT_DEVICE", "DUAL_LEVEL"),
        texts=("saved_tensors_hooks", "___check_", "device"),
    ),
    GuardGroup(
        "Module structure",
        "classes, hooks and attributes of modules",
        sources=("_modules[", "_parameters", "_buffers", "__dict__", "_hooks"),
    ),
    GuardGroup(
        "Lengths and keys",
        "of containers and iterators",
        parts=("LENGTH", "_LEN", "CONTAINS", "KEYS", "DICT_VERSION", "ITERATOR", "NO_HASATTR"),
    ),
    GuardGroup(
        "Functions and classes", "that the program calls, and classes of objects", ("TYPE_", "ID_", "FAKE_SCRIPT")
    ),
    GuardGroup("Values", "numbers, strings, flags and None", parts=("EQUALS", "NONE", "TRUE", "FALSE", "IS_NAN")),
    GuardGroup("Conditions", "everything else", ("",)),
)
"""A guard is of the first group that holds it."""

_WORDS = {
    "DEFAULT_DEVICE": "default device",
    "DICT_CONTAINS": "has this key",
    "DICT_LENGTH": "number of keys",
    "DICT_VERSION": "not changed",
    "DIMENSION_DYNAMIC_MARKING_GUARD": "marks of dimensions",
    "DUAL_LEVEL_MATCH": "forward-mode level",
    "DYNAMIC_INDICES": "marks of dimensions",
    "EQUALS_MATCH": "value",
    "FALSE_MATCH": "is False",
    "GLOBAL_STATE": "global state",
    "ID_MATCH": "the same object",
    "LENGTH_CHECK": "length",
    "MAPPING_KEYS_MATCH": "keys in their order",
    "NONE_MATCH": "is None",
    "NOT_NONE": "is not None",
    "NO_HASATTR": "lacks this attribute",
    "NO_TENSOR_ALIASING": "no tensor twice",
    "OBJECT_ALIASING": "the same object twice",
    "SET_CONTAINS": "has this item",
    "STORAGE_OVERLAPPING": "overlap in memory",
    "SYMBOLIC_SHAPE_GUARD": "relation of sizes",
    "TENSOR_ALIASING": "the same tensor twice",
    "TENSOR_MATCH": "properties of a tensor",
    "TORCH_FUNCTION_MODE_STACK": "torch function modes",
    "TRUE_MATCH": "is True",
    "TYPE_MATCH": "class",
}
"""What guards of each class check, for the page. For other classes it shows the text of the guard itself."""


_BY_SOURCE = [at for at, group in enumerate(GROUPS) if group.sources]
_BY_TEXT = [at for at, group in enumerate(GROUPS) if group.texts]


def group_of(kind: str, source: str, text: str) -> int:
    """Return the index in ``GROUPS`` of a guard: PyTorch's kind, its source (empty where it has none) and its text."""
    found = _group_of_kind(kind)
    for at in _BY_SOURCE if source else _BY_TEXT:
        parts = GROUPS[at].sources if source else GROUPS[at].texts
        if at < found and any(part in (source or text) for part in parts):
            return at
    return found


@functools.lru_cache(maxsize=4096)
def _group_of_kind(kind: str) -> int:
    """Return the first group that has all guards of a kind."""
    return next(at for at, group in enumerate(GROUPS) if group.holds_kind(kind))


def kind_in_words(kind: str) -> Optional[str]:
    """Return what a guard of PyTorch's kind checks, None for an unknown kind."""
    return _WORDS.get(kind)
