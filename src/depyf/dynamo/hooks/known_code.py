"""Code objects that Dynamo has tables of, and the code of PyTorch itself."""

from __future__ import annotations

import os
from types import CodeType, FrameType
from typing import Any, List, Optional

from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.torch_names import module


def original_of(transformed: CodeType) -> Optional[CodeType]:
    """Return the user's code (or that of a resume function) from which Dynamo generated ``transformed``; None if
    unknown.
    """
    known = private_names.ORIGINAL_CODES.find()
    original = None if known is None else known.get(transformed)
    return original if isinstance(original, CodeType) else None


def transformed_codes() -> List[CodeType]:
    """Return all code that Dynamo generated and still has."""
    known = getattr(private_names.ORIGINAL_CODES.find(), "refs", None) or {}
    codes = [reference() for reference in list(known.values())]
    return [code for code in codes if isinstance(code, CodeType)]


def is_of_torch(code: CodeType) -> bool:
    """Return whether code comes from a file of torch."""
    return is_torch_file(code.co_filename)


def is_torch_file(path: str) -> bool:
    """Return whether this is the path of a file of torch."""
    root = os.path.dirname(str(module("torch").__file__))
    return path.startswith(root + os.sep)


def sizes_that_dynamo_has_seen() -> Optional[Any]:
    """Return the table, by code, from which Dynamo reports varying sizes, ``None`` if this torch keeps it elsewhere."""
    read = private_names.SIZES_SEEN.find()
    return None if read is None else read()


def is_guard(frame: FrameType) -> bool:
    """Return whether a frame evaluates guards for which Dynamo has written Python: those about sizes."""
    code = frame.f_code
    is_written = (code.co_filename, code.co_name, code.co_varnames[:1]) == ("<string>", "guard", ("L",))
    return is_written and frame.f_globals.keys() - {"__builtins__"} == {"G"}
