"""Undo the jump threading of compilers: a test of a value skips the next test of the same value.

Since 3.14:

    a and b or c:   a; COPY 1; BRANCH false -> 2; POP; b; 1: COPY 1; BRANCH true -> 3; 2: POP; c; 3:

Before 3.14, a false ``a`` jumps to 1, and from there to 2: this module restores these jumps.

Up to 3.11, and since 3.14, a test in an ``if``-``else`` expression that is an operand skips the test of the operand:

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

from depyf.decompiler.flow.graph import Block, Branch, FlowGraph, Jump, Region, Test
from depyf.decompiler.normal.ops import Op


def undo_threaded_tests(graph: FlowGraph) -> None:
    """Redirect the tests of ``and`` and ``or`` to the test of the enclosing operator; find the ends of arms that a
    constant chooses."""
    if not graph.code.threads_tests or Op.COPY not in graph.code.kinds:
        return
    open_tests = _open_tests(graph)
    # 1. The tests that others may skip, by the block after them that drops their value.
    around: Dict[int, Block] = {}
    for block in graph.blocks.values():
        test = _value_test(block)
        if test is None:
            continue
        if _drops_value(graph.blocks[test.fall]):
            around[test.fall] = block
        # A test of a constant's arm jumps to the next test of the same value: there the arm ends.
        again = graph.blocks[test.target]
        if len(again.ops) == 1 and _value_test(again) is not None:
            graph.arm_ends.add(again.id)
    # 2. The offset of the first test that skips each one: ``a`` in ``a and b or c``.
    begins: Dict[int, int] = {}
    for block in graph.blocks.values():
        if _skips(block, around):
            target = block.successors()[1]
            begins[target] = min(block.extent(), begins.get(target, block.extent()))
    # 3. A skipped test becomes a block of its own, and the tests that skip it jump there.
    for target in begins:
        around[target] = _alone(graph, around[target])
    for block in list(graph.blocks.values()):
        if _skips(block, around):
            _go_to(block, around[block.successors()[1]])
    # 4. Tests between the first one and the skipped one are in the same operand: they lead there, too.
    _keep_inside(graph, [(around[target], begins[target]) for target in sorted(begins)])
    if open_tests:
        _redirect_open_tests(graph, open_tests)


def _open_tests(graph: FlowGraph) -> Set[int]:
    """Return the offsets of the tests that are left out of the handlers around them; move them into their regions."""
    # COPY 1; BRANCH true -> 2       (in no region)
    # 1: POP; ...                    (in the try) the next operand: the test is in that region, too
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
    """Redirect the tests at ``offsets`` to the test of their operand: the next covered one with the same target."""
    # a or (b or c) or d: a, b and c jump to the end. Only ``b``, left out of the handler, has skipped the test of
    # ``(b or c)``, which follows ``c``. From the end backwards, ``following`` is the next covered test.
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
    """Redirect the tests after the one that chooses an arm, from which all paths lead to ``join``."""
    # Backwards from ``join``: ``reached`` has the blocks from which all paths lead there, each with the last blocks of
    # these paths. The search ends at the block from which every predecessor of ``join`` is reached: it chooses the arm.
    every = frozenset(before[join.id])
    reached: Dict[int, FrozenSet[int]] = {join.id: frozenset()}
    todo = [join.id]
    while todo:
        for id in before.get(todo.pop(), ()):
            block = graph.blocks[id]
            if id in reached or block.region != join.region:
                continue
            # A branch with one way to ``join`` may be a test that has skipped it.
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
    # p; COPY 1; BRANCH true -> 2: with its value, to where the test at ``join`` jumps with it
    if _value_test(block) is not None:
        skips = bool(join.ops) and (test.target, test.jump_when) == (outer.target, outer.jump_when)
        if skips:
            _go_to(block, join)
        return skips
    # p; BRANCH false -> 3: without its value, to where ``join`` goes and drops it. Restore the value for ``join``:
    # p; COPY 1; BRANCH false -> join; POP
    if test.target != _without_value(graph, join, outer, truth=test.jump_when):
        return False
    block.ops.append(test.instr.changed(op=Op.COPY, arg=1, target=None))
    popped = [test.instr.changed(op=Op.POP, arg=None, target=None)]
    test.fall = graph.new_block(popped, Jump(test.fall), block.region).id
    _go_to(block, join)
    return True


def _without_value(graph: FlowGraph, join: Block, outer: Branch, *, truth: bool) -> Optional[int]:
    """Return where ``join`` goes with a value of this truth that it drops; ``None`` if it keeps the value."""
    if not join.ops:  # it tests the value itself
        return outer.target if truth == outer.jump_when else outer.fall
    drop = graph.blocks[outer.fall]
    if truth == outer.jump_when or [instr.op for instr in drop.ops] != [Op.POP] or not isinstance(drop.term, Jump):
        return None
    return drop.term.target


def _keep_inside(graph: FlowGraph, skipped: Sequence[Tuple[Block, int]]) -> None:
    """Redirect the tests inside of an operand to the test of the operand.

    ``skipped``: these tests, each with the offset where its operand starts.
    """
    # Tests with one target, truth and region, sorted by offset: those inside of an operand are a slice.
    alike: Dict[Tuple[int, bool, Optional[Region]], List[Tuple[int, int]]] = {}
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
        if moved:  # they have another target now, and may be inside of an operand further in
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
