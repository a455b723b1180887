"""The user's own function for ``full_code_*.py``: its text from its own file, or decompiled.

Importing the text must run no code of the user: decorators become comments, and default values that are not literals
become placeholders.
"""

from __future__ import annotations

import ast
from dataclasses import field
from types import CodeType
from typing import Dict, List, Mapping, Optional, Tuple, Union

from depyf.base.asynchronous import synchronous
from depyf.base.messages import describe
from depyf.base.quick_dataclass import dataclass
from depyf.base.text_edits import Edit, edited
from depyf.decompiler import DecompilationError, decompile_code
from depyf.decompiler.syntax import parse
from depyf.dynamo.dump.full_code.text import Signature, as_definition, dedented, why_it_does_not_compile
from depyf.dynamo.hooks.loaded_modules import source_text

Definition = Union[ast.FunctionDef, ast.AsyncFunctionDef]


@dataclass(frozen=True)
class Original:
    """``source`` defines ``name``. ``defaults`` are expressions by parameter; ``origin`` says where the text is from.
    ``source`` is None without any text; ``origin`` is then the reason. ``constants`` are the objects without a literal
    that a decompiled source has names for."""

    name: str
    source: Optional[str]
    origin: str
    defaults: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, object] = field(default_factory=dict, repr=False)


def original_of(code: CodeType, name: str) -> Original:
    """Return the function that ``code`` was compiled from; ``name`` is its name if it has none of its own."""
    written = _written(code, name)
    if written is not None:
        return written
    try:
        result = decompile_code(code, name=name)
    except DecompilationError as error:
        return Original(name, None, f"there is neither source nor a decompilation: {error}")
    except synchronous() as error:  # a bug of the decompiler costs this text and nothing else
        return Original(name, None, f"there is no source, and decompiling failed: {describe(error)}")
    source = as_definition(result.source.rstrip(), name)
    return Original(name, source, f"decompiled ({result.verdict.value})", {}, result.text.constants)


def _written(code: CodeType, name: str) -> Optional[Original]:
    # The file may have changed since it was imported, and ``inspect`` then returns another function: the name and the
    # parameters have to be those of the code.
    found = source_text(code)
    if found is None:
        return None
    text = dedented(found)
    origin = f"{code.co_filename}:{code.co_firstlineno}"
    if code.co_name == "<lambda>":
        return _lambda(text, code, name, origin)
    try:
        tree = parse(text)
    except synchronous(SyntaxError, ValueError):
        return None
    definition = tree.body[0] if tree.body else None
    if not isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef)) or definition.name != code.co_name:
        return None
    if _parameter_names(definition.args) != Signature.of(code).names:
        return None
    defaults = _defaults(definition.args)
    source = edited(text, [*_default_edits(defaults, text), *_decorator_edits(definition)]).rstrip()
    shown = {parameter: _safe_default(node, text) for parameter, node in defaults.items()}
    return Original(definition.name, source, origin, shown)


def _lambda(text: str, code: CodeType, name: str, origin: str) -> Optional[Original]:
    """Return a lambda as an assignment to ``name``. The text is the whole statement, in which only one lambda may
    fit.
    """
    tree = _parse_fragment(text)
    if tree is None:
        return None
    wanted = Signature.of(code).names
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and _parameter_names(node.args) == wanted]
    if len(found) != 1:
        return None
    node = found[0]
    defaults = _defaults(node.args)
    segment = ast.get_source_segment(text, node)
    if segment is None:
        return None
    for default in defaults.values():
        if not _is_literal(default):
            return None
    source = f"{name} = (\n    {segment}\n)"
    shown = {parameter: _safe_default(default, text) for parameter, default in defaults.items()}
    return Original(name, source, origin, shown) if why_it_does_not_compile(source) is None else None


def _parse_fragment(text: str) -> Optional[ast.Module]:
    """Return the tree of the first lines of ``text`` that parse: a lambda's source often ends inside a call."""
    lines = text.split("\n")
    for end in range(len(lines), 0, -1):
        try:
            return parse("\n".join(lines[:end]))
        except synchronous(SyntaxError, ValueError):
            continue
    return None


def _parameter_names(args: ast.arguments) -> Tuple[str, ...]:
    """Return the names of the parameters in the order of ``co_varnames``."""
    plain = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    return tuple(arg.arg for arg in [*plain, *filter(None, (args.vararg, args.kwarg))])


def _defaults(args: ast.arguments) -> Dict[str, ast.expr]:
    positional = [*args.posonlyargs, *args.args]
    found = {arg.arg: node for arg, node in zip(positional[len(positional) - len(args.defaults) :], args.defaults)}
    found.update({arg.arg: node for arg, node in zip(args.kwonlyargs, args.kw_defaults) if node is not None})
    return found


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except synchronous(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _safe_default(node: ast.expr, text: str) -> str:
    if _is_literal(node):
        return ast.get_source_segment(text, node) or repr(ast.literal_eval(node))
    return "___placeholder('a default value that is computed where the function is defined')"


def _default_edits(defaults: Mapping[str, ast.expr], text: str) -> List[Edit]:
    """Return edits that replace every default value that is not a literal."""
    return [
        (
            (node.lineno, node.col_offset),
            (node.end_lineno or node.lineno, node.end_col_offset or 0),
            _safe_default(node, text),
        )
        for node in defaults.values()
        if not _is_literal(node)
    ]


def _decorator_edits(definition: Definition) -> List[Edit]:
    """Return edits that comment out every line of the decorators."""
    if not definition.decorator_list:
        return []
    last = max(node.end_lineno or node.lineno for node in definition.decorator_list)
    first = min(node.lineno for node in definition.decorator_list)
    return [((line, 0), (line, 0), "# ") for line in range(first, last + 1)]
