"""Several processes: forked inside of ``prepare_debug``, ranks of a distributed program, and one that is killed."""

from __future__ import annotations

import ast
import multiprocessing
import os
import re
import signal
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Set

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.capture.hub import capture  # noqa: E402
from depyf.dynamo.hooks import torch_names  # noqa: E402
from depyf.report.model.manifest import from_json  # noqa: E402

FORK = multiprocessing.get_context("fork")


def names(directory: Path) -> Set[str]:
    return {path.name for path in directory.iterdir() if path.is_file()}


def functions_of(manifest: Path) -> List[str]:
    """The functions whose compilations a manifest tells."""
    run = from_json(manifest.read_text())
    return sorted(run.functions[each.function].name for each in run.compilations if each.function is not None)


def compile_one(name: str, expression: str = "x + 1") -> Any:
    """Compile and run a function of that name."""
    namespace: Dict[str, Any] = {}
    exec(compile(f"def {name}(x):\n    return {expression}\n", __file__, "exec"), namespace)
    return torch.compile(namespace[name], backend="eager")(torch.ones(2)).tolist()


def _child() -> None:
    compile_one("of_the_child")
    compile_one("of_both", "x * 2")


def test_a_forked_child_dumps_what_it_compiles_and_leaves_the_parents_files_alone(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path):
        compile_one("of_the_parent")
        child = FORK.Process(target=_child)
        child.start()
        child.join(60)
        assert child.exitcode == 0
        assert not [name for name in names(tmp_path) if name.startswith("full_code_for_of_the_parent")]
        compile_one("of_both", "x * 3")
    found = names(tmp_path)
    for function in ("of_the_parent", "of_the_child", "of_both"):
        assert {f"full_code_for_{function}_0.py", f"__transformed_code_0_for_{function}.py"} <= found
    assert not [name for name in found if "of_the_parent" in name and "process" in name]
    graphs = [(tmp_path / name).read_text() for name in found if "Captured_Graph" in name]
    assert sum("x * 2" in re.sub(r"l_x_", "x", text) for text in graphs) == 1
    assert sum("x * 3" in re.sub(r"l_x_", "x", text) for text in graphs) == 1
    assert not list(tmp_path.glob(".depyf_writers/*.writing"))
    assert functions_of(tmp_path / "manifest.json") == ["of_both", "of_the_parent"]
    (of_the_child,) = tmp_path.glob("manifest.process_*.json")
    assert functions_of(of_the_child) == ["of_both", "of_the_child"]
    assert of_the_child.with_name(of_the_child.name.replace("manifest", "index").replace(".json", ".md")).exists()


def test_a_forked_child_that_leaves_the_with_statement_itself(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path):
        compile_one("of_the_parent")
        process = os.fork()
        if process == 0:
            compile_one("of_the_child")
    if process == 0:
        os._exit(0 if capture.current() is None else 1)
    assert os.waitpid(process, 0)[1] == 0
    assert {"full_code_for_of_the_parent_0.py", "full_code_for_of_the_child_0.py"} <= names(tmp_path)


def _compile_until_killed(directory: str) -> None:
    with depyf.prepare_debug(directory):
        for number in range(10_000):
            compile_one(f"number_{number % 3}", f"x + {number}")
            torch._dynamo.reset()  # tells the story of what there was


def test_a_killed_process_leaves_whole_files_and_no_lock(tmp_path: Path) -> None:
    child = FORK.Process(target=_compile_until_killed, args=(str(tmp_path),))
    child.start()
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("full_code*"))) < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    left = names(tmp_path)
    assert len(left) > 10
    for name in left:
        ast.parse((tmp_path / name).read_text())
    with depyf.prepare_debug(tmp_path):
        compile_one("number_0", "x - 1")
    assert "- 1" in (tmp_path / "full_code_for_number_0_0.py").read_text()
    assert names(tmp_path) >= left
    assert not [name for name in names(tmp_path) if "process" in name]
    assert sorted(os.listdir(tmp_path / ".depyf_writers")) == ["0", "0.files"]


@pytest.mark.slow
def test_ranks_dump_into_their_own_directories_and_into_one(tmp_path: Path, run_program: Callable[..., str]) -> None:
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this PyTorch has no gloo")
    kinds = ["ddp", "fsdp"] if torch_names.find("torch.distributed.fsdp", "fully_shard") is not None else ["ddp"]
    arguments = [
        each for kind in kinds for each in (kind, tmp_path / kind / "rank_{rank}", kind, tmp_path / kind / "both")
    ]
    flags = "-m torch.distributed.run --nproc_per_node=2 --standalone"
    printed = run_program("ranks.py", *arguments, flags=flags)
    told = {line for line in printed.splitlines() if not line.startswith("[Gloo]")}
    assert sorted(told) == sorted(f"rank {rank}, {kind}: same" for rank in (0, 1) for kind in kinds)
    for kind in kinds:
        own = [names(tmp_path / kind / f"rank_{rank}") for rank in (0, 1)]
        both = names(tmp_path / kind / "both")
        assert own[0] == own[1]
        assert "full_code_for_step_0.py" in own[0]
        assert any("Backward_graph" in name for name in own[0])
        stripped = {_without_number(name) for name in both if ".rank_1" not in name}
        assert stripped == {_without_number(name) for name in own[0]}
        assert {name.replace(".rank_1", "") for name in both if ".rank_1" in name} == {
            name for name in both if ".rank_1" not in name
        }
        assert len(both) == 2 * len(own[0])
        runs = [from_json((tmp_path / kind / "both" / f"manifest{mark}.json").read_text()) for mark in ("", ".rank_1")]
        assert [run.rank for run in runs] == [0, 1]
        assert all(run.compilations for run in runs)
        for path in (tmp_path / kind).glob("*/*.py"):
            ast.parse(path.read_text())
        assert not list((tmp_path / kind).glob("*/.depyf_writers"))


def _without_number(name: str) -> str:
    return re.sub(r"^__compiled_fn_\d+|(?<=transformed_code_)\d+|\d+(?=\.py$)", "N", name)


@pytest.mark.slow
def test_a_spawned_process_dumps_into_the_directory_that_it_names(
    tmp_path: Path, run_program: Callable[..., str]
) -> None:
    printed = run_program("spawned.py", tmp_path)
    assert "spawned: [2.0, 2.0]" in printed
    assert {"full_code_for_of_the_parent_0.py", "full_code_for_of_the_child_0.py"} <= names(tmp_path)
    assert not list(tmp_path.glob(".depyf_writers"))


@pytest.mark.slow
@pytest.mark.parametrize("way", ["fork", "forkserver", "spawn"])
def test_a_process_that_leaves_its_session_open_tells_what_it_compiled(
    way: str, tmp_path: Path, run_program: Callable[..., str]
) -> None:
    assert run_program("spawned.py", tmp_path, way).splitlines() == ["[2.0, 2.0]"]
    assert {"full_code_for_of_the_child_0.py", "index.html", "manifest.json"} <= names(tmp_path)
    assert functions_of(tmp_path / "manifest.json") == ["of_the_child"]
    assert not list(tmp_path.glob(".depyf_writers"))
