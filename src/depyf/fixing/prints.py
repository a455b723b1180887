"""``print`` in compiled code: Dynamo may move it after the graph, if the program allows it.

``torch._dynamo.config.reorderable_logging_functions`` holds for the whole program, and a tensor that is changed in
place after the call is then printed as it is at the end of the graph: ``print("y", y); y += 1`` prints another number.
So the edit is made only where no compiled function, and no function that may be called by one, prints a tensor that
could be changed: by syntax, in all files of the program that were compiled. In PyTorch 2.13 a print of a function that
is traced into another one is lost with the setting, and so are ``sep`` and ``end``. Warnings are not moved: the setting
gives them the line of the function in the place of their own.
"""

from __future__ import annotations

import ast

from depyf.fixing.edits import Edit, Function, NoEdit, Project, binds, dotted, reachable
from depyf.fixing.expressions import has_numbers_only, is_fixed_when_printed, is_fresh
from depyf.fixing.problems import Problem
from depyf.fixing.settings import edit_with_statement

_SETTING = "reorderable_logging_functions"
_CALLS = ("print", "len", "int", "float", "range", "enumerate", "zip", "isinstance", "str", "abs", "min", "max", "sum")
"""Functions that change no tensor that they are given."""


def move_print(problem: Problem, project: Project) -> Edit:
    """Return the edit that lets Dynamo move calls of ``print``. Raises ``NoEdit``."""
    for file in project.imported():
        _check_names(project.tree(file), file)
    for file, node, is_called in reachable(project):
        _check(node, file, is_inlined=is_called or problem.frames > 1)
    return edit_with_statement(project, _SETTING, f"torch._dynamo.config.{_SETTING}.add(print)", touches_text=True)


def _check_names(tree: ast.Module, file: str) -> None:
    """Raise ``NoEdit`` where a file has a ``print`` of its own, or sends what is printed elsewhere."""
    if binds(tree, "print"):
        raise NoEdit(f"{file} has a print of its own")
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if dotted(node) in ("print", "builtins.print") and id(node) not in called:
            raise NoEdit(f"{file} gives print another name, or passes it on")
        used = getattr(node, "attr", None) or getattr(node, "id", None) or getattr(node, "name", None)
        if used in ("stdout", "stderr", "redirect_stdout", "redirect_stderr"):
            raise NoEdit(f"{file} uses {used}, so that the order of what is printed may matter")


def _check(function: Function, file: str, *, is_inlined: bool) -> None:
    """Raise ``NoEdit`` where a function prints what may be changed afterwards."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Call) or dotted(node.func) not in ("print", "builtins.print"):
            continue
        place = f"{file}:{node.lineno}"
        if is_inlined or not _is_own(function, node):
            raise NoEdit(
                f"{place} is in a function, lambda or comprehension that may be traced into another one: Dynamo "
                "(PyTorch 2.13) prints nothing there, with this setting"
            )
        if node.keywords:
            raise NoEdit(f"Dynamo leaves out the arguments with names (sep, end, file) at {place}, with this setting")
        for each in node.args:
            if is_fixed_when_printed(each):
                continue
            if not isinstance(each, ast.Name):
                raise NoEdit(f"what {place} prints may be changed in place before the graph ends")
            reason = _may_change(function, each.id)
            if reason:
                raise NoEdit(
                    f"{each.id}, which {place} prints, may be changed in place before the graph ends: {reason}"
                )


def _is_own(function: Function, call: ast.Call) -> bool:
    """Return whether a call is made by a function itself, and not by a function, lambda or comprehension in it."""
    scopes = (
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.Lambda,
        ast.GeneratorExp,
        ast.ListComp,
        ast.SetComp,
        ast.DictComp,
    )
    inner = (node for node in ast.walk(function) if isinstance(node, scopes) and node is not function)
    return not any(call in ast.walk(node) for node in inner)


def _may_change(function: Function, name: str) -> str:
    """Return why a variable of a function that is printed may be changed in place; empty if nothing can do that."""
    made = [
        each.value
        for each in ast.walk(function)
        if isinstance(each, ast.Assign) and any(dotted(target) == name for target in each.targets)
    ]
    for node in ast.walk(function):
        if isinstance(node, (ast.AugAssign, ast.Delete, ast.Global, ast.Nonlocal, ast.With, ast.AsyncWith)):
            return f"line {node.lineno} may change it"
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            return f"line {node.lineno} assigns to a part of something"
        if isinstance(node, ast.Call) and not _changes_nothing(node):
            return f"line {node.lineno} calls something that may change it"
    if not made and not any(each.arg == name for each in ast.walk(function) if isinstance(each, ast.arg)):
        return "it is no variable of the function"
    if not all(is_fresh(each) or isinstance(each, ast.Call) for each in made):
        return "it may be another name of something"
    return ""


def _changes_nothing(node: ast.Call) -> bool:
    """Return whether a call is one of a function or method that changes no tensor, by its name."""
    if any(each.arg in (None, "out", "inplace") for each in node.keywords):
        return False
    name = dotted(node.func)
    if name in _CALLS:
        return True
    last = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    # The second argument of F.relu may be inplace.
    if any(isinstance(each, ast.Constant) and each.value is True for each in node.args):
        return False
    if last == "relu" and len(node.args) > 1:
        return False
    if name.rpartition(".")[0] in ("torch", "F", "nn.functional", "torch.nn.functional"):
        return last in _METHODS or last in _FUNCTIONS
    # A method of a tensor; self.layer(x) and helper(x) may do anything, and self.norm(x) may be such a layer.
    return last in _METHODS and has_numbers_only(node)


_FUNCTIONS = frozenset(
    ("cat", "stack", "matmul", "mm", "bmm", "where", "ones", "zeros", "full", "arange", "tensor", "rand", "randn",
     "linear", "ones_like", "zeros_like", "gelu", "silu", "layer_norm", "cross_entropy", "mse_loss", "einsum",
     "maximum", "minimum")
)  # fmt: skip
_METHODS = frozenset(
    ("sum", "mean", "max", "min", "std", "var", "norm", "abs", "exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid",
     "relu", "softmax", "size", "dim", "numel", "item", "any", "all", "argmax", "argmin", "view", "reshape", "float",
     "clamp", "pow", "square", "clone", "detach", "matmul", "t", "transpose", "unsqueeze", "squeeze", "cumsum")
)  # fmt: skip
