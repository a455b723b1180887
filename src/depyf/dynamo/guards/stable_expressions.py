"""Make the text of a guard's expression the same in every run: without ids in names, and with sets in one order."""

from __future__ import annotations

import ast
import builtins
import functools
from dataclasses import field
from typing import Callable, Dict, FrozenSet, Optional, Set

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.base.text_edits import edited
from depyf.decompiler.syntax import parse, walk
from depyf.diagnosis.guard_text import has_id_in_name
from depyf.diagnosis.plain_guards import names_of_plain
from depyf.dynamo.guards import runtime as guard_runtime


@dataclass(frozen=True)
class Naming:
    """Stable names for values that differ from run to run, collected while guards are rendered.

    ``stable`` makes text the same in every run. ``ids`` and ``names`` are what a ``LiveTable`` needs, ``used`` are the
    names that the expressions refer to.
    """

    stable: Callable[[str], str]
    hide: Optional[Callable[[str], str]] = None
    """Returns the text of a guard without the values that are not to be shown; None: all are shown."""
    ids: Dict[str, int] = field(default_factory=dict)
    names: Dict[str, str] = field(default_factory=dict)
    used: Set[str] = field(default_factory=set)

    def id_of(self, hint: str, value: int) -> str:
        """Return the expression for that id in the file: ``___ids['<hint>']``, numbered when the hint is taken."""
        name, count = hint, 1
        while self.ids.setdefault(name, value) != value:
            count += 1
            name = f"{hint}#{count}"
        return f"___ids[{name!r}]"

    def global_name(self, name: str) -> str:
        """Return the expression for the name of a global variable."""
        stable = self.stable(name)
        if stable == name:
            return repr(name)
        self.names[stable] = name
        return f"___names[{stable!r}]"


def tidy(expression: str, naming: Naming) -> Optional[str]:
    """Return the expression with stable names; ``None`` if it is not Python or uses unknown names."""
    # Most of a model's guards have a form whose names a pattern finds; these need no edit.
    plain = None if has_id_in_name(expression) else names_of_plain(expression)
    if plain is not None and plain <= _known_names():
        naming.used.update(plain)
        return expression
    try:
        tree = parse(expression, mode="eval")
    except synchronous(SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    # All other expressions: collect the names, and the edits by their positions, as ``unparse`` would change the rest.
    names, edits = set(), []
    for node in walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif not isinstance(node, (ast.Constant, ast.Set)):
            continue
        replacement = _replacement(node, naming)
        if replacement is not None:
            end = (node.end_lineno or 0, node.end_col_offset or 0)
            edits.append(((node.lineno, node.col_offset), end, replacement))
    if not names <= _known_names():
        return None
    naming.used.update(names)
    text = " ".join(edited(expression, edits).split("\n")) if edits or "\n" in expression else expression
    # Everything is joined by ``and``, which binds tighter than these.
    loose = isinstance(tree.body, (ast.IfExp, ast.Lambda)) or (
        isinstance(tree.body, ast.BoolOp) and isinstance(tree.body.op, ast.Or)
    )
    return f"({text})" if loose else text


def _replacement(node: ast.AST, naming: Naming) -> Optional[str]:
    # ``G['__import_torch_139767862978176']``: the name of a global that ends in an id.
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if has_id_in_name(node.value) and naming.stable(node.value) != node.value:
            return naming.global_name(node.value)
    elif isinstance(node, ast.Set) and all(isinstance(element, ast.Constant) for element in node.elts):
        # The order of strings in a set is not the same in every run.
        return "{" + ", ".join(sorted(repr(element.value) for element in node.elts)) + "}"  # type: ignore[attr-defined]
    # ``repr`` writes these two without their modules.
    elif isinstance(node, ast.Name) and node.id == "inf":
        return "float('inf')"
    elif isinstance(node, ast.Name) and node.id == "device":
        return "torch.device"
    return None


@functools.lru_cache(maxsize=None)
def _known_names() -> FrozenSet[str]:
    own = {"L", "G", "___ids", "___names", "torch", "np", "math", *vars(guard_runtime), *dir(builtins)}
    return frozenset(own | set(guard_runtime.torch_guard_names()))
