"""``comptime.breakpoint()`` stops in pdb while Dynamo traces, as the docs say, and breaks no graph."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from depyf.report.model.manifest import from_json

PROGRAM = """
import torch
from torch._dynamo.comptime import comptime
import depyf

@torch.compile(backend="eager")
def scaled(x, n):
    y = x * n
    comptime.breakpoint()
    return y + 1

if __name__ == "__main__":
    with depyf.prepare_debug("dump"):
        for _ in range(2):
            print("result", scaled(torch.ones(2), 3).tolist())
"""


def test_pdb_stops_once_while_dynamo_traces(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        input="ctx.print_locals()\nctx.print_graph()\nctx.print_bt()\nc\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "y = Tensor" in done.stdout or "y = FakeTensor" in done.stdout  # as PyTorch prints it
    assert "l_x_ * 3" in done.stdout
    assert "in scaled\n    comptime.breakpoint()" in done.stdout
    assert done.stdout.count("result [4.0, 4.0]") == 2
    assert done.stdout.count("breakpoint()\n(Pdb)") + done.stdout.count("-> builtins.breakpoint()") >= 1
    run = from_json((tmp_path / "dump" / "manifest.json").read_text(encoding="utf-8"))
    assert run.breaks == ()
    assert len(run.compilations) == 1
