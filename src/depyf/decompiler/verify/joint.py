"""The joint state of both sides: the simulation relation between the values of the two."""

from __future__ import annotations

import itertools
from typing import Callable, Dict, Hashable, Iterator, List, Mapping, Optional, Set, Tuple

from depyf.decompiler.bytecode.code import Code, is_code
from depyf.decompiler.verify.comparison import Comparison
from depyf.decompiler.verify.machine import Machine
from depyf.decompiler.verify.program import Program
from depyf.decompiler.verify.side import Fresh, Side
from depyf.decompiler.verify.values import Const, Ref, Sym, Value

_paths = itertools.count(1)

CompareCodes = Callable[[Code, Code], Comparison]


class Joint:
    """A state of the product: both sides at once.

    ``facts`` are the truths that the path has tested, ``path`` distinguishes paths, ``onesided`` are the values that
    only one side keeps alive. ``doubtful``: the path may be infeasible. ``origin`` is the join point that it comes
    from, if there was no event since.
    """

    __slots__ = ("doubtful", "facts", "left", "onesided", "origin", "path", "right")

    def __init__(self, left: Side, right: Side, onesided: Set[Value], facts: Dict[Value, Value]) -> None:
        self.left, self.right, self.onesided, self.facts = left, right, onesided, facts
        self.path = next(_paths)
        self.doubtful = False
        self.origin: Optional[Tuple[Hashable, ...]] = None

    @classmethod
    def start(cls, original: Program, candidate: Program) -> Joint:
        onesided: Set[Value] = set()
        return cls(Side(original, onesided), Side(candidate, onesided), onesided, {})

    def clone(self) -> Joint:
        onesided = self.onesided.copy()
        other = Joint(self.left.clone(onesided), self.right.clone(onesided), onesided, self.facts.copy())
        other.doubtful = self.doubtful
        other.origin = self.origin
        return other

    def trimmed(self, depths: List[int]) -> Joint:
        """Return a copy whose sides will be unwound to ``depths``."""
        if not (self.left.heap or self.right.heap):
            return self.clone()
        onesided: Set[Value] = set()
        left, right = (side.trimmed(depth, onesided) for side, depth in zip(self.sides(), depths))
        other = Joint(left, right, onesided, self.facts.copy())
        other.doubtful = self.doubtful
        return other

    def renew(self) -> None:
        """Mark this state as on a new path."""
        self.path = next(_paths)

    def sides(self) -> Tuple[Side, Side]:
        return self.left, self.right


class Matcher:
    """Decide whether values of both sides correspond: fresh objects by an isomorphism of their contents."""

    def __init__(self, joint: Joint, machine: Machine, compare_codes: CompareCodes, renamed: Mapping[str, str]) -> None:
        self._left, self._right = joint.sides()
        self._machine = machine
        self._compare_codes = compare_codes
        self._renamed = renamed
        self._pairs: Dict[Ref, Ref] = {}
        self._taken: Set[Ref] = set()
        self.nested: Optional[Comparison] = None
        """The last pair of nested code objects that was not proved."""
        self.inner: Optional[Tuple[Value, Value]] = None
        """The last pair of values that did not correspond, inside new objects or as they are."""

    def same(self, left: Value, right: Value) -> bool:
        if isinstance(left, Ref) or isinstance(right, Ref):
            return isinstance(left, Ref) and isinstance(right, Ref) and self._same_objects(left, right)
        left, right = self._machine.resolve(left), self._machine.resolve(right)
        if left is right:
            return True
        if isinstance(left, Const) and isinstance(right, Const):
            one, other = left.value, right.value
            if is_code(one) and is_code(other):
                comparison = self._compare_codes(one, other)
                if not comparison.proved:
                    self.nested = comparison
                return comparison.proved
        self.inner = (left, right)
        return False

    def try_same(self, left: Value, right: Value) -> bool:
        """Do as ``same``, but pair nothing if they don't correspond."""
        pairs, taken = dict(self._pairs), set(self._taken)
        if self.same(left, right):
            return True
        self._pairs, self._taken = pairs, taken
        return False

    def _same_objects(self, left: Ref, right: Ref) -> bool:
        # Each object has one partner: ``x = []; g(x, x)`` is refused against ``x = []; y = []; g(x, y)``.
        if left in self._pairs or right in self._taken:
            return self._pairs.get(left) is right
        one, other = self._left.heap[left], self._right.heap[right]
        if one.kind != other.kind or one.detail != other.detail or len(one.items) != len(other.items):
            return False
        # Paired before their items are compared, which may contain the objects themselves.
        self._pairs[left] = right
        self._taken.add(right)
        # 8: it has a closure. CPython orders the cells by the names of the variables, which may be ``renamed``.
        if one.kind == "function" and isinstance(one.detail, int) and one.detail & 8:
            return self._same_closures(one, other)
        return all(self.same(mine, theirs) for mine, theirs in zip(one.items, other.items))

    def _same_closures(self, one: Fresh, other: Fresh) -> bool:
        """Return whether each free variable has the same cell, in any order (renaming may change the order)."""
        if not all(self.same(mine, theirs) for mine, theirs in zip(one.items[:-1], other.items[:-1])):
            return False
        my_names, their_names = self._free_variables(one, {}), self._free_variables(other, self._renamed)
        mine, theirs = one.items[-1], other.items[-1]
        # Closures that are new tuples: compare their cells by the names of the variables.
        if isinstance(mine, Ref) and isinstance(theirs, Ref):
            my_cells, their_cells = self._left.heap[mine].items, self._right.heap[theirs].items
            by_name = dict(zip(their_names, their_cells))
            return len(my_names) == len(my_cells) == len(by_name) == len(their_cells) and all(
                name in by_name and self.same(cell, by_name[name]) for name, cell in zip(my_names, my_cells)
            )
        return my_names == their_names and self.same(mine, theirs)

    def _free_variables(self, function: Fresh, renamed: Mapping[str, str]) -> Tuple[str, ...]:
        code = function.items[0]
        if not isinstance(code, Const) or not is_code(code.value):
            return ()
        return tuple(renamed.get(name, name) for name in code.value.co_freevars)

    def escape(self, where: int, *, loose: bool = False) -> None:
        """Let the pairs found so far escape: give each a symbol of its own."""
        for left, right in self._pairs.items():
            # Both are released: replacing an object that held them has dropped the last references.
            if left not in self._left.heap and right not in self._right.heap:
                continue
            fresh = self._left.heap.get(left) or self._right.heap[right]
            sym = Sym(f"new {fresh.kind} at {where}", loose=loose)
            self._left.replace(left, sym)
            self._right.replace(right, sym)
        self._pairs, self._taken = {}, set()


def refs(values: List[Value]) -> Iterator[Ref]:
    for value in values:
        if isinstance(value, Ref):
            yield value
