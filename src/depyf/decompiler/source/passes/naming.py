"""Name temporaries after their use: by the parameter names of the function that they are passed to."""

from __future__ import annotations

import ast
import builtins
import keyword
from typing import AbstractSet, Dict, List, Mapping, Set, Tuple

from depyf.base.late_regex import regex
from depyf.decompiler.bytecode.syntax_trees import Transformer, walk

_TEMPORARY = regex(r"__temp_\d+$")


def name_temporaries(
    statements: List[ast.stmt],
    reserved: AbstractSet[str],
    variables: AbstractSet[str],
    parameters: Mapping[str, Tuple[str, ...]],
    results: Mapping[str, int],
) -> List[ast.stmt]:
    """Return the statements with better names for temporaries. ``parameters``: parameter names of functions, by the
    global name of the call. The results of a function in ``results`` that get no such name are called ``out_<i>``.
    Names in ``reserved`` are not given; names of the user's ``variables`` are given to arguments only."""
    nodes = [node for statement in statements for node in walk(statement)]
    names = [node.id for node in nodes if isinstance(node, ast.Name)]
    assignments = [node for node in nodes if isinstance(node, ast.Assign)]
    # In this order, since the first name wins: parameters of callees, results of known functions, then attributes and
    # keys. The rest is numbered in the order of the text.
    taken = {*reserved, *names}
    wanted: Dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Call):
            _from_call(node, parameters, wanted, taken)
    for assignment in assignments:
        if _callee(assignment.value) in results:
            _from_results(assignment, wanted, taken)
    taken |= variables
    for assignment in assignments:
        if len(assignment.targets) == 1:
            _from_place(assignment.targets[0], assignment.value, wanted, taken)
    _number(names, wanted)
    renaming = _Renaming(wanted)
    return [renaming.visit(statement) for statement in statements]


def _from_call(
    call: ast.Call, parameters: Mapping[str, Tuple[str, ...]], wanted: Dict[str, str], taken: Set[str]
) -> None:
    names = parameters.get(call.func.id) if isinstance(call.func, ast.Name) else None
    for argument, name in zip(call.args, names or ()):
        if isinstance(argument, ast.Name) and _TEMPORARY.match(argument.id) and argument.id not in wanted:
            if name.isidentifier() and not name.startswith("__") and name not in taken:
                wanted[argument.id] = name
                taken.add(name)


def _callee(value: ast.expr) -> str:
    if isinstance(value, ast.Subscript):
        value = value.value
    return value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""


def _from_results(node: ast.Assign, wanted: Dict[str, str], taken: Set[str]) -> None:
    targets: List[ast.expr] = list(node.targets)
    if isinstance(targets[0], ast.Tuple):
        targets = targets[0].elts
    for index, target in enumerate(targets):
        if isinstance(target, ast.Name) and _TEMPORARY.match(target.id) and target.id not in wanted:
            name = f"out_{index}"
            if name not in taken:
                wanted[target.id] = name
                taken.add(name)


def _number(names: List[str], wanted: Dict[str, str]) -> None:
    """Number the remaining temporaries from 0 in the order of the text."""
    rest = [name for name in dict.fromkeys(names) if name not in wanted and _TEMPORARY.match(name)]
    wanted.update({name: f"__temp_{number}" for number, name in enumerate(rest)})


def _from_place(target: ast.expr, value: ast.expr, wanted: Dict[str, str], taken: Set[str]) -> None:
    """Name the value of ``x._parameters['weight']`` ``weight``, the value of ``x._modules`` ``modules``."""
    if not isinstance(target, ast.Name) or not _TEMPORARY.match(target.id) or target.id in wanted:
        return
    key: object = None
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
        key = value.slice.value
    elif isinstance(value, ast.Attribute):
        key = value.attr.strip("_")
    if not isinstance(key, str) or not key.isidentifier() or keyword.iskeyword(key) or hasattr(builtins, key):
        return
    name, number = key, 0
    while name in taken or name.startswith("__"):
        number += 1
        name = f"{key.strip('_')}_{number}"
    wanted[target.id] = name
    taken.add(name)


class _Renaming(Transformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.names[node.id], node.ctx) if node.id in self.names else node
