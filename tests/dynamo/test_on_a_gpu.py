"""With a GPU: Triton kernels, CUDA graphs, autograd's threads of a device. All of it is skipped where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, List, Optional

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

if not torch.cuda.is_available():
    pytest.skip("there is no GPU that PyTorch can use", allow_module_level=True)

import depyf  # noqa: E402
from depyf.report.model.run import Run  # noqa: E402
from depyf.report.read.reading import load  # noqa: E402


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = torch.nn.LayerNorm(64), torch.nn.Linear(64, 256), torch.nn.Linear(256, 64)

    def forward(self, x: Any) -> Any:
        hidden = torch.nn.functional.gelu(self.up(self.norm(x)))
        return x + self.down(hidden)


def losses_of_training(mode: Optional[str] = None) -> List[float]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = torch.nn.Sequential(Block(), Block()).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    compiled = torch.compile(model, mode=mode)
    found = []
    for _ in range(5):
        loss = compiled(torch.randn(32, 64, device="cuda")).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.item())
    return found


def loaded(directory: Path) -> Run:
    (one,) = load([str(directory)])
    return one.run


@pytest.mark.parametrize("mode", [None, "reduce-overhead"])
def test_training_computes_the_same_and_every_kernel_has_its_lines(tmp_path: Path, mode: Optional[str]) -> None:
    without = losses_of_training(mode)
    with depyf.prepare_debug(tmp_path):
        assert losses_of_training(mode) == without
    run = loaded(tmp_path)
    assert not run.failures
    generated = [each for each in run.kernels if not each.extern]
    assert {each.backward for each in generated} == {False, True}
    own = [index for index, source in enumerate(run.sources) if source.path == __file__]
    for each in generated:
        assert each.name.startswith("triton_")
        assert {"num_warps", "registers", "launched for"} <= set(each.launch)
        assert any(place[0] in own for place in each.places), each
    assert all(each.memory.uncounted == 0 for each in run.artifacts if each.memory is not None)
    assert run.cudagraph_rerecords == run.cudagraph_skips == ()


@pytest.mark.parametrize("mode", [None, "reduce-overhead"])
def test_the_peak_of_generated_code_is_what_pytorch_allocates(tmp_path: Path, mode: Optional[str]) -> None:
    model, x = Block().cuda(), torch.randn(512, 64, device="cuda")
    with depyf.prepare_debug(tmp_path), torch.no_grad():
        torch.compile(model, mode=mode)(x)
        torch._dynamo.reset()
        compiled = torch.compile(model)
        compiled(x)
        torch.cuda.synchronize()
        before = torch.cuda.memory_stats()["requested_bytes.all.current"]
        torch.cuda.reset_peak_memory_stats()
        compiled(x)
        most = torch.cuda.memory_stats()["requested_bytes.all.peak"] - before
    memories = [each.memory for each in loaded(tmp_path).artifacts if each.kind == "kernels" and each.memory]
    assert [each.peak - each.inputs for each in memories] == [most, most]


def moved() -> None:
    model = torch.nn.Linear(8, 8).cuda()
    compiled = torch.compile(model, mode="reduce-overhead")
    with torch.no_grad():
        for step in range(8):
            if step == 5:
                model.weight.data = model.weight.data.clone()
            torch.compiler.cudagraph_mark_step_begin()
            compiled(torch.ones(2, 8, device="cuda"))


def dynamic_sizes() -> None:
    compiled = torch.compile(lambda x: x * 2 + 1, mode="reduce-overhead", dynamic=True)
    for size in (2, 3, 4):
        for _ in range(3):
            torch.compiler.cudagraph_mark_step_begin()
            compiled(torch.ones(size, device="cuda"))


@pytest.mark.parametrize(
    ("program", "reason", "times"), [(moved, "at another address", 1), (dynamic_sizes, "a dynamic size", 2)]
)
def test_why_a_cuda_graph_is_recorded_again(
    tmp_path: Path, program: Callable[[], None], reason: str, times: int
) -> None:
    with depyf.prepare_debug(tmp_path):
        program()
    (again,) = loaded(tmp_path).cudagraph_rerecords
    assert reason in again.reason
    assert again.times == times


def test_why_a_cuda_graph_is_not_used(tmp_path: Path) -> None:
    def writes(x: Any) -> Any:
        x.add_(1)
        return x * 2

    with depyf.prepare_debug(tmp_path):
        compiled = torch.compile(writes, mode="reduce-overhead")
        for _ in range(3):
            compiled(torch.ones(3, device="cuda"))
    (skip,) = loaded(tmp_path).cudagraph_skips
    assert "mutated inputs" in skip.reason
    assert skip.place is not None


def test_candidates_that_are_measured_are_no_kernels(tmp_path: Path) -> None:
    x = torch.randn(512, 512, device="cuda", dtype=torch.bfloat16)
    with depyf.prepare_debug(tmp_path):
        torch.compile(lambda x: (x @ x).relu(), mode="max-autotune-no-cudagraphs")(x)
    run = loaded(tmp_path)
    assert len([each for each in run.artifacts if each.kind == "kernels"]) == 1
    names = {path.name for path in tmp_path.iterdir()}
    assert not [name for name in names if name.endswith(("_perf", "_config")) or name.startswith("missing")]


def test_a_kernel_of_the_users_is_dumped_and_observed(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(OWN_KERNEL)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "kernel.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "compared True" in done.stdout
    assert "NaN first made by aten.cos" in done.stderr
    names = {each.name for each in loaded(tmp_path / "dump").kernels}
    assert any(name.startswith("doubled_and_added") for name in names)


OWN_KERNEL = """
import depyf, torch, triton
import triton.language as tl

@triton.jit
def doubled_and_added(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, 2 * tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)

@torch.compile
def f(x, y):
    x, out = x.sin(), torch.empty_like(x)
    doubled_and_added[(triton.cdiv(x.numel(), 128),)](x, y, out, x.numel(), BLOCK=128)
    return out.cos()

x, y = torch.randn(1000, device="cuda"), torch.randn(1000, device="cuda")
with depyf.prepare_debug("dump"):
    f(x, y)
print("compared", depyf.compare(f, x, y).same)
with depyf.find_nonfinite("found"):
    f(x, y / 0)
"""


def test_questions_answer_for_code_on_a_gpu(tmp_path: Path) -> None:
    model = Block().cuda()
    compiled, x = torch.compile(model), torch.randn(16, 64, device="cuda")
    compiled(x).sum().backward()
    why = str(depyf.why(compiled, torch.randn(16, 64)))
    assert "lacks CUDA" in why or "device" in why
    with depyf.probe("hidden") as values:
        compiled(x)
    assert [each.value.device.type for each in values["hidden"]] == ["cuda"]
    with depyf.trace() as record:
        compiled(x).sum().backward()
    assert "backward" in str(record)
    answer = depyf.compare(compiled, x)
    assert answer.same, answer
    script = depyf.extract(compiled, "Forward_graph", x, path=str(tmp_path / "graph.py"))
    assert script.runs, script


def test_a_nan_is_found_where_it_begins(tmp_path: Path) -> None:
    def loss(x: Any) -> Any:
        shifted = x - 5
        return shifted.log().sum()

    with depyf.find_nonfinite(str(tmp_path)) as found:
        torch.compile(loss)(torch.rand(64, device="cuda", requires_grad=True)).backward()
    assert found.first is not None
    assert "aten.log" in str(found.first)
    replay = [sys.executable, str(tmp_path / "nonfinite_0" / "replay.py")]
    done = subprocess.run(replay, capture_output=True, text=True, check=True)
    assert "64 values are not finite" in done.stdout


def test_the_programs_own_cuda_graph_is_left_alone(tmp_path: Path) -> None:
    compiled, x = torch.compile(lambda x: x.sin() + 1), torch.randn(100, device="cuda")
    compiled(x)
    for session in (depyf.prepare_debug(tmp_path), depyf.trace(), depyf.watch(), depyf.find_nonfinite(str(tmp_path))):
        with session:
            compiled(x)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                result = compiled(x)
            x.uniform_()
            graph.replay()
        assert torch.allclose(result, x.sin() + 1)


STEPPED = """
import depyf, torch

@torch.compile(backend="aot_eager")
def f(x):
    return (x * x.sin()).sum()

x = torch.ones(3, device="cuda", requires_grad=True)
with depyf.prepare_debug("dump"):
    f(x).backward()
x.grad = None
with depyf.debug():
    f(x).backward()
print("GRADIENT", [round(each, 4) for each in x.grad.tolist()])
"""


def test_pdb_stops_in_the_backward_in_autograds_thread_of_the_device(tmp_path: Path) -> None:
    (tmp_path / "stepped.py").write_text(STEPPED)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(*commands: str) -> str:
        given = "\n".join([*commands, ""])
        command = [sys.executable, "stepped.py"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, input=given, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    undisturbed = run("c")
    (path,) = (tmp_path / "dump").glob("*.Backward_graph.0.py")
    lines = path.read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "torch.ops.aten.cos" in text)
    printed = run(f"b {path}:{line}", "c", "import threading", "p threading.current_thread()", "n", "c")
    assert f"> {path}({line})" in printed
    assert "_DummyThread" in printed.partition(f"> {path}({line})")[2]
    assert f"> {path}({line + 1})" in printed or f"> {path}({line + 2})" in printed
    assert printed.splitlines()[-1].endswith(undisturbed.splitlines()[-1].rpartition("GRADIENT")[2])


def test_a_dump_has_the_configuration_that_pytorch_chose(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path):
        torch.compile(lambda x: (x.sin() * 2).softmax(-1))(torch.randn(64, 1024, device="cuda"))
    launches = [each.launch for each in loaded(tmp_path).kernels if not each.extern]
    assert launches
    assert all({"num_warps", "registers"} <= set(each) for each in launches)
