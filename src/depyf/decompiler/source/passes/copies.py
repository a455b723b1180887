"""Replace temporaries that are copies of a local variable by the variable while it keeps its value.

__temp_0 = x
a.b = x                 a.b = x
c.d = __temp_0          c.d = x
"""

from __future__ import annotations

import ast
from typing import Dict, Optional, Set, Tuple

from depyf.decompiler.source.inventory import UNKNOWN, Contents
from depyf.decompiler.source.passes.blocks import Block
from depyf.decompiler.source.passes.counting import is_temporary
from depyf.decompiler.source.passes.evaluation import header_fields
from depyf.decompiler.source.passes.per_function import PerFunction
from depyf.decompiler.source.rewriting import Rewriter, replaced

_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Raise, ast.Assert, ast.Delete)


def propagate_copies(tree: ast.AST, _contents: Contents = UNKNOWN) -> object:
    """Return ``tree`` (a definition or module) without temporaries that only copy a local, in nested definitions
    too."""
    return _Copies(tree).definition(tree)


class _Loads(Rewriter):
    """Replaces loads of names, except where they are evaluated later or in another scope."""

    def __init__(self, names: Dict[str, str]) -> None:
        super().__init__()
        self._names = names
        self.replaced: Dict[str, int] = {}

    def visit_Name(self, node: ast.Name) -> ast.Name:
        new = self._names.get(node.id)
        if new is None or not isinstance(node.ctx, ast.Load):
            return node
        self.replaced[node.id] = self.replaced.get(node.id, 0) + 1
        return replaced(node, id=new)

    def _visit_scope(self, node: ast.AST) -> object:
        return node

    visit_Lambda = _visit_scope
    visit_ListComp = _visit_scope
    visit_SetComp = _visit_scope
    visit_DictComp = _visit_scope
    visit_GeneratorExp = _visit_scope


class _Active:
    """The copies that can be replaced at the current statement. ``of`` maps a local to its copies."""

    def __init__(self) -> None:
        self.originals: Dict[str, str] = {}
        self.of: Dict[str, Set[str]] = {}

    def add(self, copy: str, original: str) -> None:
        self.originals[copy] = original
        self.of.setdefault(original, set()).add(copy)

    def end(self, name: str) -> None:
        """End the copies of ``name``, a copy or an original, which gets another value or has no more uses."""
        for copy in self.of.pop(name, ()):
            del self.originals[copy]
        original = self.originals.pop(name, None)
        if original is not None:
            self.of[original].discard(name)

    def clear(self) -> None:
        self.originals.clear()
        self.of.clear()

    def without(self, stored: Set[str]) -> Dict[str, str]:
        """Return the copies of locals that are not ``stored``."""
        if not any(name in self.of for name in stored):
            return self.originals
        return {copy: original for copy, original in self.originals.items() if original not in stored}


class _Copies(PerFunction):
    def block(self, statements: Block) -> Block:
        result: Block = []
        active = _Active()
        places: Dict[str, int] = {}
        for statement in statements:
            current = self.inside(statement)
            # First the uses in this statement, then what it changes: a store ends the copies of its target, and a
            # compound statement, whose blocks may store anything, ends all.
            if active.originals:
                stored = _stored(statement)
                current = self._with_originals(current, active, stored)
                if not isinstance(statement, _SIMPLE):
                    active.clear()
                for name in stored:
                    active.end(name)
            copied = self._copy(current)
            if copied is not None:
                active.add(*copied)
                places[copied[0]] = len(result)
            result.append(current)
        # Assignments whose copies have no use left are dropped.
        unused = {place for copy, place in places.items() if not self.usage.loads[copy]}
        return [statement for place, statement in enumerate(result) if place not in unused]

    def _copy(self, statement: ast.stmt) -> Optional[Tuple[str, str]]:
        """Return the temporary and the local if ``statement`` is such a copy; ``None`` otherwise."""
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        target, value = statement.targets[0], statement.value
        if not isinstance(target, ast.Name) or not isinstance(value, ast.Name) or not is_temporary(target.id):
            return None
        usage = self.usage
        if usage.stores[target.id] != 1 or usage.deletes[target.id] or value.id not in usage.local:
            return None
        return target.id, value.id

    def _with_originals(self, statement: ast.stmt, active: _Active, stored: Set[str]) -> object:
        # x = f(__temp_0)       becomes x = f(x): the value is read before the store
        # x, a[__temp_0] = b    stays: the store comes before the target is evaluated
        names = active.without(stored)
        changes: Dict[str, object] = {}
        for field in header_fields(statement):
            old = getattr(statement, field)
            if old is None or (field == "items" and len(old) > 1):
                continue  # with a as b, c: the first manager binds a name before the second is evaluated
            loads = _Loads(active.originals if field == "value" and isinstance(statement, ast.Assign) else names)
            new = loads.visit_list(old) if isinstance(old, list) else loads.visit(old)
            if new is not old:
                changes[field] = new
            for copy, count in loads.replaced.items():
                self.usage.loads[copy] -= count
                if not self.usage.loads[copy]:
                    active.end(copy)
        return replaced(statement, **changes) if changes else statement


def _stored(statement: ast.stmt) -> Set[str]:
    """Return the names that a simple statement binds or deletes."""
    if not isinstance(statement, _SIMPLE):
        return set()
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    return {
        node.id
        for target in targets
        if target is not None
        for node in ast.walk(target)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
