"""Turn branches that only compute a value or a condition into ``and``, ``or``, ``not``, ``if``-``else`` expressions.

A node is *pure* if it has no statements and only adds to the stack of its predecessor. The rules join a pure node with
its single predecessor; they are tried whenever a node is complete.
"""

from __future__ import annotations

import ast
from operator import is_
from typing import Callable, Dict, List, Optional, Sequence, Set

from depyf.decompiler.bytecode.code import COMPREHENSIONS, is_code
from depyf.decompiler.flow.arms import computes_alone, leaves_operand
from depyf.decompiler.flow.graph import Block, FlowGraph, For, Jump
from depyf.decompiler.lift import build
from depyf.decompiler.lift.items import Item, Mark, Value
from depyf.decompiler.lift.nodes import Condition, Goto, Node, Terminator
from depyf.decompiler.lift.not_folded import both_made
from depyf.decompiler.lift.spans import first_span, span_of
from depyf.decompiler.normal.ops import Op


class Reducer:
    def __init__(
        self,
        graph: FlowGraph,
        headers: Set[int],
        nodes: Dict[int, Node],
        edges: Dict[int, List[Node]],
        next_order: Callable[[], int],
        *,
        expressions: bool,
    ) -> None:
        self.graph, self.headers, self.nodes, self.edges = graph, headers, nodes, edges
        self.next_order = next_order
        self.only_expressions = expressions or graph.code.code.co_name in COMPREHENSIONS
        """In these a test before a jump back (3.12) is part of a condition; in a loop it may be a ``continue``."""
        self.by_jumps: Dict[int, ast.expr] = {}
        """Each ``and`` and ``or`` built from jumps, by its ``id``; its value is never on the stack."""

    def reduce(self, node: Node) -> Node:
        """Join ``node`` with its predecessors as long as a rule applies; return the node that it is part of now."""
        current: Optional[Node] = node
        while current is not None:
            node = current
            current = self._step(node) or self._with_successor(node)
        return node

    def _with_successor(self, node: Node) -> Optional[Node]:
        """Join ``node``, whose test has just become another one, with a following test that was complete before."""
        if not self.only_expressions or not isinstance(node.terminator, Condition):
            return None
        after = [self.nodes[id] for id in node.successors() if id in self.nodes]
        return next((joined for joined in map(self._step, after) if joined is not None), None)

    def test_before(self, block: Block) -> Optional[Node]:
        """Return the node that ends with a test of which both results lead to ``block``, so that the test is part of
        the next value; ``None`` if no node does, or ``_after_test`` reduces it."""
        # x + (b if a and False else c)     LOAD x; LOAD a; POP_JUMP_IF_FALSE 1; 1: LOAD c; BINARY +
        #
        # The compiler removed b and the test of False, and kept the test of a. The operand x waits on the stack, so no
        # ``if a: pass`` can be written here: the test goes into the expression of c.
        edges = self.edges[block.id]
        if not self._is_test_inside(edges):
            return None
        term, first = edges[0].terminator, next((instr for instr in block.ops if instr.op is not Op.NULL), None)
        if not isinstance(term, Condition) or term.keep or block.leaves or block.region != edges[0].region:
            return None
        if block.id in self.headers or first is None or first.op not in (Op.LOAD, Op.CONST) or is_code(first.arg):
            return None
        # If c alone is computed and nothing waits, it becomes a node of its own, which ``_after_test`` joins.
        waiting = any(isinstance(item, Value) and not item.stable for item in edges[0].stack)
        if computes_alone(block.ops) and not waiting:
            return None
        edges[0].terminator, edges[0].tested = Goto(block.id), term.test
        return edges.pop()

    def _step(self, node: Node) -> Optional[Node]:
        """Join ``node`` with its predecessor by the first rule that applies; ``None`` if none does."""
        edges = self.edges[node.id]
        if self._is_test_inside(edges, node):  # both results of one test lead here
            return self._after_test(edges[0], node)
        # All other rules join a pure node with the one test that leads to it.
        if len(edges) != 1 or node.statements or node.leaves or node.id in self.headers:
            return None
        before = edges[0]
        term = before.terminator
        if not isinstance(term, Condition) or before.region != node.region or node.id == self.graph.entry:
            return None
        if term.fall == term.target:
            return None
        if node.id == term.fall:
            # ``node`` runs if the test holds: the rest of ``a < b < c``, of ``a and b`` as a test, or as a value.
            if self._ends_in_chain_test(before):
                return self._chain(before, term, node)
            if isinstance(node.terminator, Condition):
                joined = self._conditions(before, term, node, node.terminator)
                if joined is not None:
                    return joined
            elif isinstance(node.terminator, Goto) and term.keep:
                return self._keeps(before, term, node, node.terminator)
        elif isinstance(node.terminator, Condition) and not term.keep and self._is_in_expression(before, term, node):
            # ``node`` runs if the test fails: b in ``a or b``. The rule gets the opposite test of a.
            turned = Condition(term.test, not term.jump_when, term.fall, term.target, False, term.copied_at)
            joined = self._conditions(before, turned, node, node.terminator)
            if joined is not None:
                return joined
        return self._choice(before, term)

    # --- rules -------------------------------------------------------------------------------------------------------

    def _keeps(self, before: Node, term: Condition, node: Node, goto: Goto) -> Optional[Node]:
        """Reduce ``a and b``, ``a or b`` as values: the tested value itself is the result if the test decides."""
        # a and b       LOAD a; COPY 1; POP_JUMP_IF_FALSE 1; POP; LOAD b; 1:
        value = self._added_value(node, before.stack)
        if goto.target != term.target or value is None:
            return None
        operator: ast.boolop = ast.Or() if term.jump_when else ast.And()
        result = self._value(before, self._both(operator, term.test, value.expr))
        self._absorb(before, [node], Goto(goto.target), [*before.stack, result])
        return before

    def _conditions(self, before: Node, term: Condition, node: Node, second: Condition) -> Optional[Node]:
        """Join two successive tests that share an exit."""
        # a goes on to b, or jumps to its target. The exit that both share decides:
        #
        #     a: POP_JUMP_IF_FALSE 1; b: POP_JUMP_IF_FALSE 1        a and b         same target
        #     a: POP_JUMP_IF_TRUE 1;  b: POP_JUMP_IF_TRUE 1         a or b          same target
        #     a: POP_JUMP_IF_TRUE 1;  b: POP_JUMP_IF_FALSE 1        not a and b     same target, opposite jumps
        #     a: POP_JUMP_IF_TRUE 1;  b: POP_JUMP_IF_FALSE 2; 1:    a or b          the target is where b falls to
        if not self._same_stack(node.stack, before.stack):
            return None
        if second.target == second.fall and self.only_expressions:  # ``a or (b and False)``: the constant has no test
            never = ast.BoolOp(ast.And(), [second.test, ast.Constant(False)])
            second = Condition(never, False, second.target, term.target)
        if term.target == second.target and term.keep == second.keep and term.jump_when == second.jump_when:
            operator: ast.boolop = ast.Or() if second.jump_when else ast.And()
            test = term.test
        elif term.target == second.target and not (term.keep or second.keep):
            operator = ast.Or() if second.jump_when else ast.And()
            test = build.negate(term.test)
        elif term.target == second.fall and not term.keep:
            operator = ast.And() if second.jump_when else ast.Or()
            test = term.test if second.jump_when != term.jump_when else build.negate(term.test)
        else:
            return None
        # ``test`` may be the negation of an ``and`` or ``or`` that is built from jumps: then it is, too.
        if id(term.test) in self.by_jumps:
            test = test if second.keep else build.without_knot(test)
            self.by_jumps[id(test)] = test
        if second.keep:
            test = self._last_operand(test) if term.keep else self._operand(test)
        whole = (self._both if term.keep else build.both)(operator, test, second.test)
        self.by_jumps[id(whole)] = whole
        joined = Condition(
            whole,
            second.jump_when,
            second.target,
            second.fall,
            second.keep,
            second.copied_at,
        )
        if second.keep:
            before.kept = self._value(before, joined.test)
        self._absorb(before, [node], joined, list(before.stack))
        return before

    def _both(self, operator: ast.boolop, left: ast.expr, right: ast.expr) -> ast.BoolOp:
        return both_made(operator, left, right, by_jumps=id(left) in self.by_jumps)

    def _operand(self, test: ast.expr) -> ast.expr:
        """Return a condition as an operand of a value, in which ``not`` before ``and`` or ``or`` would test a value."""
        # ``not (a and b)`` as a test has only jumps; as an operand of a value it would compute ``a and b`` and apply
        # UNARY_NOT. ``not a or not b`` has the same jumps in both uses.
        negated = build.is_not(test)
        inner = test.operand if negated else test  # type: ignore[attr-defined]
        if type(inner) is not ast.BoolOp or id(inner) not in self.by_jumps:
            return build.tested_twice(test) if isinstance(inner, build.TestedByNot) and not negated else test
        if not negated:
            return ast.BoolOp(inner.op, [self._operand(value) for value in inner.values])
        opposite: ast.boolop = ast.And() if isinstance(inner.op, ast.Or) else ast.Or()
        return ast.BoolOp(opposite, [self._operand(build.negate(value)) for value in inner.values])

    def _last_operand(self, test: ast.expr) -> ast.expr:
        """Return ``_operand`` of a test that is kept itself: all of its operands but the last one are made by now."""
        if type(test) is not ast.BoolOp or id(test) not in self.by_jumps:
            return self._operand(test)
        test.values[-1] = self._operand(test.values[-1])
        return test

    def _after_test(self, before: Node, node: Node) -> Optional[Node]:
        """Reduce ``b if a and False else c``, a test of ``a`` that always leads to ``c``, to ``(False if a else False)
        or c``."""
        # LOAD a; POP_JUMP_IF_FALSE 1; 1: LOAD c        the result is c, and the truth of a is tested before
        term, second = before.terminator, node.terminator
        if not isinstance(term, Condition) or node.statements or node.leaves or node.id in self.headers:
            return None
        if before.region != node.region:
            return None
        value = self._added_value(node, before.stack)
        if isinstance(second, Condition) and not second.keep and self._same_stack(node.stack, before.stack):
            test = build.after_test(term.test, second.test)
            joined = Condition(test, second.jump_when, second.target, second.fall, False, second.copied_at)
            self._absorb(before, [node], joined, list(before.stack))
            return before
        if not isinstance(second, Goto) or value is None:
            return None
        result = self._value(before, build.after_test(term.test, value.expr))
        self._absorb(before, [node], Goto(second.target), [*before.stack, result])
        return before

    def _choice(self, before: Node, term: Condition) -> Optional[Node]:
        """Reduce ``a if test else b``: both arms only compute one value (or condition) and have the same successor."""
        if term.keep:
            return None
        one, two = self.nodes.get(term.fall), self.nodes.get(term.target)
        if one is None or two is None or not isinstance(one.terminator, (Goto, Condition)):
            return None
        if type(one.terminator) is not type(two.terminator):
            return None
        # LOAD test; POP_JUMP_IF_FALSE 1; LOAD a; JUMP 2; 1: LOAD b; 2:
        #
        # No other edge may lead to an arm, and an arm has no statement.
        for arm in (one, two):
            if arm.id in self.headers or arm.statements or arm.leaves:
                return None
            if len(self.edges[arm.id]) != 1 or arm.region != before.region:
                return None
        test = term.test
        if isinstance(one.terminator, Goto) and isinstance(two.terminator, Goto):
            if one.terminator.target != two.terminator.target:
                return None
            first, second = self._added_value(one, before.stack), self._added_value(two, before.stack)
            if first is None or second is None:
                return None
            value = self._value(before, ast.IfExp(test, first.expr, second.expr))
            self._absorb(before, [one, two], Goto(one.terminator.target), [*before.stack, value])
            return before
        if isinstance(one.terminator, Condition) and isinstance(two.terminator, Condition):
            return self._choose_condition(before, test, one, one.terminator, two, two.terminator)
        return None

    def _choose_condition(
        self, before: Node, test: ast.expr, one: Node, first: Condition, two: Node, second: Condition
    ) -> Optional[Node]:
        """Reduce ``a if test else b`` as a test: both arms are tested, and lead to the same two nodes."""
        if first.keep or second.keep:
            return None
        if not (self._same_stack(one.stack, before.stack) and self._same_stack(two.stack, before.stack)):
            return None
        if (first.target, first.fall) == (second.target, second.fall):
            other = second.test
        elif (first.target, first.fall) == (second.fall, second.target):
            other = build.negate(second.test)
        else:
            return None
        chosen: ast.expr = ast.IfExp(test, first.test, other)
        if build.is_not(first.test) and build.is_not(other) and _has_no_not(test, other.operand):  # type: ignore[attr-defined]
            # The jumps are inverted since conditional jumps only go forward (3.12): ``x if test else y`` was written.
            chosen = build.negate(ast.IfExp(test, first.test.operand, other.operand))  # type: ignore[attr-defined]
        joined = Condition(chosen, False, first.target, first.fall)
        self._absorb(before, [one, two], joined, list(before.stack))
        return before

    def _chain(self, before: Node, term: Condition, node: Node) -> Optional[Node]:
        """Reduce ``a < b < c``: ``b`` stays below the first test; the block that drops it jumps where a failed second
        test does."""
        # x = a < b < c                             if a < b < c: d()
        #
        #    LOAD a; LOAD b; SWAP 2; COPY 2            LOAD a; LOAD b; SWAP 2; COPY 2
        #    COMPARE <; COPY 1                         COMPARE <
        #    POP_JUMP_IF_FALSE 1; POP                  POP_JUMP_IF_FALSE 1
        #    LOAD c; COMPARE <; JUMP 2                 LOAD c; COMPARE <; POP_JUMP_IF_FALSE 2; JUMP to d
        # 1: SWAP 2; POP                            1: POP; JUMP 2
        # 2: STORE x                                2:
        #
        # 1 drops b: below the result that is kept on the left, alone on the right.
        if not self._same_stack(node.base, before.stack):
            return None
        cleanup = self.graph.blocks[term.target]
        if not isinstance(cleanup.term, Jump) or cleanup.leaves:
            return None
        drops = [(instr.op, instr.arg) for instr in cleanup.ops]
        out = cleanup.term.target
        below = before.stack[:-1]
        second = node.terminator
        if term.keep and drops == [(Op.SWAP, 2), (Op.POP, None)] and isinstance(second, Goto) and second.target == out:
            value = self._added_value(node, below)
            if value is None:
                return None
            below = [*below, self._value(before, value.expr)]
        elif not term.keep and drops == [(Op.POP, None)] and isinstance(second, Condition):
            # ``a < b is None`` has no COMPARE for ``is None``, and its jump may have either direction (3.11): where the
            # failed first test goes shows which of ``is`` and ``is not`` was written.
            if out == (second.target if build.is_not(second.test) else second.fall) and second.target != second.fall:
                test = build.failing_otherwise(second.test)
                second = Condition(test, False, second.target, second.fall, second.keep)
            if (
                not self._is_same_way(second.fall if build.is_not(second.test) else second.target, out)
                or second.keep
                or not self._same_stack(node.stack, below)
            ):
                return None
        else:
            return None
        self._absorb(before, [node], second, below)
        return before

    def _is_same_way(self, one: int, two: int) -> bool:
        """Return whether both blocks are one, or only exit the same region for the same target. The code after a
        ``try`` is copied to each exit, before 3.11 also where a test fails in two ways."""
        if one == two:
            return True
        ways = [(block.leaves, block.region, block.term) for block in (self.graph.blocks[one], self.graph.blocks[two])]
        (leaves, region, term), (others, other_region, other) = ways
        if not leaves or leaves != others or region is not other_region:
            return False
        if self.graph.blocks[one].ops or self.graph.blocks[two].ops:
            return False
        return isinstance(term, Jump) and isinstance(other, Jump) and term.target == other.target

    # --- helpers -----------------------------------------------------------------------------------------------------

    def _is_test_inside(self, edges: List[Node], node: Optional[Node] = None) -> bool:
        """Return whether ``edges`` are both edges of one test inside of an expression. ``node``: where they lead."""
        # A value that waits on the stack shows it, as x in ``x + (b if a and False else c)``, or one that is added to
        # others where the test leads. An iterator on top shows the ``if`` of a comprehension; an empty stack, a test
        # that decides what a lambda returns. At a prompt the printed value is one expression.
        if not self.only_expressions or len(edges) != 2 or edges[0] is not edges[1]:
            return False
        if node is not None and len(node.stack) > len(edges[0].stack):
            return True
        top = edges[0].stack[-1] if edges[0].stack else None
        return Op.PRINT in self.graph.code.kinds if top is None else getattr(top, "kind", None) is not Mark.ITER

    def _is_in_expression(self, before: Node, term: Condition, node: Node) -> bool:
        """Return whether two tests are parts of an expression, though the first one jumps to the second one: it falls
        through to another operand, or both have copies."""
        # In ``for x in y: while a and b: c()`` each test would jump back to the ``for`` if it fails. Conditional jumps
        # only go forward (3.12), so a is inverted: a; POP_JUMP_IF_TRUE 1; JUMP_BACKWARD; 1: b; ...
        if {before.id, node.id} <= self.graph.copied_tests:
            return True
        if self.only_expressions or self._is_in_test_of_loop(term, node):
            return True
        block = self.graph.blocks[term.fall]
        return (
            isinstance(block.term, Jump)
            and not isinstance(self.graph.blocks[block.term.target].term, For)
            and leaves_operand(block)
            and computes_alone(block.ops)
        )

    def _is_in_test_of_loop(self, term: Condition, node: Node) -> bool:
        """Return whether ``b and c`` in ``if a or b and c`` is tested, which skips the rest of a loop if it fails."""
        #     a; POP_JUMP_IF_TRUE 2
        #     b; POP_JUMP_IF_TRUE 1; JUMP_BACKWARD      if not a:
        #  1: c; POP_JUMP_IF_TRUE 2; JUMP_BACKWARD          if not b: continue
        #  2: ...                                           if not c: continue
        #
        # Where a leads to 2, too, nothing else is written like this but the statements on the right, which have a
        # ``continue`` between the tests. Where nothing follows (``if a and not c: pass``), 2 is the head of the loop.
        second = node.terminator
        if term.fall not in self.headers or not isinstance(second, Condition):
            return False
        if second.keep or second.fall != term.fall or second.target == term.fall:
            return False
        if len(self.edges[second.target]) < 2:
            return False
        one, two = first_span(term.test), first_span(second.test)
        return one is not None and two is not None and not self.graph.written_jumps.continues_between(one, two)

    def _ends_in_chain_test(self, node: Node) -> bool:
        """Return whether the condition of ``node`` is a test of ``a < b < c`` that has pushed ``b``, the last value,
        itself. In ``a < b < (x or y)`` the test of ``x`` finds ``b`` on the stack and does not use it."""
        top = node.stack[-1] if node.stack else None
        if not isinstance(top, Value) or top.tests is None:
            return False
        return not any(top is item for item in node.base)

    def _absorb(self, before: Node, gone: List[Node], term: Terminator, stack: List[Item]) -> None:
        """Let ``before`` end with ``term`` and ``stack``, and remove the nodes ``gone`` that are part of it now."""
        for target in before.successors():
            _remove(self.edges[target], before)
        for node in gone:
            for target in node.successors():
                _remove(self.edges[target], node)
            self.nodes.pop(node.id, None)
            before.silent = before.silent and node.silent
            before.extent = max(before.extent, node.extent)
        before.terminator, before.stack = term, stack
        for target in before.successors():
            self.edges[target].append(before)

    def _value(self, before: Node, expr: ast.expr) -> Value:
        return Value(expr, False, None, self.next_order(), before.id)

    def _same_stack(self, one: Sequence[Item], two: Sequence[Item]) -> bool:
        return len(one) == len(two) and all(map(is_, one, two))

    def _added_value(self, node: Node, base: Sequence[Item]) -> Optional[Value]:
        """Return the value that ``node`` adds to ``base``; ``None`` if it adds another item, or more."""
        if not self._same_stack(node.stack[:-1], base) or not node.stack:
            return None
        value = node.stack[-1]
        if not isinstance(value, Value) or value.copies or value.chain or value.tests is not None:
            return None
        return value


def _has_no_not(test: ast.expr, other: ast.expr) -> bool:
    """Return whether columns show that nothing but ``else`` is between ``test`` and ``other``."""
    one, two = span_of(test), first_span(other)
    if one is None or two is None or one.end_column is None or two.column is None or one.end_line != two.line:
        return False
    end = one.end_column
    # A test for None has no span of its own: ``a is None`` has the span of ``a``.
    without_none = isinstance(test, ast.Compare) and span_of(test.left) == one
    ends = [end + len(" is None"), end + len(" is not None")] if without_none else [end]
    return any(two.column - each == len(" else ") for each in ends)


def _remove(edges: List[Node], node: Node) -> None:
    """Remove ``node``, which is among the last edges."""
    index = -1
    while edges[index] is not node:
        index -= 1
    del edges[index]
