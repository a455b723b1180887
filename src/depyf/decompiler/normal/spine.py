"""The top-level statements of a body, recovered from bytecode: between dominators of its end with an empty stack.

0  LOAD f; CALL; POP          0, 3 and 9 are on every path from the start to the end, in no ``try``, with an empty
3  LOAD a; BRANCH to 9        stack: the code between two such points is a statement, wherever its handlers are
5  LOAD g; CALL; POP
9  ...
"""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from depyf.decompiler.normal.ops import ENDS, Handler, Instr, NormalCode, Op, reachable
from depyf.decompiler.normal.stack_check import stack_depths


class Segment(NamedTuple):
    """Indices of the first operation of a statement, and of the first one after it; ``handler`` covers it."""

    start: int
    end: int
    handler: Optional[Handler] = None


def segments(normal: NormalCode) -> List[Segment]:
    """Return the statements of ``normal``, in order; the code after the last one is the end of the body."""
    ops, depths = normal.ops, stack_depths(normal)
    # A statement begins on every path, with an empty stack. A ``try`` begins with an operation that its own handler
    # covers: control enters the handler's range there (no predecessor is in it), and no other handler is around that.
    within = {
        following
        for index, instr in enumerate(ops)
        if instr.handler is not None
        for following in successors(ops, index)
    }
    points: List[int] = []
    for index in _on_every_way(ops):
        handler = ops[index].handler
        outermost = handler is None or (index not in within and ops[handler.target].handler is None)
        if outermost and not depths.get(index):
            points.append(index)
    return [Segment(start, end) for start, end in zip(points, points[1:])]


def with_one_end(normal: NormalCode) -> NormalCode:
    """Return ``normal`` with every ``return None`` but the last replaced by a jump to the last."""
    ops = normal.ops
    ends = [
        index
        for index in range(len(ops) - 1)
        if ops[index].op is Op.CONST and ops[index].arg is None and ops[index + 1].op is Op.RETURN
    ]
    groups: List[List[Instr]] = [[instr] for instr in ops]
    for index in ends[:-1]:
        groups[index] = [ops[index].changed(op=Op.JUMP, arg=None, target=ends[-1])]
    return replace(normal, ops=reachable(list(enumerate(groups))))


def with_holes(normal: NormalCode, holes: Iterable[Tuple[Segment, str]]) -> NormalCode:
    """Return ``normal`` with each segment replaced by a call of a global name."""
    groups: List[List[Instr]] = [[instr] for instr in normal.ops]
    for (start, end, handler), name in holes:
        first = normal.ops[start].changed(handler=handler)
        call = [
            first.changed(op=Op.LOAD, arg=("name", name), target=None),
            first.changed(op=Op.CALL, arg=(0, (), ""), target=None),
            first.changed(op=Op.POP, arg=None, target=None),
            first.changed(op=Op.JUMP, arg=None, target=end),
        ]
        groups[start] = call
    return replace(normal, ops=reachable(list(enumerate(groups))))


def _on_every_way(ops: Sequence[Instr]) -> List[int]:
    """Return the indices that dominate the end: they are on every path from the start to a ``return``."""
    # One more node, ``count``, is the end: every ``return`` leads there, or in code without a ``return`` every
    # operation that nothing follows (a ``raise`` at the end). Its dominators are on every path.
    count = len(ops)
    out: List[List[int]] = [successors(ops, index) for index in range(count)]
    ends = [index for index, instr in enumerate(ops) if instr.op is Op.RETURN]
    if not ends:
        ends = [index for index, following in enumerate(out) if not following]
    for index in ends:
        out[index] = [*out[index], count]
    above = immediate_dominators([*out, []], 0)
    chain: List[int] = []
    at = above.get(count, 0)
    while at:
        chain.append(at)
        at = above[at]
    return [0, *reversed(chain)]


def successors(ops: Sequence[Instr], index: int) -> List[int]:
    """Return the successors of operation ``index``; its exception handler is the last."""
    instr = ops[index]
    following = [] if instr.op in ENDS else [index + 1]
    if instr.target is not None:
        following.append(instr.target)
    if instr.handler is not None:
        following.append(instr.handler.target)
    return following


def immediate_dominators(out: Sequence[Sequence[int]], root: int) -> Dict[int, int]:
    """Return the immediate dominator of each node that is reachable from ``root``.

    K. D. Cooper, T. J. Harvey, K. Kennedy: A Simple, Fast Dominance Algorithm (2001).
    """
    order = _postorder(out, root)
    number = {index: position for position, index in enumerate(order)}
    into: Dict[int, List[int]] = {}
    for index in order:
        for following in out[index]:
            into.setdefault(following, []).append(index)
    above = {root: root}
    changed = True
    while changed:
        changed = False
        for index in reversed(order):
            if index == root:
                continue
            # The dominators that all known predecessors have in common; repeated until loops change nothing more.
            found: Optional[int] = None
            for before in into[index]:
                if before in above:
                    found = before if found is None else _common(above, number, found, before)
            if found is not None and above.get(index) != found:
                above[index] = found
                changed = True
    return above


def _postorder(out: Sequence[Sequence[int]], root: int) -> List[int]:
    order: List[int] = []
    seen = {root}
    stack = [(root, iter(out[root]))]
    while stack:
        index, rest = stack[-1]
        following = next((each for each in rest if each not in seen), None)
        if following is None:
            order.append(index)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(out[following])))
    return order


def _common(above: Dict[int, int], number: Dict[int, int], one: int, two: int) -> int:
    # A dominator has a higher number in postorder: the lower one climbs until both meet.
    while one != two:
        while number[one] < number[two]:
            one = above[one]
        while number[two] < number[one]:
            two = above[two]
    return one
