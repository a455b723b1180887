"""Traversal of the statement lists of a tree."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Union

from depyf.decompiler.bytecode.syntax_trees import block_fields, has_blocks
from depyf.decompiler.source.inventory import UNKNOWN, Contents
from depyf.decompiler.source.rewriting import Node, replaced
from depyf.decompiler.structure.leaving import is_match

if TYPE_CHECKING:
    from typing import TypeGuard  # new in 3.10

Block = List[ast.stmt]

FIELDS = ("body", "orelse", "finalbody")

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def rewrite_blocks(
    node: Node,
    before: Callable[[Block], Block],
    after: Callable[[Block], Block],
    contents: Contents = UNKNOWN,
    wanted: int = -1,
) -> Node:
    """Return ``node`` with each statement list rewritten: by ``before`` in preorder, by ``after`` in postorder.
    ``before`` is not called for ``elif``. An empty list becomes ``pass`` where a statement is required. Unchanged parts
    are shared between both trees. The blocks in statements that hold none of the ``wanted`` classes are not visited."""

    rewritten: Node = _Blocks(before, after, contents, wanted).inside(node)
    return rewritten


class _Blocks:
    """The arguments of ``rewrite_blocks``. Functions in it that call each other would be a reference cycle around each
    tree, which only the collector frees."""

    def __init__(
        self, before: Callable[[Block], Block], after: Callable[[Block], Block], contents: Contents, wanted: int
    ) -> None:
        self._before, self._after, self._contents, self._wanted = before, after, contents, wanted

    def _block(self, statements: Block, *, elif_: bool = False) -> Block:
        contents, wanted = self._contents, self._wanted
        left = self._after(
            [
                self.inside(each) if has_blocks[each.__class__] and contents.get(id(each), -1) & wanted else each
                for each in (statements if elif_ else self._before(statements))
            ]
        )
        return statements if left == statements else left

    def inside(self, owner: Any) -> Any:
        """Return ``owner`` with the statement lists in it rewritten."""
        fields, parts_fields = block_fields(owner.__class__)
        changes: Dict[str, object] = {}
        for field in fields:
            statements = getattr(owner, field, None)
            if not statements:
                continue
            elif_ = field == "orelse" and isinstance(owner, ast.If) and is_elif(statements)
            rewritten = self._block(statements, elif_=elif_)
            if rewritten is not statements:
                changes[field] = rewritten or ([ast.Pass()] if field == "body" else [])
        for field in parts_fields:
            parts = getattr(owner, field, None)
            if parts:
                bodies = [self._block(part.body) for part in parts]
                if any(not body or body is not part.body for body, part in zip(bodies, parts)):
                    changes[field] = [replaced(part, body=body or [ast.Pass()]) for body, part in zip(bodies, parts)]
        return replaced(owner, **changes) if changes else owner


def same(statements: Block) -> Block:
    """Return ``statements``: for ``rewrite_blocks`` when only one of the two functions has an effect."""
    return statements


def is_elif(orelse: Block) -> bool:
    """Return whether the ``else`` of an ``if`` is written as ``elif``."""
    return len(orelse) == 1 and isinstance(orelse[0], ast.If)


def is_loop(statement: ast.stmt) -> TypeGuard[Union[ast.For, ast.AsyncFor, ast.While]]:
    return isinstance(statement, _LOOPS)


def is_definition(
    statement: ast.stmt,
) -> TypeGuard[Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef]]:
    return isinstance(statement, _DEFINITIONS)


class Leaving:
    """Computes whether control never reaches the end of a list of statements, with a cache."""

    def __init__(self) -> None:
        self._known: Dict[int, bool] = {}
        self._kept: List[ast.stmt] = []  # so that ids stay unique

    def leaves(self, statements: Block) -> bool:
        if not statements:
            return False
        last = statements[-1]
        known = self._known.get(id(last))
        if known is None:
            known = self._known[id(last)] = self._statement_leaves(last)
            self._kept.append(last)
        return known

    def _statement_leaves(self, statement: ast.stmt) -> bool:
        if isinstance(statement, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
            return True
        if isinstance(statement, ast.If):
            return self.leaves(statement.body) and self.leaves(statement.orelse)
        if isinstance(statement, ast.Try):
            inner = self.leaves(statement.orelse if statement.orelse else statement.body)
            return self.leaves(statement.finalbody) or (
                inner and all(self.leaves(handler.body) for handler in statement.handlers)
            )
        return False


def trim(statements: Block, redundant: Callable[[ast.stmt], bool], negate: Callable[[ast.expr], ast.expr]) -> Block:
    """Return ``statements`` without the statements for which ``redundant`` holds at the end of every path through them.
    The result may be empty. Loops and ``finally`` bodies are not changed: their end is not the end of the whole."""
    if not statements:
        return statements
    last = statements[-1]
    if redundant(last):
        return trim(statements[:-1], redundant, negate)
    if isinstance(last, ast.If):
        body, orelse = trim(last.body, redundant, negate), trim(last.orelse, redundant, negate)
        if body and (orelse or not last.orelse):
            last = replaced(last, body=body, orelse=orelse)
        elif body:
            last = replaced(last, body=body, orelse=[])
        elif orelse:
            last = replaced(last, test=negate(last.test), body=orelse, orelse=[])
    elif isinstance(last, (ast.With, ast.AsyncWith)):
        last = replaced(last, body=trim(last.body, redundant, negate) or [ast.Pass()])
    elif is_match(last):
        cases = [replaced(case, body=trim(case.body, redundant, negate) or [ast.Pass()]) for case in last.cases]
        last = replaced(last, cases=cases)
    elif isinstance(last, ast.Try) and not _leaves_finally(last):
        last = _trimmed_try(last, redundant, negate)
    return statements if last is statements[-1] else [*statements[:-1], last]


def _leaves_finally(statement: ast.Try) -> bool:
    return Leaving().leaves(statement.finalbody)


def _trimmed_try(
    last: ast.Try, redundant: Callable[[ast.stmt], bool], negate: Callable[[ast.expr], ast.expr]
) -> ast.Try:
    handlers = [
        replaced(handler, body=trim(handler.body, redundant, negate) or [ast.Pass()]) for handler in last.handlers
    ]
    if last.orelse:
        return replaced(last, handlers=handlers, orelse=trim(last.orelse, redundant, negate))
    return replaced(last, handlers=handlers, body=trim(last.body, redundant, negate) or [ast.Pass()])
