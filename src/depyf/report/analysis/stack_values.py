"""Name what a resume function begins with as the program writes it.

Where a graph breaks inside of an expression, the resume function gets the values computed before as ``___stack0``,
``___stack1``, and so on. The transformed code that calls it shows what these are: ``append = tracker.seen.append`` and
``return __resume_at_156_3([], [], append, x)``. Attributes of the function's own variables and of the program's globals
get such a name, and results of calls the name of what was called. Other values have none in the program.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import AbstractSet, Dict, Iterator, List, Mapping, Match, Optional, Sequence, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import replace
from depyf.decompiler.syntax import parse, unparse
from depyf.diagnosis.guard_sources import STACK_VALUE, as_written
from depyf.report.model.run import Artifact, Compilation, FailedEntryGuard, Recompile

_PARAMETER = regex(r"___stack\d+$")
_VALUE = STACK_VALUE.format(r"\d+")
_ON_STACK = regex(rf"\({_VALUE}\)(?=[.\[(])|{_VALUE}")


def with_stack_values(
    recompiles: Tuple[Recompile, ...], compilations: Sequence[Compilation], artifacts: Sequence[Artifact]
) -> Tuple[Recompile, ...]:
    """Return the recompilations, with values of the stack in their words named as the program writes them."""
    # Only functions with a guard that names ``___stack0``; most runs have none, and nothing is parsed.
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
    # The resume function ``__resume_at_30_2(___stack0, x)`` is called as ``__resume_at_30_2(self.scale, x)``:
    # the parameter is named as its callers write the argument, if all callers write the same.
    for callers in codes.values():
        for one, code in callers:
            lines = {call.line for call in one.calls if call.function == function}
            for arguments in _arguments(code, lines):
                for name, value in zip(parameters, arguments) if len(arguments) == len(parameters) else ():
                    if _PARAMETER.match(name):
                        found.setdefault(name, []).append(_as_written(value, code))
    named = {name: texts[0] for name, texts in found.items() if texts[0] is not None and len(set(texts)) == 1}
    # Two parameters with one name can't be told apart: both keep theirs.
    often = Counter(named.values())
    return {as_written(name): text for name, text in named.items() if often[text] == 1}


def _arguments(code: ast.FunctionDef, lines: AbstractSet[int]) -> Iterator[Sequence[ast.expr]]:
    """Yield the arguments of the calls that begin in these lines."""
    for node in ast.walk(code):
        if isinstance(node, ast.Call) and node.lineno in lines and unparse(node.func).startswith("__resume_at_"):
            yield node.args


def _as_written(value: ast.expr, code: ast.FunctionDef) -> Optional[str]:
    """Return a value as attributes of a variable or of a global, or as a call's result; ``None`` of other values."""
    assigned: Dict[str, List[ast.expr]] = {}
    for node in ast.walk(code):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            assigned.setdefault(node.targets[0].id, []).append(node.value)
    own = {each.arg for each in code.args.args}
    bound = {each.id for each in ast.walk(code) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    attributes: List[str] = []
    # ``tmp = self.block; ... tmp.scale`` is ``self.block.scale``: go through attributes, and through variables that are
    # assigned once.
    while True:
        if isinstance(value, ast.Attribute):
            attributes.append(value.attr)
            value = value.value
        elif isinstance(value, ast.Name) and len(assigned.get(value.id, ())) == 1 and value.id not in own:
            (value,) = assigned.pop(value.id)
        else:
            break
    # ``item = x.item; __resume_at_9(item())``: the method may have been loaded before.
    if isinstance(value, ast.Call) and not attributes:
        called = value.func.id if isinstance(value.func, ast.Name) else ""
        only = assigned.get(called, ())
        return _returned(only[0] if len(only) == 1 and called not in own else value.func, bound)
    if not isinstance(value, ast.Name) or value.id in bound or not attributes:
        return None
    if value.id.startswith("__"):  # what the compiler adds: names of modules, and what was on the stack before
        return None
    return ".".join([value.id, *reversed(attributes)])


def _returned(called: ast.expr, bound: AbstractSet[str]) -> Optional[str]:
    """Return what a call's result is called: ``the result of random.random()``, or ``the result of .item()`` where the
    object has no name in the program."""
    first = called
    while isinstance(first, ast.Attribute):
        if first.attr.startswith("__"):
            return None
        first = first.value
    if isinstance(first, ast.Name) and first.id not in bound and not first.id.startswith("__"):
        return f"the result of {unparse(called)}()"
    return f"the result of .{called.attr}()" if isinstance(called, ast.Attribute) else None


def _renamed(recompile: Recompile, names: Mapping[str, str]) -> Recompile:
    if not names:
        return recompile

    def named(match: Match[str]) -> str:
        value = match[0].strip("()")
        name = names.get(value, value)
        return f"({name})" if match[0] != value and " " in name else name

    def renamed(text: str) -> str:
        return _ON_STACK.sub(named, text)

    def with_names(failed: FailedEntryGuard) -> FailedEntryGuard:
        return replace(failed, words=renamed(failed.words), checked=renamed(failed.checked))

    return replace(recompile, failed=tuple(map(with_names, recompile.failed)), advice=renamed(recompile.advice))
