"""``item()`` and ``float()`` of a tensor whose number is used with that tensor alone, as ``detach()``.

    scale = x.abs().max().item()       scale = x.abs().max().detach()
    return x / scale              ->   return x / scale

A number of Python takes the dtype of the tensor that it is computed with, and a tensor without dimensions does the same
if both have the same dtype. A maximum of ``x`` has the dtype of ``x``, and nothing else is known of a dtype by syntax:
so all other operands are sums and multiples of that very ``x``, which the function does not assign again. ``detach()``
keeps gradients as they are. A number that is returned, printed, tested, passed on or rounded stays a number.
"""

from __future__ import annotations

import ast
from typing import List, Tuple, Union

from depyf.fixing.edits import Change, Edit, Function, NoEdit, Project, binds, dotted, name_of_torch, segment, tree_of
from depyf.fixing.expressions import base_of_side, without_item
from depyf.fixing.problems import Problem
from depyf.fixing.replacing import with_expression
from depyf.fixing.variables import SCOPES, function_at, has_line, only_value, sees_variables, stores_of

_REDUCTIONS = frozenset(("sum", "mean", "max", "min", "amax", "amin", "norm"))
_FLOAT_ONLY = ("mean", "norm")
"""The reductions that raise for integers."""

_KEEP_DTYPE = frozenset(("abs", "square", "detach"))
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def detach_number(problem: Problem, project: Project) -> Edit:
    """Return the edit of the number that is read out of a tensor at the line of a graph break. Raises ``NoEdit``."""
    file, line = problem.file, problem.line
    for name in project.imported():
        if b"autocast" in project.source(name):
            raise NoEdit(f"{name} uses autocast, with which a sum has another dtype than its tensor")
    text = _replacement(project.source(file), file, line)[1]
    changes = [
        Change(file, line, lambda source, is_probe=each: _replaced(source, file, line, is_probe=is_probe))  # type: ignore[misc]
        for each in (False, True)
    ]
    return Edit(("detach", file, str(line)), f"line {line}: {text[:80]}", (changes[0],), (changes[1],))


def _replaced(source: bytes, file: str, line: int, *, is_probe: bool) -> bytes:
    node, text, base = _replacement(source, file, line)
    if is_probe:  # a number that raises where the tensor is no such tensor
        text = f"({segment(source, node)} if {base}.is_floating_point() and {base}.dim() else 1 / 0)"
    tree = tree_of(source, file)
    return with_expression(source, file, tree, _read_at(tree, line)[1], text)


def _replacement(source: bytes, file: str, line: int) -> Tuple[ast.Call, str, str]:
    """Return the call that reads a number, what replaces it, and the variable of the tensor."""
    tree = tree_of(source, file)
    function, node, base = _read_at(tree, line)
    called = {"float"} if dotted(node.func) == "float" else set()
    if any(binds(tree, name) for name in (name_of_torch(tree), *called)):
        raise NoEdit("torch or float is another thing in the file")
    _check_base(function, base)
    torch = name_of_torch(tree)
    parents = {id(child): node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    parent = parents[id(node)]
    uses: List[ast.expr] = [node]
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
        uses = _loads(function, parent.targets[0])
    # A sum of integers, and float() of an integer, have another dtype than the tensor: the quotient has the same one.
    read = without_item(node, "float")
    keeps_dtype = any(isinstance(each, ast.Attribute) and each.attr in _FLOAT_ONLY for each in ast.walk(read)) or (
        not called and "sum" not in ast.dump(read)
    )
    for each in uses:
        _check_use(each, parents[id(each)], base, torch, keeps_dtype=keeps_dtype)
    return node, f"{segment(source, without_item(node, 'float'))}.detach()", base


def _read_at(tree: ast.Module, line: int) -> Tuple[Function, ast.Call, str]:
    """Return the innermost function around a line, the one call at the line that reads a number, and the variable of
    its tensor."""
    function = function_at(tree, line)
    if function is None:
        raise NoEdit("the number is not read in a function")
    torch = name_of_torch(tree)
    found = [
        (each, base_of_number(without_item(each, "float"), torch))
        for each in ast.walk(function)
        if isinstance(each, ast.Call) and has_line(each, line) and without_item(each, "float") is not each
    ]
    if len(found) != 1 or not found[0][1]:
        raise NoEdit(
            "what the number is read out of is not known to have the dtype of a variable (x.max(), x.abs().sum()), so "
            "that a tensor in its place could have another dtype than the number gives"
        )
    return function, found[0][0], found[0][1]


def base_of_number(node: ast.expr, torch: str) -> str:
    """Return the variable whose dtype a reduction to one value has; empty if that is not known."""
    wanted = _REDUCTIONS
    while isinstance(node, ast.Call) and not node.keywords and isinstance(node.func, ast.Attribute):
        is_function = dotted(node.func) == f"{torch}.{node.func.attr}"
        if node.func.attr not in wanted or len(node.args) != is_function:
            return ""
        node = node.args[0] if is_function else node.func.value
        wanted = _KEEP_DTYPE
    return node.id if isinstance(node, ast.Name) and wanted is _KEEP_DTYPE and node.id != torch else ""


def _check_base(function: Function, name: str) -> None:
    """Raise ``NoEdit`` unless a variable is one tensor, of one dtype, wherever the function uses it."""
    why = f"{name} is not known to be one tensor in the whole function"
    for node in ast.walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal)) or (isinstance(node, SCOPES) and node is not function):
            raise NoEdit(f"{why} (line {node.lineno})")
        is_part = isinstance(node, ast.Attribute) and dotted(node.value) == name
        if is_part and (node.attr == "data" or not isinstance(node.ctx, ast.Load)):  # type: ignore[attr-defined]
            raise NoEdit(f"{why} (line {node.lineno})")  # type: ignore[attr-defined]
    stores = stores_of(function, name)
    is_assigned = len(stores) == 1 and (isinstance(stores[0], ast.arg) or only_value(function, name) is not None)
    if not is_assigned:
        raise NoEdit(why)
    if any(isinstance(node, _LOOPS) and stores[0] in ast.walk(node) for node in ast.walk(function)):
        raise NoEdit(f"{why}: a loop assigns it")


def _loads(function: Function, target: ast.Name) -> List[ast.expr]:
    """Return the uses of a variable that is assigned once, and by nothing else. Raises ``NoEdit``."""
    if stores_of(function, target.id) != [target]:
        raise NoEdit(f"{target.id} has other values, too")
    if any(map(sees_variables, ast.walk(function))):
        raise NoEdit(f"locals(), or the like, may use {target.id}")
    names = (each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == target.id)
    found: List[ast.expr] = [each for each in names if each is not target]
    if not found:
        raise NoEdit(f"{target.id} is not used")
    return found


def _check_use(node: ast.expr, parent: Union[ast.AST, ast.BinOp], base: str, torch: str, *, keeps_dtype: bool) -> None:
    """Raise ``NoEdit`` unless a number is added to, subtracted from or multiplied with its tensor, or divides it;
    without ``keeps_dtype`` it has to divide it."""
    is_right = isinstance(parent, ast.BinOp) and parent.right is node
    kinds = (*([ast.Add, ast.Sub, ast.Mult] if keeps_dtype else []), *([ast.Div] if is_right else []))
    if not isinstance(parent, ast.BinOp) or not isinstance(parent.op, kinds):
        raise NoEdit(f"line {node.lineno} uses the number otherwise than in a sum, product or quotient with its tensor")
    if base_of_side(parent.left if is_right else parent.right, torch) != base:
        raise NoEdit(f"line {node.lineno} uses the number with another tensor than {base}, maybe of another dtype")
