"""Lift a whole flow graph: decide which blocks form one node, and which joined values need a variable."""

from __future__ import annotations

import ast
from typing import Dict, List, Optional, Set, Tuple, Union

from depyf.decompiler.flow.arms import returns_at_once
from depyf.decompiler.flow.graph import Block, Branch, End, FlowGraph, For, Jump, Term, Test
from depyf.decompiler.flow.match.patterns import PatternBranch, PatternJump
from depyf.decompiler.flow.order import Order, order_blocks
from depyf.decompiler.hints import Hints
from depyf.decompiler.lift import build
from depyf.decompiler.lift.containers import copied, holds_containers
from depyf.decompiler.lift.context import Decisions, LiftContext
from depyf.decompiler.lift.entries import Entries
from depyf.decompiler.lift.items import Container, Copy, Item, Mark, Marker, Retry, Value
from depyf.decompiler.lift.nodes import (
    Condition,
    ExceptionTest,
    Goto,
    LiftedGraph,
    Loop,
    MatchTest,
    Node,
    Overridden,
    PopException,
    Return,
    WithDecision,
    WithEnter,
    WithExit,
)
from depyf.decompiler.lift.reduce import Reducer
from depyf.decompiler.lift.rules.table import RULES
from depyf.decompiler.lift.simulator import Simulator, end_as_operands
from depyf.decompiler.lift.spans import moved, put, put_jump
from depyf.decompiler.normal.ops import Op, is_silent

ATTEMPTS = 200


def lift(
    graph: FlowGraph, hints: Optional[Hints] = None, *, spans: bool = True, expressions: bool = False
) -> LiftedGraph:
    """Return the lifted form of ``graph``.

    ``hints`` add facts that the bytecode lacks. ``spans``: nodes record their source span. ``expressions``: tests are
    joined wherever that is possible, also where they look like nested statements. Lifting restarts with more
    temporaries when a value can't stay pending. Raises ``ValueError`` when the bytecode has no equivalent syntax.
    """
    decisions = Decisions()
    order = order_blocks(graph)
    for _ in range(ATTEMPTS):
        try:
            return _Lifter(graph, order, decisions, hints or Hints(), spans=spans, expressions=expressions).run()
        except Retry as retry:
            decisions.learn(retry)
    raise ValueError(f"lifting needs more than {ATTEMPTS} attempts")


class _Lifter:
    def __init__(
        self, graph: FlowGraph, order: Order, decisions: Decisions, hints: Hints, *, spans: bool, expressions: bool
    ) -> None:
        self.graph, self.order = graph, order
        self.context = LiftContext(graph.code, decisions, hints, spans=spans)
        self.nodes = self.context.nodes
        self.edges: Dict[int, List[Node]] = {id: [] for id in graph.blocks}
        self.skip: Dict[int, int] = {}
        self.reducer = Reducer(
            graph, order.headers, self.nodes, self.edges, self.context.next_order, expressions=expressions
        )
        self.entries = Entries(graph, order, self.context, self.edges)
        self.block_predecessors: Optional[Dict[int, List[int]]] = None

    def run(self) -> LiftedGraph:
        for id in self.order.blocks:
            if id != self.graph.entry and not self.edges[id] and id not in self.entries.handler_bases:
                continue  # folded into an expression
            self._lift_block(self.graph.blocks[id])
        # What was expected to become part of an expression, and did not, needs a temporary: start again with it.
        for node in self.nodes.values():
            if isinstance(node.terminator, Condition) and node.terminator.keep:  # it became no and/or
                raise Retry("spill", node.terminator.copied_at)
            if node.outlives_test() and node.last_block not in self.context.decisions.spill_end:
                raise Retry("spill_end", node.last_block)
            if isinstance(node.terminator, Loop) and node.terminator.target is None:
                node.terminator.target = ast.Name(self.context.temporary(), ast.Store())
        _split_at_marks(self.nodes)
        return LiftedGraph(self.nodes, self.graph.entry, self.context.temporaries)

    # --- one block -------------------------------------------------------------------------------------------------

    def _lift_block(self, block: Block) -> None:
        """Execute ``block`` in a node of its own, or at the end of its predecessor's node; then reduce the node."""
        # A shared block only returns what its predecessors have pushed: each predecessor gets a return of its own.
        if len(self.edges[block.id]) > 1 and self._only_returns(block):
            self._return_from_each(block)
            return
        node = self._fusable(block)
        # A node of its own begins with the stack that the edges into the block have agreed on.
        if node is None:
            base = self.entries.entry_stack(block)
            node = Node(block.id, block.region, leaves=block.leaves, offset=block.offset(), base=base, stack=list(base))
            if node.leaves:
                self._settled_before_it_leaves(block, node)
            if self.context.follows_containers:
                self._inherit_locals(block, node)
            node.handling = _handled(node.base)
            self.nodes[block.id] = node
        else:
            self.edges[block.id].remove(node)
        node.extent = max(node.extent, block.extent())
        node.last_block = block.id
        if block.region is not None and block.region.entry not in self.entries.handler_bases:
            self.entries.remember_handler_base(block.region, block, node)
        simulator = Simulator(self.context, node)
        ops = block.ops
        # ``a and b`` tests a copy of ``a``: the COPY at the end of the block belongs to the terminator.
        keep = self._keeps_tested_value(block)
        if keep:
            block = Block(block.id, ops[:-1], block.term, block.region)
        node.silent = node.silent and all(map(is_silent, ops))
        if ops and ops[0].op is Op.PUSH_EXC:
            node.handling = (*node.handling, block.id)
        simulator.run(block, RULES, self.skip.get(block.id, 0))
        end_as_operands(simulator, block)
        self._terminate(node, block, simulator, keep=keep)
        node.stack = simulator.stack
        for target in node.successors():
            self.edges[target].append(node)
            if self.order.is_back_edge(block.id, target):
                self.entries.close_loop(node, target)
        # Conditions that meet again are one expression now. Where an attempt has failed at this end, values that are
        # still on the stack become temporaries.
        joined, spilled = self.reducer.reduce(node), self.context.decisions.spill_end
        if joined is not node and isinstance(joined.terminator, Goto) and joined.last_block in spilled:
            Simulator(self.context, joined).settle()

    def _settled_before_it_leaves(self, block: Block, node: Node) -> None:
        """Store pending values where a ``try`` or ``with`` ends in temporaries, since they were evaluated inside.
        Compilers leave only a return value there, and the return statement is then inside; other tools leave more."""
        seen: Set[int] = set()
        while block.leaves and not block.ops and isinstance(block.term, Jump) and block.id not in seen:
            seen.add(block.id)
            block = self.graph.blocks[block.term.target]
        if returns_at_once(block):
            return
        # The value that is to be returned by a ``finally`` that never ends normally is returned inside as well.
        returned = len(node.base) - 1 if isinstance(block.term, End) and not block.ops else None
        for slot, item in enumerate(node.base):
            if slot == returned:
                continue
            if isinstance(item, Value) and not item.stable:
                if item.copies:
                    raise self.context.waits_no_longer(item)
                node.base[slot] = node.stack[slot] = self.entries.phi(
                    self.graph.blocks[node.id], slot, self.edges[node.id]
                )

    def _only_returns(self, block: Block) -> bool:
        """Return whether ``block`` only returns a stack value, perhaps in a ``try`` whose ``finally`` overrides it."""
        if not block.leaves:
            return returns_at_once(block)
        if block.ops or not isinstance(block.term, End):
            return False
        edges = self.edges[block.id]
        if sum(not isinstance(node.terminator, Goto) for node in edges) > 1:
            return False
        return len(self.entries.stack_on_edge(edges[0], block.id)) > block.leaves[-1].depth

    def _return_from_each(self, block: Block) -> None:
        """Duplicate a block that only returns a stack value for each of its predecessors."""
        edges = list(self.edges[block.id])
        for before in edges[1:]:
            if not isinstance(before.terminator, Goto):
                continue
            copy = Node(self.entries.fresh_id(), block.region, leaves=block.leaves)
            copy.base = self.entries.stack_on_edge(before, block.id)
            copy.stack = list(copy.base)
            copy.handling = _handled(copy.base)
            copy.offset, copy.extent = block.offset(), block.extent()
            self.nodes[copy.id] = copy
            before.redirect(block.id, copy.id)
            self.edges[copy.id] = [before]
            self.edges[block.id].remove(before)
            simulator = Simulator(self.context, copy)
            simulator.run(block, RULES)
            self._terminate(copy, block, simulator, keep=False)
        if len(self.edges[block.id]) > 1:
            raise Retry("spill", self.entries.copy_offset(self.edges[block.id][-1]))
        self._lift_block(block)

    def _inherit_locals(self, block: Block, node: Node) -> None:
        """Pass containers that are only in variables to a node with one predecessor. Otherwise raise ``Retry`` to build
        them."""
        for before in self.edges[block.id]:
            if not before.containers:
                continue
            if len(self.edges[block.id]) == 1 and before.region == node.region and block.id not in self.order.headers:
                names = list(before.containers)
                held = copied([*node.stack, *before.containers.values()])
                node.stack, kept = held[: len(node.stack)], held[len(node.stack) :]
                node.base = list(node.stack)
                node.containers = {name: item for name, item in zip(names, kept) if isinstance(item, Container)}
            else:
                raise Retry("kept_results", min(container.offset for container in before.containers.values()))

    def _fusable(self, block: Block) -> Optional[Node]:
        """Return the node that ``block`` extends, or ``None`` if it starts a node of its own."""
        # A block extends the node of its only predecessor. Structuring needs a node of its own for the start of a loop,
        # of a handler, and of the code that follows a region.
        edges = self.edges[block.id]
        # A test whose two results both lead here is a part of the value that follows.
        tested = self.reducer.test_before(block)
        if tested is not None:
            return tested
        if len(edges) != 1 or block.id in self.order.headers or block.leaves or block.id in self.entries.handler_bases:
            return None
        node = edges[0]
        if not isinstance(node.terminator, Goto) or (isinstance(block.term, For) and not block.ops):
            return None
        if isinstance(block.term, End) and len(block.ops) == 2 and block.ops[0].op is Op.CONST:
            return None  # duplicated at every jump to it
        # Silent operations on a waiting value, such as the store of ``x = f()``, may be in another region than f(): no
        # program can observe where they run.
        if node.region != block.region:
            if not block.ops or not all(is_silent(instr) for instr in block.ops):
                return None
            if node.leaves or not node.holds_values():
                return None
        # A jump that stays inside of one expression (``x if a else y``) keeps values, or its target drops one.
        term = self.graph.blocks[node.last_block].term
        begins_with_pop = bool(block.ops) and block.ops[0].op in (Op.POP, Op.POP_EXC, Op.SWAP)
        if isinstance(term, Jump) and term.offset >= 0 and not begins_with_pop and not node.holds_values():
            if not self.reducer.only_expressions:
                return None  # a jump over other code: its target is the end of a statement
        if node.leaves and node.region == block.region and not node.statements:
            return None
        if node.statements and isinstance(node.statements[-1], WithEnter):
            return None  # the body of a with statement begins here
        return node

    def _keeps_tested_value(self, block: Block) -> bool:
        """Return whether ``block`` ends with ``COPY 1; BRANCH target; POP``: only the edge to ``target`` keeps the
        value."""
        # a and b       LOAD a; COPY 1; POP_JUMP_IF_FALSE 1; POP; LOAD b; 1:
        #
        # The COPY and the POP are left out: ``Condition.keep`` represents both.
        term = block.term
        if not isinstance(term, Branch) or term.test is not Test.TRUTH or not block.ops:
            return False
        last = block.ops[-1]
        if last.op is not Op.COPY or last.arg != 1 or last.offset in self.context.decisions.spill:
            return False
        fall = self.graph.blocks[term.fall]
        if not fall.ops or fall.ops[0].op is not Op.POP:
            return False
        if self.block_predecessors is None:
            self.block_predecessors = self.graph.predecessors()
        if len(self.block_predecessors[fall.id]) != 1:
            return False
        self.skip[fall.id] = 1
        return True

    def _is_arm(self, id: int) -> bool:
        """Return whether what block ``id`` tests again is an arm: all blocks jump there, or tests skip none."""
        terms = [self.graph.blocks[each].term for each in (self.block_predecessors or {}).get(id, ())]
        falls = any(isinstance(term, Jump) and term.offset < 0 for term in terms)
        return id in self.graph.arm_ends if self.graph.code.threads_tests else not falls

    def _terminate(self, node: Node, block: Block, simulator: Simulator, *, keep: bool) -> None:
        """Set the terminator of ``node`` after ``simulator`` has executed ``block``. ``keep``: its condition keeps the
        tested value."""
        term = block.term
        if isinstance(term, End):
            if node.terminator is None or isinstance(node.terminator, Goto):
                if not block.ops:  # a finally body that never terminates normally
                    returns = bool(block.leaves) and len(simulator.stack) > block.leaves[-1].depth
                    node.terminator = Return(simulator.pop_value().expr) if returns else Overridden()
            return
        # Earlier attempts may have found that values can't wait across the end of this block.
        spill = node.id in self.context.decisions.spill_end or block.id in self.context.decisions.spill_end
        holds = self.context.follows_containers and holds_containers(simulator.stack)
        if not isinstance(term, Jump) and (spill or holds):
            self._settle_before_branch(simulator, term)
        elif isinstance(term, Jump) and block.id in self.context.decisions.spill_locals:
            simulator.settle("*")
        elif isinstance(term, Jump) and block.id in self.context.decisions.spill_end:
            simulator.settle()
        if isinstance(term, (PatternBranch, PatternJump)):
            self._terminate_match(node, term, simulator)
        elif isinstance(term, Jump):
            node.terminator = Goto(term.target)
        elif isinstance(term, For):
            self._terminate_loop(node, term)
        else:
            self._terminate_branch(node, term, simulator, keep=keep)

    def _settle_before_branch(self, simulator: Simulator, term: Term) -> None:
        top = simulator.stack[-1] if simulator.stack else None
        if isinstance(term, Branch) and isinstance(top, (Value, Container)):
            simulator.stack.pop()
            simulator.settle()
            simulator.stack.append(top)
        else:
            simulator.settle()

    def _terminate_branch(self, node: Node, term: Branch, simulator: Simulator, *, keep: bool) -> None:
        """Set the terminator for a conditional jump: an ``except`` clause, the end of a ``with``, or a condition."""
        top = simulator.stack[-1]
        if isinstance(top, Marker):
            # CHECK_EXC_MATCH; POP_JUMP_IF_FALSE, or WITH_EXCEPT_START; POP_JUMP_IF_TRUE
            simulator.stack.pop()
            if top.kind in (Mark.MATCHED, Mark.MATCHED_GROUP):
                match, other = (term.fall, term.target) if not term.jump_when else (term.target, term.fall)
                assert top.expr is not None
                is_group = top.kind is Mark.MATCHED_GROUP
                node.terminator = ExceptionTest(top.origin, top.expr, match, other, group=is_group)
            elif top.kind is Mark.WITH_RESULT:
                yes, no = (term.target, term.fall) if term.jump_when else (term.fall, term.target)
                node.terminator = WithDecision(yes, no)
            else:
                raise ValueError(f"a {top.kind.value} marker is tested at offset {term.instr.offset}")
            return
        if keep and isinstance(top, Copy):
            raise Retry("spill", top.offset)
        if keep:
            if not isinstance(top, Value):
                simulator.stack[-1] = top = simulator.as_value(top)
            if top.copies:
                raise Retry("spill", top.copied_at)
            if top.chain:
                simulator.stack[-1] = top = simulator.as_value(top)
            fall = self.graph.blocks[term.fall]
            after = term.fall
            if len(fall.ops) == 1 and isinstance(fall.term, Jump):  # only the POP: other edges jump to its successor
                after = fall.term.target
            copied_at = self.graph.blocks[node.last_block].ops[-1].offset
            test = build.tested_again(top.expr, chosen=self._is_arm(node.last_block))
            node.terminator = Condition(test, term.jump_when, term.target, after, True, copied_at)
            simulator.stack.pop()
            top.kept_at = copied_at
            node.kept = top
            return
        if term.test is Test.NONE and isinstance(top, Value) and top.tests is not None:  # the end of ``a < b is None``
            simulator.stack.pop()
            test = build.chain_expression(build.longer(top.tests, ast.Is(), ast.Constant(None)))
        else:
            test = build.tested_by_not(simulator.pop_value().expr)
            if term.test is Test.NONE:
                test = moved(ast.Compare(test, [ast.Is()], [ast.Constant(None)]), test)
        if self.context.records_spans:
            put_jump(test, term.instr.span)
        if term.jump_when:
            test = build.negate(test)
        node.terminator = Condition(test, False, term.target, term.fall)

    def _terminate_match(self, node: Node, term: Union[PatternBranch, PatternJump], simulator: Simulator) -> None:
        """Set the terminator of ``node`` for a block that ends in a pattern."""
        item = simulator.pop()
        subject = None
        if isinstance(item, Marker) and item.kind is Mark.SUBJECT:
            statement = item.origin
        else:
            subject, statement = simulator.as_value(item).expr, node.id
        simulator.settle()
        assert term.pattern is not None
        node.silent = False
        if isinstance(term, PatternJump):
            node.terminator = MatchTest(statement, subject, term.pattern, term.target, None, guarded=term.guarded)
            return
        if self.context.records_spans:
            put(term.pattern, term.instr.span)
        node.terminator = MatchTest(
            statement, subject, term.pattern, term.fall, term.target, term.keeps, term.guarded, term.default
        )
        if term.keeps:
            simulator.stack.append(Marker(Mark.SUBJECT, statement))

    def _terminate_loop(self, node: Node, term: For) -> None:
        """Set the terminator of a node that ends in FOR_ITER."""
        item = node.base[-1]
        iterable = item.expr if isinstance(item, Marker) and item.kind is Mark.ITER else None
        span = term.instr.span if self.context.records_spans else None
        node.terminator = Loop(term.async_, term.body, term.exhausted, iterable, span=span)


def _handled(stack: List[Item]) -> Tuple[int, ...]:
    """Return the handlers whose exceptions are being handled."""
    return tuple([item.origin for item in stack if isinstance(item, Marker) and item.kind is Mark.PREV])


def _split_at_marks(nodes: Dict[int, Node]) -> None:
    """Split nodes at the ends of regions: the code after WithExit or PopException becomes a separate node."""
    # with a:               the block after the exit call may contain b(), which the ``with`` does not guard:
    #     pass              LOAD None; LOAD None; LOAD None; CALL; POP_TOP; LOAD b; CALL
    # b()
    fresh = max(map(abs, nodes), default=0) + 1
    for node in [each for each in nodes.values() if each.marks]:
        current = node
        index = 0
        while index < len(current.statements):
            if isinstance(current.statements[index], (WithExit, PopException)):
                mark = current.statements[index]
                assert isinstance(mark, (WithExit, PopException))
                rest = Node(
                    fresh,
                    current.region,
                    current.statements[index + 1 :],
                    current.terminator,
                    current.silent,
                    (),
                    current.handling,
                    current.offset,
                    current.extent,
                )
                # A returned value that was pending at the mark was evaluated inside: only the jump is outside.
                if not rest.statements and isinstance(rest.terminator, Return):
                    value = rest.terminator.value
                    rest.silent = isinstance(value, ast.Constant) or any(value is expr for expr in mark.pending)
                if isinstance(mark, PopException):
                    gone = mark.handler
                    rest.handling = tuple(handler for handler in current.handling if handler != gone)
                if not rest.statements and isinstance(rest.terminator, Goto):
                    current.statements = current.statements[: index + 1]
                    break
                current.statements, current.terminator = current.statements[: index + 1], Goto(fresh)
                nodes[fresh] = rest
                current, index = rest, 0
                fresh += 1
                continue
            index += 1
