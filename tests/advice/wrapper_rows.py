"""Rows for graph breaks of PyTorch's own wrappers of modules: DDP with two ranks, FSDP, ``fully_shard``.

The other rank is a process of its own, which does the same without torch.compile.
"""

from __future__ import annotations

from harness import EXPECTED, Remedy, Row, fewer
from rows_of_objects import ONE_PROCESS, without_gloo

from depyf.diagnosis import breaks_of_wrappers

RULES = {
    "ddp": breaks_of_wrappers._FOR_DDP,
    "fsdp1": breaks_of_wrappers._FOR_FSDP1,
    "fully_shard": breaks_of_wrappers._FOR_FULLY_SHARD,
}

MODEL = """
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.inner(x))

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Block(), Block()

    def forward(self, x):
        return self.second(self.first(x))

torch.manual_seed(0)
model = Model()
"""

TWO_RANKS = f"""
import subprocess, sys, tempfile
RANK = '''
import sys, torch
{MODEL}
torch.distributed.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=1, world_size=2)
model = torch.nn.parallel.DistributedDataParallel(model)
for number in range(int(sys.argv[2])):
    model(torch.ones(2, 4)).sum().backward()
torch.distributed.destroy_process_group()
'''
STEPS = 2
store = tempfile.mktemp()
other = subprocess.Popen([sys.executable, "-c", RANK, store, str(STEPS)])
{MODEL}
torch.distributed.init_process_group("gloo", init_method="file://" + store, rank=0, world_size=2)
model = torch.nn.parallel.DistributedDataParallel(model)
c = compile(model)
for number in range(STEPS):
    loss = c(torch.ones(2, 4)).sum()
    loss.backward()
    out(loss.detach())
out([each.grad.clone() for each in model.parameters()])
torch.distributed.destroy_process_group()
other.wait()
"""

BLOCKS = "    block.compile(backend=backend)\n"

ROWS = [
    Row(
        "DistributedDataParallel with two ranks",
        ("ddp",),
        TWO_RANKS,
        {"graphs": 1, "breaks": 3},
        (
            Remedy(
                EXPECTED,
                "the program needs no change",
                (("STEPS = 2", "STEPS = 4"),),
                after={"graphs": 1, "breaks": 3},
            ),
        ),
        skip=without_gloo,
        own_why="why is asked of the wrapped module, and the breaks are in the wrapper",
    ),
    Row(
        "FullyShardedDataParallel",
        ("fsdp1",),
        ONE_PROCESS
        + MODEL
        + """
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
for block in (model.first, model.second):
    pass
policy, device = ModuleWrapPolicy({Block}), torch.device("cpu")
model = FullyShardedDataParallel(model, auto_wrap_policy=policy, use_orig_params=True, device_id=device)
c = compile(model)
out(c(torch.ones(2, 4)).sum().detach())
torch.distributed.destroy_process_group()
""",
        {"breaks": 3},
        (
            fewer(
                "Compile each module that it wraps by itself",
                ("    pass\n", BLOCKS),
                ("c = compile(model)", "c = model"),
                breaks=0,
            ),
        ),
        skip=without_gloo,
    ),
    Row(
        "fully_shard",
        ("fully_shard",),
        ONE_PROCESS
        + MODEL
        + """
from torch.distributed.fsdp import fully_shard
mesh = torch.distributed.init_device_mesh("cpu", (1,))
for block in (model.first, model.second):
    fully_shard(block, mesh=mesh)
fully_shard(model, mesh=mesh)
c = compile(model)
out(c(torch.ones(2, 4)).sum().detach())
torch.distributed.destroy_process_group()
""",
        {"breaks": 2},
        (
            fewer(
                "Compile each module that is sharded by itself",
                ("    fully_shard(block, mesh=mesh)\n", BLOCKS + "    fully_shard(block, mesh=mesh)\n"),
                ("c = compile(model)", "c = model"),
                breaks=0,
            ),
        ),
        skip=without_gloo,
    ),
]
