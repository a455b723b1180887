"""When two constants are the same: type and value, signs of zeros, types inside tuples, the order of sets included."""

from __future__ import annotations

import math
from typing import Any, FrozenSet, Hashable

from depyf.bytecode.set_order import has_fixed_order

ATOMS = (type(None), bool, int, str, bytes, type(...))
FOLDABLE = (type(None), bool, int, str)
TESTABLE = (*ATOMS, float, complex, tuple, frozenset)


def constant_key(value: Any) -> Hashable:
    """A key that two constants share exactly if no program can tell them apart.

    Objects without a literal (bytecode made by hand holds them) and code objects are the same only if identical.
    """
    kind = type(value)
    if kind in ATOMS:
        return (kind, value)
    if kind is float:
        return (float, _float_key(value))
    if kind is complex:
        return (complex, _float_key(value.real), _float_key(value.imag))
    if kind is tuple:
        return (tuple, tuple(constant_key(item) for item in value))
    if kind is frozenset:
        keys = [constant_key(item) for item in value]
        return (frozenset, tuple(keys) if has_fixed_order(value) else frozenset(keys))
    if kind is slice:
        return (slice, constant_key(value.start), constant_key(value.stop), constant_key(value.step))
    return (kind, "identity", id(value))


def members_key(value: FrozenSet[Any]) -> Hashable:
    """A key that two constant sets share if they have the same members: that is all that ``in`` can tell."""
    return ("members", frozenset(constant_key(item) for item in value))


def _float_key(value: float) -> str:
    return f"nan {math.copysign(1.0, value)}" if math.isnan(value) else value.hex()
