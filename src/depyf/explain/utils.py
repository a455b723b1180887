"""Helpers that other projects' loader hooks call."""

from __future__ import annotations

import itertools
import os

from depyf.dynamo import compat
from depyf.dynamo.capture import capture

__all__ = ["get_current_compiled_fn_name", "write_code_to_file_template"]

NO_NAME = "__compiled_fn_-1"
"""The answer when nothing is being compiled."""


def get_current_compiled_fn_name() -> str:
    """``__compiled_fn_<id>`` of the compilation that this thread is in, also while its backward is compiled."""
    session, compile_id = capture.current(), compat.current_compile_id()
    named = None if session is None or compile_id is None else session.compiled_function(compile_id)
    return NO_NAME if named is None else named.stable_name


def write_code_to_file_template(src: str, path_template: str) -> str:
    """Write ``src`` to the first of ``path_template % 0``, ``% 1``, ... that is free or holds it; answers that path.

    Raises ``OSError`` when it can't be written.
    """
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
