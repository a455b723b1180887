"""Two runs of one program in two fresh processes dump the same files, byte for byte."""

from __future__ import annotations

import filecmp
from pathlib import Path
from typing import Any, List

import pytest

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

SOME = [
    "print_in_the_middle",
    "loop_until_data_says_so",
    "closure_writes_cell",
    "random_numbers",
    "module_with_a_branch",
]


def of_one_run(name: str) -> bool:
    """Whether the file tells times and the like, which are others in every run."""
    return name == "manifest.json" or name.startswith("index.")


def different(first: Path, second: Path) -> List[str]:
    """Names of files that only one directory has or that differ in content."""
    names = [
        {str(path.relative_to(each)) for path in each.rglob("*") if path.is_file() and not of_one_run(path.name)}
        for each in (first, second)
    ]
    _, mismatch, errors = filecmp.cmpfiles(first, second, names[0] & names[1], shallow=False)
    return sorted([*(names[0] ^ names[1]), *mismatch, *errors])


@pytest.mark.parametrize("backend", [pytest.param("eager", marks=pytest.mark.slow), "aot_eager"])
def test_two_processes_dump_equal_directories(run_program: Any, tmp_path: Path, backend: str) -> None:
    for run, seed in [("first", "1"), ("second", "2")]:
        run_program("dump_all.py", backend, tmp_path / run, *SOME, environment={"PYTHONHASHSEED": seed})
    assert len(list((tmp_path / "first").iterdir())) > 20
    assert different(tmp_path / "first", tmp_path / "second") == []


@pytest.mark.inductor
@pytest.mark.slow
def test_cold_and_warm_compiler_caches_give_equal_directories(run_program: Any, tmp_path: Path) -> None:
    from torch._inductor import codecache

    if not hasattr(codecache, "GuardedCache"):
        pytest.skip("before 2.8 nobody sees when a graph is taken out of the cache: what it lacks is reported")
    caches = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), "DEPYF_FILES": "all"}
    for run in ["cold", "warm"]:
        run_program("dump_all.py", "inductor", tmp_path / run, "matrix_of_two_sizes", environment=caches)
    for kind in ("BEFORE_PRE_GRAD.0.py", "BEFORE_POST_GRAD.1.py", "kernel_1.py"):
        assert list((tmp_path / "cold").rglob(f"__compiled_fn_*.{kind}")), kind
    assert different(tmp_path / "cold", tmp_path / "warm") == []
