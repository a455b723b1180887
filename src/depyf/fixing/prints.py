"""``print`` and ``warnings.warn`` in compiled code: Dynamo may move them after the graph, if the program allows it.

``torch._dynamo.config.reorderable_logging_functions`` holds for the whole program, and a tensor that is changed in
place after the call is then printed as it is at the end of the graph: ``print("y", y); y += 1`` prints another number.
So the edit is made only where no compiled function, and no function that may be called by one, prints a tensor that
could be changed: by syntax, in all files of the program that were compiled.
"""

from __future__ import annotations

import ast
from typing import Callable, Dict, Iterator, List, Set, Tuple, Union

from depyf.fixing.edits import Edit, NoEdit, Project, dotted
from depyf.fixing.expressions import has_numbers_only, is_fixed_when_printed, is_fresh
from depyf.fixing.problems import Problem
from depyf.fixing.settings import edit_with_statement

_SETTING = "reorderable_logging_functions"
_Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
_CALLS = ("print", "len", "int", "float", "range", "enumerate", "zip", "isinstance", "str", "abs", "min", "max", "sum")
"""Functions that change no tensor that they are given."""


def reorderable(function: str) -> Callable[[Problem, Project], Edit]:
    """Return a remedy that lets Dynamo move calls of ``print`` or ``warnings.warn``."""

    def make(problem: Problem, project: Project) -> Edit:
        names = (function, function.rpartition(".")[2]) if function != "print" else (function,)
        for file in project.files:
            _check_names(project.tree(file), file)
        for file, node in _reachable(project):
            _check(node, names, file, problem.frames)
        if function != "print" and not _imports(project.tree(project.main_file), "warnings"):
            raise NoEdit("the main file does not import warnings")
        return edit_with_statement(
            project, _SETTING, f"torch._dynamo.config.{_SETTING}.add({function})", touches_text=True
        )

    return make


def _check_names(tree: ast.Module, file: str) -> None:
    """Raise ``NoEdit`` where a file has a ``print`` of its own, or sends what is printed elsewhere."""
    imported = {id(alias) for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    for node in ast.walk(tree):
        bound = getattr(node, "asname", None) or getattr(node, "name", None) or getattr(node, "arg", None)
        if id(node) in imported and getattr(node, "asname", None) is None:  # import warnings
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound = node.id
        if bound in ("print", "warnings"):
            raise NoEdit(f"{file} has a {bound} of its own")
        used = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else bound
        if used in ("stdout", "stderr", "redirect_stdout", "redirect_stderr", "catch_warnings"):
            raise NoEdit(f"{file} uses {used}, so that the order of what is printed may matter")


def _imports(tree: ast.Module, name: str) -> bool:
    return any(
        isinstance(node, ast.Import) and any(alias.name == name and alias.asname is None for alias in node.names)
        for node in tree.body
    )


def _reachable(project: Project) -> Iterator[Tuple[str, _Function]]:
    """Yield the functions that were compiled, and all that these may call, by name."""
    functions: List[Tuple[str, _Function]] = []
    todo: List[Tuple[str, _Function]] = []
    for file in project.files:
        lines = set(project.compiled.get(file, ()))
        for node in ast.walk(project.tree(file)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                functions.append((file, node))
                starts = {node.lineno, *(each.lineno for each in node.decorator_list)}
                if starts & lines:
                    todo.append((file, node))
    by_name: Dict[str, List[Tuple[str, _Function]]] = {}
    for file, node in functions:
        by_name.setdefault(node.name, []).append((file, node))
    seen: Set[int] = set()
    while todo:
        file, node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield file, node
        # A name that is passed on may be called, too; a call of a module is a call of some forward().
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        names |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)} | {"forward", "__call__"}
        todo += [each for name in names for each in by_name.get(name, ())]


def _check(function: _Function, names: Tuple[str, ...], file: str, frames: int) -> None:
    """Raise ``NoEdit`` where a function prints what may be changed afterwards."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Call) or dotted(node.func) not in names:
            continue
        place = f"{file}:{node.lineno}"
        if any(each.arg not in ("sep", "end") for each in node.keywords) and "print" in names:
            raise NoEdit(f"the print at {place} has another file, or flushes it")
        for each in node.args:
            if is_fixed_when_printed(each):
                continue
            if not isinstance(each, ast.Name):
                raise NoEdit(f"what {place} prints may be changed in place before the graph ends")
            reason = _may_change(function, each.id, frames)
            if reason:
                raise NoEdit(
                    f"{each.id}, which {place} prints, may be changed in place before the graph ends: {reason}"
                )


def _may_change(function: _Function, name: str, frames: int) -> str:
    """Return why a variable of a function that is printed may be changed in place; empty if nothing can do that."""
    # What is inlined into another function goes on there, before the graph ends.
    if frames > 1:
        return "another compiled function goes on after it"
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
    if name in (*_CALLS, "warnings.warn"):
        return True
    last = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    # The second argument of F.relu may be inplace.
    if any(isinstance(each, ast.Constant) and each.value is True for each in node.args):
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
