"""Functions whose bodies a readability pass must not change, since they are not proved in that form."""

from __future__ import annotations

import ast
from typing import AbstractSet, Dict, List, Tuple

from depyf.decompiler.bytecode.syntax_trees import walk
from depyf.decompiler.lift.node_attributes import attributes_of

Aside = List[Tuple[int, List[ast.stmt]]]
"""Bodies, by the ids of their code objects."""

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def mark(definition: ast.stmt, code: object) -> ast.stmt:
    """Return ``definition``, marked as made from ``code``."""
    attributes_of(definition)["code_id"] = id(code)
    return definition


def put_aside(tree: ast.AST, codes: AbstractSet[int]) -> Aside:
    """Empty the bodies of the definitions in ``tree`` of code objects with these ids, in place; return the bodies."""
    aside: Aside = []
    for node in list(walk(tree)) if codes else ():
        if isinstance(node, _DEFINITIONS) and attributes_of(node).get("code_id") in codes:
            aside.append((attributes_of(node)["code_id"], node.body))
            node.body = [ast.Pass()]
    return aside


def put_back(tree: ast.AST, aside: Aside) -> None:
    """Undo ``put_aside`` in ``tree``, which may be another one by now, in place."""
    bodies: Dict[int, List[ast.stmt]] = dict(aside)
    for node in list(walk(tree)) if bodies else ():
        if isinstance(node, _DEFINITIONS) and attributes_of(node).get("code_id") in bodies:
            node.body = bodies[attributes_of(node)["code_id"]]
