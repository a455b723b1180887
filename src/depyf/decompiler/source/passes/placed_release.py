"""``del`` for temporaries in the functions of a text, and where the original releases their values.

``release`` deletes a variable after its last use. A tool may leave values on the stack, or in a list there, until
later. The comparison of both code objects reports before which operation of the candidate the original had released a
value; the line of that operation gives the statement that the ``del`` belongs in front of.
"""

from __future__ import annotations

import ast
from typing import AbstractSet, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.decompiler.bytecode.syntax_trees import children, walk
from depyf.decompiler.source.passes.release import deletion, emptying, release

Places = Mapping[int, AbstractSet[str]]
"""The variables to delete before a statement, by its number: statements are counted from the top of the text."""


def release_all(
    tree: ast.Module, names: AbstractSet[str], inside: AbstractSet[str], *, thorough: bool, noticed: bool
) -> None:
    """Insert ``del`` where a temporary would live too long: ``names`` of the function that is the last statement of
    ``tree``, ``inside`` of the functions in it."""
    for node in walk(tree) if names or inside else ():
        wanted = names if node is tree.body[-1] else inside
        if wanted and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.body = release(node.body, wanted, thorough=thorough, noticed=noticed)


def delete_before(tree: ast.Module, places: Places, *, emptied: bool = False) -> List[Optional[int]]:
    """Insert the deletions of ``places`` into ``tree``; return the number of each of its statements, ``None`` for new
    ones. ``emptied``: the variables are set to ``None`` instead, since they may be unbound there."""
    numbers = {id(statement): number for number, statement in enumerate(statements_of(tree))}
    for statements in list(_lists_of_statements(tree)):
        result: List[ast.stmt] = []
        for statement in statements:
            names = places.get(numbers.get(id(statement), -1))
            if names:
                result.append(emptying(names) if emptied else deletion(names))
            result.append(statement)
        statements[:] = result
    return [numbers.get(id(statement)) for statement in statements_of(tree)]


def places_of(
    overdue: Iterable[Tuple[str, int]], text: ast.Module, numbers: Sequence[Optional[int]], known: Places
) -> Optional[Dict[int, Set[str]]]:
    """Return ``known`` with the deletions that ``overdue`` adds; ``None`` if there are no new ones. ``overdue`` are
    variables with the lines of ``text`` that are too late; ``numbers`` are the numbers of the statements of ``text``,
    as ``delete_before`` returns them."""
    statements = list(statements_of(text))
    if len(statements) != len(numbers):
        return None
    # The innermost statement on the line; of several lines for one variable, the first.
    first: Dict[str, int] = {}
    for name, line in overdue:
        inside = [place for place, each in enumerate(statements) if each.lineno <= line <= (each.end_lineno or line)]
        if inside:
            place = inside[-1]
            first[name] = min(first.get(name, place), place)
    added = {place: set(names) for place, names in known.items()}
    for name, place in first.items():
        # A statement that mentions the variable is its use: the ``del`` can't be in front of it.
        number = numbers[place]
        if number is not None and not _mentions(statements[place], name):
            added.setdefault(number, set()).add(name)
    return added if added != known else None


def statements_of(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of ``tree`` in the order of the text, except declarations, which only the text has."""
    for node in _around_expressions(tree):
        if node is not tree and isinstance(node, ast.stmt) and not isinstance(node, (ast.Global, ast.Nonlocal)):
            yield node


def _lists_of_statements(tree: ast.AST) -> Iterator[List[ast.stmt]]:
    for node in _around_expressions(tree):
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield value


def _around_expressions(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield ``tree`` and its descendants without expressions, in the order of the text."""
    todo = [tree]
    while todo:
        node = todo.pop()
        yield node
        inner = [child for child in children(node) if not isinstance(child, ast.expr)]
        todo.extend(reversed(inner))


def _mentions(statement: ast.stmt, name: str) -> bool:
    """Return whether the code on the first line of ``statement`` mentions ``name``."""
    parts: List[ast.AST] = [statement]
    if any(hasattr(statement, field) for field in ("body", "handlers", "cases")):
        parts = [node for node in children(statement) if not isinstance(node, ast.stmt)]
    return any(isinstance(node, ast.Name) and node.id == name for part in parts for node in walk(part))
