"""Parse the sources of guarded values in PyTorch's text (``L['self'].layers[0]``)."""

from __future__ import annotations

import ast
import functools
import re
from typing import Match, Optional, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.decompiler.syntax import parse, unparse, walk

_LOCAL = regex(r"\b[LG]\['([^'\\]+)'\]")
_BUILTIN = regex(r"\bG\['__builtins_dict__(?:_\d+)?'\]\['(\w+)'\]")
_IMPORTED = "__import_"
"""What Dynamo's names of modules that it imports begin with: ``__import_torch_dot_nn`` is ``torch.nn``."""
_OF_MODULE = "(?:_modules|_parameters|_buffers)"
_MEMBER = regex(rf"\.(?:{_OF_MODULE}|__dict__\['{_OF_MODULE}'\])\['([^'\\]+)'\]")
"""A member of a module. Where the program iterates over a ``ModuleList``, Dynamo finds the list in ``__dict__``."""
_GETATTR = regex(r"\bgetattr\(([^()]+), '([^'\\]+)'\)")
_INDEX = regex(r"\[(\d+)\]")
_IDENTIFIER = regex(r"[^\W\d]\w*\Z")
_FROM_NUMPY = regex(r"___from_numpy\(([^()]*)\)")
_CELL = regex(r"\.__closure__\[(\d+)\]\.cell_contents")
_ON_STACK = regex(r"\b___stack(\d+)\b(?=([.\[(]?))")
_SIZE = regex(r"(.+)\.size\(\)\[(\d+)\]\Z")
_ONE_LOCAL = regex(r"L\['([^'\\]*)'\]\Z")
_KEY = regex(r"\[('[^']*'|\"[^\"]*\"|-?\d+)\]")
_CLASS = regex(r"<(?:class|enum) '([^']*)'>")
_SHORTER = (
    (regex(r"G\['__builtins_dict___\d+'\]"), "builtins"),
    (regex(r"\b[LG]\['(\w+)'\]"), r"\1"),
    (regex(r"__import__\('([\w.]+)'\)"), r"\1"),
    (regex(r"\['(\w+)'\]"), r".\1"),
)


@functools.lru_cache(maxsize=4096)
def as_written(source: str) -> str:
    """Return a source as the user writes it: ``L['self']._modules['layers']._modules['0']`` is ``self.layers[0]``."""
    # Most sources have neither builtins nor PyTorch's helpers: the patterns for these are skipped, as a model has
    # thousands of sources.
    text = source.strip()
    if "__builtins_dict__" in text:
        text = _BUILTIN.sub(_name, text)
    text = _MEMBER.sub(_member, _LOCAL.sub(_name, text))
    if "___" in text or "__closure__" in text:
        text = _CELL.sub(r" (closure variable \1)", _FROM_NUMPY.sub(r"\1", text))
        text = _ON_STACK.sub(_on_stack, text)
    return text


_DIMENSION = regex(r"(.+)\.(size|stride)\(\)\[(\d+)\]\Z")


def in_words(source: str) -> str:
    """Return what a guard compares as one that failed says it: ``L['x'].size()[1]`` is ``size of x in dimension 1``."""
    text = as_written(source)
    found = _DIMENSION.match(text)
    if found is not None:
        return f"{found[2]} of {found[1]} in dimension {found[3]}"
    return f"length of {text[4:-1]}" if text.startswith("len(") and text.endswith(")") else text


STACK_VALUE = "stack value {} at the graph break"
"""What ``___stack0`` is called: a value without a name in the program, which the line of a graph break had computed."""


def is_of_optimizers_state(subject: str) -> bool:
    """Return whether a value, as the user writes it, is in the state of an optimizer: a dict whose keys are parameters,
    which PyTorch names by their positions."""
    return _OPTIMIZERS_STATE.search(subject) is not None


_OPTIMIZERS_STATE = regex(r"\.state(?:\[list\(dict\.keys\(|\Z)")


def is_on_stack(subject: str) -> bool:
    """Return whether a subject, as written, is such a value itself."""
    return subject.startswith(STACK_VALUE.partition("{")[0])


def _on_stack(match: Match[str]) -> str:
    name = STACK_VALUE.format(match[1])
    return f"({name})" if match[2] else name


def _name(match: Match[str]) -> str:
    name = match[1]
    return name[len(_IMPORTED) :].replace("_dot_", ".") if name.startswith(_IMPORTED) else name


def _member(match: Match[str]) -> str:
    name = match.group(1)
    if name.isdigit():
        return f"[{name}]"
    return f".{name}" if _IDENTIFIER.match(name) else f".{match.group(1)!r}"


def module_path(source: str) -> str:
    """Return the source of a module with its path in ``named_modules``: ``L['model']._modules['0'].up``, which 2.2 has
    as ``getattr(L['model'], '0').up``, is ``model.0.up``."""
    found = 1
    while found:
        source, found = _GETATTR.subn(r"\1.\2", source)
    return _INDEX.sub(r".\1", as_written(source))


def short_name(source: str) -> str:
    """Return a short name that is valid in code: ``L['self'].block`` is ``self.block``."""
    for pattern, replacement in _SHORTER:
        source = pattern.sub(replacement, source)
    return source


def local_name(source: str) -> Optional[str]:
    """Return the name of the local variable that a source is, None for other values."""
    match = _ONE_LOCAL.match(source)
    return match and match.group(1)


def is_reached_through(source: str, above: str) -> bool:
    """Return whether a value is reached through the value ``above``: its source contains that one."""
    if not above or source == above or above not in source:  # most are not: hundreds are compared with one another
        return False
    return re.search(re.escape(above) + r"(?!\w)", source) is not None


@functools.lru_cache(maxsize=4096)
def parts_read(expression: str) -> Tuple[str, ...]:
    """Return the parts of a source, or of an expression of sources, that read values of the compiled frame, each after
    the parts that it consists of. ``L['x'].a[0]`` has ``L['x']``, ``L['x'].a`` and itself. Empty if it is not Python.
    """
    try:
        tree = parse(expression, mode="eval").body
    except synchronous(SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    # Parents come before their children in ``walk``.
    parts = (each for each in walk(tree) if isinstance(each, (ast.Attribute, ast.Subscript, ast.Call)))
    return tuple(reversed([unparse(each) for each in parts if _reads_values(each)]))


@functools.lru_cache(maxsize=4096)
def holder_of(source: str) -> Tuple[str, object]:
    """Return the source of the object that holds a value, and the attribute, key or index there: ``L['d']`` and ``k``
    of ``L['d']['k']``. Both are empty for other sources."""
    try:
        tree = parse(source, mode="eval").body
        if isinstance(tree, ast.Subscript):
            index: ast.AST = tree.slice
            index = getattr(index, "value", index) if type(index).__name__ == "Index" else index  # up to 3.8
            holder, name = unparse(tree.value), ast.literal_eval(unparse(index))
        elif isinstance(tree, ast.Attribute):
            holder, name = unparse(tree.value), tree.attr
        else:
            return "", ""
    except synchronous(SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return "", ""
    return holder[: -len(".__dict__")] if holder.endswith(".__dict__") else holder, name


def _reads_values(tree: ast.AST) -> bool:
    return any(isinstance(each, ast.Name) and each.id in ("L", "G") for each in walk(tree))


_READS = regex(r"\b[LG]\[")


def reads_values(source: str) -> bool:
    """Return whether a source reads a local or global variable of the compiled frame."""
    return _READS.search(source) is not None


def key_read(subject: str, source: str) -> Optional[str]:
    """Return the key of ``subject``, as written, that is read in the path to ``source``; ``None`` if there is none."""
    text = as_written(source)
    match = _KEY.match(text, len(subject)) if text.startswith(subject) else None
    return match and match.group(1)


_HELPER = regex(r"___(\w+?)_(len|getitem)\((.*?)(?:, (\d+))?\)\Z|___normalize_(\w+)_iter\((.*)\)\Z")


def helper_as_written(name: str) -> str:
    """Return what PyTorch's helpers read, in words: ``___tuple_iterator_len(it)`` is what is left of ``it``."""
    match = _HELPER.match(name)
    if match is None:
        return name
    if match.group(5):
        return f"the state of the iterator {match.group(6)}"
    return (
        f"the number of items left in {match.group(3)}"
        if match.group(2) == "len"
        else f"item {match.group(4)} of {match.group(3)}"
    )


_TEST = regex(r"\A\s*(?:if|elif|while|assert)\b(?P<statement>.*?)(?::|\Z)|\bif\b(?P<expression>.+?)\belse\b")
_LAST_NAME = regex(r"\w+\Z")


def is_tested(subject: str, user_code: str) -> bool:
    """Return whether a line of the program tests the value ``subject``: ``if scale > 0:``, ``a if n else b``."""
    name, tested = _LAST_NAME.search(subject), _TEST.search(user_code)
    if name is None or tested is None:
        return False
    return re.search(rf"\b{name[0]}\b", tested["statement"] or tested["expression"] or "") is not None


def class_name(text: str) -> str:
    """Return the name of a class that PyTorch prints as ``<class 'a.B'>``; other text unchanged."""
    match = _CLASS.search(text)
    name = match.group(1) if match else text.strip()
    return name[len("builtins.") :] if name.startswith("builtins.") else name


def with_names_of_classes(code: str) -> str:
    """Return code with the last names of the classes in it, which PyTorch prints as ``<class 'a.B'>``."""
    return _CLASS.sub(lambda match: match.group(1).rpartition(".")[2], code)


def size_in_parts(text: str) -> Optional[Tuple[str, str]]:
    """Return the tensor as the user writes it, and the dimension, of ``L['x'].size()[0]``; None of another text."""
    found = _SIZE.match(text)
    return None if found is None else (as_written(found[1]), found[2])
