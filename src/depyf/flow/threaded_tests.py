"""Undo the jump threading of compilers: a test of a value skips the next test of the same value.

Since 3.14:

    a and b or c:   a; COPY 1; BRANCH false -> 2; POP; b; 1: COPY 1; BRANCH true -> 3; 2: POP; c; 3:

Before, a false ``a`` jumped to 1, and from there to 2. This restores that.

Up to 3.11, and since 3.14, a test in an operand that is an ``if``-``else`` expression skips that of the whole operand:

    (x if c else p or q) or z:    ... p; COPY 1; BRANCH true -> 2; POP; q; 1: COPY 1; BRANCH true -> 2; POP; z; 2:
    (x if c else p and q) or z:   ... p; BRANCH false -> 3; q; 1: COPY 1; BRANCH true -> 2; POP; 3: z; 2:

Here it jumps to 1, with its value. In ``((x if c else p or q) and y) or z`` the test at 1 keeps no value (up to 3.11).

Since 3.14 a test in the first arm skips none: it jumps to the end of the arm. Where a constant chooses that arm, a test
of a value jumps to the next test of the same value:

    (p or q if True else x) and z:    p; COPY 1; BRANCH true -> 1; POP; q; 1: COPY 1; BRANCH false -> 2; POP; z; 2:

CPython 3.14 leaves a test that skips an equal one, ``b`` in ``a or (b or c) or d``, out of the handlers around it: an
exception that ``__bool__`` raises there is not handled. This alone distinguishes it from ``a or b or c or d``.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Container, Dict, FrozenSet, List, Optional, Sequence, Set, Tuple

from depyf.flow.graph import Block, Branch, FlowGraph, Jump, Region, Test
from depyf.normal.ops import Op


def undo_threaded_tests(graph: FlowGraph) -> None:
    """Redirect the tests of ``and`` and ``or`` to the test of the enclosing operator; find the ends of arms that a
    constant chooses."""
    if not graph.code.threads_tests or Op.COPY not in graph.code.kinds:
        return
    open_tests = _open_tests(graph)
    around: Dict[int, Block] = {}
    for block in graph.blocks.values():
        test = _value_test(block)
        if test is None:
            continue
        if _drops_value(graph.blocks[test.fall]):
            around[test.fall] = block
        again = graph.blocks[test.target]
        if len(again.ops) == 1 and _value_test(again) is not None:
            graph.arm_ends.add(again.id)
    begins: Dict[int, int] = {}  # by the target of a skipped test: the offset of the first test that skips it
    for block in graph.blocks.values():
        if _skips(block, around):
            target = block.successors()[1]
            begins[target] = min(block.extent(), begins.get(target, block.extent()))
    for target in begins:
        around[target] = _alone(graph, around[target])
    for block in list(graph.blocks.values()):
        if _skips(block, around):
            _go_to(block, around[block.successors()[1]])
    _keep_inside(graph, [(around[target], begins[target]) for target in sorted(begins)])
    if open_tests:
        _redirect_open_tests(graph, open_tests)


def _open_tests(graph: FlowGraph) -> Set[int]:
    """Return the offsets of the tests that are left out of the handlers around them; move them into their regions."""
    found = set(graph.code.open_tests or ())
    for block in graph.blocks.values():
        test = _value_test(block)
        if test is not None and len(block.ops) == 1 and _drops_value(graph.blocks[test.fall]):
            region = graph.blocks[test.fall].region
            if region != block.region and block.region in (None, *graph.chain(region)):
                block.region = region
                found.add(test.instr.offset)
    return found


def _redirect_open_tests(graph: FlowGraph, offsets: Set[int]) -> None:
    """Redirect the tests at ``offsets`` to that of their operand: the next one with their target that is covered."""
    tests = [block for block in graph.blocks.values() if _value_test(block) is not None]
    following: Dict[Tuple[int, bool, Optional[Region]], Block] = {}
    for block in sorted(tests, key=lambda block: block.ops[-1].offset, reverse=True):
        assert isinstance(block.term, Branch)
        way = (block.term.target, block.term.jump_when, block.region)
        if block.term.instr.offset not in offsets:
            following[way] = block
        elif way in following:
            following[way] = _alone(graph, following[way])
            _go_to(block, following[way])


def undo_threaded_choices(graph: FlowGraph) -> None:
    """Redirect the tests in an arm of ``a if test else b`` to the test of the ``and`` or ``or`` around that."""
    if not graph.code.threads_operands or Op.COPY not in graph.code.kinds:
        return
    joins = [block for block in graph.blocks.values() if len(block.ops) < 2 and _only_tests(block)]
    before = graph.predecessors() if joins else {}
    for join in joins:
        if len(before[join.id]) > 1:
            _redirect_arms(graph, join, before)


def _redirect_arms(graph: FlowGraph, join: Block, before: Dict[int, List[int]]) -> None:
    """Redirect the tests behind the one that chooses an arm; all paths from that lead to ``join``."""
    every = frozenset(before[join.id])
    reached: Dict[int, FrozenSet[int]] = {join.id: frozenset()}  # the last blocks of the paths from each block
    todo = [join.id]
    while todo:
        for id in before.get(todo.pop(), ()):
            block = graph.blocks[id]
            if id in reached or block.region != join.region:
                continue
            known = [reached[each] for each in block.successors() if each in reached]
            if len(known) == len(block.successors()) or (known and _redirect_to_join(graph, block, reached, join)):
                last = every.intersection([id]).union(*known)
                if last != every:
                    reached[id] = last
                    todo.append(id)


def _redirect_to_join(graph: FlowGraph, block: Block, reached: Container[int], join: Block) -> bool:
    """Let the test of ``block``, which goes on in one of ``reached``, jump to ``join`` with its value, if it jumps to
    where the test there would; return whether it does."""
    test, outer = block.term, join.term
    if type(test) is not Branch or test.test is not Test.TRUTH or test.fall not in reached:
        return False
    assert isinstance(outer, Branch)
    if _value_test(block) is not None:
        skips = bool(join.ops) and (test.target, test.jump_when) == (outer.target, outer.jump_when)
        if skips:
            _go_to(block, join)
        return skips
    if test.target != _without_value(graph, join, outer, truth=test.jump_when):
        return False
    block.ops.append(test.instr.changed(op=Op.COPY, arg=1, target=None))
    popped = [test.instr.changed(op=Op.POP, arg=None, target=None)]
    test.fall = graph.new_block(popped, Jump(test.fall), block.region).id
    _go_to(block, join)
    return True


def _without_value(graph: FlowGraph, join: Block, outer: Branch, *, truth: bool) -> Optional[int]:
    """Return the block that ``join`` goes to, without the value, if that has this truth; ``None`` if it keeps it."""
    if not join.ops:
        return outer.target if truth == outer.jump_when else outer.fall
    drop = graph.blocks[outer.fall]
    if truth == outer.jump_when or [instr.op for instr in drop.ops] != [Op.POP] or not isinstance(drop.term, Jump):
        return None
    return drop.term.target


def _keep_inside(graph: FlowGraph, skipped: Sequence[Tuple[Block, int]]) -> None:
    """Redirect the tests in the operand that a test of ``skipped`` tests, which starts at the offset beside it, to that
    test."""
    alike: Dict[Tuple[int, bool, Optional[Region]], List[Tuple[int, int]]] = {}  # by what they do: extents, and ids
    for block in graph.blocks.values() if skipped else ():
        test = _value_test(block)
        if test is not None:
            alike.setdefault((test.target, test.jump_when, block.region), []).append((block.extent(), block.id))
    for each in alike.values():
        each.sort()
    for block, begin in skipped:
        outer = _value_test(block)
        assert outer is not None
        tests = alike[outer.target, outer.jump_when, block.region]
        inside = slice(bisect_left(tests, (begin + 1,)), bisect_left(tests, (block.extent(),)))
        moved = tests[inside]
        if moved:
            del tests[inside]
            for _, id in moved:
                _go_to(graph.blocks[id], block)
            redirected = alike.setdefault((block.id, outer.jump_when, block.region), [])
            redirected.extend(moved)
            redirected.sort()


def _go_to(block: Block, target: Block) -> None:
    assert isinstance(block.term, Branch)
    block.term.target = target.id


def _skips(block: Block, around: Dict[int, Block]) -> bool:
    """Return whether ``block`` jumps to the successor of a test that its own test decides."""
    test = _value_test(block)
    skipped = around.get(test.target) if test is not None else None
    if test is None or skipped is None or skipped is block or skipped.region != block.region:
        return False
    following = _value_test(skipped)
    return following is not None and following.jump_when != test.jump_when


def _alone(graph: FlowGraph, block: Block) -> Block:
    """Return the test at the end of ``block`` as a block of its own."""
    if len(block.ops) == 1:
        return block
    test = graph.new_block(block.ops[-1:], block.term, block.region)
    block.ops, block.term = block.ops[:-1], Jump(test.id, block.ops[-1].offset)
    return test


def _value_test(block: Block) -> Optional[Branch]:
    """Return the branch at the end of ``block`` if it tests a value that stays on the stack; ``None`` otherwise."""
    term = block.term
    if type(term) is not Branch or term.test is not Test.TRUTH or not block.ops:
        return None
    return term if (block.ops[-1].op, block.ops[-1].arg) == (Op.COPY, 1) else None


def _only_tests(block: Block) -> bool:
    """Return whether ``block`` is a test of the value that is on the stack, and keeps it or not."""
    if not block.ops:
        return type(block.term) is Branch and block.term.test is Test.TRUTH
    return len(block.ops) == 1 and _value_test(block) is not None


def _drops_value(block: Block) -> bool:
    return bool(block.ops) and block.ops[0].op is Op.POP
