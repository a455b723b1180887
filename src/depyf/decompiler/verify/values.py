"""The values of the symbolic machine.

Values are compared by identity: constants and terms are interned by ``ValueTable``, symbols are unique, and a fresh
container is a ``Ref`` into the heap of its side. ``counted`` is whether a value takes part in the comparison of
lifetimes (constants, markers and truth values do not).
"""

from __future__ import annotations

from typing import Dict, FrozenSet, Hashable, Literal, Optional, Tuple

from depyf.base.messages import cut
from depyf.decompiler.verify.constants import TESTABLE, constant_key, holds_nan, members_key


class Value:
    """Base class of all values. ``is_bool``: known to be exactly ``True`` or ``False``."""

    __slots__ = ()
    counted = False
    is_bool = False


class Const(Value):
    """A constant; ``ValueTable.const`` makes equal ones identical."""

    __slots__ = ("is_bool", "value")

    def __init__(self, value: object) -> None:
        self.value = value
        self.is_bool = type(value) is bool

    def __repr__(self) -> str:
        return cut(repr(self.value), 40)


class Sym(Value):
    """An unknown that both sides share: an argument, the result of an event, or a value that differs between paths.

    ``loose``: it was made by a loss of precision, so that a difference in it need not be a real one.
    ``named``: it is the only one of this name in the whole proof, and never represents anything else.
    """

    __slots__ = ("counted", "is_bool", "loose", "name", "named")

    def __init__(
        self, name: str, *, counted: bool = True, is_bool: bool = False, loose: bool = False, named: bool = False
    ) -> None:
        self.name = name
        self.named = named
        self.counted = counted
        self.is_bool = is_bool
        self.loose = loose

    def __repr__(self) -> str:
        return f"<{self.name}>"


TermKind = Literal["is", "not", "cell"]


class Term(Value):
    """A pure truth: ``a is b``, ``not a`` for a truth ``a``, or that ``a`` is a cell or a closure of cells."""

    __slots__ = ("kind", "left", "right")
    is_bool = True

    def __init__(self, kind: TermKind, left: Value, right: Optional[Value] = None) -> None:
        self.kind, self.left, self.right = kind, left, right

    def __repr__(self) -> str:
        return f"<not {self.left}>" if self.kind == "not" else f"<{self.left} is {self.right}>"


class Ref(Value):
    """A fresh object that has not escaped; its contents are in the heap of its side."""

    __slots__ = ()
    counted = True

    def __repr__(self) -> str:
        return "<a new object>"


class Prev(Value):
    """The marker that PUSH_EXC pushes: the exception that was being handled before."""

    __slots__ = ("counted", "inner")

    def __init__(self, inner: Value) -> None:
        self.inner = inner
        self.counted = inner.counted


class Maybe(Value):
    """A local that holds ``inner``, or nothing."""

    __slots__ = ("counted", "inner")

    def __init__(self, inner: Sym) -> None:
        self.inner = inner
        self.counted = inner.counted


class Saved(Value):
    """The marker that TAKE pushes; the value itself, if there was one, is the local ``key``."""

    __slots__ = ("key",)

    def __init__(self, key: str) -> None:
        self.key = key

    def __repr__(self) -> str:
        return f"<{self.key}>"


class Marker(Value):
    """NULL and the other markers of the stack."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


NULL = Marker("NULL")
LASTI = Marker("LASTI")
OUTER = Marker("the exception that the caller handles")


class ValueTable:
    """The tables that make equal constants, terms and named symbols identical."""

    def __init__(self) -> None:
        self._constants: Dict[Hashable, Const] = {}
        self._by_identity: Dict[int, Tuple[object, Const]] = {}
        self._terms: Dict[Hashable, Term] = {}
        self._named: Dict[Hashable, Sym] = {}
        self._saved: Dict[Tuple[str, int], Saved] = {}
        self.none = self.const(None)
        self.true = self.const(True)
        self.false = self.const(False)

    def const(self, value: object) -> Const:
        known = self._by_identity.get(id(value))
        if known is not None:
            return known[1]
        key = constant_key(value)
        const = self._constants.get(key)
        if const is None:
            const = self._constants[key] = Const(value)
        self._by_identity[id(value)] = (value, const)  # keeps the object alive, so that its id stays unique
        return const

    def members(self, value: FrozenSet[object]) -> Const:
        """Return a constant set that is compared by its members, not by their order."""
        key = members_key(value)
        if key not in self._constants:
            self._constants[key] = Const(value)
        return self._constants[key]

    def named(self, kind: str, name: str, *, counted: bool = False) -> Sym:
        """Return the unique symbol for ``kind`` and ``name``, such as the cell of a variable."""
        sym = self._named.get((kind, name))
        if sym is None:
            sym = self._named[kind, name] = Sym(f"{kind} {name}", counted=counted, named=True)
        return sym

    def is_named(self, kind: str, value: Value) -> bool:
        """Return whether ``value`` is one of the symbols of this kind."""
        return isinstance(value, Sym) and value.named and value.name.partition(" ")[0] == kind

    def saved(self, name: str, depth: int) -> Saved:
        """Return the unique marker for the value of the variable ``name``, saved for the ``depth``-th time."""
        known = self._saved.get((name, depth))
        if known is None:
            known = self._saved[name, depth] = Saved(f"{name} put aside {depth}")
        return known

    def negate(self, truth: Value) -> Value:
        if isinstance(truth, Const):
            return self.false if truth.value else self.true
        if isinstance(truth, Term) and truth.kind == "not":
            return truth.left
        return self._term("not", truth, None)

    def fits_closures(self, value: Value) -> Value:
        """Return the truth that a function may have ``value`` as its closure, or in it."""
        return self._term("cell", value, None)

    def same_object(self, left: Value, right: Value) -> Value:
        """Return ``left is right``: a constant where that is certain."""
        if left is right:
            # Equal constants are interned; equal NaNs need not be one object.
            return self._term("is", left, right) if isinstance(left, Const) and holds_nan(left.value) else self.true
        # A new object is no other value.
        if isinstance(left, Ref) or isinstance(right, Ref):
            return self.false
        if isinstance(left, Const):
            left, right = right, left
        if isinstance(right, Const):
            if isinstance(left, Const):
                return self.false
            # ``t is True`` is ``t`` for a truth t, ``t is False`` is ``not t``, and ``t is 1`` is false.
            if left.is_bool:
                if type(right.value) is bool:
                    return left if right.value else self.negate(left)
                return self.false
        # One term for ``a is b`` and ``b is a``.
        elif id(left) > id(right):
            left, right = right, left
        return self._term("is", left, right)

    def _term(self, kind: TermKind, left: Value, right: Optional[Value]) -> Term:
        key = (kind, left, right)
        term = self._terms.get(key)
        if term is None:
            term = self._terms[key] = Term(kind, left, right)
        return term


def known_truth(value: Value) -> Optional[bool]:
    """Return the truth of a constant, where testing it runs no foreign code."""
    if isinstance(value, Const) and type(value.value) in TESTABLE:
        return bool(value.value)
    return None
