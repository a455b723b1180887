"""Helpers that other projects' loader hooks call, and other names that depyf 0.20 had here.

A module of its own: a public import path of depyf 0.20.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from types import CodeType
from typing import Any, Dict, Iterator, Optional

from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.capture.hub import capture
from depyf.dynamo.capture.session import NO_NAME
from depyf.dynamo.hooks.attribution import current_compile_id
from depyf.dynamo.store.file_locks import locked_file

__all__ = [
    "DynamoOptimizationResult",
    "get_current_compiled_fn_name",
    "lock_on_file",
    "write_code_to_file_template",
]


def get_current_compiled_fn_name() -> str:
    """Return ``__compiled_fn_<id>`` of the compilation that this thread is in, also while its backward is compiled."""
    session, compile_id = capture.current(), current_compile_id()
    named = None if session is None or compile_id is None else session.compiled_function(compile_id)
    return NO_NAME if named is None else named.stable_name


def write_code_to_file_template(src: str, path_template: str) -> str:
    """Write ``src`` to the first of ``path_template % 0``, ``% 1``, ... that is free or has this text; return the path.
    Raises ``OSError`` when it can't be written."""
    for number in itertools.count():
        path = path_template % number
        try:
            with open(path, "x", encoding="utf-8") as file:
                file.write(src)
            return path
        except FileExistsError:
            if os.path.isdir(path):
                raise
            with open(path, encoding="utf-8") as file:
                if file.read() == src:
                    return path
    raise AssertionError("unreachable")


@contextlib.contextmanager
def lock_on_file(path_template: str) -> Iterator[None]:
    """Hold the lock ``<path_template>.lock``, which excludes other processes and other threads. Raises ``OSError`` when
    the file can't be made."""
    with locked_file(f"{path_template}.lock"):
        yield


@dataclass
class DynamoOptimizationResult:
    """What Dynamo made of a function, given its original code; ``module`` is accepted and ignored."""

    original_code: CodeType
    function_name: Optional[str] = None
    module: Any = None

    def __post_init__(self) -> None:
        self.function_name = self.function_name or self.original_code.co_name

    def to_src(self) -> str:
        """Return the text of ``full_code_for_<function>.py``."""
        from depyf.explain import dump_src

        return dump_src(self.original_code, self.module)

    def to_data(self) -> Dict[str, Any]:
        """Return the name of the function, and that text, as a dictionary."""
        return {"function_name": self.function_name, "source": self.to_src()}
