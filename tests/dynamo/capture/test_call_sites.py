"""Each compilation has the line that called ``torch.compile``."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Dict, Optional, Tuple

import torch
import warm_python

import depyf
from depyf.report.read.reading import load

PROGRAM = """\
import torch

def doubled(x):
    print("a break")
    return x * 2

eager = torch.compile(doubled, backend="eager")

@torch.compile(backend="eager")
def decorated(x):
    return eager(x) + 1

class Net(torch.nn.Module):
    def forward(self, x):
        return x.sin()

net = Net()
net.compile(
    backend="eager"
)
other = torch.compile(backend="aot_eager")(doubled)
decorated(torch.ones(3))
net(torch.ones(3))
other(torch.ones(3))
torch._dynamo.reset()
torch.compile(net.forward, backend="eager")(torch.ones(3))
"""


def sites(dump: Path) -> Dict[Tuple[str, int], Optional[str]]:
    (loaded,) = load([str(dump)])
    run = loaded.run
    found: Dict[Tuple[str, int], Optional[str]] = {}
    for each in run.compilations:
        assert each.function is not None
        name = run.functions[each.function].name
        at = each.compiled_at
        line = None if at is None else f"{Path(run.sources[at[0]].path).name}:{at[1]}"
        found[name, sum(known == name for known, _ in found)] = line
    return found


def callers(dump: Path) -> Dict[str, Tuple[int, ...]]:
    """The lines that led to the first compilation of each function."""
    (loaded,) = load([str(dump)])
    run = loaded.run
    assert {Path(run.sources[source].path).name for each in run.compilations for source, _ in each.callers} == {
        "program.py"
    }
    lines = {each.compile_id: tuple(line for _, line in each.callers) for each in run.compilations}
    first = {
        run.functions[each.function].name: each for each in reversed(run.compilations) if each.function is not None
    }
    return {name: lines[each.compile_id] for name, each in first.items()}


def test_each_compilation_has_its_call(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "depyf", "run", "-q", "-o", "dump", "program.py"]
    warm_python.run(command, cwd=tmp_path, check=True)
    if '"dynamo_start"' not in inspect.getsource(torch._dynamo.convert_frame):  # PyTorch 2.2
        assert set(sites(tmp_path / "dump").values()) == {None}
        return
    decorated = "program.py:9" if sys.version_info >= (3, 11) else "program.py:10"  # where Python calls the decorator
    assert sites(tmp_path / "dump") == {
        ("decorated", 0): decorated,
        ("doubled", 0): "program.py:7",  # called in another compiled function
        ("torch_dynamo_resume_in_doubled_at_4", 0): "program.py:7",
        ("torch_dynamo_resume_in_decorated_at_11", 0): decorated,
        ("forward", 0): "program.py:18",
        ("doubled", 1): "program.py:21",
        ("torch_dynamo_resume_in_doubled_at_4", 1): "program.py:21",
        ("forward", 1): "program.py:26",
    }
    assert callers(tmp_path / "dump") == {
        "decorated": (22,),
        "doubled": (22, 11),  # in transformed code
        "torch_dynamo_resume_in_doubled_at_4": (22, 11, 4),
        "torch_dynamo_resume_in_decorated_at_11": (22, 11),
        "forward": (23,),
    }
    assert "- `torch.compile` was called at program.py:7, program.py:21" in (tmp_path / "dump" / "index.md").read_text()


def test_a_call_before_the_session_is_not_known(tmp_path: Path) -> None:
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    with depyf.prepare_debug(tmp_path):
        compiled(torch.ones(2))
    assert set(sites(tmp_path).values()) == {None}
