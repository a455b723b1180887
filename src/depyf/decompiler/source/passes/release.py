"""``del`` for temporaries that would keep a value alive longer than the original does.

A stack slot releases its value when it is used; a variable has to be deleted. Liveness is computed backwards over the
statements (Aho, Lam, Sethi, Ullman, "Compilers", section 9.2.5); a variable dies after the last statement that reads
it, and at the start of a branch that does not read it.
"""

from __future__ import annotations

import ast
from typing import AbstractSet, Dict, List, Optional, Sequence, Set, Tuple, Type, Union

from depyf.decompiler.bytecode.syntax_trees import TRY_STATEMENTS, TryStatement, walk
from depyf.decompiler.source.rewriting import replaced

_EVALUATED_FIRST: Dict[type, str] = {
    ast.Attribute: "value",
    ast.BinOp: "left",
    ast.Call: "func",
    ast.Compare: "left",
    ast.Subscript: "value",
}
_IN_ORDER: Dict[type, Tuple[str, ...]] = {
    ast.Attribute: ("value",),
    ast.BinOp: ("left", "right"),
    ast.Call: ("func", "args", "keywords"),
    ast.Compare: ("left", "comparators"),
    ast.Dict: ("values",),
    ast.FormattedValue: ("value",),
    ast.JoinedStr: ("values",),
    ast.List: ("elts",),
    ast.Set: ("elts",),
    ast.Starred: ("value",),
    ast.Subscript: ("value", "slice"),
    ast.Tuple: ("elts",),
    ast.UnaryOp: ("operand",),
    ast.keyword: ("value",),
}
"""The fields of expressions that evaluate all of their parts, in that order (of a dict only with constant keys)."""
_NO_VALUES = (ast.Name, ast.Constant, ast.Starred, ast.FormattedValue, ast.keyword, ast.Slice)

_MATCH: Tuple[Type[ast.Match], ...] = (ast.Match,) if hasattr(ast, "Match") else ()


def release(
    statements: List[ast.stmt], names: AbstractSet[str], *, thorough: bool = False, noticed: bool = False
) -> List[ast.stmt]:
    """Return the statements with ``del`` where one of ``names`` has no further use. ``thorough``: any operation, not
    only a call, becomes a separate statement where one of ``names`` dies with it, and values that an exception leaves
    in them are dropped where it is suppressed. ``noticed``: only where an operation follows."""
    released = _Release(names, thorough=thorough, noticed=noticed).block(statements, set())[0]
    while noticed and len(released) > 1 and _deletes_only(released[-1], names):
        released.pop()
    return released


def foreseen(function: ast.FunctionDef, variables: AbstractSet[str]) -> Set[str]:
    """Return the names in ``function`` that will most likely have to be deleted. They hold parts of a local value, or
    the result of a global function. ``variables`` are the variables of the original, and are skipped."""
    assigned = [node for node in walk(function) if isinstance(node, ast.Assign)]
    stored = {name: node.value for node in assigned for target in node.targets for name in _names(target)}
    local, found = {*variables, *stored}, set()
    for name, value in stored.items():
        if name not in variables and (_is_held_here(value, local) or getattr(value, "id", None) in found):
            found.add(name)
    return found


def _names(target: ast.expr) -> List[str]:
    return [node.id for node in walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def _is_held_here(value: ast.expr, local: AbstractSet[str]) -> bool:
    """Return whether ``value`` may die when the variable that it is assigned to is deleted."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id not in local
    if not isinstance(value, (ast.Attribute, ast.Subscript)):
        return False
    while isinstance(value, (ast.Attribute, ast.Subscript)):
        value = value.value
    return isinstance(value, ast.Name) and value.id in local


class _Release:
    def __init__(self, names: AbstractSet[str], *, thorough: bool, noticed: bool) -> None:
        self.names, self.thorough, self.noticed = names, thorough, noticed
        self.made: List[str] = []  # names for results of calls that are arguments of others

    def block(self, statements: List[ast.stmt], live: Set[str]) -> Tuple[List[ast.stmt], Set[str]]:
        """Return the statements with deletions, and the variables live before them; ``live``: those live after them."""
        result: List[ast.stmt] = []
        live = set(live)
        for statement in reversed([part for whole in statements for part in self._unnested(whole)]):
            new, before, dead = self.statement(statement, live)
            # The list is built backwards: what is appended before the statement follows it.
            if dead and not isinstance(statement, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
                result.extend(self._deleted(dead, result[-1:]))
            lost = self._uses([new])[1] - live if self.thorough and _swallows(new) else set()
            if lost:
                result.append(emptying(lost))
            result.append(new)
            live = before
        result.reverse()
        return result, live

    def statement(self, node: ast.stmt, live: Set[str]) -> Tuple[ast.stmt, Set[str], Set[str]]:
        """Return the new statement, the variables live before it, and those that die after it."""
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
        if isinstance(node, TRY_STATEMENTS):
            return self._try(node, live)
        if isinstance(node, _MATCH):
            return self._match(node, live)
        reads, writes = self._uses([node])
        if isinstance(node, ast.Delete):
            return node, live | reads, set()
        if isinstance(node, (ast.Return, ast.Raise)):  # the code after it is not reached from here
            live = set()
        dead = (reads | writes) - live
        return node, (live - writes) | reads, dead

    def _unnested(self, node: ast.stmt) -> List[ast.stmt]:
        """Split ``return g(t())`` or ``return t() * 2`` into two statements where ``t`` is one of the names. It dies
        before ``g`` is called, or before the multiplication."""
        field = "test" if isinstance(node, ast.If) else "value"
        value = getattr(node, field, None)
        if not isinstance(node, (ast.Return, ast.Assign, ast.AugAssign, ast.Expr, ast.If)) or value is None:
            return [node]
        name = f"__temp_result_{len(self.made)}"
        found = self._called_first(value, ast.Name(name, ast.Load()))
        if found is None and self.thorough and _takes_apart(node) and self._dies(value):
            found = value, ast.Name(name, ast.Load())
        if found is None:
            return [node]
        self.made.append(name)
        call, rest = found
        first = ast.Assign([ast.Name(name, ast.Store())], call)
        return [*self._unnested(first), *self._unnested(replaced(node, **{field: rest}))]

    def _called_first(self, expr: ast.expr, result: ast.expr) -> Optional[Tuple[ast.expr, ast.expr]]:
        """Return the call that ``expr`` evaluates first, and ``expr`` with ``result`` in its place, or ``None``. The
        call reads some of the names, no other part does, and only variables and constants are read before it."""
        for field in _IN_ORDER.get(type(expr), ()):
            value = getattr(expr, field)
            parts = value if isinstance(value, list) else [value]
            for place, part in enumerate(parts):
                if isinstance(expr, ast.Dict) and not isinstance(expr.keys[place], ast.Constant):
                    return None
                if isinstance(part, (ast.Name, ast.Constant)):
                    continue  # a load, which may move past the call
                reads = isinstance(part, ast.Call) and self._uses([part])[0]
                found = (part, result) if reads else self._called_first(part, result)
                if found is None and self.thorough and self._dies(part):
                    found = part, result
                if found is None:
                    return None
                new: object = [*parts[:place], found[1], *parts[place + 1 :]] if value is parts else found[1]
                # g(t(), t): the name does not die with the call, so nothing is gained
                rest = replaced(expr, **{field: new})
                return None if self._uses([found[0]])[0] & self._uses([rest])[0] else (found[0], rest)
        return None

    def _dies(self, part: ast.expr) -> bool:
        """Return whether ``part`` is an operation on one of the names."""
        return not isinstance(part, _NO_VALUES) and bool(self._uses([part])[0])

    def _split(self, node: ast.stmt) -> ast.stmt:
        """Return ``return a if t else b`` as an ``if`` statement where ``t`` reads one of the names. It dies after the
        test, and an expression can't delete it."""
        value = getattr(node, "value", None)
        if not isinstance(node, (ast.Return, ast.Assign, ast.Expr)) or value is None:
            return node
        found = self._tested_first(value)
        if found is None:
            return node
        test, body, orelse = found
        return ast.If(test, [replaced(node, value=body)], [replaced(node, value=orelse)])

    def _tested_first(self, expr: ast.expr) -> Optional[Tuple[ast.expr, ast.expr, ast.expr]]:
        """Return the first test of ``expr`` that reads one of the names, and ``expr`` for each outcome; ``None``
        otherwise."""
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
        # if t():               A name that one branch reads, or the test, dies at the start of the other branch:
        #     f(t)
        # else:
        #     del t             or after the ``if``, where the body never gets there
        dead_in_body, dead_in_orelse = alive - in_body, alive - in_orelse
        body[:0] = self._deleted(dead_in_body, body[:1])
        dead: Set[str] = set()
        if dead_in_orelse and not orelse and _ends(body):
            dead = dead_in_orelse
        elif dead_in_orelse:
            orelse[:0] = self._deleted(dead_in_orelse, orelse[:1])
        node.body, node.orelse = body, orelse
        return node, ((in_body | in_orelse) - writes) | reads, dead

    def _match(self, node: ast.Match, live: Set[str]) -> Tuple[ast.stmt, Set[str], Set[str]]:
        reads = self._uses([node.subject, *(each.guard for each in node.cases if each.guard is not None)])[0]
        # Which case is taken is not known before: a name that only one body reads dies at the start of the others.
        bodies = [self.block(case.body, live) for case in node.cases]
        alive = live.union(reads, *(before for _, before in bodies))
        for case, (body, before) in zip(node.cases, bodies):
            case.body = [*self._deleted(alive - before, body[:1]), *body]
        return node, alive, set()

    def _loop(
        self, node: Union[ast.While, ast.For, ast.AsyncFor], live: Set[str]
    ) -> Tuple[ast.stmt, Set[str], Set[str]]:
        reads, writes = self._uses([node.test] if isinstance(node, ast.While) else [node.iter, node.target])
        orelse, in_orelse = self.block(node.orelse, live)
        # Live at the head: what follows the loop reads, its header, and the next iteration. One pass over the body
        # reaches the fixed point.
        at_head = live | in_orelse | reads
        at_head = at_head | self._live_in(node.body, at_head)
        node.body = self.block(node.body, at_head)[0]
        node.orelse = orelse
        return node, (at_head - writes) | reads, at_head - live - in_orelse - writes

    def _live_in(self, statements: Sequence[ast.stmt], live: Set[str]) -> Set[str]:
        """Return the variables live before ``statements``, which are not changed."""
        live = set(live)
        for node in reversed(statements):
            if isinstance(node, ast.If):
                reads, writes = self._uses([node.test])
                live = self._live_in(node.body, live) | self._live_in(node.orelse, live)
            elif isinstance(node, (ast.While, ast.For, ast.AsyncFor)):
                reads, writes = self._uses([node.test] if isinstance(node, ast.While) else [node.iter, node.target])
                live |= reads | self._live_in(node.orelse, live)
                live |= self._live_in(node.body, live)
            elif isinstance(node, TRY_STATEMENTS):
                reads, writes = self._uses([each.type for each in node.handlers if each.type is not None])
                live = self._live_in(node.finalbody, live)
                live = live.union(*(self._live_in(each.body, live) for each in node.handlers))
                live |= self._live_in(node.body, self._live_in(node.orelse, live) | reads)
            elif isinstance(node, (ast.With, ast.AsyncWith)):  # it may suppress an exception from anywhere in it
                reads, writes = self._uses(node.items)
                live |= self._live_in(node.body, live)
            elif isinstance(node, _MATCH):
                reads, writes = self._uses([node.subject, *(each.guard for each in node.cases if each.guard)])
                live = live.union(*(self._live_in(each.body, live) for each in node.cases))
            else:
                reads, writes = self._uses([node])
                writes = set() if hasattr(node, "body") else writes
            live = (live - writes) | reads
        return live

    def _try(self, node: TryStatement, live: Set[str]) -> Tuple[ast.stmt, Set[str], Set[str]]:
        # Backwards along the edges: ``finally`` first, whose entry is live at the end of each clause. An exception may
        # come from anywhere in the body, so names that the clauses read are live in all of the body.
        final, after = self.block(node.finalbody, live)
        handled: Set[str] = set(after)
        for handler in node.handlers:
            handler.body, before = self.block(handler.body, after)
            handled |= before | (self._uses([handler.type])[0] if handler.type is not None else set())
        node.orelse, in_orelse = self.block(node.orelse, after)
        node.body, before = self.block(node.body, in_orelse | handled)
        node.finalbody = final
        return node, before | handled, set()

    def _deleted(self, names: Set[str], following: Sequence[ast.stmt]) -> List[ast.stmt]:
        """Return the statement that deletes ``names`` before ``following``."""
        if not names or (self.noticed and following and _only_returns(following[0])):
            return []
        return [deletion(names)]

    def _uses(self, nodes: Sequence[ast.AST]) -> Tuple[Set[str], Set[str]]:
        """Return the names that ``nodes`` read, and the names that they write."""
        reads: Set[str] = set()
        writes: Set[str] = set()
        left = list(nodes)
        while left:
            node = left.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                # A closure uses its free variables; what it binds itself, without ``nonlocal``, is another variable.
                inner_reads, inner_writes = self._uses(node.body)
                reads |= (inner_reads | inner_writes) - (inner_writes - _shared(node))
                left += [*node.decorator_list, node.args, *([node.returns] if node.returns else [])]
                continue
            if isinstance(node, ast.Name) and node.id in self.names:
                (writes if isinstance(node.ctx, ast.Store) else reads).add(node.id)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                reads |= {node.target.id} & self.names
            left += ast.iter_child_nodes(node)
        return reads, writes


def _shared(function: Union[ast.FunctionDef, ast.AsyncFunctionDef]) -> Set[str]:
    """Return the names that ``function`` itself declares to be of an outer scope."""
    found: Set[str] = set()
    left: List[ast.AST] = list(function.body)
    while left:
        node = left.pop()
        if isinstance(node, (ast.Nonlocal, ast.Global)):
            found.update(node.names)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            left += ast.iter_child_nodes(node)
    return found


def _takes_apart(node: ast.AST) -> bool:
    """Return whether ``node`` operates on its value once that is computed."""
    if isinstance(node, (ast.If, ast.AugAssign)):
        return True
    return isinstance(node, ast.Assign) and not all(isinstance(target, ast.Name) for target in node.targets)


def _swallows(node: ast.stmt) -> bool:
    """Return whether the code after ``node`` may be reached by an exception from the middle of ``node``. Which of
    its variables have a value is then unknown."""
    return isinstance(node, (ast.With, ast.AsyncWith)) or hasattr(node, "handlers")


def deletion(names: AbstractSet[str]) -> ast.Delete:
    """Return the statement that deletes ``names``, with ``weight_2`` before ``weight_10``."""
    ordered = sorted(names, key=lambda name: (name.rstrip("0123456789"), len(name), name))
    return ast.Delete([ast.Name(name, ast.Del()) for name in ordered])


def emptying(names: AbstractSet[str]) -> ast.stmt:
    """Return the statement that sets ``names``, which may be unbound, to ``None``."""
    return ast.Assign([ast.Name(name, ast.Store()) for name in sorted(names)], ast.Constant(None))


def _deletes_only(node: ast.stmt, names: AbstractSet[str]) -> bool:
    return isinstance(node, ast.Delete) and all(getattr(each, "id", None) in names for each in node.targets)


def _only_returns(node: ast.stmt) -> bool:
    """Return whether ``node`` leaves the function with values that it only loads."""
    if not isinstance(node, ast.Return):
        return False
    parts = node.value.elts if isinstance(node.value, (ast.Tuple, ast.List)) else [node.value]
    return all(part is None or isinstance(part, (ast.Name, ast.Constant)) for part in parts)


def _ends(statements: List[ast.stmt]) -> bool:
    return bool(statements) and isinstance(statements[-1], (ast.Return, ast.Raise, ast.Break, ast.Continue))
