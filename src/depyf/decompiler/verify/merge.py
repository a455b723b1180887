"""Join states where paths meet: a pair of values on which all paths agree is kept, all others become symbols.

A joint state represents all states that result from replacing its symbols by values. ``join`` returns the most specific
state that represents two given ones: slots that hold the same pair of values on both paths share a symbol. The
partition of slots into symbols can be refined only finitely often, so the analysis of loops terminates.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, List, Optional, Set, Tuple

from depyf.decompiler.verify.comparison import Finding, MismatchError
from depyf.decompiler.verify.joint import Joint, Matcher, refs
from depyf.decompiler.verify.machine import Machine
from depyf.decompiler.verify.side import Fresh, Side
from depyf.decompiler.verify.values import Const, Marker, Maybe, Prev, Ref, Saved, Sym, Term, Value, ValueTable


def settle(joint: Joint, machine: Machine, matcher: Matcher, common: FrozenSet[str]) -> None:
    """Prepare ``joint`` to be stored: drop its facts, turn corresponding fresh objects into symbols."""
    left, right = joint.sides()
    _plain(left, machine)
    _plain(right, machine)
    joint.facts = {}
    machine.facts = joint.facts
    if not (left.heap and right.heap):
        return
    # Objects that both sides have become one symbol for each pair, as after an event, so that they need no isomorphism
    # from here on. The common variables come first: there the pairs are certain. Guess others by trying all pairs. An
    # object that only one side has (Dynamo's ``[a, b]`` that is indexed later) stays in its heap.
    for name in common:
        mine, theirs = left.locals.get(name), right.locals.get(name)
        if isinstance(mine, Ref) and isinstance(theirs, Ref):
            matcher.try_same(mine, theirs)
    mine_left = list(refs([*left.stack, *left.locals.values()]))
    for theirs in list(refs([*right.stack, *right.locals.values()])):
        for mine in mine_left:
            if matcher.try_same(mine, theirs):
                break
    matcher.escape(left.position, loose=True)


def _plain(side: Side, machine: Machine) -> None:
    """Replace the truths that the facts decide with constants; none of these is counted."""

    def plain(value: Value) -> Value:
        return machine.resolve(value) if value.is_bool and not isinstance(value, Const) else value

    side.stack = [plain(value) if value.is_bool else value for value in side.stack]
    for name, value in side.locals.items():
        if value.is_bool:
            side.locals[name] = plain(value)
    for ref, fresh in side.heap.items():
        if any(item.is_bool for item in fresh.items):
            side.heap[ref] = fresh._replace(items=tuple(plain(item) for item in fresh.items))


def join(stored: Joint, incoming: Joint, values: ValueTable) -> Optional[Joint]:
    """Return the most specific state that represents both; ``None`` if that is ``stored``.

    Both are at the same positions and settled. Raises ``MismatchError`` where their shapes differ.
    """
    merging = _Merging(values)
    left = merging.side(stored.left, incoming.left)
    right = merging.side(stored.right, incoming.right)
    # The stored state represents the incoming one already. Offsets of stores are no part of the state, but kept.
    if not merging.changed:
        for old, new in zip(stored.sides(), incoming.sides()):
            for name, offset in new.stored.items():
                old.stored.setdefault(name, offset)
        return None
    onesided: Set[Value] = set()
    joined = Joint(left.build(onesided), right.build(onesided), onesided, {})
    joined.doubtful = stored.doubtful or incoming.doubtful
    return joined


class _Parts:
    """The parts that a side is rebuilt from."""

    def __init__(self, like: Side, stored: Dict[str, int]) -> None:
        self.like = like
        self.stored = stored
        self.stack: List[Value] = []
        self.locals: Dict[str, Value] = {}
        self.heap: Dict[Ref, Fresh] = {}
        self.handled: Value = like.handled
        self.leaving: Value = like.leaving

    def build(self, onesided: Set[Value]) -> Side:
        side = Side(self.like.program, onesided)
        side.position = self.like.position
        side.stored = self.stored
        side.heap = self.heap
        for fresh in self.heap.values():
            for item in fresh.items:
                side.hold(item)
        for value in self.stack:
            side.push(value)
        for name, value in self.locals.items():
            side.locals[name] = value
            side.hold(value)
        side.handled = self.handled
        side.hold(self.handled)
        side.leaving = self.leaving
        if side.has_left:
            side.hold(self.leaving)
        return side


class _Merging:
    """A join in progress: the value of the incoming state that each symbol of the stored one represents."""

    def __init__(self, values: ValueTable) -> None:
        self.changed = False
        self._values = values
        self._stands_for: Dict[Value, Value] = {}
        self._made: Dict[Tuple[Value, Optional[Value]], Value] = {}
        self._refs: Dict[Ref, Ref] = {}
        self._parts: Optional[_Parts] = None
        self._heaps: Tuple[Dict[Ref, Fresh], Dict[Ref, Fresh]] = ({}, {})

    def side(self, old: Side, new: Side) -> _Parts:
        if len(old.stack) != len(new.stack):
            raise MismatchError(Finding.UNVERIFIED, f"the stack depth differs on two paths to operation {old.position}")
        parts = self._parts = _Parts(old, {**new.stored, **old.stored})
        self._heaps = (old.heap, new.heap)
        meet = self.meet
        # The same slots in the same order on both sides: the first pair that a symbol is met with is what it
        # represents.
        parts.stack = [meet(one, other) for one, other in zip(old.stack, new.stack)]
        for name, value in old.locals.items():
            parts.locals[name] = self._meet_local(value, new.locals.get(name))
        for name, value in new.locals.items():
            if name not in old.locals:
                parts.locals[name] = self._maybe(None, value)
        parts.handled = meet(old.handled, new.handled)
        parts.leaving = meet(old.leaving, new.leaving)
        return parts

    def meet(self, old: Value, new: Value) -> Value:
        # This is anti-unification (Plotkin 1970, Reynolds 1970), with Python values as terms: the same pair (old, new)
        # gives the same symbol in all slots, so that what is equal on both paths stays equal. With ``x`` and ``y`` for
        # slots of original and candidate:
        #     path 1: x = y = a    path 2: x = y = b      ->  x = y = <merged>     proved
        #     path 1: x = y = a    path 2: x = b, y = c   ->  x = <m1>, y = <m2>   refused where they are compared
        if isinstance(old, Sym):
            if isinstance(new, (Sym, Const, Term)):
                if old.named and old is new:
                    return old
                # A symbol of the stored state is a variable that may be instantiated: with one value, the same in all
                # slots.
                known = self._stands_for.get(old)
                if known is new:
                    return old
                # Not even itself if it represents something else already: it is one value on each path.
                if (
                    known is None
                    and not old.named
                    and (new.is_bool or not old.is_bool)
                    and (old.counted or not new.counted)
                ):
                    self._stands_for[old] = new
                    return old
                return self._symbol(old, new)
        elif isinstance(old, Const):
            if old is new:
                return old
            # False on one path, ``not t`` on the other: the negation of (True, t), which another slot may hold without
            # the ``not``.
            if isinstance(new, Term) and new.kind == "not" and old.is_bool:
                return self._values.negate(self.meet(self._values.negate(old), new.left))
            if isinstance(new, (Sym, Const, Term)):
                return self._symbol(old, new)
        elif isinstance(old, Term):
            if old.kind == "not" and new.is_bool:  # the other side may have the truth itself on both paths
                return self._values.negate(self.meet(old.left, self._values.negate(new)))
            if isinstance(new, Term) and old.kind == new.kind == "is":
                return self._meet_terms(old, new)
            if isinstance(new, (Sym, Const, Term)):
                return self._symbol(old, new)
        elif isinstance(old, Ref) and isinstance(new, Ref):
            # Objects that only one side has, as settled states have no others.
            return self._meet_refs(old, new)
        elif isinstance(old, Prev) and isinstance(new, Prev):
            inner = self.meet(old.inner, new.inner)
            return old if inner is old.inner else Prev(inner)
        elif isinstance(old, (Marker, Saved)) and old is new:
            return old
        raise MismatchError(Finding.UNVERIFIED, f"two paths that meet hold {old!r} and {new!r}")

    def _symbol(self, old: Value, new: Value) -> Value:
        """Return the symbol for a value that is ``old`` on one path and ``new`` on the other."""
        key = (old, new)
        if key not in self._made:
            self._made[key] = Sym(
                "merged value",
                counted=old.counted or new.counted,
                is_bool=old.is_bool and new.is_bool,
                loose=True,
            )
        self.changed = True
        return self._made[key]

    def _meet_terms(self, old: Term, new: Term) -> Value:
        """Join the same test of joined values: one side may make it here, the other one later."""
        assert old.right is not None
        assert new.right is not None
        mine, theirs = (old.left, old.right), (new.left, new.right)
        # ``a is b`` and ``b is a`` are one term, whose order is arbitrary: pair the operands as other slots have paired
        # them.
        crosswise = self._known(old.left, new.right) or self._known(old.right, new.left)
        if crosswise and not (self._known(old.left, new.left) or self._known(old.right, new.right)):  # without order
            theirs = (new.right, new.left)
        left, right = self.meet(mine[0], theirs[0]), self.meet(mine[1], theirs[1])
        return old if (left, right) == mine else self._values.same_object(left, right)

    def _known(self, old: Value, new: Value) -> bool:
        return self._stands_for.get(old, old) is new

    def _meet_refs(self, old: Ref, new: Ref) -> Value:
        """Join fresh objects that only one side has: one object on both paths, with joined contents."""
        if old in self._refs:
            if self._refs[old] is new:
                return old
        elif new not in self._refs.values():
            one, other = self._heaps[0][old], self._heaps[1][new]
            if one.kind == other.kind and one.detail == other.detail and len(one.items) == len(other.items):
                # Registered before its items are joined: they may refer to it.
                self._refs[old] = new
                items = tuple(self.meet(mine, theirs) for mine, theirs in zip(one.items, other.items))
                assert self._parts is not None
                self._parts.heap[old] = one._replace(items=items)
                return old
        raise MismatchError(Finding.UNVERIFIED, "a new object of one side differs on two paths that meet")

    # --- locals that may be unbound

    def _meet_local(self, old: Value, new: Optional[Value]) -> Value:
        if isinstance(old, Maybe):
            inner = new.inner if isinstance(new, Maybe) else _UNBOUND if new is None else new
            # An object on one path and nothing on the other has no symbol: ``_maybe`` refuses it.
            if isinstance(inner, Ref):
                return self._maybe(old, inner)
            # ``if a: x = 1`` and then ``g(x)``: the local is bound on one path. What matters later is that both
            # programs have the same Maybe, whose use is an event that may raise (UnboundLocalError), so ``unbound`` is
            # one more value that its symbol may represent.
            known = self._stands_for.get(old.inner)
            if known is inner or (known is None and (old.counted or not inner.counted)):
                self._stands_for[old.inner] = inner
                return old
            return self._maybe(old, new)
        if new is None or isinstance(new, Maybe):
            return self._maybe(old, new)
        return self.meet(old, new)

    def _maybe(self, old: Optional[Value], new: Optional[Value]) -> Value:
        if isinstance(old, Ref) or isinstance(new, Ref):
            raise MismatchError(Finding.UNVERIFIED, "a new object of one side is bound on one of two paths that meet")
        key = (old if old is not None else _UNBOUND, new)
        if key not in self._made:
            counted = any(value is not None and value.counted for value in (old, new))
            self._made[key] = Maybe(Sym("value of a local that may be unbound", counted=counted, loose=True))
        self.changed = True
        return self._made[key]


_UNBOUND = Marker("unbound")
