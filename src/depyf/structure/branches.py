"""``if`` statements: the nodes of each branch, and the join node after them."""

from __future__ import annotations

import ast
from bisect import bisect_right
from typing import TYPE_CHECKING, List, Optional, Set

from depyf.flow.graph import Branch
from depyf.flow.written_jumps import Written
from depyf.lift import build
from depyf.lift.nodes import Condition, Node, Raise, Return
from depyf.lift.places import place_of, put
from depyf.normal.ops import Op
from depyf.structure.leaving import fails, leaves
from depyf.structure.regions import is_outside, past_marks
from depyf.structure.structurer import Structurer
from depyf.structure.unstructured import Unstructured

if TYPE_CHECKING:
    from depyf.structure.place import Place


def if_statement(
    structurer: Structurer, node: Node, term: Condition, place: Place, result: List[ast.stmt]
) -> Optional[int]:
    """Write the ``if`` for the test at the end of ``node``; return the next node, ``None`` if there is none."""
    if term.keep:
        raise Unstructured(f"node {node.id} keeps the value it tests")
    merge = _merge(structurer, node, place)
    if merge is None and _never_returns(structurer, term.target, place):
        merge = _behind_else(structurer, term, place)
    arms = place if merge is None else place._replace(follow=merge)
    body = structurer.sequence(term.fall, arms)
    if merge is None and leaves(body, structurer.leaving):
        result.append(_if_statement(term.test, body, []))
        return term.target
    orelse = structurer.sequence(term.target, arms)
    if not body and orelse and merge is None and place.follow is not None:
        # The compiler would have jumped if this arm were empty.
        rest_leaves = leaves(orelse, structurer.leaving) and not _jump_was_added(structurer, node)
        jump = _explicit_jump(structurer, term.fall, place, rest_leaves=rest_leaves)
        if jump is None:
            result.append(_if_statement(build.negate(term.test), orelse, []))
        elif isinstance(jump, ast.Pass):
            result.append(ast.If(term.test, [jump], orelse))
        else:
            result.append(ast.If(term.test, [jump], []))
            result.extend(orelse)
        return None
    if leaves(body, structurer.leaving) and not (merge is None and leaves(orelse, structurer.leaving)):
        result.append(_if_statement(term.test, body, []))
        result.extend(orelse)
    else:
        test = term.test if body or orelse or not _was_turned(structurer, node) else build.negate(term.test)
        result.append(_if_statement(test, body, orelse))
    return merge


def _explicit_jump(structurer: Structurer, target: int, place: Place, *, rest_leaves: bool) -> Optional[ast.stmt]:
    """Return the explicit jump to ``target`` that was written although control falls through to it; ``None`` if none
    was."""
    target = past_marks(structurer, target, place)
    if target == place.follow == place.continues and rest_leaves:
        return ast.Continue()
    if target == place.follow == structurer.end:
        return _written_pass(structurer, target) or ast.Return(None)
    return None


def _written_pass(structurer: Structurer, end: int) -> Optional[ast.stmt]:
    """Return the ``pass`` that the implicit return at node ``end`` has the span of; ``None`` if it has another one."""
    term = structurer.nodes[end].terminator
    span = place_of(term.value) if isinstance(term, Return) and term.value is not None else None
    if span is None or structurer.flow.written_jumps.of_return(span) is not Written.PASS:
        return None
    statement = ast.Pass()
    put(statement, span)
    return statement


def _jump_was_added(structurer: Structurer, node: Node) -> bool:
    """Return whether the jump after the test that ends ``node`` has the span of the test. No ``continue`` was written
    then: the compiler inverted a test that would have jumped backwards (since 3.12)."""
    block, ops = structurer.flow.blocks.get(node.last_block), structurer.flow.code.ops
    if block is None or not isinstance(block.term, Branch):
        return False
    first = bisect_right(structurer.offsets, block.term.instr.offset)
    last = max(first, bisect_right(structurer.offsets, node.extent))  # further tests of the same condition
    for index in range(first, min(last + 1, len(ops))):
        test, jump = ops[index - 1], ops[index]
        if test.op is Op.BRANCH and jump.op is Op.JUMP and jump.span in (test.span, None):
            return True
    return False


def _was_turned(structurer: Structurer, node: Node) -> bool:
    """Return whether the compiler inverted the test that ends ``node``, of a statement that does nothing: the test then
    jumps over the jump that it added."""
    block = structurer.flow.blocks.get(node.last_block)
    if block is None or not isinstance(block.term, Branch) or block.term.instr.target is None:
        return False
    added = bisect_right(structurer.offsets, block.term.instr.offset)
    return block.term.instr.target > added and _jump_was_added(structurer, node)


def _merge(structurer: Structurer, node: Node, place: Place) -> Optional[int]:
    """Return the join node of the statement at ``node``: dominated by it, with several predecessors; ``None`` if none
    is."""
    best: Optional[int] = None
    for child in structurer.shape.children[node.id]:
        if len(structurer.shape.forward_predecessors(child)) < 2 or place.known(child):
            continue
        if structurer.shape.is_copyable(child) and not structurer.shape.is_one_statement(child):
            continue
        if is_outside(structurer, child, place):
            continue
        if best is None or structurer.shape.index[child] < structurer.shape.index[best]:
            best = child
    return best


def _never_returns(structurer: Structurer, id: int, place: Place) -> bool:
    """Return whether the short branch at ``id`` ends in ``raise`` or ``return``."""
    term = structurer.nodes[id].terminator
    return isinstance(term, (Raise, Return)) and not place.known(id)


def _behind_else(structurer: Structurer, term: Condition, place: Place) -> Optional[int]:
    """Return where the first branch jumps if the second one never gets there; ``None`` if that is not a single node.
    The statement then has an ``else`` that exits, and control continues at that node."""
    limit = structurer.nodes[term.target].offset
    if place.known(term.fall):
        return None
    if (
        limit <= structurer.nodes[term.fall].offset
        or place.known(term.target)
        or structurer.shape.is_copyable(term.target)
    ):
        return None
    found: Set[int] = set()
    todo, seen = [term.fall], {term.fall}
    while todo:
        for target in structurer.shape.successors[todo.pop()]:
            if target in seen or place.known(target) or structurer.shape.is_copyable(target):
                continue
            seen.add(target)
            if structurer.nodes[target].offset > limit:
                found.add(target)
            else:
                todo.append(target)
    if len(found) != 1:
        return None
    behind = found.pop()
    if not structurer.shape.dominates(term.fall, behind) or is_outside(structurer, behind, place):
        return None
    return behind


def _if_statement(test: ast.expr, body: List[ast.stmt], orelse: List[ast.stmt]) -> ast.stmt:
    if not orelse and len(body) == 1 and isinstance(body[0], ast.Assert) and fails(body[0]):
        failed = ast.Assert(build.negate(test), body[0].msg)
        put(failed, place_of(body[0]))
        return failed
    # An ``if`` with only an ``else`` would have been compiled as the opposite test.
    return ast.If(test, body or [ast.Pass()], orelse)
