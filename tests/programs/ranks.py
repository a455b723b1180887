"""Train a small model on every rank of a distributed program, with and without dumping; for torchrun.

Arguments: pairs of ``ddp`` or ``fsdp`` and a dump directory, in which ``{rank}`` stands for the rank.
"""

from __future__ import annotations

import itertools
import os
import sys
from typing import Any, List, Sequence

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

import depyf


def model(kind: str) -> Any:
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    if kind == "ddp":
        return DistributedDataParallel(layers)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    return fully_shard(layers, mesh=mesh)


def losses(kind: str, rank: int, backend: str) -> List[float]:
    network = model(kind)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)

    def step(x: torch.Tensor) -> torch.Tensor:
        return (network(x) * (rank + 1)).square().mean()  # another program on every rank

    compiled = torch.compile(step, backend=backend)
    found = []
    for number in range(2):
        loss = compiled(torch.full((3, 4), number + 1.0 + rank))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.item())
    return found


def main(kinds: Sequence[str], directories: Sequence[str]) -> None:
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    for kind, directory in zip(kinds, directories):
        torch._dynamo.reset()
        plain = losses(kind, rank, "aot_eager")
        torch._dynamo.reset()
        with depyf.prepare_debug(directory.format(rank=rank)):
            torch.distributed.barrier()
            dumped = losses(kind, rank, "aot_eager")
        outcome = "same" if plain == dumped else (plain, dumped)
        sys.stdout.write(f"rank {rank}, {kind}: {outcome}\n")  # at once: torchrun's processes are unbuffered
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    main(*zip(*itertools.zip_longest(sys.argv[1::2], sys.argv[2::2])))
