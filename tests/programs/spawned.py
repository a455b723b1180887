"""Compile in this process and in a spawned one, both dumping into the directory that is the argument.

With the name of another way to start processes, only one that is started so does, and leaves its session open.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
import torch.multiprocessing

import depyf


def of_the_parent(x: Any) -> Any:
    return x * 3


def of_the_child(x: Any) -> Any:
    return x + 1


def child(number: int, directory: str) -> None:
    with depyf.prepare_debug(directory):
        result = torch.compile(of_the_child, backend="eager")(torch.ones(2))
    print(f"spawned: {result.tolist()}", flush=True)


def child_that_leaves_it_open(directory: str) -> None:
    depyf.prepare_debug(directory).__enter__()
    print(f"{torch.compile(of_the_child, backend='eager')(torch.ones(2)).tolist()}", flush=True)


if __name__ == "__main__" and len(sys.argv) > 2:
    process = torch.multiprocessing.get_context(sys.argv[2]).Process(
        target=child_that_leaves_it_open, args=(sys.argv[1],)
    )
    process.start()
    process.join()
elif __name__ == "__main__":
    with depyf.prepare_debug(sys.argv[1]):
        torch.compile(of_the_parent, backend="eager")(torch.ones(2))
        torch.multiprocessing.spawn(child, args=(sys.argv[1],), nprocs=1)
