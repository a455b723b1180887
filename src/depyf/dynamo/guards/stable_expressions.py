"""Make the text of a guard's expression the same in every run: without ids in names, and with sets in one order."""

from __future__ import annotations

import ast
import builtins
import functools
from dataclasses import field
from typing import Callable, Dict, FrozenSet, List, Optional, Set, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.base.text_edits import Edit, edited
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
        form = _form_of(expression)
    except synchronous(SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not form.names <= _known_names():
        return None
    naming.used.update(form.names)
    edits = [*form.edits]
    for start, end, name in form.ids:
        if naming.stable(name) != name:
            edits.append((start, end, naming.global_name(name)))
    if not edits and not form.loose and "\n" not in expression:
        return expression
    text = " ".join(edited(expression, edits).split("\n"))
    # Everything is joined by ``and``, which binds tighter than these.
    text = f"({text})" if form.loose else text
    try:
        _form_of(text)  # edits of unusual text may leave no Python
    except synchronous(SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return text


@dataclass(frozen=True)
class _Form:
    """What the syntax tree of an expression says about it: the names, and the edits by their positions."""

    names: FrozenSet[str]
    edits: Tuple[Edit, ...]
    ids: Tuple[Edit, ...]
    """Strings that may end in an id, with the positions of the strings. ``Naming`` knows the stable names."""
    loose: bool


@functools.lru_cache(maxsize=4096)  # functions that are compiled one by one have most of their guards in common
def _form_of(expression: str) -> _Form:
    """Return the form of an expression. Raises what the parser raises."""
    tree = parse(expression, mode="eval")
    # The names, and edits by their positions, as ``unparse`` would change the rest.
    names: Set[str] = set()
    edits: List[Edit] = []
    ids: List[Edit] = []
    of_sets: Set[ast.AST] = set()  # the elements of a set that is written anew
    for node in walk(tree):
        if node in of_sets:
            continue
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif not isinstance(node, (ast.Constant, ast.Set)):
            continue
        start, end = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            # ``G['__import_torch_139767862978176']``: the name of a global that ends in an id.
            if has_id_in_name(node.value):
                ids.append((start, end, node.value))
            continue
        replacement = _replacement(node)
        if replacement is not None:
            edits.append((start, end, replacement))
            of_sets.update(node.elts if isinstance(node, ast.Set) else ())
    loose = isinstance(tree.body, (ast.IfExp, ast.Lambda)) or (
        isinstance(tree.body, ast.BoolOp) and isinstance(tree.body.op, ast.Or)
    )
    return _Form(frozenset(names), tuple(edits), tuple(ids), loose)


def _replacement(node: ast.AST) -> Optional[str]:
    if isinstance(node, ast.Set) and all(isinstance(element, ast.Constant) for element in node.elts):
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
