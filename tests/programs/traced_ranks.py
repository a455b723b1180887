"""Two ranks of which the second compiles once more, and breaks its graph where the first does not; for torchrun.

``tests/report/logs/ranks`` was recorded with ``TORCH_TRACE=<directory> torchrun --nproc-per-node 2 traced_ranks.py``.
With an argument it dumps into that directory, too.
"""

from __future__ import annotations

import contextlib
import os
import sys

import torch
import torch.distributed

import depyf


@torch.compile(backend="aot_eager")
def shared(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) + 1


@torch.compile(backend="aot_eager")
def uneven(x: torch.Tensor, rank: int) -> torch.Tensor:
    y = torch.sin(x)
    if rank:
        print("only here")
    return y * 2


def main(rank: int) -> None:
    for size in [4, 4] if rank == 0 else [4, 5]:  # the second rank gets another number of rows
        shared(torch.ones(size))
    uneven(torch.ones(3), rank)


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.distributed.init_process_group("gloo")
    with depyf.prepare_debug(sys.argv[1]) if len(sys.argv) > 1 else contextlib.nullcontext():
        main(torch.distributed.get_rank())
        torch.distributed.barrier()
    torch.distributed.destroy_process_group()
