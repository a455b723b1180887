"""``prepare_debug`` and ``debug`` under their old names, and the hook for how Inductor's modules are loaded.

Assigning another function to ``patched_load_by_key_path`` makes ``prepare_debug`` install that one: it is looked up
when ``prepare_debug`` is entered. The function should take ``**kwargs``, since PyTorch adds keywords now and then.
A module of its own: a public import path of depyf 0.20.
"""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from depyf.dynamo.capture.hub import capture
from depyf.dynamo.capture.kernels import loading_copies
from depyf.dynamo.dump.pausing import debug
from depyf.dynamo.dump.prepare import prepare_debug
from depyf.explain.global_variables import data

__all__ = ["debug", "patched_load_by_key_path", "prepare_debug"]


def patched_load_by_key_path(
    key: str,
    path: str,
    linemap: Optional[List[Tuple[int, str]]] = None,
    attrs: Optional[Any] = None,
    **kwargs: Any,
) -> Any:
    """Load a module that Inductor generated from a copy in the dump directory."""
    loader = loading_copies(data["unpatched_load_by_key_path"], capture.receivers)
    return loader(key, path, linemap, attrs, **kwargs)
