"""Names of a package that are imported from their modules when they are first used (PEP 562).

The public faces ``depyf``, ``depyf.decompiler`` and ``depyf.decompiler.syntax`` work that way: importing one
costs only what is used. A module of its own, since the faces of both halves need it.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, Callable, Mapping


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for the module ``package``; ``homes`` maps each name to the module that defines it."""

    def attribute(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        # A session imports hundreds of modules: passes of the collector would go through what they have made, for
        # nothing, and then through all that PyTorch has made.
        from depyf.base.without_collector import without_collector

        with without_collector():
            value = getattr(importlib.import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    return attribute
