"""The statements at the top of a body, as bytecode shows them: where all control comes by, with nothing on the stack.

0  LOAD f; CALL; POP          0, 3 and 9 are on every way from the start to the end, in no ``try``, with an empty
3  LOAD a; BRANCH to 9        stack: what lies between two of them is a statement, wherever its handlers stand
5  LOAD g; CALL; POP
9  ...
"""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterable, List, Optional, Sequence, Set, Tuple

from depyf.normal.ops import ENDS, Instr, NormalCode, Op
from depyf.normal.stack_check import stack_depths

Segment = Tuple[int, int]
"""Indices of the first operation of a statement, and of the first one behind it."""


def segments(normal: NormalCode) -> List[Segment]:
    """The statements of ``normal``, in their order; what stands behind the last of them is the end of the body."""
    depths = stack_depths(normal)
    points = [
        index for index in _on_every_way(normal.ops) if not depths.get(index) and normal.ops[index].handler is None
    ]
    return list(zip(points, points[1:]))


def with_holes(normal: NormalCode, holes: Iterable[Tuple[Segment, str]]) -> NormalCode:
    """``normal`` with a call of a global name in the place of each segment."""
    ops: List[List[Instr]] = [[instr] for instr in normal.ops]
    for (start, end), name in holes:
        first = normal.ops[start]
        call = [
            replace(first, op=Op.LOAD, arg=("name", name), target=None),
            replace(first, op=Op.CALL, arg=(0, (), ""), target=None),
            replace(first, op=Op.POP, arg=None, target=None),
            replace(first, op=Op.JUMP, arg=None, target=end),
        ]
        ops[start] = call
    return replace(normal, ops=_reached(ops))


def _reached(groups: Sequence[List[Instr]]) -> Tuple[Instr, ...]:
    """The operations that can be reached, with their targets counted anew."""
    todo: List[int] = [0]
    known: Set[int] = set()
    while todo:
        index = todo.pop()
        if index in known:
            continue
        known.add(index)
        group = groups[index]
        for instr in group:
            if instr.target is not None:
                todo.append(instr.target)
            if instr.handler is not None:
                todo.append(instr.handler.target)
        if group[-1].op not in ENDS:
            todo.append(index + 1)
    seen = sorted(known)
    new_index: Dict[int, int] = {}
    count = 0
    for index in seen:
        new_index[index] = count
        count += len(groups[index])
    result: List[Instr] = []
    for index in seen:
        for instr in groups[index]:
            target = None if instr.target is None else new_index[instr.target]
            handler = instr.handler and replace(instr.handler, target=new_index[instr.handler.target])
            result.append(replace(instr, target=target, handler=handler))
    return tuple(result)


def _on_every_way(ops: Sequence[Instr]) -> List[int]:
    """The indices that dominate the end: every way from the start to a ``return`` leads over them."""
    count = len(ops)
    out: List[List[int]] = [_successors(ops, index) for index in range(count)]
    ends = [index for index, instr in enumerate(ops) if instr.op is Op.RETURN]
    if not ends:
        ends = [index for index, following in enumerate(out) if not following]
    for index in ends:
        out[index] = [*out[index], count]
    order = _postorder(out, count + 1)
    number = {index: place for place, index in enumerate(order)}
    into: Dict[int, List[int]] = {}
    for index in order:
        for following in out[index] if index < count else ():
            into.setdefault(following, []).append(index)
    above = {0: 0}
    changed = True
    while changed:
        changed = False
        for index in reversed(order):
            if index == 0:
                continue
            found: Optional[int] = None
            for before in into[index]:
                if before in above:
                    found = before if found is None else _common(above, number, found, before)
            if found is not None and above.get(index) != found:
                above[index] = found
                changed = True
    chain: List[int] = []
    at = above.get(count, 0)
    while at:
        chain.append(at)
        at = above[at]
    return [0, *reversed(chain)]


def _successors(ops: Sequence[Instr], index: int) -> List[int]:
    instr = ops[index]
    following = [] if instr.op in ENDS else [index + 1]
    if instr.target is not None:
        following.append(instr.target)
    if instr.handler is not None:
        following.append(instr.handler.target)
    return following


def _postorder(out: Sequence[Sequence[int]], count: int) -> List[int]:
    order: List[int] = []
    seen = {0}
    stack = [(0, iter(out[0]))]
    while stack:
        index, rest = stack[-1]
        following = next((each for each in rest if each not in seen), None)
        if following is None:
            order.append(index)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(out[following] if following < count - 1 else ())))
    return order


def _common(above: Dict[int, int], number: Dict[int, int], one: int, two: int) -> int:
    while one != two:
        while number[one] < number[two]:
            one = above[one]
        while number[two] < number[one]:
            two = above[two]
    return one
