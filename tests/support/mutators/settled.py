"""Variables that only ever hold one constant: what tests of them decide is settled before the program runs.

The verifier knows it, too, and rightly proves that a change behind such a test changes nothing. ``unsettled`` makes the
value one that is only known when the program runs, so that every change in the tree can be told.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from typing import Any, Iterator, List, Optional, Set

from mutators.places import FUNCTIONS, load

_HIDING = "opaque_value"
_CONSTANTS = (ast.Constant, ast.Tuple, ast.List, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop, ast.expr_context)


def unsettled(tree: ast.Module) -> Optional[ast.Module]:
    """A copy of ``tree`` in which such values are arguments of a call; ``None`` if there are none."""
    copied = copy.deepcopy(tree)
    changed = [_hide(node) for function in _functions(copied) for node in _settling(function)]
    return ast.fix_missing_locations(copied) if changed else None


def _functions(tree: ast.AST) -> Iterator[Any]:
    return (node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))


def _hide(node: Any) -> None:
    if not isinstance(node.value, ast.Call):
        node.value = ast.Call(load(_HIDING), [node.value], [])


def _settling(function: Any) -> List[Any]:
    """The assignments of a constant to variables that nothing else binds."""
    bound = Counter(_bound(function))
    declared: Set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            declared.update(node.names)
    found: List[Any] = []
    for node in ast.walk(function):
        if isinstance(node, (ast.Assign, ast.NamedExpr)) and _is_constant(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
            if any(bound[name] == 1 and name not in declared for name in names):
                found.append(node)
    return found


def _is_constant(value: ast.expr) -> bool:
    """A constant, or a list of some: the verifier knows that, too, until others see it. An empty one says little."""
    parts = list(ast.walk(value))
    return all(isinstance(part, _CONSTANTS) for part in parts) and any(isinstance(part, ast.Constant) for part in parts)


def _bound(function: Any) -> Iterator[str]:
    """The names that ``function`` and what is defined in it bind, as often as they do."""
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).split(".")[0]
        else:
            for field in ("name", "rest"):  # handlers, definitions, patterns
                value = getattr(node, field, None)
                if isinstance(value, str):
                    yield value
