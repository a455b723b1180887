"""A log of Inductor compiling for a GPU (tools/record/record_triton_log.py): Triton kernels, skipped CUDA graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

from depyf.diagnosis.break_advice import advice_for_cudagraphs
from depyf.report.model.run import Run
from depyf.report.read.from_log import run_of_log
from depyf.torch_trace.cudagraphs import SKIPPED, skips
from depyf.torch_trace.events import Event
from depyf.torch_trace.log_file import read_log

LOG = Path(__file__).resolve().parents[1] / "logs" / "torch_2_13_triton.log.gz"


@pytest.fixture(scope="module")
def recorded() -> Run:
    (log,) = read_log(str(LOG))
    return run_of_log(log)


def quoted(run: Run, place: object) -> str:
    """The line of the program that stands at a place."""
    assert isinstance(place, tuple)
    return (run.sources[place[0]].text or "").splitlines()[place[1] - 1].strip()


def test_every_triton_kernel_has_its_definition_its_launch_and_its_lines(recorded: Run) -> None:
    lines = {each.name: [quoted(recorded, place) for place in each.places] for each in recorded.kernels}
    hidden, weights = "hidden = torch.nn.functional.gelu(x @ w)", "weights = torch.softmax(hidden, -1)"
    assert lines == {
        "extern_kernels.mm": [hidden],
        "triton_per_fused__softmax_gelu_0": [hidden, weights],
        "triton_per_fused__softmax_gelu_mul_sum_1": [hidden, weights, "return weights.sum(0) * 2"],
        "triton_poi_fused_clamp_cos_mul_0": ["return x.cos() * clipped", "clipped = factor.clamp(min=1)"],
    }
    texts = {artifact.id: (artifact.content or "").splitlines() for artifact in recorded.artifacts}
    for kernel in recorded.kernels:
        code = texts[kernel.artifact]
        assert [kernel.name in code[line - 1] for line in kernel.calls] == [True]
        if not kernel.extern:
            inside = "\n".join(code[kernel.first - 1 : kernel.last])
            assert f"def {kernel.name}(" in inside
            assert "@triton.jit" in inside


def test_names_that_two_stages_use_for_different_nodes_are_told_apart(recorded: Run) -> None:
    """``mul`` is the last node of the captured graph and the first of gelu's in the lowered one."""
    first = next(each for each in recorded.kernels if each.name == "triton_per_fused__softmax_gelu_0")
    assert "mul" in first.nodes
    assert "return weights.sum(0) * 2" not in [quoted(recorded, place) for place in first.places]


def test_a_skipped_cuda_graph_is_told_with_its_line(recorded: Run) -> None:
    (skip,) = recorded.cudagraph_skips
    assert (skip.compile_id, skip.reason) == ("1/0", "cpu device (arg0_1)")
    assert quoted(recorded, skip.place) == "clipped = factor.clamp(min=1)"
    assert "on one GPU" in skip.advice
    (finding,) = (each for each in recorded.findings if "CUDA" in each.title)
    assert finding.title == "CUDA graphs are not used in scaled: cpu device (arg0_1)"
    assert (finding.place, finding.compile_id) == (skip.place, "1/0")


def test_a_reason_is_told_once_for_each_compilation() -> None:
    def metrics(compile_id: str, reason: object) -> Event:
        return Event("compilation_metrics", compile_id, 0, {"cudagraph_skip_reason": reason}, None, 0.0)

    mutated = "skipping cudagraphs due to mutated inputs (2 instances). Found from : \n"
    mutated += '   File "/m.py", line 7, in f\n    x.add_(1)\n'
    logged = Event(SKIPPED, None, 0, None, mutated, 0.0)
    found = skips([logged, metrics("0/0", mutated), metrics("0/1", mutated), metrics("0/2", None), logged])
    assert [(each.compile_id, each.reason, each.place) for each in found] == [
        ("0/0", "mutated inputs (2 instances)", ("/m.py", 7)),
        ("0/1", "mutated inputs (2 instances)", ("/m.py", 7)),
    ]
    assert [each.compile_id for each in skips([logged, logged])] == [None]


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("mutated inputs (1 instances)", "Return the new value"),
        ("multiple devices: device(type='cuda', index=0), device(type='cpu')", "on one GPU"),
        (
            "graph with symbolic shapes inputs and config.triton.cudagraph_skip_dynamic_graphs=True; dynamic shape",
            "Pad",
        ),
        ("incompatible op aten.nonzero.default", "can't hold this operation"),
        ("something new", ""),
    ],
)
def test_advice_fits_the_reason(reason: str, advice: str) -> None:
    told = advice_for_cudagraphs(reason)
    assert advice in told
    assert bool(advice) == bool(told)
