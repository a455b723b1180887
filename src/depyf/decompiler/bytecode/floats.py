"""Floating-point constants, to the bit."""

from __future__ import annotations

import struct
from typing import Iterator, Union


def float_bits(value: Union[float, complex]) -> bytes:
    """Return the bits of a float or complex number, with the sign of a zero and the payload of a NaN."""
    if isinstance(value, complex):
        return struct.pack("<dd", value.real, value.imag)
    return struct.pack("<d", value)


def is_nan(value: object) -> bool:
    """Return whether ``value`` is a float or complex number that does not equal itself.

    Programs can observe whether two NaN are the same object.
    """
    return type(value) in (float, complex) and value != value


def nans_in(value: object) -> Iterator[object]:
    """Yield the NaN objects in a constant."""
    if is_nan(value):
        yield value
    elif type(value) is tuple or type(value) is frozenset:
        for item in value:
            yield from nans_in(item)
    elif type(value) is slice:
        for item in (value.start, value.stop, value.step):
            yield from nans_in(item)
