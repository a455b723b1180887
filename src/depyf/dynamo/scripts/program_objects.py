"""Passes, backends and other objects of the program as expressions of a script, with the source of what they call.

Nothing here has to be exact: a script that was not run, or shows no difference when it is run, is no evidence. So an
object is written down as far as its parts have a source or a literal, and refused otherwise.
"""

from __future__ import annotations

import functools
from types import FunctionType, MethodType
from typing import Mapping, Optional, Sequence

from depyf.dynamo.hooks import private_names, torch_names
from depyf.dynamo.scripts.imports import Imports
from depyf.dynamo.scripts.operators import NoSourceError, needed_by, plain_source

_DEPTH = 4

_MADE = '''\
def made(kind, attributes):
    """Make an object with these attributes, without calling ``__init__``."""
    found = kind.__new__(kind)
    found.__dict__.update(attributes)
    return found'''


def expression(value: object, name: str, imports: Imports, depth: int = 0) -> Optional[str]:
    """Return an expression for an object of the program, None if there is none; what it needs goes into ``imports``.

    ``name`` is for a lambda, which has none.
    """
    text = imports.literal(value)
    if text is not None or depth > _DEPTH:
        return text
    if private_names.SCHEMA.is_on(value):  # an operator
        return f"torch.ops.{value}"
    own = str(getattr(value, "__name__", ""))
    if own and torch_names.find("torch", own) is value:
        return f"torch.{own}"
    if isinstance(value, FunctionType):
        return _function(value, name, imports)
    if isinstance(value, functools.partial):
        inner = expression(value.func, name, imports, depth + 1)
        given = _arguments(value.args, value.keywords, name, imports, depth)
        if inner is None or given is None:
            return None
        imports.add("functools", functools)
        return f"functools.partial({', '.join([inner, *([given] if given else [])])})"
    if isinstance(value, MethodType):
        owner = expression(value.__self__, name, imports, depth + 1)
        return None if owner is None else f"{owner}.{value.__name__}"
    if isinstance(value, (list, tuple)):
        parts = [expression(each, f"{name}_{number}", imports, depth + 1) for number, each in enumerate(value)]
        if any(part is None for part in parts):
            return None
        return f"[{', '.join(map(str, parts))}]" if isinstance(value, list) else f"({', '.join(map(str, parts))},)"
    if isinstance(value, type):
        return _class(value, imports)
    return _instance(value, name, imports, depth)


def _function(value: FunctionType, name: str, imports: Imports) -> Optional[str]:
    own = value.__name__ if value.__name__.isidentifier() else name
    if imports.from_module(own, value):
        return own
    try:
        text = plain_source(value, own)
    except NoSourceError:
        return None
    for needed, each in needed_by(value, text):
        imports.add(needed, each)
    imports.define(text)
    return own


def _class(value: type, imports: Imports) -> Optional[str]:
    before = len(imports.notes)
    imports.add(value.__name__, value)
    return value.__name__ if len(imports.notes) == before else None


def _instance(value: object, name: str, imports: Imports, depth: int) -> Optional[str]:
    """Return an expression for an object with attributes; for what ``aot_autograd`` makes, a call of that."""
    kind, attributes = type(value), getattr(value, "__dict__", None)
    if not isinstance(attributes, dict) or kind.__module__ == "builtins":
        return None
    if kind is private_names.AOT_BACKEND.find():
        given = _arguments((), attributes.get("kwargs", {}), name, imports, depth)
        if given is None:
            return None
        imports.add("AotAutograd", kind)
        return f"AotAutograd({given})"
    made = _class(kind, imports)
    parts = {key: expression(each, f"{name}_{key}", imports, depth + 1) for key, each in attributes.items()}
    if made is None or any(part is None for part in parts.values()):
        return None
    imports.define(_MADE)
    return f"made({made}, {{{', '.join(f'{key!r}: {part}' for key, part in parts.items())}}})"


def _arguments(
    args: Sequence[object], kwargs: Mapping[str, object], name: str, imports: Imports, depth: int
) -> Optional[str]:
    parts = [expression(each, f"{name}_{number}", imports, depth + 1) for number, each in enumerate(args)]
    named = {key: expression(each, f"{name}_{key}", imports, depth + 1) for key, each in kwargs.items()}
    if any(part is None for part in (*parts, *named.values())):
        return None
    return ", ".join([*map(str, parts), *(f"{key}={part}" for key, part in named.items())])
