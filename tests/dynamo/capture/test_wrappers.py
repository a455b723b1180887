"""Graph breaks of DistributedDataParallel, FullyShardedDataParallel and fully_shard are said to be theirs, in a real
program of one rank.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import warm_python

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from depyf.report.read.reading import load  # noqa: E402

PROGRAM = """
import sys

import torch
import torch.distributed as dist
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.inner(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Block(), Block()

    def forward(self, x):
        return self.second(self.first(x))


what, store = sys.argv[1:]
dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
model = Model()
if what == "ddp":
    model = nn.parallel.DistributedDataParallel(model)
elif what.startswith("fsdp1"):
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    if what == "fsdp1 blocks":
        for block in (model.first, model.second):
            block.compile(backend="eager")
    policy, device = ModuleWrapPolicy({Block}), torch.device("cpu")
    model = FullyShardedDataParallel(model, auto_wrap_policy=policy, use_orig_params=True, device_id=device)
else:
    from torch.distributed.fsdp import fully_shard

    mesh = dist.device_mesh.init_device_mesh("cpu", (1,))
    for block in (model.first, model.second):
        if what == "blocks":
            block.compile(backend="eager")
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
model = model if what.endswith("blocks") else torch.compile(model, backend="eager")
model(torch.ones(2, 4)).sum().backward()
dist.destroy_process_group()
"""

needs_fully_shard = pytest.mark.skipif(
    not hasattr(pytest.importorskip("torch.distributed.fsdp"), "fully_shard"), reason="from PyTorch 2.6 on"
)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("ddp", "DistributedDataParallel's own"),
        ("fsdp1", "FullyShardedDataParallel's own"),
        ("fsdp1 blocks", ""),  # as the advice says
        pytest.param("fsdp", "fully_shard's own", marks=needs_fully_shard),
        pytest.param("blocks", "", marks=needs_fully_shard),  # as the advice says
    ],
)
def test_the_wrappers_breaks_are_named(tmp_path: Path, what: str, words: str) -> None:
    if not torch.distributed.is_available():
        pytest.skip("this PyTorch has no torch.distributed")
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "depyf", "run", "-q", "-o", str(tmp_path / "dump"), str(program), what]
    warm_python.run([*command, str(tmp_path / "store")], check=True)
    (loaded,) = load([str(tmp_path / "dump")])
    assert bool(loaded.run.breaks) == bool(words)
    for each in loaded.run.breaks:
        assert words in each.advice, each
    breaks = [each for each in loaded.run.findings if each.title.startswith("Graph break")]
    assert [each.seconds for each in breaks] == [None] * len(breaks) or what != "ddp"
