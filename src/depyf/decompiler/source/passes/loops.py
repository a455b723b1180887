"""Loops with their condition in the header, and without statements that belong after them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Iterator, List, Optional, Tuple

from depyf.decompiler.bytecode.syntax_trees import block_fields
from depyf.decompiler.lift.build import negate
from depyf.decompiler.lift.node_attributes import Start
from depyf.decompiler.lift.spans import column_of, first_operand, first_span, span_of, start_of
from depyf.decompiler.source.inventory import UNKNOWN, Contents, bits_of
from depyf.decompiler.source.passes.blocks import Block, Leaving, is_definition, is_loop, rewrite_blocks, same, trim
from depyf.decompiler.source.rewriting import replaced

if TYPE_CHECKING:
    from typing import TypeGuard  # new in 3.10


WHILES, CONTINUES = bits_of(ast.While), bits_of(ast.Continue)


def move_exits_out(tree: ast.AST, contents: Contents = UNKNOWN) -> object:
    """Move the statements before the only exit of a ``while True`` after the loop."""
    return rewrite_blocks(tree, same, _with_exits_out, contents, WHILES)


def find_conditions(tree: ast.AST, contents: Contents = UNKNOWN) -> object:
    """Give a ``while True`` that starts with ``if ...: break`` the condition."""
    return rewrite_blocks(
        tree, same, lambda block: [_conditioned(each) if is_endless(each) else each for each in block], contents, WHILES
    )


def remove_continues(tree: ast.AST, contents: Contents = UNKNOWN) -> object:
    """Remove ``continue`` at the end of a loop."""
    return rewrite_blocks(tree, same, _without_continues, contents, CONTINUES)


def _without_continues(block: Block) -> Block:
    return [
        replaced(statement, body=trim(statement.body, _is_continue, negate) or [ast.Pass()])
        if isinstance(statement, (ast.For, ast.AsyncFor, ast.While))
        else statement
        for statement in block
    ]


def _conditioned(loop: ast.While) -> ast.stmt:
    # while True:               while not a:
    #     if a: break               b()
    #     b()
    first = loop.body[0]
    if not isinstance(first, ast.If) or len(first.body) != 1 or not isinstance(first.body[0], ast.Break):
        return loop
    begins, inner = start_of(first), column_of(loop.body[1:])
    if begins is not None and inner is not None and begins.column == inner:
        return loop  # columns show a statement in the body
    if span_of(loop.test) is not None or _begins_with_if(first, begins):
        return loop
    body = [*first.orelse, *loop.body[1:]] or [ast.Pass()]
    return ast.While(test=negate(first.test), body=body, orelse=[])


def _begins_with_if(branch: ast.If, begins: Optional[Start]) -> bool:
    """Return whether the space between ``begins``, the start of ``branch``, and its test fits the keyword ``if``."""
    operand, before = first_operand(branch.test)
    place = first_span(operand)
    if begins is None or not begins.exact or begins.column is None or place is None or place.column is None:
        return False
    return place.line == begins.line and place.column - begins.column == len("if ") + before


def _with_exits_out(block: Block) -> Block:
    result: Block = []
    for statement in block:
        moved = _exit_of(statement) if is_endless(statement) else None
        if moved is None:
            result.append(statement)
        else:
            result.append(moved[0])
            result.extend(moved[1])
    return result


def _exit_of(loop: ast.While) -> Optional[Tuple[ast.stmt, Block]]:
    # while True:                   while True:
    #     a()                           a()
    #     if b:                         if b:
    #         c()                           break
    #         break                     d()
    #     d()                       c()
    exits = [(index, statement) for index, statement in enumerate(loop.body) if breaks_in([statement])]
    if len(exits) != 1:
        return None
    index, branch = exits[0]
    if isinstance(branch, ast.If) and not branch.orelse:
        after = _all_before_break(branch.body)
        if not after or _is_written_inside(after, loop.body[:index], loop.body[index + 1 :]):
            return None
        branch = replaced(branch, body=[ast.Break()])
        return replaced(loop, body=[*loop.body[:index], branch, *loop.body[index + 1 :]]), after
    return _exit_by_column(loop, index)


def _exit_by_column(loop: ast.While, index: int) -> Optional[Tuple[ast.stmt, Block]]:
    # while True:                   while True:
    #     try:                          try:
    #         a()                           a()
    #     except b:                     except b:
    #         c()                           c()
    #     else:                         else:
    #         d()                           break
    #         break                 d()
    body, column = loop.body, column_of(loop.body[:1])
    branch, end = body[index], len(body)
    while end > 1 and _is_left_of(body[end - 1], column):
        end -= 1
    if end <= index:
        # The exit itself is left of the body: the statements after the ``try`` whose clauses end in ``continue``. The
        # ``break`` goes into the ``else`` clause of that ``try``, or to the end of the body.
        after, ahead = _all_before_break(body[end:]), body[:end]
        last = ahead[-1]
        if isinstance(last, ast.Try) and last.handlers and not last.orelse and not last.finalbody:
            body = [*ahead[:-1], replaced(last, orelse=[ast.Break()])]
            if not all(Leaving().leaves(handler.body) for handler in last.handlers):
                return None
        else:
            body = [*ahead, ast.Break()]
    elif isinstance(branch, ast.Try) and branch.orelse and not branch.finalbody:
        # As in the listing: the ``else`` clause has the only exits, and its statements are left of the body.
        after = _all_before_break(branch.orelse)
        branch = replaced(branch, orelse=[ast.Break()])
        if breaks_in([replaced(branch, orelse=[])]) or not all(_is_left_of(each, column) for each in after):
            return None
        body = [*body[:index], branch, *body[index + 1 :]]
    else:
        return None
    return (replaced(loop, body=body), after) if after else None


def _all_before_break(block: Block) -> Block:
    """Return ``block`` without the ``break`` at the end of each path through it; nothing if there are other jumps."""
    after = trim(block, lambda each: isinstance(each, ast.Break), negate) if Leaving().leaves(block) else []
    jumps = any(isinstance(statement, (ast.Break, ast.Continue)) for statement in own_statements(after))
    return [] if jumps else after


def _is_left_of(statement: ast.stmt, column: Optional[int]) -> bool:
    start = start_of(statement)
    return start is not None and start.column is not None and column is not None and start.column < column


def _is_written_inside(after: Block, before: Block, rest: Block) -> bool:
    """Return whether columns or lines show that ``after`` is in the body of a loop, between ``before`` and ``rest``."""
    # Without columns (3.10): what goes on below ``after`` in the loop shows that ``after`` is inside.
    inner, outer = column_of(after), column_of([*before, *rest])
    if inner is not None and outer is not None:
        return inner > outer
    begins, goes_on = start_of(after[0]), start_of(rest[0]) if rest else None
    return begins is not None and goes_on is not None and begins.line < goes_on.line


def is_endless(statement: ast.stmt) -> TypeGuard[ast.While]:
    """Return whether ``statement`` is a ``while True`` without ``else``."""
    if not isinstance(statement, ast.While) or statement.orelse:
        return False
    return isinstance(statement.test, ast.Constant) and statement.test.value is True


def breaks_in(block: Block) -> bool:
    return any(isinstance(statement, ast.Break) for statement in own_statements(block))


def own_statements(block: Block) -> Iterator[ast.stmt]:
    """Yield all statements whose ``break`` and ``continue`` belong to the loop around ``block``."""
    pending: List[ast.stmt] = list(block)
    while pending:
        statement = pending.pop()
        yield statement
        if is_definition(statement):
            continue
        blocks, clauses = block_fields(statement.__class__)
        for field in ("orelse",) if is_loop(statement) else blocks:
            pending.extend(getattr(statement, field, ()))
        for field in clauses:
            for part in getattr(statement, field):
                pending.extend(part.body)


def _is_continue(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Continue) and span_of(statement) is None
