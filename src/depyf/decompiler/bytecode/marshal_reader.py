"""Read the ``marshal`` format of any supported CPython; code objects become ``PortableCode``.

``marshal.loads`` reads only code objects of its own version, makes objects that crash the interpreter from malformed
input, and trusts every size. This reader checks its input: for any bytes it returns a value or raises ``ValueError``,
in time and memory that grow with the number of bytes.
"""

from __future__ import annotations

import builtins
import inspect
import struct
from collections import Counter
from dataclasses import replace
from typing import Any, Callable, Dict, Generator, Iterable, List, Optional, Tuple

from depyf.base.asynchronous import synchronous
from depyf.decompiler.bytecode.byte_reader import ByteReader
from depyf.decompiler.bytecode.code import COMPREHENSIONS, PortableCode, check_facts
from depyf.decompiler.bytecode.opcode_table import Version

DEEPEST = 400
"""The limit on nesting. The compiler stops at 100 levels of indentation; each is two levels here."""

LARGEST = 20
"""The limit on objects per byte, counting each reference to an object (and ``ALWAYS``)."""

ALWAYS = 100_000

EQUAL_HASHES = 500
"""The limit on items of a set or keys of a mapping with one hash: each is compared with all before it."""

_REMEMBERED = 0x80
_LOCAL, _CELL, _FREE = 0x20, 0x40, 0x80
_ABSENT = object()

Parts = Generator[None, Any, Any]
"""The reader of an object that contains others: it yields to be sent the next one, and returns the object."""


def read_marshal(data: bytes, version: Version) -> object:
    """Return the object that CPython ``version`` wrote as ``data``. Raises ``ValueError`` when it is malformed."""
    value, end = read_first(data, version)
    if end != len(data):
        raise ValueError(f"malformed marshal data at byte {end}: {len(data) - end} bytes follow the object")
    return value


def read_first(data: bytes, version: Version) -> Tuple[object, int]:
    """Return the object that ``data`` begins with, and where it ends. Raises ``ValueError`` when it is malformed."""
    reader = _Reader(data, version)
    value = reader.value()
    if isinstance(value, PortableCode) and version < (3, 11):
        value = _with_qualified_names(value, value.co_name, "")
    return value, reader.position


def _with_qualified_names(code: PortableCode, qualname: str, prefix: str) -> PortableCode:
    """Return ``code`` with qualified names for it and its nested code objects, which have none before 3.11."""
    # The constants contain the qualified names: the enclosing code has the names of functions, as operands of
    # MAKE_FUNCTION, and a class body has its own. Of a name declared ``global`` they have the plain name only. Inside
    # of a class or comprehension, the prefix has no "<locals>".

    def named(inner: object) -> object:
        if not isinstance(inner, PortableCode):
            return inner
        is_class = not inner.co_flags & inspect.CO_OPTIMIZED
        texts = [text for text in (inner if is_class else code).co_consts if type(text) is str]
        name = prefix + inner.co_name
        if name not in texts and inner.co_name in texts:
            name = inner.co_name
        plain = is_class or inner.co_name in COMPREHENSIONS
        return _with_qualified_names(inner, name, f"{name}." if plain else f"{name}.<locals>.")

    return replace(code, co_qualname=qualname, co_consts=tuple(map(named, code.co_consts)))


class _Reader(ByteReader):
    """Reads the objects in the bytes; keeps those that later ones may refer to.

    ``count`` is the number of objects so far, with shared ones counted at each reference: a few bytes can describe a
    tuple of tuples of tuples that is too large to print.
    """

    def __init__(self, data: bytes, version: Version) -> None:
        super().__init__(data)
        self.version = version
        self.count = 0
        self.remembered: List[object] = []
        self.counts: List[int] = []
        self.most = LARGEST * len(data) + ALWAYS

    def value(self) -> Any:
        """Return the next object. Containers are read by generators, which are sent their items: nesting uses no call
        stack."""
        # ``open_ones``: the readers of the containers around, each with its slot and the count of objects before it.
        open_ones: List[Tuple[Parts, int, int]] = []
        while True:
            found, parts, slot = self.begin()
            if parts is not None:
                open_ones.append((parts, slot, self.count))
                if len(open_ones) > DEEPEST:
                    self.fail(f"objects are nested more than {DEEPEST} levels deep")
            while open_ones:
                parts, slot, before = open_ones[-1]
                try:
                    parts.send(found)  # the first time None, which starts the generator
                except StopIteration as stop:
                    found = stop.value
                    open_ones.pop()
                    self.remember(slot, found, self.count - before + 1)
                else:
                    break  # it needs another one
            if not open_ones:
                return self.present(found)

    def begin(self) -> Tuple[object, Optional[Parts], int]:
        """Return the next object if it contains no others, or else a generator that is sent its parts, with its slot
        for references (-1 if it has none)."""
        kind = self.byte()
        code = chr(kind & ~_REMEMBERED)
        self.count += 1
        if code == "r":
            return self.reference(), None, -1
        self.check_count()
        slot = -1
        if kind & _REMEMBERED:
            slot = len(self.remembered)
            self.remembered.append(_ABSENT)
            self.counts.append(0)
        leaf = _LEAVES.get(code)
        if leaf is not None:
            found = leaf(self)
            self.remember(slot, found, 1)
            return found, None, slot
        container = _CONTAINERS.get(code)
        if container is None or self.version < _SINCE.get(code, self.version):
            self.position -= 1
            self.fail(f"unknown type code {kind & ~_REMEMBERED:#04x}")
        return None, container(self), slot

    def remember(self, slot: int, found: object, count: int) -> None:
        if slot >= 0:
            self.remembered[slot] = found
            self.counts[slot] = count

    def reference(self) -> object:
        index = self.int32()
        if not 0 <= index < len(self.remembered):
            self.fail(f"a reference to object {index} of {len(self.remembered)}")
        found = self.remembered[index]
        if found is _ABSENT:
            self.fail(f"object {index} refers to itself")
        self.count += self.counts[index]
        self.check_count()
        return found

    def check_count(self) -> None:
        if self.count > self.most:
            self.fail("the data describes far too many objects for its size")

    def present(self, found: object) -> object:
        if found is _ABSENT:
            self.fail("an object is missing")
        return found

    def items(self, count: int) -> Parts:
        found = []
        for _ in range(count):
            found.append(self.present((yield)))
        return found

    def tuple(self, count: int) -> Parts:
        return tuple((yield from self.items(count)))

    def set(self, make: Callable[[Any], Any]) -> Parts:
        found = yield from self.items(self.size())
        return self.hashed(found, lambda: make(found))

    def hashed(self, keys: Iterable[object], make: Callable[[], object]) -> Any:
        try:
            hashes = Counter(map(hash, keys))
            if hashes and max(hashes.values()) > EQUAL_HASHES:
                self.fail(f"more than {EQUAL_HASHES} items have the same hash")
            return make()
        except TypeError as error:
            self.fail(str(error))

    def mapping(self) -> Parts:
        pairs: List[Tuple[object, object]] = []
        while True:
            key = yield
            if key is _ABSENT:
                return self.hashed([key for key, _ in pairs], lambda: dict(pairs))
            pairs.append((key, self.present((yield))))

    def frozendict(self) -> Parts:
        """Read a frozendict, a type of Python 3.15. Fail if this Python lacks it."""
        found = yield from self.mapping()
        make: Optional[Callable[[Any], Any]] = getattr(builtins, "frozendict", None)
        if make is None:
            self.fail("a frozendict, a type that this Python lacks")
        return self.hashed((), lambda: make(found))

    def slice(self) -> Parts:
        return slice(*(yield from self.items(3)))

    # --- code objects -------------------------------------------------------------------------------------------------

    def code(self) -> Parts:
        return self.code_with_locals_plus() if self.version >= (3, 11) else self.code_with_names()

    def code_with_names(self) -> Parts:
        """Read a code object of 3.8 to 3.10: separate local, free and cell variables, no exception table."""
        arguments = (self.int32(), self.int32(), self.int32())
        local_count, stack_size, flags = self.int32(), self.int32(), self.int32()
        raw, constants, names = (
            (yield from self.typed(bytes)),
            (yield from self.typed(tuple)),
            (yield from self.names()),
        )
        local, free, cell = (yield from self.names()), (yield from self.names()), (yield from self.names())
        filename, name, line = (yield from self.typed(str)), (yield from self.typed(str)), self.int32()
        lines = yield from self.typed(bytes)
        if local_count != len(local):
            self.fail(f"{name} should have {local_count} local variables, and has {len(local)}")
        return self.checked(
            PortableCode(
                self.version, *arguments, local_count, stack_size, flags, raw, constants, names, local, free, cell,
                filename, name, name, line, lines, b"",
            )
        )  # fmt: skip

    def code_with_locals_plus(self) -> Parts:
        """Read a code object of 3.11 and later: all variables in one tuple, with a byte for the kind of each."""
        # argcount, posonlyargcount, kwonlyargcount; then as below
        arguments = (self.int32(), self.int32(), self.int32())
        stack_size, flags = self.int32(), self.int32()
        raw, constants, names = (
            (yield from self.typed(bytes)),
            (yield from self.typed(tuple)),
            (yield from self.names()),
        )
        variables, kinds = (yield from self.names()), (yield from self.typed(bytes))
        filename, name, qualname, line = (
            (yield from self.typed(str)),
            (yield from self.typed(str)),
            (yield from self.typed(str)),
            self.int32(),
        )
        lines, exceptions = (yield from self.typed(bytes)), (yield from self.typed(bytes))
        if len(variables) != len(kinds):
            self.fail(f"{name} has {len(variables)} variables, and kinds for {len(kinds)} of them")
        # A variable may be a local and a cell. The order is: locals, cells that are no locals, free variables.
        local, cell, free = (
            tuple(variable for variable, kind in zip(variables, kinds) if kind & bit) for bit in (_LOCAL, _CELL, _FREE)
        )
        apart = tuple(variable for variable, kind in zip(variables, kinds) if kind & (_LOCAL | _CELL) == _CELL)
        if variables != (*local, *apart, *free):
            self.fail(f"the variables of {name} are out of order, or of an unknown kind")
        return self.checked(
            PortableCode(
                self.version, *arguments, len(local), stack_size, flags, raw, constants, names, local, free, cell,
                filename, name, qualname, line, lines, exceptions,
            )
        )  # fmt: skip

    def checked(self, code: PortableCode) -> PortableCode:
        try:
            check_facts(code)
        except synchronous(ValueError) as error:
            self.fail(str(error))
        return code

    def typed(self, kind: type) -> Parts:
        value = yield
        if type(value) is not kind:
            self.fail(f"a {type(value).__name__} in a code object where a {kind.__name__} should be")
        return value

    def names(self) -> Parts:
        found = yield from self.typed(tuple)
        if not all(type(name) is str for name in found):
            self.fail("a name in a code object is not a string")
        return found


_LEAVES: Dict[str, Callable[[_Reader], object]] = {
    "0": lambda reader: _ABSENT,
    "N": lambda reader: None,
    "F": lambda reader: False,
    "T": lambda reader: True,
    "S": lambda reader: StopIteration,
    ".": lambda reader: Ellipsis,
    "i": _Reader.int32,
    "I": lambda reader: struct.unpack("<q", reader.take(8))[0],
    "l": _Reader.long,
    "f": _Reader.float_text,
    "g": _Reader.double,
    "x": lambda reader: complex(reader.float_text(), reader.float_text()),
    "y": lambda reader: complex(reader.double(), reader.double()),
    "s": lambda reader: reader.take(reader.size()),
    "t": lambda reader: reader.text(reader.size(), "utf-8", intern=True),
    "u": lambda reader: reader.text(reader.size(), "utf-8"),
    "a": lambda reader: reader.text(reader.size(), "ascii"),
    "A": lambda reader: reader.text(reader.size(), "ascii", intern=True),
    "z": lambda reader: reader.text(reader.byte(), "ascii"),
    "Z": lambda reader: reader.text(reader.byte(), "ascii", intern=True),
}
_CONTAINERS: Dict[str, Callable[[_Reader], Parts]] = {
    "(": lambda reader: reader.tuple(reader.size()),
    ")": lambda reader: reader.tuple(reader.byte()),
    "[": lambda reader: reader.items(reader.size()),
    "{": _Reader.mapping,
    "<": lambda reader: reader.set(set),
    ">": lambda reader: reader.set(frozenset),
    ":": _Reader.slice,
    "}": _Reader.frozendict,
    "c": _Reader.code,
}
_SINCE: Dict[str, Version] = {":": (3, 14), "}": (3, 15)}
