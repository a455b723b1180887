"""The flow graph: basic blocks with explicit ends, each in one protected region.

Blocks are mutable while the steps of this layer undo the compiler's copies; the later layers only read.
"""

from __future__ import annotations

from dataclasses import field
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from depyf.base.quick_dataclass import dataclass
from depyf.base.quick_enum import Enum
from depyf.decompiler.bytecode.floats import is_nan
from depyf.decompiler.bytecode.lines import Span
from depyf.decompiler.flow.written_jumps import WrittenJumps
from depyf.decompiler.normal.ops import ENDS, Handler, Instr, NormalCode, Op


class Region(NamedTuple):
    """A protected region: the handler's entry block, the stack depth kept, and whether LASTI is pushed."""

    entry: int
    depth: int
    lasti: bool


@dataclass
class Jump:
    target: int
    offset: int = -1

    def successors(self) -> Tuple[int, ...]:
        return (self.target,)


class Test(Enum):
    """The test that a branch makes of the value that it pops."""

    TRUTH = "truth"
    NONE = "none"
    PATTERN = "pattern"


@dataclass
class Branch:
    """A branch to ``target`` when the popped value is (``jump_when``) or is not true/None, else to ``fall``."""

    test: Test
    jump_when: bool
    target: int
    fall: int
    instr: Instr

    def successors(self) -> Tuple[int, ...]:
        return (self.fall, self.target)


@dataclass
class For:
    async_: bool
    body: int
    exhausted: int
    instr: Instr

    def successors(self) -> Tuple[int, ...]:
        return (self.body, self.exhausted)


@dataclass
class End:
    """The last operation of the block is RETURN, RAISE or RERAISE."""

    def successors(self) -> Tuple[int, ...]:
        return ()


Term = Union[Jump, Branch, For, End]


@dataclass
class Block:
    """A basic block; jumps are ``term``, not in ``ops``. ``leaves``: regions whose removed copy of the ``finally`` body
    ended here: control exits them as the block starts. ``implicit``: a ``return None`` that is not in the source.
    ``jumps_from``: the last offset of its threaded jumps."""

    id: int
    ops: List[Instr]
    term: Term
    region: Optional[Region]
    leaves: Tuple[Region, ...] = ()
    implicit: bool = False
    jumps_from: int = -1

    def extent(self) -> int:
        """Return the last offset that belongs to the block, including jumps that were threaded away."""
        last = self.ops[-1].offset if self.ops else -1
        term = self.term
        end = term.offset if isinstance(term, Jump) else -1 if isinstance(term, End) else term.instr.offset
        return max(last, end, self.jumps_from)

    def successors(self) -> Tuple[int, ...]:
        return self.term.successors()

    def offset(self) -> int:
        """Return the bytecode offset of the block; -1 for synthetic blocks."""
        if self.ops:
            return self.ops[0].offset
        if isinstance(self.term, Jump):
            return self.term.offset
        return self.term.instr.offset if isinstance(self.term, (Branch, For)) else -1

    def redirect(self, old: int, new: int) -> None:
        """Redirect every edge to ``old`` to ``new``."""
        term = self.term
        if isinstance(term, Jump):
            term.target = new if term.target == old else term.target
        elif isinstance(term, Branch):
            term.target = new if term.target == old else term.target
            term.fall = new if term.fall == old else term.fall
        elif isinstance(term, For):
            term.body = new if term.body == old else term.body
            term.exhausted = new if term.exhausted == old else term.exhausted


def ways_of(term: Branch) -> Tuple[Test, int, int]:
    """Return the test and its successors if it holds and if it does not, whichever is the jump."""
    true, false = (term.target, term.fall) if term.jump_when else (term.fall, term.target)
    return term.test, true, false


def same_operation(one: Instr, two: Instr) -> bool:
    """Return whether two instructions do the same, at any offset."""
    if one.op is not two.op or type(one.arg) is not type(two.arg):
        return False
    if one.op is Op.CONST:
        return one.arg is two.arg or (one.span == two.span and _is_copy(one.arg, two.arg))
    return one.arg is two.arg or one.arg == two.arg


def _is_copy(one: object, two: object) -> bool:
    """Return whether two constants of one expression are equal but for the identity of NaN objects: since 3.14 each
    copy of a block has its own; any other equal constants are one object."""
    if type(one) is type(two) is tuple and len(one) == len(two):
        return all(map(_is_copy, one, two))
    return one is two or (type(one) is type(two) and is_nan(one) and is_nan(two))


def returns_constant(block: Block) -> bool:
    """Return whether ``block`` is only ``return <constant>``."""
    return len(block.ops) == 2 and block.ops[0].op is Op.CONST and block.ops[1].op is Op.RETURN


@dataclass
class FlowGraph:
    """The flow graph of one code object.

    ``finally_regions``: the regions of ``finally`` whose copies were joined. ``copied_tests``: blocks that end in a
    branch and had a copy. ``clause_ends``: the offsets of the POP_EXC at the end of ``except`` clauses that no jump
    exits. ``clause_jumps``: the offsets of jumps that exit a clause, with their span if known. ``one_statement``: the
    code is one expression, so that equal blocks of one line are copies. ``arm_ends``: blocks that test the value of a
    choice again, since the compiler threads no jumps out of its arms (3.14).
    """

    code: NormalCode
    blocks: Dict[int, Block]
    entry: int = 0
    next_id: int = 0
    finally_regions: Set[Region] = field(default_factory=set)
    copied_tests: Set[int] = field(default_factory=set)
    one_statement: bool = False
    clause_ends: Set[int] = field(default_factory=set)
    clause_jumps: Dict[int, Optional[Span]] = field(default_factory=dict)
    arm_ends: Set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.written_jumps = WrittenJumps(self.code)

    def new_block(self, ops: List[Instr], term: Term, region: Optional[Region]) -> Block:
        block = Block(self.next_id, ops, term, region)
        self.blocks[block.id] = block
        self.next_id += 1
        return block

    def cut(self, block: Block, index: int) -> Block:
        """Cut ``block`` before its operation ``index``; return the new block with the rest."""
        rest = self.new_block(block.ops[index:], block.term, block.region)
        block.ops, block.term = block.ops[:index], Jump(rest.id)
        return rest

    def outer(self, region: Region) -> Optional[Region]:
        """Return the region that covers the handler of ``region``."""
        return self.blocks[region.entry].region

    def chain(self, region: Optional[Region]) -> Tuple[Region, ...]:
        """Return ``region`` and its enclosing regions, innermost first."""
        chain: List[Region] = []
        while region is not None and region not in chain:
            chain.append(region)
            region = self.outer(region)
        return tuple(chain)

    def regions(self) -> Set[Region]:
        return {block.region for block in self.blocks.values() if block.region is not None}

    def all_successors(self, block: Block) -> Tuple[int, ...]:
        """Return the normal successors, then the handler."""
        successors = block.term.successors()
        return successors if block.region is None else (*successors, block.region.entry)

    def predecessors(self) -> Dict[int, List[int]]:
        """Return the normal predecessors of each block (a block that jumps twice to the same target counts twice)."""
        result: Dict[int, List[int]] = {id: [] for id in self.blocks}
        for block in self.blocks.values():
            for successor in block.term.successors():
                result[successor].append(block.id)
        return result

    def drop_unreachable(self) -> None:
        reached = {self.entry}
        todo = [self.entry]
        for id in todo:
            for successor in self.all_successors(self.blocks[id]):
                if successor not in reached:
                    reached.add(successor)
                    todo.append(successor)
        if len(reached) < len(self.blocks):
            self.blocks = {id: block for id, block in self.blocks.items() if id in reached}

    def listing(self) -> str:
        """Return a listing for debugging the decompiler."""

        def lines() -> Iterator[str]:
            for block in self.blocks.values():
                yield f"B{block.id} region={block.region} leaves={[region.entry for region in block.leaves]}"
                for instr in block.ops:
                    yield f"    {instr.offset:5} L{instr.line} {instr.op.name} {instr.arg!r}"
                yield f"    -> {block.term}"

        return "\n".join(lines())


class Chains(Dict[Optional[Region], Tuple[Region, ...]]):
    """``FlowGraph.chain`` of each region, computed once; valid as long as the regions do not change."""

    def __init__(self, graph: FlowGraph) -> None:
        super().__init__({None: ()})
        self._graph = graph

    def __missing__(self, region: Region) -> Tuple[Region, ...]:
        inner: Dict[Region, None] = {}
        around: Optional[Region] = region
        while around is not None and around not in self and around not in inner:
            inner[around] = None
            around = self._graph.outer(around)
        if around in inner:  # a region covers its own handler
            self[region] = self._graph.chain(region)
            return self[region]
        for each in reversed(list(inner)):
            self[each] = (each, *self[around])
            around = each
        return self[region]


_LAST = frozenset([Op.JUMP, Op.BRANCH, Op.FOR, Op.RETURN, Op.RAISE, Op.RERAISE])
"""The operations that end a block."""


def build(code: NormalCode) -> FlowGraph:
    """Build the flow graph of ``code``; block ids follow the order of the bytecode."""
    # A block begins where the handler changes, at targets, at handlers, after each jump, and at each FOR: its block has
    # no other operation, since the loop goes back to it.
    ops = _with_guarded_tests(code.ops) if Op.BRANCH in code.kinds else list(code.ops)
    leaders = {0}
    handler: Optional[Handler] = None
    for index, instr in enumerate(ops):
        if instr.handler is not handler:
            if instr.handler != handler:
                leaders.add(index)
            handler = instr.handler
            if handler is not None:
                leaders.add(handler.target)
        if instr.target is not None:
            leaders.add(instr.target)
        if instr.op in _LAST:
            leaders.add(index + 1)
            if instr.op is Op.FOR:
                leaders.add(index)
    # Block ``number`` has the operations from its start to the next one; a jump at its end becomes its terminator.
    starts = sorted(index for index in leaders if index < len(ops))
    id_at = {start: number for number, start in enumerate(starts)}
    graph = FlowGraph(code, {}, 0)
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else len(ops)
        body = ops[start:end]
        handler = body[0].handler
        region = None if handler is None else Region(id_at[handler.target], handler.depth, handler.lasti)
        last = body[-1]
        term: Term
        if last.op is Op.JUMP:
            term = Jump(id_at[body.pop().target], last.offset)  # type: ignore[index]
        elif last.op is Op.BRANCH:
            test = Test.NONE if last.arg in ("none", "not none") else Test.TRUTH
            term = Branch(test, last.arg in ("true", "none"), id_at[last.target], number + 1, body.pop())  # type: ignore[index]
        elif last.op is Op.FOR:
            term = For(last.arg, number + 1, id_at[last.target], body.pop())  # type: ignore[index]
        elif last.op in (Op.RETURN, Op.RAISE, Op.RERAISE):
            term = End()
        else:
            term = Jump(number + 1)
        graph.new_block(body, term, region)
    return graph


def _with_guarded_tests(ops: Sequence[Instr]) -> List[Instr]:
    """Return ``ops`` with the jump of ``x is None`` under the handler of its test. The jump can't raise, and 3.13
    leaves it out of the enclosing regions."""
    tests = [
        index
        for index, instr in enumerate(ops)
        if instr.op is Op.BRANCH and instr.arg in ("none", "not none") and index
    ]
    result = list(ops)
    if not tests:
        return result
    # Only where the branch is reached from the operation before it, which pushes the tested value.
    entered = {instr.target for instr in ops} | {instr.handler.target for instr in ops if instr.handler is not None}
    for index in tests:
        before = ops[index - 1]
        if index not in entered and before.op not in ENDS and before.target is None:
            if ops[index].handler != before.handler:
                result[index] = ops[index].changed(handler=before.handler)
    return result
