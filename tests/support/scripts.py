"""Run scripts that depyf wrote in this process: importing PyTorch takes longer than most of them."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import Any, Dict, Tuple, Union

import torch


def namespace(script: Union[str, os.PathLike[str]]) -> Dict[str, Any]:
    """What the script defines."""
    path = os.fspath(script)
    names: Dict[str, Any] = {"__name__": "script", "__file__": path}
    exec(compile(Path(path).read_text(), path, "exec"), names)
    return names


def ran(script: Union[str, os.PathLike[str]], *arguments: str, backend: str = "eager") -> Tuple[int, str]:
    """The exit status of the script, and what it prints."""
    names = namespace(script)
    before, sys.argv = sys.argv, [os.fspath(script), "--backend", backend, *arguments]
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            status = names["main"]()
    finally:
        sys.argv = before
        torch._dynamo.reset()
    return status, printed.getvalue()
