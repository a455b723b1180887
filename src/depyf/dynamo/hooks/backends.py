"""The backends that ``torch.compile`` finds by name."""

from __future__ import annotations

from typing import Any, List

from depyf.bytecode.code import nested_codes
from depyf.dynamo.hooks import private_names


def interprets_graphs() -> bool:
    """Return whether the backend aot_eager runs its graphs by ``torch.fx.Interpreter`` (2.13 calls ``forward``)."""
    compiler = private_names.BOXED_NOP.find()
    code = getattr(compiler, "__code__", None)
    return code is not None and any("boxed_run" in each.co_names for each in nested_codes(code))


def registered_backend(name: str, *, required: bool = False) -> Any:
    """Return the backend of that name; None if torch has none. If it is ``required``, raise torch's exception
    instead.
    """
    lookup = private_names.LOOKUP_BACKEND.find()
    return lookup(name) if required or name in names_of_backends() else None


def names_of_backends() -> List[str]:
    """Return the names of all registered backends."""
    known = private_names.LIST_BACKENDS.find()
    return [] if known is None else list(known(exclude_tags=()))
