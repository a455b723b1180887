"""A run of the size of a training step of a transformer with many layers, made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, List, Optional, Tuple

from run_builder import Op, RunBuilder

from depyf.report.model.run import Artifact, EntryGuard, Function, ModulePart, Run, SourceFile

_MODEL = """\
import torch
import torch.nn.functional as F


class Layer(torch.nn.Module):
    def forward(self, x, mask):
        h = self.norm1(x)
        q, k, v = self.qkv(h).chunk(3, dim=-1)
        q, k, v = (t.view(t.shape[0], -1, self.heads, self.size).transpose(1, 2) for t in (q, k, v))
        scores = q @ k.transpose(-1, -2) * self.scale + mask
        h = scores.softmax(-1) @ v
        x = x + self.out(h.transpose(1, 2).flatten(2))
        h = F.gelu(self.up(self.norm2(x)))
        return x + self.down(h)


class Model(torch.nn.Module):
    def forward(self, ids, mask):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(self.norm(x))
"""

_STEPS = {
    "self.norm1(x)": ["native_layer_norm", "getitem", "getitem_1", "sub", "mul"],
    "self.qkv(h)": ["permute", "view", "addmm", "view_1", "split", "getitem_2", "getitem_3", "getitem_4"],
    "t.view(": ["view_2", "transpose", "view_3", "transpose_1", "view_4", "transpose_2"],
    "q @ k": ["transpose_3", "expand", "clone", "bmm", "mul_1", "add"],
    "scores.softmax": ["amax", "sub_1", "exp", "sum_1", "div", "expand_1", "bmm_1"],
    "self.out(": ["transpose_4", "clone_1", "view_5", "permute_1", "addmm_1", "view_6", "add_1"],
    "F.gelu": ["native_layer_norm_1", "permute_2", "addmm_2", "mul_2", "erf", "add_2", "mul_3"],
    "self.down(h)": ["permute_3", "addmm_3", "view_7", "add_3"],
}


def transformer_run(layers: int) -> Tuple[Run, Callable[[Artifact], Optional[str]]]:
    """Forward and backward of ``layers`` layers in one graph."""
    b = RunBuilder(sources=[SourceFile("/home/me/model.py", _MODEL)])
    first = b.place("def forward(self, ids")[1]
    b.functions.append(Function("forward", "Model.forward", 0, first, first + 4))
    call = b.place("x = layer(x, mask)")
    ops: List[Op] = []
    for layer in range(layers):
        for code, nodes in _STEPS.items():
            for node in nodes:
                arguments = ", ".join(f"primals_{layer * 12 + n}" for n in range(4))
                ops.append((f"{node}_{layer}", f"{node}.default({arguments}, [8, 512, 1024])", (call, b.place(code))))
    guards = [
        EntryGuard(
            "TENSOR_MATCH",
            f"check_tensor(L['self']._modules['layers'][{n}].weight, torch.float32, size=[1024])",
            "L",
            call,
        )
        for n in range(layers * 16)
    ]
    b.compilation("0/0", 0, ops, guards=guards, seconds=40.0, backward=True, runs=10, verdict="exact")
    run, text_of = b.run(torch="2.13.0", command=("train.py",))
    parts = [ModulePart("self", "Model")]
    for layer in range(layers):
        nodes = [[f"{node}_{layer}" for node in nodes] for nodes in _STEPS.values()]
        parts.append(ModulePart(f"self.layers.{layer}", "Layer", 0, tuple(node for step in nodes[1:] for node in step)))
        parts.append(ModulePart(f"self.layers.{layer}.norm1", "LayerNorm", len(parts) - 1, tuple(nodes[0])))
    artifacts = (replace(a, modules=tuple(parts) if a.stage == "AFTER_POST_GRAD" else ()) for a in run.artifacts)
    return replace(run, artifacts=tuple(artifacts)), text_of
