"""Read numbers and strings from ``marshal`` bytes; each size is checked against the remaining bytes."""

from __future__ import annotations

import struct
import sys
from typing import NoReturn

from depyf.base.asynchronous import synchronous


class ByteReader:
    """A position in the bytes. All methods raise ``ValueError`` for malformed bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def fail(self, what: str) -> NoReturn:
        raise ValueError(f"malformed marshal data at byte {self.position}: {what}")

    def take(self, size: int) -> bytes:
        end = self.position + size
        if size < 0 or end > len(self.data):
            self.fail(f"{size} bytes should follow, there are {len(self.data) - self.position}")
        found = self.data[self.position : end]
        self.position = end
        return found

    def byte(self) -> int:
        return self.take(1)[0]

    def int32(self) -> int:
        number: int = struct.unpack("<i", self.take(4))[0]
        return number

    def size(self, each: int = 1) -> int:
        """Return the number of following items of at least ``each`` bytes: no more than fit in the remaining bytes."""
        number = self.int32()
        if number < 0 or number * each > len(self.data) - self.position:
            self.fail(f"{number} items should follow in {len(self.data) - self.position} bytes")
        return number

    def long(self) -> int:
        """Return an integer: 15 bits a digit, the least significant first; a negative count of digits is its sign."""
        signed = self.int32()
        count = abs(signed)
        if 2 * count > len(self.data) - self.position:
            self.fail(f"an integer of {count} digits should follow in {len(self.data) - self.position} bytes")
        digits = struct.unpack(f"<{count}H", self.take(2 * count))
        if any(digit >> 15 for digit in digits) or (count and not digits[-1]):
            self.fail("an integer has digits that are too large, or none where it should begin")
        bits = 0
        packed = bytearray()
        value = held = 0
        # Collect whole bytes: shifting one large number for each digit would take quadratic time.
        for digit in digits:
            held |= digit << bits
            bits += 15
            while bits >= 8:
                packed.append(held & 0xFF)
                held >>= 8
                bits -= 8
        packed.append(held)
        value = int.from_bytes(packed, "little")
        return -value if signed < 0 else value

    def float_text(self) -> float:
        text = self.take(self.byte())
        try:
            return float(text)
        except synchronous(ValueError):
            self.fail(f"{text!r} is not a number")

    def double(self) -> float:
        number: float = struct.unpack("<d", self.take(8))[0]
        return number

    def text(self, size: int, encoding: str, *, intern: bool = False) -> str:
        raw = self.take(size)
        try:
            found = raw.decode(encoding, "surrogatepass" if encoding == "utf-8" else "strict")
        except UnicodeDecodeError as error:
            self.fail(f"a string is not {encoding}: {error.reason}")
        return sys.intern(found) if intern else found
