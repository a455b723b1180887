"""Run one of the examples under ``prepare_debug``, with any backend.

python run_example.py EXAMPLE BACKEND DUMP_FOLDER
"""

from __future__ import annotations

import functools
import runpy
import sys
from pathlib import Path

import torch

import depyf

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

example, backend, folder = sys.argv[1:]
if not hasattr(torch.compiler, "set_stance"):
    torch.compile = functools.partial(torch.compile, backend=backend)
elif backend != "inductor":
    torch.compiler.set_stance(force_backend=backend)
sys.argv = [str(EXAMPLES / f"{example}.py")]
with depyf.prepare_debug(folder):
    runpy.run_path(sys.argv[0], run_name="__main__")
