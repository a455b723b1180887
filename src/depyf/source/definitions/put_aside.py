"""Functions whose bodies a readability pass must not change, since they are not proved in that form."""

from __future__ import annotations

import ast
from typing import AbstractSet, Dict, List, Tuple

from depyf.bytecode.syntax_trees import walk

Aside = List[Tuple[int, List[ast.stmt]]]
"""Bodies, by the ids of their code objects."""

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def mark(definition: ast.stmt, code: object) -> ast.stmt:
    """Return ``definition`` with the note that its body is that of ``code``."""
    definition.__dict__["code"] = id(code)
    return definition


def put_aside(tree: ast.AST, codes: AbstractSet[int]) -> Aside:
    """Empty the bodies of the definitions in ``tree`` of code objects with these ids, in place; return the bodies."""
    aside: Aside = []
    for node in list(walk(tree)) if codes else ():
        if isinstance(node, _DEFINITIONS) and node.__dict__.get("code") in codes:
            aside.append((node.__dict__["code"], node.body))
            node.body = [ast.Pass()]
    return aside


def put_back(tree: ast.AST, aside: Aside) -> None:
    """Undo ``put_aside`` in ``tree``, which may be another one by now, in place."""
    bodies: Dict[int, List[ast.stmt]] = dict(aside)
    for node in list(walk(tree)) if bodies else ():
        if isinstance(node, _DEFINITIONS) and node.__dict__.get("code") in bodies:
            node.body = bodies[node.__dict__["code"]]
