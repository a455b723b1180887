"""``data``: the state of the capture under the names that other projects read.

A module of its own: a public import path of depyf 0.20.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, Mapping, Optional

from depyf.dynamo.capture.hub import capture
from depyf.dynamo.hooks import generated_code


def _dump_src_dir() -> Optional[str]:
    """Return the current dump directory, or the last one."""
    session = capture.current()
    return capture.last_directory if session is None else session.directory.path


def _unpatched_load_by_key_path() -> Optional[Callable[..., Any]]:
    """Return Inductor's own loader of generated modules, also while ``prepare_debug`` replaces it."""
    cache = generated_code.pycode_cache()
    loader = getattr(cache, "load_by_key_path", None)
    return getattr(loader, "__wrapped__", loader) if capture.current() is not None else loader


class GlobalVariables(Mapping[str, Any]):
    """Read-only; every value is the current one."""

    _readers: Mapping[str, Callable[[], Any]] = {
        "dump_src_dir": _dump_src_dir,
        "unpatched_load_by_key_path": _unpatched_load_by_key_path,
        "is_inside_prepare_debug": lambda: capture.current() is not None,
    }

    def __getitem__(self, name: str) -> Any:
        return self._readers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)


data = GlobalVariables()
