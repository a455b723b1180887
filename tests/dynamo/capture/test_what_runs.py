"""Every file of a graph says whether it is executed, and if not, which one is."""

from __future__ import annotations

import ast
import os
import sys
import threading
from pathlib import Path
from typing import Any, Set

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.capture.graphs import write_graph  # noqa: E402
from depyf.dynamo.capture.records import KernelFile  # noqa: E402
from depyf.dynamo.capture.session import Session  # noqa: E402
from depyf.dynamo.capture.what_runs import DOES_NOT_RUN, RUNS, note_what_runs  # noqa: E402
from depyf.dynamo.store.directory import DumpDirectory  # noqa: E402
from depyf.torch_trace.stages import Stage  # noqa: E402


def branching(x: Any, y: Any) -> Any:
    z = x.sin() + y
    if z.sum() > 100:
        z = z * 2
    return z - y


def files_that_ran(directory: Path, compiled: Any) -> Set[str]:
    """The names of the dumped files in which code runs during a training step."""
    seen: Set[str] = set()

    def trace(frame: Any, event: str, argument: Any) -> Any:
        folder, name = os.path.split(frame.f_code.co_filename)
        if folder == str(directory):
            seen.add(name)

    threading.settrace(trace)
    sys.settrace(trace)
    try:
        compiled(torch.ones(3, requires_grad=True), torch.arange(3.0)).sum().backward()
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
    return seen


def files_that_say_so(directory: Path) -> Set[str]:
    said = set()
    for path in directory.rglob("__compiled_fn*.py"):
        text = path.read_text()
        ast.parse(text)
        head = "\n".join(text.splitlines()[:2])
        assert (RUNS in head) != (DOES_NOT_RUN in head), path.name
        if RUNS in head:
            said.add(path.name)
    return said


@pytest.mark.parametrize(
    "backend",
    ["eager", "aot_eager", pytest.param("inductor", marks=[pytest.mark.inductor, pytest.mark.slow])],
)
def test_what_says_that_it_runs_is_what_runs(tmp_path: Path, backend: str) -> None:
    compiled = torch.compile(branching, backend=backend)
    with depyf.prepare_debug(tmp_path):
        compiled(torch.ones(3, requires_grad=True), torch.arange(3.0)).sum().backward()
    for kernel in tmp_path.glob("*.kernel_1.py"):  # of the backward
        backward = tmp_path / kernel.name.replace("kernel_1", "Backward_graph.0")
        assert backward.read_text().splitlines()[1].endswith(f"What runs: {kernel.name}")
    said, ran = files_that_say_so(tmp_path), files_that_ran(tmp_path, compiled)
    assert {name for name in ran if name.startswith("__compiled_fn")} <= said
    # Wrappers that have nothing to do in this program are not called.
    assert {name for name in said - ran if ".AOT_" not in name} == set()


def test_what_does_not_run_names_what_does(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path):
        torch.compile(lambda x: x.sin().sum(), backend="aot_eager")(torch.ones(3, requires_grad=True)).backward()
    (joint,) = tmp_path.glob("*.Joint_graph.0.py")
    (captured,) = tmp_path.glob("*.Captured_Graph.0.py")
    forward, backward = (captured.name.replace("Captured_G", f"{stage}_g") for stage in ("Forward", "Backward"))
    assert joint.read_text().splitlines()[1].endswith(f"What runs: {forward}, {backward}")
    assert captured.read_text().splitlines()[1].endswith(f"What runs: {forward}")


def compiles_backward_late() -> bool:
    from torch._functorch import config

    return hasattr(config, "force_non_lazy_backward_lowering")


def test_a_backward_that_is_not_compiled_yet_says_so(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path):
        torch.compile(lambda x: x.sin().sum(), backend="aot_eager")(torch.ones(3, requires_grad=True))
    (backward,) = tmp_path.glob("*.Backward_graph.0.py")
    if not compiles_backward_late() and "This file is what runs" in backward.read_text().splitlines()[1]:
        pytest.skip("this PyTorch compiles the backward together with the forward")
    assert "The backward had not been compiled" in backward.read_text().splitlines()[1]


READABLE = "class GraphModule(torch.nn.Module):\n    def forward(self, x):\n        return (x,)\n"


@pytest.mark.parametrize(("known", "expected"), [(True, "a.kernel_0.py"), (None, "a.kernel_0.py, a.kernel_1.py")])
def test_which_kernel_is_the_forward_is_not_guessed(tmp_path: Path, known: Any, expected: str) -> None:
    session = Session(DumpDirectory.at(tmp_path), clean_wild_fx_code=True, log_bytecode=False)
    file = write_graph(session, "0/0", "a", Stage.FORWARD, 0, READABLE)
    for index in range(2):
        path = str(tmp_path / f"a.kernel_{index}.py")
        session.add(KernelFile("0/0", "a", index, path, "", "", known and bool(index)))
    note_what_runs(session, "0/0")
    assert file.path is not None
    text = Path(file.path).read_text()
    assert text.splitlines()[1] == f"# {DOES_NOT_RUN} What runs: {expected}"
    assert len(text.splitlines()) == len(file.text.splitlines())
