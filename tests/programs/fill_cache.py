"""Run programs with Inductor and without depyf, so that its caches are warm. Arguments: names of programs."""

from __future__ import annotations

import sys
from typing import Sequence

import torch
from breaking import PROGRAMS
from case import run


def main(names: Sequence[str]) -> None:
    for name in names:
        torch._dynamo.reset()
        case = PROGRAMS[name]()
        run(case, torch.compile(case.function), training=True)


if __name__ == "__main__":
    main(sys.argv[1:])
