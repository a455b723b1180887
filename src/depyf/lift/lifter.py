"""Lift a whole flow graph: decide which blocks form one node, and which joined values need a variable."""

from __future__ import annotations

import ast
from typing import Dict, List, Optional, Set, Tuple

from depyf.flow.arms import returns_at_once
from depyf.flow.graph import Block, Branch, End, FlowGraph, For, Jump, Term, Test
from depyf.flow.order import Order, order_blocks
from depyf.flow.patterns import PatternBranch, PatternJump
from depyf.hints import Hints
from depyf.lift import build
from depyf.lift.containers import copied, holds_containers
from depyf.lift.context import Context, Decisions
from depyf.lift.entries import Entries
from depyf.lift.items import Container, Copy, Item, Mark, Marker, Retry, Value
from depyf.lift.marks import split_at_marks
from depyf.lift.matches import end_with_match
from depyf.lift.nodes import (
    Condition,
    ExceptionTest,
    Goto,
    LiftedGraph,
    Loop,
    Node,
    Overridden,
    Return,
    WithDecision,
    WithEnter,
)
from depyf.lift.places import moved, put_jump
from depyf.lift.reduce import Reducer
from depyf.lift.rules.table import RULES
from depyf.lift.simulator import Simulator, end_as_operands
from depyf.normal.ops import Op, is_silent

ATTEMPTS = 200


def lift(
    graph: FlowGraph, hints: Optional[Hints] = None, *, places: bool = True, expressions: bool = False
) -> LiftedGraph:
    """Return the lifted form of ``graph``.

    ``hints`` add facts that the bytecode lacks. ``places``: nodes record their source span. ``expressions``: tests are
    joined wherever that is possible, also where they look like nested statements. Lifting restarts with more
    temporaries when a value can't stay pending. Raises ``ValueError`` when the bytecode has no equivalent syntax.
    """
    decisions = Decisions()
    order = order_blocks(graph)
    for _ in range(ATTEMPTS):
        try:
            return _Lifter(graph, order, decisions, hints or Hints(), places=places, expressions=expressions).run()
        except Retry as retry:
            decisions.learn(retry)
    raise ValueError(f"lifting needs more than {ATTEMPTS} attempts")


class _Lifter:
    def __init__(
        self, graph: FlowGraph, order: Order, decisions: Decisions, hints: Hints, *, places: bool, expressions: bool
    ) -> None:
        self.graph, self.order = graph, order
        self.context = Context(graph.code.code, decisions, hints, places=places)
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
        for node in self.nodes.values():
            if isinstance(node.terminator, Condition) and node.terminator.keep:  # it became no and/or
                raise Retry("spill", node.terminator.copied_at)
            if node.outlives_test() and node.last_block not in self.context.decisions.spill_end:
                raise Retry("spill_end", node.last_block)
            if isinstance(node.terminator, Loop) and node.terminator.target is None:
                node.terminator.target = ast.Name(self.context.temporary(), ast.Store())
        split_at_marks(self.nodes)
        return LiftedGraph(self.nodes, self.graph.entry, self.context.temporaries)

    # --- one block -------------------------------------------------------------------------------------------------

    def _lift_block(self, block: Block) -> None:
        if len(self.edges[block.id]) > 1 and self._only_returns(block):
            self._return_from_each(block)
            return
        node = self._fusable(block)
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
        edges = self.edges[block.id]
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
        if node.region != block.region:
            if not block.ops or not all(is_silent(instr) for instr in block.ops):
                return None
            if node.leaves or not node.holds_values():
                return None
        term = self.graph.blocks[node.last_block].term
        begins_with_pop = bool(block.ops) and block.ops[0].op in (Op.POP, Op.POP_EXC, Op.SWAP)
        if isinstance(term, Jump) and term.offset >= 0 and not begins_with_pop and not node.holds_values():
            if not self.reducer.only_expressions:
                return None  # a jump over other code: its target is the end of a statement
        if node.leaves and node.region == block.region and not node.statements and len(node.stack) >= 0:
            return None
        if node.statements and isinstance(node.statements[-1], WithEnter):
            return None
        return node

    def _keeps_tested_value(self, block: Block) -> bool:
        """Return whether ``block`` ends with ``COPY 1; BRANCH target; POP``: only the edge to ``target`` keeps the
        value."""
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
        term = block.term
        if isinstance(term, End):
            if node.terminator is None or isinstance(node.terminator, Goto):
                if not block.ops:  # a finally body that never terminates normally
                    returns = bool(block.leaves) and len(simulator.stack) > block.leaves[-1].depth
                    node.terminator = Return(simulator.pop_value().expr) if returns else Overridden()
            return
        spill = node.id in self.context.decisions.spill_end or block.id in self.context.decisions.spill_end
        holds = self.context.follows_containers and holds_containers(simulator.stack)
        if not isinstance(term, Jump) and (spill or holds):
            self._settle_before_branch(simulator, term)
        elif isinstance(term, Jump) and block.id in self.context.decisions.spill_locals:
            simulator.settle("*")
        elif isinstance(term, Jump) and block.id in self.context.decisions.spill_end:
            simulator.settle()
        if isinstance(term, (PatternBranch, PatternJump)):
            end_with_match(node, term, simulator)
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
        top = simulator.stack[-1]
        if isinstance(top, Marker):
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
            behind = term.fall
            if len(fall.ops) == 1 and isinstance(fall.term, Jump):  # only the POP: other edges jump to its successor
                behind = fall.term.target
            copied_at = self.graph.blocks[node.last_block].ops[-1].offset
            test = build.tested_again(top.expr, chosen=self._is_arm(node.last_block))
            node.terminator = Condition(test, term.jump_when, term.target, behind, True, copied_at)
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
        if self.context.places:
            put_jump(test, term.instr.span)
        if term.jump_when:
            test = build.negate(test)
        node.terminator = Condition(test, False, term.target, term.fall)

    def _terminate_loop(self, node: Node, term: For) -> None:
        item = node.base[-1]
        iterable = item.expr if isinstance(item, Marker) and item.kind is Mark.ITER else None
        span = term.instr.span if self.context.places else None
        node.terminator = Loop(term.async_, term.body, term.exhausted, iterable, span=span)


def _handled(stack: List[Item]) -> Tuple[int, ...]:
    """Return the handlers whose exceptions are being handled."""
    return tuple([item.origin for item in stack if isinstance(item, Marker) and item.kind is Mark.PREV])
