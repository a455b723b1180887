"""``del`` for temporaries that would keep a value alive longer than the original does.

On the stack a value is gone once it was used; a variable has to be deleted. Liveness is computed backwards over the
statements (Aho, Lam, Sethi, Ullman, "Compilers", section 9.2.5); a variable dies behind the last statement that reads
it, and at the start of a branch that does not read it.
"""

from __future__ import annotations

import ast
from typing import AbstractSet, Any, Dict, List, Optional, Set, Tuple

from depyf.source.rewriting import replaced

_EVALUATED_FIRST: Dict[type, str] = {
    ast.Attribute: "value",
    ast.BinOp: "left",
    ast.Call: "func",
    ast.Compare: "left",
    ast.Subscript: "value",
}


def release(statements: List[ast.stmt], names: AbstractSet[str]) -> List[ast.stmt]:
    """The statements with ``del`` where one of ``names`` is not needed any more."""
    return _Release(names).block(statements, set())[0]


class _Release:
    def __init__(self, names: AbstractSet[str]) -> None:
        self.names = names
        self.made: List[str] = []  # names for results of calls that are arguments of others

    def block(self, statements: List[ast.stmt], live: Set[str]) -> Tuple[List[ast.stmt], Set[str]]:
        """The statements with deletions, and what is live before them; ``live`` is what is live behind them."""
        result: List[ast.stmt] = []
        live = set(live)
        for statement in reversed([part for whole in statements for part in self._unnested(whole)]):
            new, before, dead = self.statement(statement, live)
            if dead and not isinstance(statement, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
                result.append(_delete(dead))
            result.append(new)
            live = before
        result.reverse()
        return result, live

    def statement(self, node: Any, live: Set[str]) -> Tuple[ast.stmt, Set[str], Set[str]]:
        """The new statement, what is live before it, and what dies behind it."""
        node = self._split(node)
        if isinstance(node, ast.If):
            return self._if(node, live)
        if isinstance(node, (ast.While, ast.For, ast.AsyncFor)):
            return self._loop(node, live)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            inner, before = self.block(node.body, live)
            node.body = inner
            reads, writes = self._uses(node.items)
            return node, (before - writes) | reads, set()
        if hasattr(node, "handlers"):
            return self._try(node, live)
        if hasattr(node, "cases"):
            reads, _ = self._uses([node])
            return node, live | reads, set()
        reads, writes = self._uses([node])
        if isinstance(node, ast.Delete):
            return node, live | reads, set()
        if isinstance(node, (ast.Return, ast.Raise)):  # what stands behind is not reached from here
            live = set()
        dead = (reads | writes) - live
        return node, (live - writes) | reads, dead

    def _unnested(self, node: Any) -> List[ast.stmt]:
        """``return g(t())`` as two statements where ``t`` is one of the names: it dies before ``g`` is called."""
        value = getattr(node, "value", None)
        if not isinstance(node, (ast.Return, ast.Assign, ast.Expr)) or not isinstance(value, ast.Call):
            return [node]
        if not isinstance(value.func, ast.Name) or not value.args or not isinstance(value.args[0], ast.Call):
            return [node]
        reads = self._uses([value.args[0]])[0]
        if not reads or reads & self._uses([value.func, *value.args[1:], *value.keywords])[0]:
            return [node]
        name = f"__temp_result_{len(self.made)}"
        self.made.append(name)
        first = ast.Assign([ast.Name(name, ast.Store())], value.args[0])
        call = replaced(value, args=[ast.Name(name, ast.Load()), *value.args[1:]])
        return [*self._unnested(first), replaced(node, value=call)]

    def _split(self, node: Any) -> Any:
        """``return a if t else b`` as an ``if`` statement where ``t`` reads one of the names: it dies behind the test,
        and an expression can't delete it."""
        value = getattr(node, "value", None)
        if not isinstance(node, (ast.Return, ast.Assign, ast.Expr)) or value is None:
            return node
        found = self._tested_first(value)
        if found is None:
            return node
        test, body, orelse = found
        return ast.If(test, [replaced(node, value=body)], [replaced(node, value=orelse)])

    def _tested_first(self, expr: Any) -> Optional[Tuple[ast.expr, ast.expr, ast.expr]]:
        """If ``expr`` first of all tests something that reads one of the names: that, and ``expr`` for each outcome."""
        if isinstance(expr, ast.IfExp):
            return (expr.test, expr.body, expr.orelse) if self._uses([expr.test])[0] else None
        field = _EVALUATED_FIRST.get(type(expr))
        found = self._tested_first(getattr(expr, field)) if field is not None else None
        if field is None or found is None:
            return None
        test, body, orelse = found
        return test, replaced(expr, **{field: body}), replaced(expr, **{field: orelse})

    def _if(self, node: ast.If, live: Set[str]) -> Tuple[ast.stmt, Set[str], Set[str]]:
        reads, writes = self._uses([node.test])
        body, in_body = self.block(node.body, live)
        orelse, in_orelse = self.block(node.orelse, live)
        alive = in_body | in_orelse | reads | writes
        dead_in_body, dead_behind = alive - in_body, alive - in_orelse
        if dead_in_body:
            body.insert(0, _delete(dead_in_body))
        dead: Set[str] = set()
        if dead_behind and not orelse and _ends(body):
            dead = dead_behind
        elif dead_behind:
            orelse.insert(0, _delete(dead_behind))
        node.body, node.orelse = body, orelse
        return node, ((in_body | in_orelse) - writes) | reads, dead

    def _loop(self, node: Any, live: Set[str]) -> Tuple[ast.stmt, Set[str], Set[str]]:
        reads, writes = self._uses([node.test] if isinstance(node, ast.While) else [node.iter, node.target])
        orelse, in_orelse = self.block(node.orelse, live)
        at_head = live | in_orelse | reads
        for _ in range(2):  # what the next iteration reads is live at the end of this one
            at_head = at_head | self._live_in(node.body, at_head)
        node.body = self.block(node.body, at_head)[0]
        node.orelse = orelse
        return node, (at_head - writes) | reads, at_head - live - in_orelse - writes

    def _live_in(self, statements: List[ast.stmt], live: Set[str]) -> Set[str]:
        live = set(live)
        for statement in reversed(statements):
            if isinstance(statement, ast.If):
                reads, writes = self._uses([statement.test])
                arms = self._live_in(statement.body, live) | self._live_in(statement.orelse, live)
                live = (arms - writes) | reads
                continue
            reads, writes = self._uses([statement])
            simple = not any(hasattr(statement, field) for field in ("body", "handlers", "cases"))
            live = ((live - writes) if simple else live) | reads
        return live

    def _try(self, node: Any, live: Set[str]) -> Tuple[ast.stmt, Set[str], Set[str]]:
        final, behind = self.block(node.finalbody, live)
        handled: Set[str] = set(behind)
        for handler in node.handlers:
            handler.body, before = self.block(handler.body, behind)
            handled |= before | (self._uses([handler.type])[0] if handler.type is not None else set())
        node.orelse, in_orelse = self.block(node.orelse, behind)
        node.body, before = self.block(node.body, in_orelse | handled)
        node.finalbody = final
        return node, before | handled, set()

    def _uses(self, nodes: List[Any]) -> Tuple[Set[str], Set[str]]:
        reads: Set[str] = set()
        writes: Set[str] = set()
        for node in nodes:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Name) and inner.id in self.names:
                    (writes if isinstance(inner.ctx, ast.Store) else reads).add(inner.id)
                elif isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
                    reads |= {inner.target.id} & self.names
        return reads, writes


def _delete(names: Set[str]) -> ast.stmt:
    return ast.Delete([ast.Name(name, ast.Del()) for name in sorted(names)])


def _ends(statements: List[ast.stmt]) -> bool:
    return bool(statements) and isinstance(statements[-1], (ast.Return, ast.Raise, ast.Break, ast.Continue))
