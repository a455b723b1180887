"""Name what a resume function begins with as the program writes it.

Where a graph breaks inside of an expression, the resume function gets what was computed of it as ``___stack0``,
``___stack1``, and so on. The transformed code that calls it shows what these are: ``append = tracker.seen.append`` and
``return __resume_at_156_3([], [], append, x)``. Only attributes of the function's own variables and of the program's
globals get such a name: other values have none in the program.
"""

from __future__ import annotations

import ast
from typing import AbstractSet, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.asynchronous import synchronous
from depyf.bytecode.parsing import parse
from depyf.lazy_pattern import re_compile
from depyf.quick_dataclass import replace
from depyf.report.model.run import Artifact, Compilation, FailedGuard, Recompile
from depyf.source.printing.unparsing import unparse

_ON_STACK = re_compile(r"\b___stack\d+\b")


def with_stack_values(
    recompiles: Tuple[Recompile, ...], compilations: Sequence[Compilation], artifacts: Sequence[Artifact]
) -> Tuple[Recompile, ...]:
    """Return the recompilations, with values of the stack in their words named as the program writes them."""
    about = {each.function for each in recompiles if any(_ON_STACK.search(failed.words) for failed in each.failed)}
    if not about:
        return recompiles
    texts = {each.id: each for each in artifacts}
    codes: Dict[int, List[Tuple[Compilation, ast.FunctionDef]]] = {}
    for one in compilations:
        calls_one = one.function in about or any(call.function in about for call in one.calls)
        artifact = texts.get(one.transformed or "") if calls_one else None
        code = None if artifact is None else _function_in(artifact.content or "")
        if code is not None and one.function is not None:
            codes.setdefault(one.function, []).append((one, code))
    named = {function: _values_of(function, codes) for function in about}
    return tuple(_renamed(each, named.get(each.function, {})) for each in recompiles)


def _function_in(text: str) -> Optional[ast.FunctionDef]:
    try:
        tree = parse(text)
    except synchronous(SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return next((each for each in tree.body if isinstance(each, ast.FunctionDef)), None)


def _values_of(function: int, codes: Mapping[int, Sequence[Tuple[Compilation, ast.FunctionDef]]]) -> Dict[str, str]:
    """Return the names of a resume function's values on the stack; those that callers write differently have none."""
    own = codes.get(function, ())
    parameters = [each.arg for each in own[0][1].args.args] if own else []
    found: Dict[str, List[Optional[str]]] = {}
    for callers in codes.values():
        for one, code in callers:
            lines = {call.line for call in one.calls if call.function == function}
            for arguments in _arguments(code, lines):
                for name, value in zip(parameters, arguments) if len(arguments) == len(parameters) else ():
                    if _ON_STACK.match(name):
                        found.setdefault(name, []).append(_as_written(value, code))
    return {name: texts[0] for name, texts in found.items() if texts[0] is not None and len(set(texts)) == 1}


def _arguments(code: ast.FunctionDef, lines: AbstractSet[int]) -> Iterator[Sequence[ast.expr]]:
    """Yield the arguments of the calls that begin in these lines."""
    for node in ast.walk(code):
        if isinstance(node, ast.Call) and node.lineno in lines and unparse(node.func).startswith("__resume_at_"):
            yield node.args


def _as_written(value: ast.expr, code: ast.FunctionDef) -> Optional[str]:
    """Return a value as attributes of a variable of the function, or of a global; ``None`` of other values."""
    assigned: Dict[str, List[ast.expr]] = {}
    for node in ast.walk(code):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            assigned.setdefault(node.targets[0].id, []).append(node.value)
    own = {each.arg for each in code.args.args}
    bound = {each.id for each in ast.walk(code) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    attributes: List[str] = []
    while True:
        if isinstance(value, ast.Attribute):
            attributes.append(value.attr)
            value = value.value
        elif isinstance(value, ast.Name) and len(assigned.get(value.id, ())) == 1 and value.id not in own:
            (value,) = assigned.pop(value.id)
        else:
            break
    if not isinstance(value, ast.Name) or value.id in bound or not attributes:
        return None
    if value.id.startswith("__"):  # what the compiler adds: names of modules, and what was on the stack before
        return None
    return ".".join([value.id, *reversed(attributes)])


def _renamed(recompile: Recompile, names: Mapping[str, str]) -> Recompile:
    if not names:
        return recompile

    def renamed(text: str) -> str:
        return _ON_STACK.sub(lambda match: names.get(match.group(), match.group()), text)

    def with_names(failed: FailedGuard) -> FailedGuard:
        return replace(failed, words=renamed(failed.words), checked=renamed(failed.checked))

    return replace(recompile, failed=tuple(map(with_names, recompile.failed)), advice=renamed(recompile.advice))
