"""Dump many programs into one directory, for comparing directories.

Arguments: backend, dump directory, then names of programs (none: all).
"""

from __future__ import annotations

import sys
from typing import Sequence

import torch
from breaking import PROGRAMS
from case import run

import depyf


def main(backend: str, directory: str, names: Sequence[str]) -> None:
    with depyf.prepare_debug(directory):
        for name in names or PROGRAMS:
            torch._dynamo.reset()
            case = PROGRAMS[name]()
            run(case, torch.compile(case.function, backend=backend), training=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
