"""How kernels are launched: read from generated code and from PyTorch's autotuner, and compared between runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import pytest

from depyf.base.stored_text import Text
from depyf.report.analysis.kernels import launch_of
from depyf.report.diff.comparison import compare
from depyf.report.diff.matching import ComparedRun
from depyf.report.model.run import Artifact, Run
from depyf.report.read.from_log import run_of_log
from depyf.torch_trace.log_file import read_log

LOGS = Path(__file__).resolve().parents[1] / "logs"


def run_of(name: str, change: Callable[[str], str] = str) -> Run:
    (log,) = read_log(str(LOGS / name))
    return run_of_log(log)


@pytest.fixture(scope="module")
def triton() -> Run:
    return run_of("torch_2_13_triton.log.gz")


def test_launches_of_triton_kernels_that_pytorch_generated(triton: Run) -> None:
    launches = {each.name: dict(each.launch) for each in triton.kernels if not each.extern}
    assert launches["triton_poi_fused_clamp_cos_mul_0"] == {
        "heuristic": "pointwise",
        "size_hints": "{'x': 2048}",
        "grid_type": "Grid1D",
        "launched for": "2048",
    }
    assert launches["triton_per_fused__softmax_gelu_0"] == {
        "heuristic": "persistent_reduction",
        "size_hints": "{'x': 64, 'r0_': 16}",
        "reduction_hint": "INNER",
        "grid_type": "Grid1D",
        "R0_BLOCK": "16",
        "launched for": "64, 16",
    }


def test_older_calls_name_the_grid_and_templates_their_warps() -> None:
    code = [
        "@triton_heuristics.template(",
        "    num_stages=3,",
        "    num_warps=8,",
        "    triton_meta={'signature': {}},",
        ")",
        "@triton.jit",
        "def triton_mm(arg_A):",
        "    BLOCK_M : tl.constexpr = 64",
    ]
    call = "    triton_mm.run(arg0_1, buf0, s77, grid=mm_common.mm_grid(64, 32, meta0), stream=s)"
    assert launch_of(code, [call]) == {
        "heuristic": "template",
        "num_stages": "3",
        "num_warps": "8",
        "BLOCK_M": "64",
        "launched for": "s77",
        "grid": "mm_common.mm_grid(64, 32, meta0)",
    }


CPP = """\
    #pragma omp parallel num_threads(2)
    {
        #pragma omp for collapse(2)
        for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(4096L); x0+=static_cast<int64_t>(16L))
        {
            for(long x1=0L; x1<3L; x1+=1L)
            {
                out_ptr0[x0] = in_ptr0[x0];
"""


def test_threads_and_loops_of_cpp_kernels() -> None:
    assert launch_of(CPP.splitlines(), []) == {
        "threads": "2",
        "parallel loops": "collapse(2)",
        "loops": "x0 0 to 4096 by 16, x1 0 to 3",
    }
    alone = CPP.replace(" num_threads(2)", "").splitlines()
    assert launch_of(alone, [])["threads"] == "of the process"
    assert launch_of(CPP.splitlines()[3:], [])["threads"] == "1"
    assert launch_of(["graph = 1"], []) == {}


def test_code_of_a_log_on_the_cpu_has_launches() -> None:
    launches = [dict(each.launch) for each in run_of("torch_2_13.log.gz").kernels if not each.extern]
    assert launches
    assert all({"threads", "loops"} <= set(each) for each in launches)


def side(name: str, run: Run, **launch: str) -> ComparedRun:
    kernels = tuple(
        replace(each, launch={**each.launch, **launch}) if "poi" in each.name else each for each in run.kernels
    )

    def text_of(artifact: Artifact) -> Any:
        return artifact.content if isinstance(artifact.text, (str, Text)) or artifact.text else None

    return ComparedRun(name, replace(run, kernels=kernels), text_of)


def test_another_launch_is_a_difference_with_both_values(triton: Run) -> None:
    before, after = side("a", triton, XBLOCK="256", num_warps="4"), side("b", triton, XBLOCK="512", num_warps="4")
    compared = compare(before, after)
    assert [change.kind for change in compared.changes] == ["kernel"]
    assert "launch of triton_poi_fused_clamp_cos_mul_0: XBLOCK 256 before, 512 now" in compared.changes[0].text
    # What only a dump can have is no difference to a log.
    assert compare(side("a", triton), after).same


def test_the_configuration_that_pytorch_chose() -> None:
    pytest.importorskip("torch")
    from depyf.dynamo.capture.launches import chosen_launch

    config = SimpleNamespace(kwargs={"XBLOCK": 256}, num_warps=4, num_stages=1)
    launcher = SimpleNamespace(config=config, n_regs=24, n_spills=0, shared=1024)
    kernel = SimpleNamespace(launchers=[launcher])
    assert chosen_launch(kernel) == {
        "XBLOCK": "256",
        "num_warps": "4",
        "num_stages": "1",
        "registers": "24",
        "spills": "0",
        "shared memory": "1024",
    }
    assert chosen_launch(SimpleNamespace(launchers=[launcher, launcher])) == {"candidates": "2, none chosen yet"}
    assert chosen_launch(SimpleNamespace(launchers=[])) == {}
    assert chosen_launch(len) == {}


def test_pytorchs_autotuner_has_what_is_read_of_it() -> None:
    torch_names = pytest.importorskip("depyf.dynamo.hooks.torch_names")
    import importlib.util

    spec = importlib.util.find_spec("torch._inductor.runtime.triton_heuristics")
    if spec is None or spec.origin is None:
        pytest.skip("this PyTorch has it elsewhere")
    text = Path(spec.origin).read_text(encoding="utf-8")
    assert torch_names is not None
    assert "self.launchers" in text
    assert "launcher.config" in text
    assert ".n_regs" in text


def test_a_kernel_of_a_dump_gets_what_was_chosen() -> None:
    pytest.importorskip("torch")
    from types import ModuleType

    from depyf.dynamo.capture.launches import note_module, with_chosen_launches
    from depyf.dynamo.capture.records import KernelFile
    from depyf.report.model.run import ModuleKernel

    module = ModuleType("generated")
    config = SimpleNamespace(kwargs={"XBLOCK": 64}, num_warps=2, num_stages=1)
    vars(module)["triton_poi_0"] = SimpleNamespace(launchers=[SimpleNamespace(config=config)])
    note_module("/dump/kernel_0.py", module)
    record = KernelFile("0/0", "f", 0, "/dump/kernel_0.py", "/cache/c.py", "")
    kernels = (ModuleKernel("kernel_0.py", "triton_poi_0", "0/0", False, launch={"grid_type": "Grid1D"}),)
    run = with_chosen_launches(Run(kernels=kernels), [record])
    assert run.kernels[0].launch == {"grid_type": "Grid1D", "XBLOCK": "64", "num_warps": "2", "num_stages": "1"}
