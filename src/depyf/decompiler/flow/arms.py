"""Find the blocks that are arms of an expression: equal arms are in the source, and no copies.

In ``x if a else y if b else x`` each ``x`` is a block; the compiler may copy the operation that uses it to both.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, List, Optional

from depyf.decompiler.flow.graph import Block, Branch, FlowGraph, Jump, returns_constant
from depyf.decompiler.flow.order import order_blocks
from depyf.decompiler.normal.effects import effect
from depyf.decompiler.normal.ops import Instr, Op

_STATEMENT_ENDS = frozenset({Op.STORE, Op.STORE_ATTR, Op.STORE_SUBSCR, Op.DELETE, Op.DELETE_ATTR, Op.DELETE_SUBSCR})
"""The last operation before the copied test in ``while a < (b or c): d = e`` on one line; it is no part of the test."""


class Arms:
    """The arms in ``graph`` as it is now, and the tests that lead to them; later changes of its edges do not matter."""

    def __init__(self, graph: FlowGraph) -> None:
        self._blocks, self.predecessors = dict(graph.blocks), graph.predecessors()
        self._jumps = {id: block.term.target for id, block in graph.blocks.items() if isinstance(block.term, Branch)}
        self._one_statement = graph.one_statement
        self._numbers: Dict[int, Optional[int]] = {}
        self._known: Dict[FrozenSet[object], int] = {}
        self._headers = order_blocks(graph).headers

    def tests_of(self, id: int) -> Optional[int]:
        """Return a number for the tests that lead to block ``id``, if only tests on its own line do, else None.

        The compiler copies an arm with its tests, as with the test of ``while``: equal arms with different tests are no
        copies. A test that leads back to the start of a loop is no test of the expression there.
        """
        if id not in self._numbers:
            tests = None if id in self._headers else self._tests_of(self._blocks[id])
            self._numbers[id] = None if tests is None else self._known.setdefault(tests, len(self._known))
        return self._numbers[id]

    def _tests_of(self, block: Block) -> Optional[FrozenSet[object]]:
        if self._one_statement or not may_be_arm(block):
            return None
        # Each predecessor is a test on the line of the arm, or an operand that the arm goes on with; anything else
        # leads to a statement.
        line = block.ops[0].line
        tests = set()
        for id in self.predecessors[block.id]:
            before = self._blocks[id]
            if isinstance(before.term, Branch) and before.term.instr.line == line:
                how: object = before.term.test, (self._jumps[id] == block.id) == before.term.jump_when
            elif _goes_on(before, block):
                how = None
            else:
                return None
            # The test: the operations at the end that compute a value by themselves. What is before them is compared as
            # well, by the tests that lead there, unless it is a statement.
            count = 1
            while count < len(before.ops) and not stands_alone(before.ops[-count:]):
                count += 1
            value = tuple((instr.op, comparable(instr)) for instr in before.ops[-count:])
            begins = any(instr.op in _STATEMENT_ENDS for instr in before.ops[:-count])
            tests.add((how, value, None if begins else self.tests_of(id)))
        return frozenset(tests) or None


def may_be_arm(block: Block) -> bool:
    """Return whether ``block`` may be an arm of an expression, as far as its operations show."""
    if not block.ops or returns_constant(block):
        return False
    if [instr.op for instr in block.ops] in ([Op.RETURN], [Op.RERAISE]):
        return False  # the value was computed before, on several paths; the handler's exception is raised again
    if block.ops[0].op is Op.ADD:
        return False  # the value is added to an earlier display
    if block.ops[-1].op is Op.RAISE and (block.ops[0].op is Op.SPECIAL or _values_left(block.ops) >= 0):
        return False  # the end of an ``assert``, which is copied to each of its tests, or of a statement
    line = block.ops[0].line
    if all(instr.op is Op.POP for instr in block.ops if instr.line == line):
        return False  # it only drops lower values, as after the guard of a case
    # an exception was handled: by ``with``, and the next statement follows
    return all(instr.op is not Op.POP_EXC for instr in block.ops)


def _goes_on(before: Block, block: Block) -> bool:
    """Return whether ``block`` continues the expression of ``before``: it tests the value of ``before``, or computes
    another operand after ``before`` has dropped one."""
    if not isinstance(before.term, Jump) or not before.ops or before.ops[-1].line != block.ops[0].line:
        return False
    tested = isinstance(block.term, Branch) and leaves_operand(before)
    return tested or all(instr.op is Op.POP for instr in before.ops)


def leaves_operand(block: Block) -> bool:
    """Return whether ``block`` ends by pushing a value that its successor pops."""
    return isinstance(block.term, Jump) and bool(block.ops) and pushes(block.ops[-1])


def pushes(instr: Instr) -> bool:
    """Return whether ``instr`` leaves a value on the stack; the exception of a handler is none."""
    return instr.op is not Op.PUSH_EXC and effect(instr.op, instr.arg)[1] > 0


def stands_alone(ops: List[Instr]) -> bool:
    """Return whether ``ops`` push one value and need no earlier ones."""
    return _values_left(ops) >= 1


def _values_left(ops: List[Instr]) -> int:
    """Return how many values ``ops`` leave on the stack; -1 if they need earlier ones."""
    depth = 0
    for instr in ops:
        takes, leaves = effect(instr.op, instr.arg)
        if takes > depth:
            return -1
        depth += leaves - takes
    return depth


def computes_alone(ops: List[Instr]) -> bool:
    """Return whether ``ops`` push one value without earlier ones, after dropping the operand of an ``and`` or ``or``.

    Code that only uses earlier values, for example to make a tuple, is the use of an arm, and no arm.
    """
    begin = next((index for index, instr in enumerate(ops) if instr.op is not Op.POP), len(ops))
    return stands_alone(ops[begin:])


def comparable(instr: Instr) -> object:
    """Return a key for the argument of ``instr``: 1 and True are two constants."""
    return id(instr.arg) if instr.op is Op.CONST else instr.arg


def line_of_statement(instr: Instr) -> Optional[int]:
    """Return the line of ``instr``; ``None`` for RERAISE, which no statement is compiled to: the compiler gives each of
    its copies the line of the code before."""
    return None if instr.op is Op.RERAISE else instr.line


def returns_at_once(block: Block) -> bool:
    """Return whether ``block`` only returns a value that is on the stack, perhaps from an ``except`` clause."""
    return bool(block.ops) and block.ops[-1].op is Op.RETURN and all(instr.op in RETURNING for instr in block.ops)


RETURNING = frozenset({Op.RETURN, Op.SWAP, Op.POP, Op.POP_EXC})
