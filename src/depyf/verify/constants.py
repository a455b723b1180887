"""When two constants are the same: type and value, signs of zeros, types inside tuples, the order of sets included."""

from __future__ import annotations

from typing import Dict, FrozenSet, Hashable, Sequence, Tuple

from depyf.bytecode.floats import float_bits, nans_in
from depyf.bytecode.set_order import has_fixed_order
from depyf.normal.ops import Instr, Op

ATOMS = (type(None), bool, int, str, bytes, type(...))
FOLDABLE = (type(None), bool, int, str)
TESTABLE = (*ATOMS, float, complex, tuple, frozenset)


def constant_key(value: object) -> Hashable:
    """A key that two constants share exactly if no program can distinguish them.

    Objects without a literal (bytecode made by hand holds them) and code objects are the same only if identical.
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
    """A key that two constant sets share if they have the same members: ``in`` observes nothing else."""
    return ("members", frozenset(constant_key(item) for item in value))


def nan_objects(ops: Sequence[Instr]) -> Tuple[int, ...]:
    """Which NaN object is loaded where: each by its number in the order of ``ops``.

    ``[a] == [b]`` and ``a is b`` show whether two NaN are one object.
    """
    numbers: Dict[int, int] = {}
    return tuple(
        numbers.setdefault(id(nan), len(numbers)) for instr in ops if instr.op is Op.CONST for nan in nans_in(instr.arg)
    )


def holds_nan(value: object) -> bool:
    """Whether ``value`` is a NaN or a constant with one in it."""
    return next(nans_in(value), None) is not None
