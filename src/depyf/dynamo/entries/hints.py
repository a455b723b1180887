"""What Dynamo knows about the code that it generated, as hints for the decompiler."""

from __future__ import annotations

import ast
import re
from types import CodeType, ModuleType
from typing import Dict, FrozenSet, Mapping, Optional, Tuple

from depyf.base.asynchronous import suppressed, synchronous
from depyf.base.late_regex import regex
from depyf.decompiler import RESUME_PREFIX, Hints, installed_globals, loaded_globals
from depyf.decompiler.syntax import parse

RESUMED = ("torch_dynamo_resume_in_", "resume_in_")
"""The prefixes of the names of resume functions; the second is that of PyTorch 2.2 and older."""


def hints_for(
    transformed: CodeType,
    original: CodeType,
    real_names: Mapping[str, str],
    frame_globals: Optional[Mapping[str, object]],
    graph_outputs: Mapping[str, int],
) -> Hints:
    """Return the hints for ``transformed``, which Dynamo wrote for ``original``. ``real_names`` maps the names in
    ``transformed`` to those in the globals of the frame, where they differ; ``graph_outputs`` is the number of outputs
    of each compiled graph, by its name in ``transformed``."""
    try:
        installed = installed_globals(transformed) - _of_the_user(original, frame_globals or {})
    except synchronous(ValueError):  # bytecode that no compiler emits: it is refused anyway
        installed = frozenset()
    own = set(original.co_varnames) | set(original.co_cellvars) | set(original.co_freevars)
    parameters: Dict[str, Tuple[str, ...]] = {}
    for name in installed:
        function = (frame_globals or {}).get(real_names.get(name, name))
        names = _parameters(function)
        if names and name.startswith(RESUME_PREFIX):
            parameters[name] = names
    return Hints(
        droppable=frozenset(transformed.co_varnames) - own,
        stable_globals=installed,
        tuple_results={name: count for name, count in graph_outputs.items() if name in installed},
        parameters=parameters,
    )


def _of_the_user(original: CodeType, frame_globals: Mapping[str, object]) -> FrozenSet[str]:
    """Return the globals that ``original`` loads itself, and whose names look like those that Dynamo generates. Resume
    functions load modules that Dynamo has put there."""
    loaded = loaded_globals(original, installed_globals(original))
    modules = {name for name in loaded if isinstance(frame_globals.get(name), ModuleType)}
    return frozenset(loaded - modules if original.co_name.startswith(RESUMED) else loaded)


def _parameters(function: object) -> Tuple[str, ...]:
    """Return the parameters of a resume function; a factory that makes it from cells holds its code as a constant."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return ()
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    if len(inner) == 1 and inner[0].co_name.startswith(RESUMED):
        code = inner[0]
    return code.co_varnames[: code.co_argcount]


def count_outputs(graph_text: str) -> Optional[int]:
    """Return how many values the graph in ``graph_text`` (a dumped captured graph) returns, ``None`` if unknown."""
    # ``        return (add, mul)``: where only one line returns, no syntax tree of a large graph has to be made.
    returns = _OUTERMOST_RETURN.findall(graph_text)
    if len(returns) == 1:
        with suppressed(SyntaxError, ValueError):
            return _length(parse(returns[0], "eval").body)
    try:
        tree = parse(graph_text)
    except synchronous(SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "forward":
            last = node.body[-1] if node.body else None
            return _length(last.value) if isinstance(last, ast.Return) else None
    return None


_OUTERMOST_RETURN = regex(r"^        return (.+)$", re.MULTILINE)


def _length(value: Optional[ast.expr]) -> Optional[int]:
    return len(value.elts) if isinstance(value, (ast.Tuple, ast.List)) else None


def resume_code(value: object) -> Tuple[Optional[CodeType], bool]:
    """Return the code object of a ``__resume_at_*`` global, and whether that global makes the function from cells."""
    if isinstance(value, CodeType):
        return value, True
    code = getattr(value, "__code__", None)
    if not isinstance(code, CodeType):
        return None, False
    if "code" in code.co_freevars:
        # A factory of Dynamo's: it closes over the code object and takes the cells.
        inner = dict(zip(code.co_freevars, getattr(value, "__closure__", None) or ()))["code"].cell_contents
        if isinstance(inner, CodeType):
            return inner, True
    return code, False
