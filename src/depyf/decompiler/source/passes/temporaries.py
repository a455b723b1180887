"""Fold temporaries into the expression that uses them.

    __temp_0 = a()
    __temp_1 = b()          g(a(), b())
    g(__temp_0, __temp_1)

Only where the evaluation order is preserved, and the value lives as long as the stack slot that the temporary
represents.
"""

from __future__ import annotations

import ast
from typing import Dict, List, Optional, Set, Tuple

from depyf.decompiler.source.inventory import UNKNOWN, Contents
from depyf.decompiler.source.passes.blocks import Block
from depyf.decompiler.source.passes.counting import is_temporary
from depyf.decompiler.source.passes.evaluation import header_fields, leading_names
from depyf.decompiler.source.passes.per_function import PerFunction
from depyf.decompiler.source.rewriting import Rewriter, replaced


def fold_temporaries(function: object, _contents: Contents = UNKNOWN) -> object:
    """Return ``function`` (a definition or module) with temporaries folded, in nested definitions too."""
    return _Folding(function).definition(function)


class _Substitution(Rewriter):
    """Replaces names by expressions, which are not visited themselves."""

    def __init__(self, values: Dict[str, ast.expr]) -> None:
        super().__init__()
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._values.get(node.id, node) if isinstance(node.ctx, ast.Load) else node


class _Folding(PerFunction):
    def __init__(self, function: object) -> None:
        super().__init__(function)
        # The local names that certainly have a value at the current statement.
        self._bound: Set[str] = self.usage.parameters & self.usage.local
        self._gone: Set[str] = set()

    def block(self, statements: Block) -> Block:
        result: Block = []
        bound_here: List[str] = []
        for index, statement in enumerate(statements):
            following = statements[index + 1] if index + 1 < len(statements) else None
            current = self.inside(statement)
            current = self._joined(result, current)
            kept = self._folded(result, current, following)
            if kept is not None:
                result.append(kept)
                self._bind(kept, bound_here)
        self._bound.difference_update(bound_here)
        return result

    def _bind(self, statement: ast.stmt, bound_here: List[str]) -> None:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name) and target.id in self.usage.local and target.id not in self._bound:
                    self._bound.add(target.id)
                    bound_here.append(target.id)

    # --- joining two statements --------------------------------------------------------------------------------------

    def _joined(self, before: List[ast.stmt], statement: ast.stmt) -> ast.stmt:
        """Return a conditional assignment to a temporary as an expression; pop the assignment before it if that is a
        part."""
        if not isinstance(statement, ast.If):
            return statement
        name, value = _temporary_assignment(statement.body)
        other_name, other = _temporary_assignment(statement.orelse)
        if name is not None and name == other_name and value is not None and other is not None:
            # if c: t = a           t = a if c else b
            # else: t = b
            self.usage.stores[name] -= 1
            return _assign(name, ast.IfExp(test=statement.test, body=value, orelse=other))
        return self._short_circuit(before, statement) or statement

    def _short_circuit(self, before: List[ast.stmt], statement: ast.If) -> Optional[ast.stmt]:
        # t = a                 t = a and b
        # if t: t = b
        tested, positive = _tested_temporary(statement.test)
        first_name, first = _temporary_assignment(before[-1:])
        if tested is None or first_name != tested or first is None:
            return None
        # if t: pass            if not t: t = b       the same with ``or``
        # else: t = b
        assigned, other = statement.body, statement.orelse
        if all(isinstance(item, ast.Pass) for item in assigned):
            assigned, other, positive = other, [], not positive
        name, second = _temporary_assignment(assigned)
        if name != tested or second is None or other or _mentions(second, name):
            return None
        before.pop()
        self.usage.stores[name] -= 1
        self.usage.loads[name] -= 1
        operator: ast.boolop = ast.And() if positive else ast.Or()
        values = [*_values(first, operator), *_values(second, operator)]
        return _assign(name, self._chained(values) if positive else ast.BoolOp(op=operator, values=values))

    def _chained(self, values: List[ast.expr]) -> ast.expr:
        """Return ``a < t and t < b`` as ``a < t < b`` where ``t`` is a temporary."""
        result: List[ast.expr] = []
        for value in values:
            previous = result[-1] if result else None
            if isinstance(previous, ast.Compare) and isinstance(value, ast.Compare):
                shared, left = previous.comparators[-1], value.left
                if isinstance(shared, ast.Name) and isinstance(left, ast.Name) and shared.id == left.id:
                    if is_temporary(shared.id):
                        self.usage.loads[shared.id] -= 1
                        result[-1] = replaced(
                            previous,
                            ops=[*previous.ops, *value.ops],
                            comparators=[*previous.comparators, *value.comparators],
                        )
                        continue
            result.append(value)
        return result[0] if len(result) == 1 else ast.BoolOp(op=ast.And(), values=result)

    def _folded(self, before: List[ast.stmt], statement: ast.stmt, following: Optional[ast.stmt]) -> Optional[ast.stmt]:
        """Return ``statement`` with the temporaries assigned right before it replaced; ``None`` if nothing is left."""
        if isinstance(statement, ast.Delete):
            kept = self._without_deleted(statement)
            if kept is None:
                return None
            statement = kept
        if self._candidate(before, following) is not None:
            # __temp_0 = a()            The statement loads both in the order of their assignments, before its first
            # __temp_1 = b()            effect, so that the order of all effects stays. A temporary that is not among
            # g(__temp_0, __temp_1)     the leading names is not folded, and neither are those assigned before it.
            order = {name: place for place, name in enumerate(leading_names(statement, is_temporary, self._bound))}
            values: Dict[str, ast.expr] = {}
            last = len(order)
            while True:
                # Backwards: the last assignment is moved past nothing but loads of names.
                candidate = self._candidate(before, following)
                if candidate is None or order.get(candidate[0], last) >= last:
                    break
                name, values[name] = candidate
                last = order[name]
                before.pop()
            if values:
                self._gone.update(values)
                statement = _substitute(statement, values)
        return self._without_unused(statement)

    def _candidate(self, before: List[ast.stmt], following: Optional[ast.stmt]) -> Optional[Tuple[str, ast.expr]]:
        """Return the temporary of the last assignment and its value if it has one use and no later one; ``None``
        otherwise."""
        name, value = _temporary_assignment(before[-1:])
        if name is None or value is None or not self._is_single(name, following):
            return None
        return name, value

    def _is_single(self, name: str, following: Optional[ast.stmt]) -> bool:
        usage = self.usage
        if usage.stores[name] != 1 or usage.loads[name] != 1:
            return False
        # ``del __temp_0`` right after the only use: the value dies there with the stack slot, too.
        deletes = usage.deletes[name]
        return not deletes or (deletes == 1 and name in _deleted(following))

    def _without_deleted(self, statement: ast.Delete) -> Optional[ast.stmt]:
        targets = [
            target for target in statement.targets if not (isinstance(target, ast.Name) and target.id in self._gone)
        ]
        return replaced(statement, targets=targets) if targets else None

    def _without_unused(self, statement: ast.stmt) -> Optional[ast.stmt]:
        name, value = _temporary_assignment([statement])
        if name is None or value is None or self.usage.loads[name] or self.usage.deletes[name]:
            return statement
        # An unused result: only loads that can't fail are dropped, all else is still evaluated.
        self.usage.stores[name] -= 1
        if isinstance(value, ast.Constant) or (isinstance(value, ast.Name) and value.id in self._bound):
            return None
        return ast.Expr(value=value)


def _substitute(statement: ast.stmt, values: Dict[str, ast.expr]) -> ast.stmt:
    substitution = _Substitution(values)
    changes: Dict[str, object] = {}
    for field in header_fields(statement):
        old = getattr(statement, field)
        if old is not None:
            changes[field] = substitution.visit_list(old) if isinstance(old, list) else substitution.visit(old)
    return replaced(statement, **changes)


def _temporary_assignment(statements: List[ast.stmt]) -> Tuple[Optional[str], Optional[ast.expr]]:
    """Return the name and the value if ``statements`` is one assignment to one temporary; ``None`` twice otherwise."""
    if len(statements) == 1:
        statement = statements[0]
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Name) and is_temporary(target.id):
                return target.id, statement.value
    return None, None


def _tested_temporary(test: ast.expr) -> Tuple[Optional[str], bool]:
    if isinstance(test, ast.Name) and is_temporary(test.id):
        return test.id, True
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        name, positive = _tested_temporary(test.operand)
        return name, not positive
    return None, False


def _mentions(value: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(value))


def _values(value: ast.expr, operator: ast.boolop) -> List[ast.expr]:
    same = isinstance(value, ast.BoolOp) and isinstance(value.op, operator.__class__)
    return value.values if same and isinstance(value, ast.BoolOp) else [value]


def _assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=value, type_comment=None)


def _deleted(statement: Optional[ast.stmt]) -> Set[str]:
    if not isinstance(statement, ast.Delete):
        return set()
    return {target.id for target in statement.targets if isinstance(target, ast.Name)}
