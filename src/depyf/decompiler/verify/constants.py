"""Equality of constants: by type and value, with signs of zeros, types inside tuples and the order of sets."""

from __future__ import annotations

from typing import Dict, FrozenSet, Hashable, Sequence, Tuple

from depyf.decompiler.bytecode.floats import float_bits, nans_in
from depyf.decompiler.bytecode.set_order import has_fixed_order
from depyf.decompiler.normal.ops import Instr, Op

ATOMS = (type(None), bool, int, str, bytes, type(...))
FOLDABLE = (type(None), bool, int, str)
TESTABLE = (*ATOMS, float, complex, tuple, frozenset)


def constant_key(value: object) -> Hashable:
    """Return a key that is equal for two constants exactly if no program can distinguish them.

    Objects without a literal (in handmade bytecode) and code objects are the same only if identical.
    """
    kind = type(value)
    if kind in ATOMS:
        return (kind, value)
    if type(value) is float or type(value) is complex:
        return (kind, float_bits(value))
    if type(value) is tuple:
        return (tuple, tuple(constant_key(item) for item in value))
    if type(value) is frozenset:
        keys = [constant_key(item) for item in value]
        return (frozenset, tuple(keys) if has_fixed_order(value) else frozenset(keys))
    if type(value) is slice:
        return (slice, constant_key(value.start), constant_key(value.stop), constant_key(value.step))
    return (kind, "identity", id(value))


def members_key(value: FrozenSet[object]) -> Hashable:
    """Return a key that is equal for constant sets with the same members: ``in`` observes nothing else."""
    return ("members", frozenset(constant_key(item) for item in value))


def nan_objects(ops: Sequence[Instr]) -> Tuple[int, ...]:
    """Return the NaN objects that ``ops`` loads, in order, each numbered by its first load.

    ``[a] == [b]`` and ``a is b`` show whether two NaNs are one object.
    """
    numbers: Dict[int, int] = {}
    return tuple(
        numbers.setdefault(id(nan), len(numbers))
        for instr in ops
        if instr.op is Op.CONST and type(instr.arg) not in ATOMS
        for nan in nans_in(instr.arg)
    )


def holds_nan(value: object) -> bool:
    """Return whether ``value`` is a NaN or a constant that contains one."""
    return next(nans_in(value), None) is not None
