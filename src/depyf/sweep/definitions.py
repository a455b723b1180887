"""The statement that defines one function or class, and the guards of a dump's file, from source text.

Which decorators, default values and annotations a function has is in the code around it. For one function alone that
statement is taken out of the text and compiled without the body.
"""

from __future__ import annotations
import __future__

import ast
import importlib.util
import warnings
from collections import Counter
from types import CodeType
from typing import Dict, Iterator, List, Mapping, Optional, Tuple, Union

from depyf.base.archives import read_file
from depyf.base.quick_dataclass import dataclass
from depyf.decompiler import DecompilationError, decompile_code
from depyf.decompiler.syntax import children, parse
from depyf.sweep.targets import Module

Definition = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef]

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def source_text(module: Module) -> Optional[str]:
    """Return the source of a module: its file, or text that is proved to be the same as its bytecode, or ``None``."""
    if module.path.endswith((".py", ".pyw")):
        return importlib.util.decode_source(read_file(module.path))
    try:
        answer = decompile_code(module.code)
    except DecompilationError:
        return None
    return answer.source if answer.verdict.proved else None


def definition_code(source: str, qualname: str) -> Optional[CodeType]:
    """Return the code of a module that defines the function or class ``qualname`` without its body; ``None`` where the
    text has not exactly one."""
    tree = parse(source)
    scopes: List[ast.AST] = [tree]
    for name in qualname.replace("<locals>.", "").split("."):
        scopes = [each for scope in scopes for each in _defined_in(scope) if each.name == name]
    if len(scopes) != 1 or not isinstance(scopes[0], _DEFINITIONS):
        return None
    found = scopes[0]
    # The names may differ where the user names both, and both bodies are compared as code objects.
    found.name, found.body = "definition", [ast.copy_location(ast.Pass(), found)]
    futures = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    flags = [getattr(__future__, each.name).compiler_flag for node in futures for each in node.names]
    module = ast.Module([found], [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code: CodeType = compile(module, "<definition>", "exec", flags=sum(set(flags)), dont_inherit=True, optimize=0)
    return code


def _defined_in(scope: ast.AST) -> Iterator[Definition]:
    """Yield the functions and classes that are defined in a scope, and not inside of one of them."""
    todo = list(children(scope))
    while todo:
        node = todo.pop()
        if isinstance(node, _DEFINITIONS):
            yield node
        elif not isinstance(node, ast.expr):
            todo.extend(children(node))


# --- guards

_GUARD = "___guard"
"""The decorator of the functions that hold the guards of one cache entry, in a ``full_code_*`` file."""


@dataclass(frozen=True)
class GuardChange:
    """How the guards of one entry differ as texts: those that are gone, those that are new, and whether the rest is in
    another order."""

    gone: Tuple[str, ...]
    new: Tuple[str, ...]
    is_reordered: bool


def guard_changes(original: str, edited: str) -> Dict[str, GuardChange]:
    """Return how the guards in two ``full_code_*`` files differ, by the name of the function that holds them."""
    try:
        mine, theirs = _guards(original), _guards(edited)
    except RecursionError:  # so deep that it has no text to compare; the code objects are compared all the same
        return {}
    return {name: _guard_change(mine[name], theirs[name]) for name in mine if name in theirs}


def _guard_change(original: Mapping[str, List[str]], edited: Mapping[str, List[str]]) -> GuardChange:
    before, after = (Counter({key: len(texts) for key, texts in side.items()}) for side in (original, edited))
    gone = tuple(original[key][0] for key in (before - after).elements())
    new = tuple(edited[key][0] for key in (after - before).elements())
    orders = ([key for key in side if key in other] for side, other in ((original, edited), (edited, original)))
    return GuardChange(gone, new, next(orders) != next(orders))


def _guards(source: str) -> Dict[str, Dict[str, List[str]]]:
    """Return the guards of each function that is marked as one: their texts, by what they are without spaces."""
    lines = source.splitlines()
    found: Dict[str, Dict[str, List[str]]] = {}
    for node in parse(source).body:
        last = node.body[-1] if isinstance(node, ast.FunctionDef) else None
        if not isinstance(node, ast.FunctionDef) or not isinstance(last, ast.Return) or len(node.body) > 1:
            continue
        if not any(isinstance(each, ast.Name) and each.id == _GUARD for each in node.decorator_list):
            continue
        value = last.value
        parts = value.values if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.And) else [value]
        guards: Dict[str, List[str]] = {}
        for part in filter(None, parts):
            guards.setdefault(ast.dump(part), []).append(_text(part, lines))
        found[node.name] = guards
    return found


def _text(node: ast.expr, lines: List[str]) -> str:
    """Return the text of an expression; its columns count bytes."""
    last = node.end_lineno or node.lineno
    text = [line.encode() for line in lines[node.lineno - 1 : last]]
    text[-1] = text[-1][: node.end_col_offset]
    text[0] = text[0][node.col_offset :]
    return " ".join(b" ".join(text).decode(errors="replace").split())
